"""Shards of a study, for machines that do not communicate: `--shard 2/8`.

A shard takes every n-th task of the YAML's list, done or not: the shards of one YAML are disjoint and complete, of
nearly equal length, include all families, and stay the same when a shard is run again.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from unbraid.files.locks import Held, is_held, locked
from unbraid.files.remote import LOCK

MOST = 1 << 20  # shards of a study

Item = TypeVar("Item")


@dataclass(frozen=True)
class Shard:
    """The `number`-th, from 1, of `of` shards."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def part(self, items: Sequence[Item]) -> list[Item]:
        """The items that belong to it."""
        return list(items[self.number - 1 :: self.of])


def parse_shard(text: str) -> Shard:
    """The shard that "2/8" names.

    Raises:
        ValueError: it is none.
    """
    match = re.fullmatch(r"([0-9]{1,7})/([0-9]{1,7})", text)
    number, of = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= number <= of <= MOST:
        raise ValueError(f"shard {text!r}: write i/n with i from 1 to n, such as 2/8")
    return Shard(number, of)


@contextmanager
def claimed(folder: Path, shard: Shard | None = None) -> Iterator[None]:
    """Locks a study and all its shards; or a shard, other divisions into shards, and the study as a whole.

    The lock ends with this process.

    Raises:
        ValueError: another process works on any of these.
    """
    lock = folder / LOCK
    own = lock if shard is None else lock.with_name(f"{LOCK}-{shard.number}-of-{shard.of}")
    with ExitStack() as stack:
        try:
            with locked(lock.with_name(f"{LOCK}-begin"), wait="always"):  # under it, the others are checked first
                excluded = [] if shard is None else [lock]
                for path in folder.glob(f"{LOCK}-*-of-*"):
                    if shard is None or not path.name.endswith(f"-of-{shard.of}"):
                        excluded.append(path)
                if any(map(is_held, excluded)):
                    part = "a shard of it" if shard is None else f"all of it or divided otherwise than by {shard.of}"
                    raise ValueError(f"{folder}: another process is at work on this study, {part}")
                stack.enter_context(locked(own, remove=shard is not None))
        except Held as error:
            part = "this study" if shard is None else f"shard {shard}"
            raise ValueError(f"{folder}: {error.by} is at work on {part}") from None
        yield


def last_of_shards(folder: Path, shard: Shard | None) -> AbstractContextManager[object]:
    """Lock for work that depends on all runs: shards do it one after the other, each from the latest state."""
    return locked(folder / f"{LOCK}-end", wait="always") if shard else nullcontext()
