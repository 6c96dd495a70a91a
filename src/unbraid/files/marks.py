"""Whether a file is still the one that was read: its mark, and what was read while the mark is the same."""

import os
import time
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

SETTLED = 2.0  # seconds: what is younger may change once more within one tick of its file system's clock

Facts: TypeAlias = tuple[str, int, int, int]  # name, length, times
Content = TypeVar("Content")


def mark_of(path: str | Path) -> str:
    """What changes with any write to a file, without reading it; "" where there is none."""
    try:
        return mark([facts(os.path.basename(path), os.stat(path))])
    except (FileNotFoundError, NotADirectoryError):
        return ""


def facts(name: str, status: os.stat_result) -> Facts:
    # The second time is set by every write and by nobody at will, but on Windows.
    return name, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def mark(files: Sequence[Facts]) -> str:
    """The mark of several files together; "" of none. Of files that may still change, another one each time."""
    if not files:
        return ""
    youngest = max(max(file[2:]) for file in files)
    settled = youngest < time.time_ns() - SETTLED * 1e9
    return blake2b(repr(files).encode(), digest_size=16, key=b"" if settled else os.urandom(16)).hexdigest()


class ReadOnce:
    """What was read of files, each read again only after it changed."""

    def __init__(self) -> None:
        self._read: dict[tuple[Callable[..., Any], str], tuple[list[str], Any]] = {}

    def __call__(self, read: Callable[[str], Content], path: str | Path, *names: str) -> Content:
        """`read(path)`, which opens this file alone; or, of a folder, the files of these names."""
        place = os.fspath(path)
        marks = [mark_of(f"{place}/{name}") for name in names] or [mark_of(place)]
        known = self._read.get((read, place))
        if known is None or known[0] != marks:
            known = self._read[read, place] = marks, read(place)
        return known[1]
