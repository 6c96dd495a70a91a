"""Parts of the rows of a sample, from whose scores the spread of the whole sample's score is read off."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from unbraid.types import FloatArray, IntArray


class Numbers(NamedTuple):
    """What a metric says of some rows, less what it says it by: its values, the headline among them, and per factor."""

    values: Mapping[str, float]
    per_factor: FloatArray  # (n_factors,), or (0,) of a metric that has none


UNCHECKED = "interval not validated"


@dataclass(frozen=True)
class Resampling:
    """How an interval for a metric is found: score parts of the rows, drawn without replacement.

    Rows drawn with replacement would repeat, and a repeated row looks like information. Of a part that leaves out one
    row in `one_in`, the variance of a mean about that of all rows is 1 / (one_in - 1) of what it has from sample to
    sample; the same holds for whatever behaves like a mean on many rows.
    """

    one_in: int = 2  # this share of the rows is left out; 2: halves
    times: int = 200  # fewer where every score is a training
    checked: bool = True  # whether a simulation has shown how often such intervals hold what they promise
    # Of Student's t at most, where the extremes of a sample decide: few rows tell how far these stray, however many
    # parts of them are scored.
    freedom: int | None = None
    one_in_groups: int | None = None  # as `one_in`, of whole groups of rows; None: the same
    bias_checked: bool = False  # whether a simulation has shown that the headline's bias falls off as 1 / n_samples

    @property
    def inflation(self) -> float:
        """What the standard deviation of the parts' scores is multiplied by."""
        return float(np.sqrt(self.one_in - 1))

    def degrees(self, n_parts: int) -> int:
        """Of freedom of Student's t, for the deviation of so many parts' scores."""
        return n_parts - 1 if self.freedom is None else min(self.freedom, n_parts - 1)

    def of_groups(self, n_groups: int) -> "Resampling":
        """The same of parts of whole groups, which tell of a deviation no more than so many numbers do."""
        freedom = n_groups - 1 if self.freedom is None else min(self.freedom, n_groups - 1)
        return replace(self, one_in=self.one_in_groups or self.one_in, freedom=freedom)

    @property
    def in_words(self) -> str:
        part = "half of the rows" if self.one_in == 2 else f"all but one row in {self.one_in}"
        doubt = "" if self.checked else f"; {UNCHECKED}"
        few = "" if self.freedom is None else f", {self.freedom} degrees of freedom"
        return f"{self.times} scores of {part}{few}{doubt}"


def part_of_rows(n_samples: int, one_in: int, seed: int, draw: np.random.Generator) -> IntArray:
    """Rows of a part, one in `one_in` left out, ordered so that those to train on stay rows to train on.

    Metrics part rows by a permutation that `seed` decides. Of each `one_in` neighbours in that permutation one is left
    out, and the others are put where the permutation of the smaller sample finds them in the same order. Else the rows
    to train and to test on would be drawn anew, and their luck would count twice.
    """
    n_groups = n_samples // one_in
    groups = permutation(n_samples, seed)[: n_groups * one_in].reshape(n_groups, one_in)
    out = draw.integers(0, one_in, n_groups)[:, None]
    kept = np.where(np.arange(one_in - 1) < out, groups[:, :-1], groups[:, 1:])
    part = np.empty(kept.size, dtype=np.int64)
    part[permutation(len(part), seed)] = kept.ravel()
    return part


def part_of_groups(groups: IntArray, one_in: int, seed: int, draw: np.random.Generator) -> IntArray:
    """Rows of a part of whole groups, as `part_of_rows` parts rows; those of one group side by side.

    Args:
        groups: (n_samples,) 0, 1, ... without gaps.
        one_in: one group of so many is left out.
        seed: by which metrics part groups.
        draw: which ones are left out.
    """
    by_group = np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1])
    return np.concatenate([by_group[group] for group in part_of_rows(len(by_group), one_in, seed, draw)])


@lru_cache(maxsize=4)
def permutation(n_samples: int, seed: int) -> IntArray:
    """Of all rows, to be read alone."""
    order = np.random.default_rng(seed).permutation(n_samples)
    order.flags.writeable = False
    return order
