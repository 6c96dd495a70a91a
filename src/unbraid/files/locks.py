"""Locks on files, which hold between threads and between processes; the system frees those of a process that dies."""

import errno
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, TypeAlias

POLL = 0.05  # seconds between two attempts
GRACE = 0.2  # seconds that an attempt may last: `is_held` takes a lock for a moment
NO_LOCKS = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS}

Wait: TypeAlias = Literal["never", "threads", "always"]

_holders: dict[str, int] = {}  # threads of this process, by the path of what they hold

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_holders.clear)


class NoLocksWarning(UserWarning):
    """A file system has no locks: others are not kept out."""


class Held(OSError):
    """Somebody else holds the lock.

    Attributes:
        by: who holds it, as the beginning of a sentence.
    """

    def __init__(self, path: Path, thread: int | None) -> None:
        own = thread == threading.get_ident()
        self.by = "another process" if thread is None else "this thread" if own else "another thread"
        super().__init__(errno.EAGAIN, f"{self.by} holds the lock", str(path))


@contextmanager
def locked(path: Path, *, wait: Wait = "never", remove: bool = False) -> Iterator[bool]:
    """Hold the lock of a file until the block ends.

    A process that is forked within the block holds nothing. On file systems without locks nobody is kept out, which a
    NoLocksWarning says.

    Args:
        path: of the file, which is made where it is absent.
        wait: for whom to wait while they hold it: nobody, other threads of this process, or other processes as well.
        remove: the file at the end, as fits locks of which there are many.

    Yields:
        Whether others are kept out.

    Raises:
        Held: somebody else holds it, and is not waited for.
        OSError: the file cannot be made or opened.
    """
    from filelock import FileLock, Timeout

    lock, key, unknown = FileLock(path, fallback_to_soft=False), str(path.resolve()), 0
    while not lock.is_locked:
        try:
            lock.acquire(timeout=-1 if wait == "always" else GRACE, poll_interval=POLL)
        except Timeout:
            holder = _holders.get(key)
            # One attempt may fall between the last two steps of a thread: it frees the lock after its name.
            unknown = 0 if holder else unknown + 1
            if wait == "never" or holder == threading.get_ident() or unknown > 1:
                raise Held(path, holder) from None
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            message = (
                f"{path.parent}: this file system has no locks; do not let two processes work in this folder at once"
            )
            warnings.warn(message, NoLocksWarning, stacklevel=3)
            yield False
            return
    _holders[key] = threading.get_ident()
    try:
        yield True
    finally:
        if lock.is_locked:  # else this process was forked within the block
            _holders.pop(key, None)
            try:
                if remove:  # who waits for it sees that its name is gone, and begins anew
                    with suppress(OSError):
                        path.unlink(missing_ok=True)
            finally:
                lock.release()


def is_held(path: Path) -> bool:
    """Whether anybody holds the lock of a file, in this process or another; False where there is no such file."""
    from filelock import FileLock, Timeout

    if not path.exists():
        return False
    lock = FileLock(path, fallback_to_soft=False)
    try:
        with lock.acquire(blocking=False):
            return False
    except Timeout:
        return True
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        return False
