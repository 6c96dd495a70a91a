"""Files that others publish: where they are looked for, how they are checked, and what is said when they are absent."""

import hashlib
import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from unbraid.base.errors import UnbraidError
from unbraid.data import FactorSpace
from unbraid.data.image_dataset import ReadingProgress
from unbraid.datasets.image_store import Content, StoredImages, cache_folder, cached
from unbraid.files.whole_files import check_file, with_home, write_text

FOLDER = "official"  # under the folder of all datasets; what `unbraid data get` downloads goes there
CHUNK = 1 << 20
UNVERIFIED = "not checked: verify=False"
COMPARED = "compared.json"  # beside a stored set: the file that had its checksum, by path, size and times


@dataclass(frozen=True)
class OfficialFile:
    """A file that others publish, as the user is told to get it."""

    name: str  # file name, as its authors publish it
    address: str  # where to get it: what `unbraid data get` downloads, or the page that leads to it
    size: int | None = None  # bytes, where known
    sha256: str = ""
    md5: str = ""  # only where no SHA-256 is known
    git_sha1: str = ""  # SHA-1 of the git blob; only where neither is known
    downloads: bool = False  # fetched on request; otherwise by hand, as `how` tells
    how: str = ""  # what to do where it cannot be downloaded
    folder: str = ""  # name of the folder it unpacks to, which is read as well
    companion: bool = False  # needed in addition to the first file of its dataset; otherwise an alternative to it
    option: str = ""  # of the dataset, with which alone this file is read: release=early

    @property
    def checksum(self) -> str:
        """The strongest known checksum with its algorithm, or nothing."""
        known = {"sha256": self.sha256, "md5": self.md5, "git-sha1": self.git_sha1}
        return next((f"{algorithm}:{digest}" for algorithm, digest in known.items() if digest), "")


class DatasetMissing(UnbraidError, FileNotFoundError):
    """A dataset needs a file that is not there; the message says where to get it and where to put it."""


class ChecksumWarning(UserWarning):
    """A file is not byte for byte the one whose checksum is known."""


def located(
    name: str, files: tuple[OfficialFile, ...], root: Path, user_path: str | Path | None
) -> tuple[OfficialFile, Path]:
    """The first of the forms in which a dataset is published that is there, any of which will do, and its path.

    If the user named a path (`user_path`), only this one is looked at; else `root`, the folder of all datasets, and its
    folder "official".

    Raises:
        DatasetMissing: none is there.
        ValueError: the user's path has a name that none of the files has.
    """
    if user_path is not None:
        path = with_home(user_path)
        check_file(path)
        if not path.exists():
            raise DatasetMissing(f"{path}: no such file. {_instructions(name, files, root)}")
        for file in files:
            if path.name == file.name or (path.is_dir() and file.folder):
                return file, path
        for file in files:  # a renamed copy
            if path.is_file() and _form(path) == _form(Path(file.name)):
                return file, path
        raise ValueError(f"{path}: not a file of dataset {name!r}. {_instructions(name, files, root)}")
    for file, path in files_there(files, root):
        check_file(path)
        return file, path
    raise DatasetMissing(f"dataset {name!r} needs a file that is not there. {_instructions(name, files, root)}")


def files_there(files: tuple[OfficialFile, ...], root: Path) -> Iterator[tuple[OfficialFile, Path]]:
    """Those of the files, or the folders unpacked from them, that are in the folder of all datasets."""
    for file in files:
        for place in (root / FOLDER, root):
            for candidate in filter(None, (file.name, file.folder)):
                if (place / candidate).exists():
                    yield file, place / candidate


def _form(path: Path) -> str:
    return ".h5" if path.suffix == ".hdf5" else path.suffix


def _instructions(name: str, files: tuple[OfficialFile, ...], root: Path) -> str:
    file = files[0]
    size = f", {file.size:,} bytes" if file.size else ""
    checksum = f", {file.checksum}" if file.checksum else ", no checksum known"
    command = f"unbraid data get {name}" + (f" --file {file.name}" if file.option else "")
    get = f"Run `{command}`, or put it" if file.downloads else f"{file.how or 'Get it by hand'}; put it"
    alternatives = "".join(f"; {other.name} will do as well" for other in files[1:])
    return f"It is {file.name} from {file.address}{size}{checksum}{alternatives}. {get} at {root / FOLDER / file.name}"


def check(path: Path, file: OfficialFile, progress: ReadingProgress | None = None) -> str:
    """Compare size and checksum with what is known of the file; gives the digest found, with its algorithm.

    Warns:
        ChecksumWarning: it differs. Files are re-released, so this is for the user to judge.

    Raises:
        ValueError: as `check_size`.
    """
    check_size(path, file)
    algorithm, _, expected = (file.checksum or "sha256:").partition(":")
    found_digest = digest(path, algorithm, progress)
    if expected and found_digest != expected:
        warnings.warn(mismatch(path, file, f"{algorithm}:{found_digest}"), ChecksumWarning, stacklevel=2)
    return f"{algorithm}:{found_digest}"


def check_size(path: Path, file: OfficialFile) -> None:
    """Raises ValueError for a file that is shorter than it should be, as a download cut short is."""
    size = path.stat().st_size
    if file.size and size < file.size:
        raise ValueError(
            f"{path}: incomplete, {size:,} of {file.size:,} bytes; delete it and get it again from {file.address} "
            "(or, if it is meant to be so, leave out the check with verify=False, --no-verify)"
        )


def mismatch(path: Path, file: OfficialFile, checksum: str) -> str:
    return f"{path}: its checksum is {checksum}, expected {file.checksum}; it is not the {file.name} that is known"


def digest(path: Path, algorithm: str, progress: ReadingProgress | None = None) -> str:
    """Hexadecimal digest of a file by "sha256", "md5" or "git-sha1"."""
    size = path.stat().st_size
    hasher = hashlib.sha1() if algorithm == "git-sha1" else hashlib.new(algorithm, usedforsecurity=False)
    if algorithm == "git-sha1":
        hasher.update(b"blob %d\0" % size)
    done = 0
    with path.open("rb") as source:
        while block := source.read(CHUNK):
            hasher.update(block)
            done += len(block)
            if progress is not None:
                progress(done, size)
    return hasher.hexdigest()


def open_official(
    name: str,
    files: tuple[OfficialFile, ...],
    read: Callable[[Path], Content],
    root: Path,
    *,
    version: int,
    file: str | Path | None = None,
    verify: bool = True,
    progress: ReadingProgress | None = None,
    preprocessing: Mapping[str, Any] | None = None,
    cache_options: Mapping[str, str | int | float | bool] | None = None,
) -> StoredImages:
    """The cache of an official set; where there is none, the file is read once from end to end.

    `files` are the forms in which it is published, and `file` is where the user says that it is. `read` converts what
    was found, and `version` counts its changes; `verify` compares size and checksum first, and where there is a cache,
    it with a `file` that is given, unless this one was compared before and has not changed since. `preprocessing` goes
    into the cache's metadata; the options in `cache_options` make other images, and so need a cache of their own.
    """

    user_path = None if file is None else located(name, files, root, file)[1]

    def content() -> Content:
        form, path = located(name, files, root, file)
        checksum = "not checked" if verify else UNVERIFIED
        if verify and path.is_file():
            checksum = check(path, form, progress)
        with naming(path):
            made = read(path)
        description = {
            "source": form.name,
            "address": form.address,
            "checksum": checksum,
            "rendered": False,
            "preprocessing": dict(preprocessing or {}),
        }
        with_source = replace(made, description=description | dict(made.description))
        return replace(with_source, slabs=_naming(path, with_source.slabs))

    folder = cache_folder(root, name, version, **(cache_options or {}))
    stored_before = folder.exists()
    stored = cached(folder, content, progress)
    if stored_before and verify:
        _check_source(stored, user_path, progress)
    return stored


def _check_source(stored: StoredImages, user_path: Path | None, progress: ReadingProgress | None) -> None:
    """Compare what is stored with the file that the user says it should be of.

    Warns:
        ChecksumWarning: it was made of a file that nobody checked.

    Raises:
        ValueError: it was made of another file.
    """
    stored_checksum = str(stored.description.get("checksum"))
    if stored_checksum == UNVERIFIED:
        message = f"{stored.folder}: made of a file that was not checked (verify=False); delete this folder to check it"
        warnings.warn(message, ChecksumWarning, stacklevel=2)
        return
    algorithm, _, known = stored_checksum.partition(":")
    if user_path is None or not user_path.is_file() or not known:
        return
    note, stamp = stored.folder / COMPARED, _stamp(user_path)
    with suppress(OSError):
        if note.read_bytes() == stamp.encode():
            return
    if (checksum := digest(user_path, algorithm, progress)) != known:
        raise ValueError(
            f"{user_path}: its checksum is {algorithm}:{checksum}, and what is stored was made of a file with "
            f"{stored_checksum}; delete the folder {stored.folder} to have this one read"
        )
    with suppress(OSError):  # a folder that cannot be written: compared again next time
        write_text(note, stamp)


def _stamp(path: Path) -> str:
    """Path, size and times of a file; that of the last change cannot be set to an earlier one."""
    stat = path.stat()
    return json.dumps([str(path.resolve()), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns])


def official_opener(
    name: str,
    files: tuple[OfficialFile, ...],
    read: Callable[[Path], Content],
    version: int,
    preprocessing: Mapping[str, Any] | None = None,
) -> Callable[..., StoredImages]:
    """What opens an official set that has no options but these; arguments as of `open_official`."""

    def opener(
        root: Path, *, progress: ReadingProgress | None = None, file: str | Path | None = None, verify: bool = True
    ) -> StoredImages:
        """Open the official set.

        Args:
            root: folder of all datasets.
            progress: told of bytes checked, then of images converted, the first time.
            file: where the official file, or the folder unpacked from it, is, when not in `root`; read once, and
                later compared by its checksum with what is stored, again where it has changed.
            verify: compare the file with the size and checksum that are known of it before it is converted.
        """
        return open_official(
            name,
            files,
            read,
            root,
            version=version,
            file=file,
            verify=verify,
            progress=progress,
            preprocessing=preprocessing,
        )

    return opener


def check_levels(path: Path, levels: Any, space: FactorSpace) -> None:
    """Refuse a file whose own labels are not the grid that its images are taken for."""
    wrong = np.flatnonzero((levels != space.grid()).any(axis=1))
    if len(wrong):
        row = wrong[0]
        raise ValueError(
            f"{path}: image {row} is labelled {levels[row].tolist()} where "
            f"{space.factors([row])[0].tolist()} was expected ({', '.join(space.names)})"
        )


def _naming(path: Path, slabs: Any) -> Iterator[Any]:
    with naming(path):
        yield from slabs


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Say which file was being read when it turned out to be damaged."""
    try:
        yield
    except ValueError as error:
        if str(path) in str(error):
            raise
        raise ValueError(f"{path}: {error}") from error
