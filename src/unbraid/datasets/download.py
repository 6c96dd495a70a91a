"""Fetch an official file on request: resumed where it was cut, checked, and given its name only when whole."""

import http.client
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from unbraid.base.errors import UnbraidError
from unbraid.base.suggest import one_line
from unbraid.base.version import VERSION
from unbraid.data.image_dataset import ReadingProgress
from unbraid.datasets.official_files import CHUNK, FOLDER, OfficialFile, check_size, digest, mismatch
from unbraid.files.cache_folder import cache_root
from unbraid.files.locks import locked

TIMEOUT = 30.0  # seconds without a byte
ATTEMPTS = 5  # in a row without a byte gained
PAUSE = 1.0  # seconds before the next attempt, times their number


class ChecksumMismatch(UnbraidError, ValueError):
    """A downloaded file is not the one whose checksum is known; it is kept under its temporary name."""


def official_folder() -> Path:
    """Where official files are downloaded to, and looked for."""
    return cache_root() / FOLDER


def download(file: OfficialFile, folder: Path, *, verify: bool = True, progress: ReadingProgress | None = None) -> Path:
    """Fetch a file into a folder, unless it is there already.

    What arrives is kept as NAME.part; the next call goes on from there, if the server still has the same file. Only
    when all of it has arrived and its checksum is right is it renamed to NAME. Of several processes that want the same
    file, one fetches it and the others wait.

    Args:
        file: what to fetch.
        folder: where to; made if need be.
        verify: refuse a file of another checksum. Without, one that was refused before is accepted as it lies.
        progress: called as progress(bytes there, bytes in all, or 0 where the server does not say).

    Raises:
        ChecksumMismatch: it is not the file whose checksum is known.
        ValueError: it can only be got by hand, and the message says how; or the file that is there is cut short.
        OSError: the server cannot be reached or the disk is full; a later call goes on.
    """
    if not file.downloads:
        raise ValueError(
            f"{file.name} cannot be downloaded from here. {file.how or 'Get it by hand'}: {file.address}. "
            f"Then put it at {folder / file.name}"
        )
    path, part = folder / file.name, folder / f"{file.name}.part"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / f".{file.name}.lock", wait="always"):
            if not path.exists():  # another process may have fetched it meanwhile
                _fetch(file, part, progress)
                _finish(file, part, path, verify)
    if verify and path.is_file():
        check_size(path, file)
    return path


def _finish(file: OfficialFile, part: Path, path: Path, verify: bool) -> None:
    """Give what has arrived its name, if it is the file."""
    if verify and file.checksum:
        algorithm = file.checksum.partition(":")[0]
        checksum = f"{algorithm}:{digest(part, algorithm)}"
        if checksum != file.checksum:
            raise ChecksumMismatch(
                f"{mismatch(part, file, checksum)}. verify=False (--no-verify) accepts it as it is; "
                f"or delete {part} and get it again from {file.address}"
            )
    part.replace(path)
    _tag_of(part).unlink(missing_ok=True)


def _fetch(file: OfficialFile, part: Path, progress: ReadingProgress | None) -> None:
    failures = 0
    while True:
        before = _size(part)
        try:
            _one_attempt(file, part, progress)
        except HTTPError as error:
            error.close()
            raise OSError(f"{file.address}: the server answered {error.code} {one_line(error.reason)}") from error
        except (http.client.HTTPException, ConnectionError, TimeoutError, URLError) as error:
            failures = failures + 1 if _size(part) <= before else 1
            if failures >= ATTEMPTS:
                reason = getattr(error, "reason", None) or error
                raise OSError(
                    f"{file.address}: {one_line(reason) or type(error).__name__}; {_size(part):,} bytes are kept, "
                    "and the same command goes on from there"
                ) from error
            time.sleep(PAUSE * failures)
        else:
            return


def _one_attempt(file: OfficialFile, part: Path, progress: ReadingProgress | None) -> None:
    """Fetch what is missing.

    Raises:
        http.client.HTTPException: the connection was cut.
        URLError, ConnectionError, TimeoutError: the server cannot be reached.
    """
    start, tag = _size(part), _tag_of(part)
    known = tag.read_text() if tag.exists() else ""
    headers = {"User-Agent": f"unbraid/{VERSION}"}
    if start and (known or file.checksum):
        # Without a tag the whole is checked in the end; without either, two files could be glued together.
        headers |= {"Range": f"bytes={start}-"} | ({"If-Range": known} if known else {})
    try:
        answer = urlopen(Request(file.address, headers=headers), timeout=TIMEOUT)
    except HTTPError as error:
        if error.code != 416:
            raise
        # Nothing lies beyond what is there: it is whole, or not what the server has.
        total = (error.headers.get("Content-Range") or "").rpartition("/")[2]
        error.close()
        if total == str(start):
            return
        part.unlink()
        raise ConnectionError("the server has another file than the one begun") from error
    with answer:
        if answer.headers.get_content_type() == "text/html":
            raise OSError(f"{file.address}: the server sent a page and not the file, as one that asks to log in")
        resumed = answer.status == 206
        if resumed and not (answer.headers.get("Content-Range") or "").startswith(f"bytes {start}-"):
            raise ConnectionError("the server sent another part than the one asked for")
        start = start if resumed else 0
        length = answer.headers.get("Content-Length")
        total = start + int(length) if length and length.isdecimal() else 0
        free = shutil.disk_usage(part.parent).free
        if total - start > free:
            raise OSError(f"{part}: needs {total - start:,} more bytes, but the disk has {free:,} left")
        etag = answer.headers.get("ETag") or ""
        strong = etag if not etag.startswith("W/") else ""
        tag.write_text(strong or answer.headers.get("Last-Modified") or "")
        with part.open("ab" if resumed else "wb") as out:
            _copy(answer, out.write, start, total, progress)


def _copy(
    answer: http.client.HTTPResponse,
    write: Callable[[bytes], object],
    done: int,
    total: int,
    progress: ReadingProgress | None,
) -> None:
    while block := answer.read1(CHUNK):
        write(block)
        done += len(block)
        if progress is not None:
            progress(done, total)
    if total and done < total:
        raise http.client.IncompleteRead(b"", total - done)


def _tag_of(part: Path) -> Path:
    return part.with_name(f"{part.name}.tag")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
