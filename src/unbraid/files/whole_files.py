"""Files that are either whole or absent, and names from outside that stay below their folder."""

import errno
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from unbraid.base.errors import UnbraidError

MOST_UNPACKED = 1 << 29  # bytes that any file may unpack to
FORSAKEN = 60.0  # seconds after which a temporary file that no process holds is that of a killed one
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class DiskFull(UnbraidError, OSError):
    """There is no room for what has to be written."""


def disk_is_full(error: BaseException) -> bool:
    """Whether this is what a full disk, or a file that may not grow, made of a write."""
    return isinstance(error, DiskFull) or (isinstance(error, OSError) and error.errno in _FULL)


def fsync_directory(folder: Path) -> None:
    """Have the names in a folder on the disk, so that a rename which follows never comes before them."""
    if os.name == "nt":  # a folder cannot be opened there
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def on_disk(folder: Path, *, written: str) -> None:
    """Have the files of a folder on the disk, and their names, before its rename makes them count.

    All are written before the first is waited for: what each waits for, the others need not. The file of the name
    `written` is on the disk already.
    """
    for path in sorted(file for file in folder.iterdir() if file.name != written):
        with open(path, "rb+") as file:
            os.fsync(file.fileno())
    fsync_directory(folder)


def below(folder: str | Path, name: str) -> Path:
    """The path of what a file, a store or a request names below a folder.

    Args:
        folder: where it lies, and stays.
        name: with / between its parts; of something that is there or not.

    Raises:
        ValueError: it is empty or hidden, leads out of the folder, by itself or by a link, or would on another system:
            absolute, with a drive, a backslash or a NUL.
    """
    parts = [part for part in name.removeprefix("./").split("/") if part]
    if not parts or name[0] == "/" or name[1:2] == ":" or "\\" in name or "\0" in name:
        raise ValueError(f"{name!r} is no path below {folder}; give a relative one with / between its parts")
    if any(part.startswith(".") for part in parts):
        raise ValueError(f"{name!r} is hidden or leads out of {folder}")
    path = str(folder)
    for part in parts:
        path = os.path.join(path, part)  # tables name many thousands: pathlib takes four times as long
        if os.path.islink(path) and not _stays(Path(path), Path(folder)):
            raise ValueError(f"{name!r} is a link that leads out of {folder}, or to what is hidden in it")
    return Path(path)


def _stays(link: Path, folder: Path) -> bool:
    try:
        relative = link.resolve().relative_to(folder.resolve())
    except (ValueError, OSError, RuntimeError):  # elsewhere, or links in a circle
        return False
    return not any(part.startswith(".") for part in relative.parts)


def with_home(path: str | Path) -> Path:
    """The path with the home that a leading ~ or ~user stands for; as in a shell, one of no user stays as it is."""
    return Path(os.path.expanduser(path))  # Path.expanduser would raise a RuntimeError


def check_file(path: Path) -> None:
    """Raises ValueError for what is neither a file nor a folder, such as a pipe, on which a reader would wait."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise ValueError(f"{path}: neither a file nor a folder (a pipe, a socket or a device)")


def read_whole(path: str | Path, most: int) -> bytes:
    """The content of a file; of thousands of small ones in less time than `Path.read_bytes`.

    Raises:
        FileNotFoundError: there is no file of this name; a pipe, on which a reader would wait, is none.
        ValueError: it has more than `most` bytes.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(descriptor, "rb", buffering=0) as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise FileNotFoundError(errno.ENOENT, "no file", str(path))
        if status.st_size > most:
            raise ValueError(f"it is larger than {most >> 20} MiB")
        return file.readall()


def check_unpacked(path: Path, declared: int, *, times: int = 50) -> None:
    """Raises ValueError for a small file whose content would fill the memory.

    Args:
        path: a compressed file.
        declared: bytes that its content takes in memory.
        times: the length of the file that its content may take, where that is more than 512 MiB.
    """
    length = path.stat().st_size
    if declared > max(MOST_UNPACKED, times * length):
        raise ValueError(
            f"its {length:,} bytes unpack to {declared:,}, more than {times} times as many; if that is meant, save it "
            "without compression"
        )


def remove(path: Path) -> None:
    """Remove a file, or a folder with all in it, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def remove_with_folder(path: Path) -> None:
    """Remove a file, and the folder that it lies in where nothing else is left."""
    path.unlink()
    with suppress(OSError):  # it holds other files
        path.parent.rmdir()


@contextmanager
def atomic_write(path: str | Path) -> Iterator[Path]:
    """A temporary name beside `path`, renamed to it when the block succeeds and removed when it does not.

    What killed processes left of the same file is removed.

    Raises:
        FileNotFoundError: the folder does not exist.
        DiskFull: there is no room for what the block writes.
        OSError: another failure of a write; like the others it names `path`.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: the folder {path.parent} does not exist")
    _remove_forsaken(path)
    temporary = path.parent / f".{path.name}.{secrets.token_hex(4)}.part"
    # Not mkstemp, whose files are private: a result should be as readable as any file the user makes.
    try:
        descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    except OSError as error:  # of the file that is asked for, and not of a name that nobody knows
        raise OSError(error.errno, error.strerror, str(path)) from None
    is_held = _hold(descriptor)
    if not is_held:
        os.close(descriptor)
    try:
        yield temporary
        # A machine that loses power may else keep the name and lose the content.
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        if error.errno is None or error.filename not in (None, str(temporary)):  # it says what it is of
            raise
        if disk_is_full(error):
            raise DiskFull(f"{path}: {os.strerror(error.errno).lower()}") from error
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        if is_held:
            os.close(descriptor)
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A temporary folder beside `path`, renamed to it when the block succeeds and removed when it does not.

    What killed processes left of the same folder is removed.

    Raises:
        DiskFull: there is no room for what the block writes; the message names `path`.
        OSError: the folder cannot be made.
    """
    _remove_forsaken(path)
    temporary = path.parent / f".{path.name}.{secrets.token_hex(4)}.part"
    try:
        temporary.mkdir()
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    descriptor = None if os.name == "nt" else os.open(temporary, os.O_RDONLY)  # a folder cannot be opened there
    try:
        if descriptor is not None:
            _hold(descriptor)
        yield temporary
        temporary.rename(path)
    except OSError as error:
        if disk_is_full(error):
            raise DiskFull(f"{path}: the disk is full") from error
        raise
    finally:
        if descriptor is not None:
            os.close(descriptor)
        shutil.rmtree(temporary, ignore_errors=True)


def write_text(path: str | Path, text: str) -> None:
    """Write a file of text; whole or not at all."""
    try:
        with atomic_write(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
    except DiskFull as error:
        raise DiskFull(f"{error}; it takes {len(text.encode()):,} bytes") from error


def _hold(descriptor: int) -> bool:
    """Whether the file is now held, for as long as the descriptor is open, and nobody else held it."""
    if os.name == "nt":  # no file that is open could be renamed there
        return False
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # held, or a file system without locks
        return False
    return True


def _remove_forsaken(path: Path) -> None:
    """Remove temporary files and folders of this name that nobody holds, but for those that may be held any moment."""
    ours = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{8}}\.part")
    for name in filter(ours.fullmatch, os.listdir(path.parent)):
        with suppress(OSError):  # renamed or removed meanwhile
            left = path.parent / name
            status = os.lstat(left)
            folder = stat.S_ISDIR(status.st_mode)
            # A folder is held before anything is in it.
            if time.time() - status.st_mtime < FORSAKEN and not (folder and os.listdir(left)):
                continue
            descriptor = os.open(left, os.O_RDONLY if folder else os.O_RDWR)
            try:
                if _hold(descriptor):
                    remove(left)
            finally:
                os.close(descriptor)
