"""Locks between processes; each dies with its process, so that a killed one blocks nobody.

One byte of a file may stand for each of many things: hundreds of locks, one open file. That is why this is not left to
a library of lock files, which keeps one file open for each lock.
"""

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


class Held(OSError):
    """Another process holds the lock; `place` is the byte that it stands for."""

    def __init__(self, place: int) -> None:
        super().__init__(errno.EAGAIN, "another process holds the lock")
        self.place = place


@contextmanager
def locked(path: Path, places: tuple[int, ...] = (0,), together: tuple[tuple[int, int], ...] = ()) -> Iterator[None]:
    """Hold bytes of a file, and with them what they stand for, until the block ends.

    On file systems without locks, and on Windows, nothing is held.

    Args:
        path: of the file.
        places: bytes to be held alone.
        together: ranges (first byte, how many) to be held with others who hold them together.

    Raises:
        Held: another process holds one of them, alone or where it is to be held alone.
    """
    with path.open("a+b") as file:
        if sys.platform != "win32":
            import fcntl

            wanted = [(fcntl.LOCK_SH, first, count) for first, count in together]
            for how, place, count in [*wanted, *((fcntl.LOCK_EX, place, 1) for place in places)]:
                try:
                    fcntl.lockf(file, how | fcntl.LOCK_NB, count, place)
                except OSError as error:
                    if error.errno in (errno.EACCES, errno.EAGAIN):
                        raise Held(place) from None
                    if error.errno != errno.ENOLCK:
                        raise
        yield


def wait_for_lock(file: BinaryIO) -> bool:
    """Hold an open file once nobody else does; False on file systems without locks."""
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
    except OSError:
        return False
    return True
