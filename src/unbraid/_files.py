"""Files that are either whole or absent."""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from unbraid.errors import UnbraidError

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


@contextmanager
def atomic_write(path: str | Path) -> Iterator[Path]:
    """A temporary name beside `path`, renamed to it when the block succeeds and removed when it does not.

    Raises:
        FileNotFoundError: the folder does not exist.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: the folder {path.parent} does not exist")
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    os.close(descriptor)
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp makes files private; a result should be as readable as any file the user makes.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        # A machine that loses power may else keep the name and lose the content.
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
