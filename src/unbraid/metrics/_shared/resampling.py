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
    # Of halves: whether every other one is what the half before it left out. Half the difference of such a pair strays
    # as the mean of as many rows as both have, without what a score's curvature adds on half of the rows.
    in_pairs: bool = False
    bias_checked: bool = False  # whether a simulation has shown that the headline's bias falls off as 1 / n_samples

    def variance(self, scores: FloatArray) -> FloatArray:
        """(...) of the scores of all rows from sample to sample, by those of parts (n_parts, ...), at least two."""
        if self.in_pairs:
            pairs = len(scores) // 2
            return np.square((scores[: 2 * pairs : 2] - scores[1 : 2 * pairs : 2]) / 2).mean(axis=0)
        return scores.var(axis=0, ddof=1) * (self.one_in - 1)

    def degrees(self, n_parts: int) -> int:
        """Of freedom of Student's t, for the deviation of so many parts' scores."""
        own = n_parts // 2 if self.in_pairs else n_parts - 1
        return own if self.freedom is None else min(self.freedom, own)

    def of_groups(self, n_groups: int) -> "Resampling":
        """The same of parts of whole groups, which tell of a deviation no more than so many numbers do."""
        freedom = n_groups - 1 if self.freedom is None else min(self.freedom, n_groups - 1)
        return replace(self, one_in=self.one_in_groups or self.one_in, freedom=freedom)

    @property
    def in_words(self) -> str:
        part = "half of the rows" if self.one_in == 2 else f"all but one row in {self.one_in}"
        part += ", in pairs that together are all of them" if self.in_pairs else ""
        doubt = "" if self.checked else f"; {UNCHECKED}"
        few = "" if self.freedom is None else f", {self.freedom} degrees of freedom"
        return f"{self.times} scores of {part}{few}{doubt}"


def draw_part(n_samples: int, groups: IntArray | None, method: Resampling, seed: int, number: int) -> IntArray:
    """Rows of part `number` of so many, or with `groups` of whole groups.

    Args:
        n_samples: of all rows.
        groups: (n_samples,) 0, 1, ... without gaps, or None.
        method: how parts are drawn.
        seed: by which metrics part rows or groups, and which ones are left out.
        number: from 0.
    """
    draw = np.random.default_rng([seed, method.one_in, number // 2 if method.in_pairs else number])
    left_out = method.in_pairs and number % 2 == 1
    if groups is None:
        return part_of_rows(n_samples, method.one_in, seed, draw, left_out=left_out)
    return part_of_groups(groups, method.one_in, seed, draw, left_out=left_out)


def part_of_rows(
    n_samples: int, one_in: int, seed: int, draw: np.random.Generator, *, left_out: bool = False
) -> IntArray:
    """Rows of a part, one in `one_in` left out, ordered so that those to train on stay rows to train on.

    Metrics part rows by a permutation that `seed` decides. Of each `one_in` neighbours in that permutation one is left
    out, and the others are put where the permutation of the smaller sample finds them in the same order. Else the rows
    to train and to test on would be drawn anew, and their luck would count twice. With `left_out` the rows are those
    that a half would leave out.
    """
    n_groups = n_samples // one_in
    groups = permutation(n_samples, seed)[: n_groups * one_in].reshape(n_groups, one_in)
    out = draw.integers(0, one_in, n_groups)[:, None]
    kept = np.where(np.arange(one_in - 1) < (1 - out if left_out else out), groups[:, :-1], groups[:, 1:])
    part = np.empty(kept.size, dtype=np.int64)
    part[permutation(len(part), seed)] = kept.ravel()
    return part


def part_of_groups(
    groups: IntArray, one_in: int, seed: int, draw: np.random.Generator, *, left_out: bool = False
) -> IntArray:
    """Rows of a part of whole groups, as `part_of_rows` parts rows; those of one group side by side.

    Args:
        groups: (n_samples,) 0, 1, ... without gaps.
        one_in: one group of so many is left out.
        seed: by which metrics part groups.
        draw: which ones are left out.
        left_out: the groups that a half would leave out.
    """
    by_group = np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1])
    taken = part_of_rows(len(by_group), one_in, seed, draw, left_out=left_out)
    return np.concatenate([by_group[group] for group in taken])


@lru_cache(maxsize=4)
def permutation(n_samples: int, seed: int) -> IntArray:
    """Of all rows, to be read alone."""
    order = np.random.default_rng(seed).permutation(n_samples)
    order.flags.writeable = False
    return order
