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
def claimed_study(lock: Path) -> Iterator[None]:
    """Locks the study and all its shards.

    Raises:
        ValueError: another process works on it.
    """
    with ExitStack() as stack:
        try:
            with locked(_deciding(lock), wait="always"):
                if any(is_held(path) for path in _shard_locks(lock)):
                    raise ValueError(f"{lock.parent}: another process is at work on this study, a shard of it")
                stack.enter_context(locked(lock))
        except Held as error:
            raise ValueError(f"{lock.parent}: {error.by} is at work on this study") from None
        yield


@contextmanager
def claimed_shard(lock: Path, shard: Shard) -> Iterator[None]:
    """Locks this shard, other divisions into shards, and the study as a whole.

    Raises:
        ValueError: another process works on any of these.
    """
    with ExitStack() as stack:
        try:
            with locked(_deciding(lock), wait="always"):
                other_locks = [path for path, of in _shard_locks(lock).items() if of != shard.of]
                if any(map(is_held, [lock, *other_locks])):
                    raise ValueError(
                        f"{lock.parent}: another process is at work on this study, all of it or divided otherwise than "
                        f"by {shard.of}"
                    )
                stack.enter_context(locked(lock.with_name(f"{lock.name}-{shard.number}-of-{shard.of}"), remove=True))
        except Held as error:
            raise ValueError(f"{lock.parent}: {error.by} is at work on shard {shard}") from None
        yield


def last_of_shards(lock: Path, shard: Shard | None) -> AbstractContextManager[object]:
    """Lock for work that depends on all runs: shards do it one after the other, each from the latest state."""
    return locked(lock.with_name(f"{lock.name}-end"), wait="always") if shard else nullcontext()


def _deciding(lock: Path) -> Path:
    """The lock under which a process checks the other locks and takes its own."""
    return lock.with_name(f"{lock.name}-begin")


def _shard_locks(lock: Path) -> dict[Path, int]:
    """The locks of all shards that have one, with the number of shards of their division."""
    matches = {path: re.fullmatch(r".*-\d+-of-(\d+)", path.name) for path in lock.parent.glob(f"{lock.name}-*")}
    return {path: int(match[1]) for path, match in matches.items() if match}
