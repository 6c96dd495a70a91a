"""A study in parts for machines that know nothing of each other: `--shard 2/8`.

Every shard takes each n-th task of the list that the YAML gives, done or not, so that the shards of one YAML are
disjoint and complete, of nearly equal length and of all families, and the same ones whenever a shard is run again.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from unbraid.files.locks import Held, locked

MOST = 1 << 20  # shards of a study
END = 4 * MOST * MOST  # a byte behind those of all divisions

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
    found = re.fullmatch(r"([0-9]{1,7})/([0-9]{1,7})", text)
    number, of = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= number <= of <= MOST:
        raise ValueError(f"shard {text!r}: write i/n with i from 1 to n, such as 2/8")
    return Shard(number, of)


@contextmanager
def claimed_shard(lock: Path, shard: Shard) -> Iterator[None]:
    """Keeps others from the same shard, from a division into another number of shards, and from the whole study.

    Raises:
        ValueError: somebody else is at work on any of these.
    """
    # Byte 0 is the study, which all shards hold together; after it come the divisions, each with a byte for each of its
    # shards. A shard holds its own byte alone, and with its siblings all bytes of other divisions.
    own = shard.of * MOST
    try:
        with locked(lock, (own + shard.number - 1,), ((0, 1), (1, own - 1), (own + MOST, MOST * MOST))):
            yield
    except Held as error:
        if error.place == own + shard.number - 1:
            holder = f"{error.by} is at work on shard {shard}"
        else:
            holder = f"{error.by} is at work on this study, all of it or divided otherwise than by {shard.of}"
        raise ValueError(f"{lock.parent}: {holder}") from None


def last_of_shards(lock: Path, shard: Shard | None) -> AbstractContextManager[object]:
    """Around what depends on all runs: shards do it one after the other, and none from what another has outdated."""
    return locked(lock, (END,), wait="always") if shard else nullcontext()
