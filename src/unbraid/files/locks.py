"""Locks on files, which hold between threads, between processes and across forks.

A lock dies with its process, so that a killed one blocks nobody. One byte of a file may stand for each of many things:
hundreds of locks, one open file. That is why this is not left to a library of lock files, which keeps one file open for
each lock.

Between threads a table decides, `_opened`: what this process holds of which file. Between processes the system does: by
open-file-description locks on Linux, by record locks where there are none. The system drops record locks as soon as the
process closes the file anywhere, so a process has a locked file open once, and closes it with the last lock.
"""

import errno
import os
import struct
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

POLL = 0.05  # seconds between two attempts of who waits
NO_LOCKS = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS}

Wait: TypeAlias = Literal["never", "threads", "always"]


class NoLocksWarning(UserWarning):
    """A file system has no locks: other processes are not kept out."""


class Held(OSError):
    """Somebody else holds the lock.

    Attributes:
        place: the first byte of what cannot be had.
        by: who holds it, as the beginning of a sentence.
        waitable: whether it is a thread of this process other than the one that asks.
    """

    def __init__(self, place: int, thread: int | None = None) -> None:
        own = thread == threading.get_ident()
        self.waitable = thread is not None and not own
        self.by = "another thread" if self.waitable else "this thread" if own else "another process"
        super().__init__(errno.EAGAIN, f"{self.by} holds the lock")
        self.place, self.own = place, own


@dataclass(frozen=True)
class _Span:
    """Bytes of a file."""

    first: int
    count: int
    alone: bool  # or with others who hold them together

    def meets(self, other: "_Span") -> bool:
        return self.first < other.first + other.count and other.first < self.first + self.count


@dataclass(eq=False)
class _Claim:
    """What one `locked` holds."""

    spans: tuple[_Span, ...]
    thread: int


@dataclass(eq=False)
class _Opened:
    """A file of which this process holds something."""

    key: tuple[int, int]  # device and inode
    descriptor: int
    claims: list[_Claim] = field(default_factory=list)


_opened: dict[tuple[int, int], _Opened] = {}
_guard = threading.RLock()


@contextmanager
def locked(
    path: Path, places: tuple[int, ...] = (0,), together: tuple[tuple[int, int], ...] = (), *, wait: Wait = "never"
) -> Iterator[bool]:
    """Hold bytes of a file, and with them what they stand for, until the block ends.

    A process that is forked within the block holds nothing, and its end changes nothing. On file systems without locks
    only threads of this process are kept out, which a NoLocksWarning says. So it is on Windows with what is held
    `together`.

    Args:
        path: of the file, which is made where it is absent.
        places: bytes to be held alone.
        together: ranges (first byte, how many) to be held with others who hold them together.
        wait: for whom to wait while they hold it: nobody, other threads of this process, or other processes as well.

    Yields:
        Whether other processes are kept out too.

    Raises:
        Held: somebody else holds one of them, alone or where it is to be held alone, and is not waited for.
        OSError: the file cannot be made or opened.
    """
    spans = (*(_Span(*each, alone=False) for each in together), *(_Span(place, 1, alone=True) for place in places))
    claim = _Claim(spans, threading.get_ident())
    try:
        while (between := _take(path, claim, wait)) is None:
            time.sleep(POLL)
        if not between:
            told = f"{path.parent}: this file system has no locks; do not let two processes work in this folder at once"
            warnings.warn(told, NoLocksWarning, stacklevel=3)
        yield between
    finally:
        _release(claim)


def is_held(path: Path, place: int = 0) -> bool:
    """Whether anybody holds a byte of a file, in this process or another; False where there is no such file."""
    asked = _Span(place, 1, alone=True)
    with _guard:
        opened = _find(path)
        if opened is not None:
            return _holder(opened, asked) is not None or _held_elsewhere(opened.descriptor, asked)
        try:
            descriptor = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            return _held_elsewhere(descriptor, asked)
        finally:
            os.close(descriptor)


def _take(path: Path, claim: _Claim, wait: Wait) -> bool | None:
    """Whether other processes are kept out; None where somebody else holds it who is to be waited for."""
    with _guard:
        opened = _find(path) or _open(path)
        try:
            for span in claim.spans:
                if (holder := _holder(opened, span)) is not None:
                    raise Held(span.first, holder.thread)
            opened.claims.append(claim)
            return _lock_all(opened.descriptor, claim.spans)
        except Held as error:
            _release(claim)
            if error.own or wait == "never" or (wait == "threads" and not error.waitable):
                raise
            return None


def _lock_all(descriptor: int, spans: tuple[_Span, ...]) -> bool:
    for span in spans:
        try:
            _lock(descriptor, span)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN):
                raise Held(span.first) from None
            if error.errno not in NO_LOCKS:
                raise
            return False
    return True


def _release(claim: _Claim) -> None:
    """Nothing happens where it was never taken, or by the process from which this one was forked."""
    with _guard:
        for opened in [each for each in _opened.values() if claim in each.claims]:
            opened.claims.remove(claim)
            kept = [span for other in opened.claims for span in other.spans]
            for span in claim.spans:
                # Not left to the closing of the file: a process that C code forked may have it open still.
                if not any(span.meets(other) for other in kept):
                    with suppress(OSError):  # a file system without locks
                        _unlock(opened.descriptor, span)
            if not opened.claims:
                del _opened[opened.key]
                os.close(opened.descriptor)


def _holder(opened: _Opened, span: _Span) -> _Claim | None:
    """Who keeps a span from being held, in this process."""
    for claim in opened.claims:
        if any(span.meets(other) and (span.alone or other.alone) for other in claim.spans):
            return claim
    return None


def _find(path: Path) -> _Opened | None:
    try:
        about = path.stat()
    except FileNotFoundError:
        return None
    return _opened.get((about.st_dev, about.st_ino))


def _open(path: Path) -> _Opened:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    about = os.fstat(descriptor)
    key = about.st_dev, about.st_ino
    return _opened.setdefault(key, _Opened(key, descriptor))


def _forget() -> None:
    """In a forked child: close what the parent holds, so that it is free once the parent has ended."""
    for opened in _opened.values():
        os.close(opened.descriptor)
        opened.claims.clear()
    _opened.clear()
    _guard.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_guard.acquire, after_in_parent=_guard.release, after_in_child=_forget)

if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int, span: _Span) -> None:
        if span.alone:
            os.lseek(descriptor, span.first, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, span.count)

    def _unlock(descriptor: int, span: _Span) -> None:
        if span.alone:
            os.lseek(descriptor, span.first, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_UNLCK, span.count)

    def _seen(descriptor: int, span: _Span) -> bool | None:  # noqa: ARG001
        return None

else:
    import fcntl

    def _lock(descriptor: int, span: _Span) -> None:
        kind, how = (fcntl.F_WRLCK, fcntl.LOCK_EX) if span.alone else (fcntl.F_RDLCK, fcntl.LOCK_SH)
        if _by_description(descriptor, "F_OFD_SETLK", kind, span) is None:
            fcntl.lockf(descriptor, how | fcntl.LOCK_NB, span.count, span.first)

    def _unlock(descriptor: int, span: _Span) -> None:
        if _by_description(descriptor, "F_OFD_SETLK", fcntl.F_UNLCK, span) is None:
            fcntl.lockf(descriptor, fcntl.LOCK_UN, span.count, span.first)

    def _seen(descriptor: int, span: _Span) -> bool | None:
        """Whether another process holds it, without taking it; None where the system cannot tell."""
        found = _by_description(descriptor, "F_OFD_GETLK", fcntl.F_WRLCK, span)
        return None if found is None else found != fcntl.F_UNLCK

    def _by_description(descriptor: int, command: str, kind: int, span: _Span) -> int | None:
        """Ask for a lock of the open file description; the kind that is found, None where the system has none."""
        if sys.platform != "linux":  # elsewhere the structure is another
            return None
        asked = struct.pack("hhqqi4x", kind, os.SEEK_SET, span.first, span.count, 0)
        try:
            return struct.unpack("hhqqi4x", fcntl.fcntl(descriptor, getattr(fcntl, command), asked))[0]
        except OSError as error:
            if error.errno != errno.EINVAL:  # of a system that has record locks alone
                raise
            return None


def _held_elsewhere(descriptor: int, span: _Span) -> bool:
    """Whether another process holds it."""
    try:
        if (known := _seen(descriptor, span)) is not None:
            return known
        _lock(descriptor, span)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN):
            return True
        if error.errno not in NO_LOCKS:
            raise
        return False
    _unlock(descriptor, span)
    return False
