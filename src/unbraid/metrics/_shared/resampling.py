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
FEWEST_DEGREES = 3  # of freedom, where few rows decide


@dataclass(frozen=True)
class Resampling:
    """How an interval for a metric is found: score parts of the rows, drawn without replacement.

    Rows drawn with replacement would repeat, and a repeated row looks like information. Of a part that leaves out one
    row in `one_in`, the variance of a mean about that of all rows is 1 / (one_in - 1) of what it has from sample to
    sample; the same holds for whatever behaves like a mean on many rows.
    """

    one_in: int = 2  # this share of the rows is left out; 2: halves
    times: int = 50  # fewer where every score is a training
    checked: bool = True  # whether a simulation has shown how often such intervals hold what they promise
    one_in_groups: int | None = None  # as `one_in`, of whole groups of rows; None: the same
    freedom: int | None = None  # of Student's t, at most; None: one less than there are parts
    freedom_of_groups: int | None = None  # the same of whole groups of rows; None: one less than there are groups
    # Whether rows are dealt to `times` blocks, and each part leaves out the next of these, whatever `one_in` says: of
    # scores that smaller samples would change, and that hardly change by luck.
    in_turn: bool = False
    # Of blocks: whether Student's t has fewer degrees of freedom where few blocks hold most of the variance.
    few_decide: bool = False
    bias_checked: bool = False  # whether a simulation has shown that the headline's bias falls off as 1 / n_samples

    def variance(self, scores: FloatArray) -> FloatArray:
        """(...) of the scores of all rows from sample to sample, by those of parts (n_parts, ...), at least two."""
        if self.in_turn:  # each row is left out once, so that the parts' scores are correlated by -1 / (n_parts - 1)
            return scores.var(axis=0, ddof=1) * (len(scores) - 1) ** 2 / len(scores)
        return scores.var(axis=0, ddof=1) * (self.one_in - 1)

    def bias(self, scores: FloatArray, of_all: FloatArray) -> FloatArray:
        """(...) of the score of all rows, if it falls off as 1 / n_samples."""
        return (scores.mean(axis=0) - of_all) * ((len(scores) if self.in_turn else self.one_in) - 1)

    def degrees(self, scores: FloatArray) -> FloatArray:
        """(...) of freedom of Student's t, for the deviation by these parts' scores (n_parts, ...).

        With `few_decide` half of what Satterthwaite's formula gives for a variance that is a mean of squares, whose
        fourth moment so few of them show too small; at least three.
        """
        most = len(scores) - 1 if self.freedom is None else min(self.freedom, len(scores) - 1)
        if not self.few_decide:
            return np.full(scores.shape[1:], float(most))
        squares = np.square(scores - scores.mean(axis=0))
        total = squares.sum(axis=0)
        excess = len(scores) * np.square(squares).sum(axis=0) - total**2  # of the fourth moment, times total^2
        few = np.divide(len(scores) * total**2, excess, out=np.full(total.shape, np.inf), where=excess > 0)
        return np.clip(few, min(FEWEST_DEGREES, most), most)

    def on(self, n_samples: int, n_groups: int | None = None) -> "Resampling":
        """The same for so many rows or, where there are groups, for parts of whole groups.

        These tell of a deviation no more than so many numbers do.
        """
        if n_groups is None:
            return replace(self, times=min(self.times, n_samples)) if self.in_turn else self
        freedom = min(each for each in (self.freedom, self.freedom_of_groups, n_groups - 1) if each is not None)
        times = min(self.times, n_groups) if self.in_turn else self.times
        return replace(self, one_in=self.one_in_groups or self.one_in, freedom=freedom, times=times)

    @property
    def in_words(self) -> str:
        if self.in_turn:
            part = f"all but one block of {self.times}, each left out once"
        else:
            part = "half of the rows" if self.one_in == 2 else f"all but one row in {self.one_in}"
        doubt = "" if self.checked else f"; {UNCHECKED}"
        few = ", fewer degrees of freedom where few rows decide" if self.few_decide else ""
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
    by_group = None if groups is None else np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups)))
    n_units = n_samples if by_group is None else len(by_group) - 1
    if method.in_turn:
        taken = all_but_a_block(n_units, method.times, number, seed)
    else:
        taken = part_of_rows(n_units, method.one_in, seed, np.random.default_rng([seed, method.one_in, number]))
    return taken if by_group is None else np.concatenate([by_group[each] for each in taken])


def part_of_rows(n_samples: int, one_in: int, seed: int, draw: np.random.Generator) -> IntArray:
    """Rows of a part, one in `one_in` left out, ordered so that those to train on stay rows to train on.

    Metrics part rows by a permutation that `seed` decides. Of each `one_in` neighbours in that permutation one is left
    out, and the others are put where the permutation of the smaller sample finds them in the same order. Else the rows
    to train and to test on would be drawn anew, and their luck would count twice.
    """
    n_groups = n_samples // one_in
    groups = permutation(n_samples, seed)[: n_groups * one_in].reshape(n_groups, one_in)
    out = draw.integers(0, one_in, n_groups)[:, None]
    return _where_found(np.where(np.arange(one_in - 1) < out, groups[:, :-1], groups[:, 1:]).ravel(), seed)


def all_but_a_block(n_samples: int, n_blocks: int, number: int, seed: int) -> IntArray:
    """Rows without those of block `number`, ordered as `part_of_rows` orders them.

    Of each `n_blocks` neighbours in the permutation by which metrics part rows, each is in another block.
    """
    kept = permutation(n_samples, seed)[np.arange(n_samples) % n_blocks != number]
    return _where_found(kept, seed)


def _where_found(kept: IntArray, seed: int) -> IntArray:
    """These rows where the permutation of as many rows finds them in this order."""
    part = np.empty(len(kept), dtype=np.int64)
    part[permutation(len(part), seed)] = kept
    return part


@lru_cache(maxsize=4)
def permutation(n_samples: int, seed: int) -> IntArray:
    """Of all rows, to be read alone."""
    order = np.random.default_rng(seed).permutation(n_samples)
    order.flags.writeable = False
    return order
