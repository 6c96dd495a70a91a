"""Parts of the rows of a sample, from whose scores the spread of the whole sample's score is read off."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from unbraid.base.types import FloatArray, IntArray


class Numbers(NamedTuple):
    """What a metric says of some rows, less what it says it by: its values, the headline among them, and per factor."""

    values: Mapping[str, float]
    per_factor: FloatArray  # (n_factors,), or (0,) of a metric that has none


UNCHECKED = "interval not validated"
FEWEST_DEGREES = 3  # of freedom, where few rows decide
FEWEST_PAIRS = 10  # fewer tell a covariance so badly that intervals would be wider than without them
FREEDOM_OF_PAIRS = 0.12  # degrees of it for each part, where half of these are pairs; from simulations


@dataclass(frozen=True)
class Resampling:
    """How an interval for a metric is found: score parts of the rows, drawn without replacement.

    Rows drawn with replacement would repeat, and a repeated row looks like information. Of a part that leaves out one
    row in `one_in`, the variance of a mean about that of all rows is 1 / (one_in - 1) of what it has from sample to
    sample; the same holds for whatever behaves like a mean on many rows.
    """

    one_in: int = 2  # this share of the rows is left out; 2: halves
    times: int = 50  # fewer where every score is a training
    pairs: int = 0  # of halves that share no row, scored after these parts, to take off what they show too large
    checked: bool = True  # whether a simulation has shown how often such intervals hold what they promise
    freedom: int | None = None  # of Student's t, at most; None: one less than there are parts
    # Whether rows are dealt to `times` blocks, and each part leaves out the next of these, whatever `one_in` says: of
    # scores that smaller samples would change, and that hardly change by luck.
    in_turn: bool = False
    # Of blocks: whether Student's t has fewer degrees of freedom where few blocks hold most of the variance.
    few_decide: bool = False
    taken_off: int = 2  # times that parts are too large by the variance of the means of pairs
    taken_off_groups: int = 2  # likewise of parts of whole groups, whose halves are few where groups are
    bias_checked: bool = False  # whether a simulation has shown that the headline's bias falls off as 1 / n_samples

    @property
    def n_parts(self) -> int:
        return self.times + 2 * self.pairs

    def of_parts(self, n_parts: int) -> "Resampling":
        """The same of so many parts in all, half of them in pairs where there are pairs and enough of them."""
        pairs = n_parts // 4 if self.pairs and n_parts >= 4 * FEWEST_PAIRS else 0
        return replace(self, times=n_parts - 2 * pairs, pairs=pairs)

    def variance(self, scores: FloatArray) -> FloatArray:
        """(...) of the scores of all rows from sample to sample, by those of parts (n_parts, ...), at least two.

        A score is a sum of terms of one row, of two rows and so on, whose variances fall as 1 / n, 1 / n^2 and so on.
        Parts show the first as it is and the others too large: halves by 3, 7 and so on, all but a fifth by 2.25 and
        more, blocks in turn by 2 and more. Half the difference of two halves that share no row shows them by 2, 4 and
        so on, their mean by 1, 3 and so on, and the first not at all: so the one less the other, which is the
        covariance of the two with its sign turned, shows all of them as they are. It is too small where a score
        depends on the outermost rows or on a choice. Hence parts less so many times the spread of means of two halves,
        but no less than that covariance. How often intervals by it hold what they promise was simulated.
        """
        single, first, second = self._split_pairs(scores)
        if self.in_turn:  # each row is left out once, so that the parts' scores are correlated by -1 / (n_parts - 1)
            plain = single.var(axis=0, ddof=1) * (len(single) - 1) ** 2 / len(single)
        else:
            plain = single.var(axis=0, ddof=1) * (self.one_in - 1)
        if not self.pairs:
            return plain
        of_mean = ((first + second) / 2).var(axis=0, ddof=1)
        of_half = np.square(first - second).mean(axis=0) / 4
        least = np.maximum(of_half - of_mean, (of_half + of_mean) / 3)  # a third is right if terms are of two rows
        return np.minimum(np.maximum(plain - (1 if self.in_turn else self.taken_off) * of_mean, least), plain)

    def _split_pairs(self, scores: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Those of single parts, and of the first and the second half of each pair."""
        n_single = len(scores) - 2 * self.pairs
        return scores[:n_single], scores[n_single::2], scores[n_single + 1 :: 2]

    def bias(self, scores: FloatArray, of_all: FloatArray) -> FloatArray:
        """(...) of the score of all rows, if it falls off as 1 / n_samples."""
        single, _, _ = self._split_pairs(scores)
        return (single.mean(axis=0) - of_all) * ((len(single) if self.in_turn else self.one_in) - 1)

    def degrees(self, scores: FloatArray) -> FloatArray:
        """(...) of freedom of Student's t, for the deviation by these parts' scores (n_parts, ...).

        With `few_decide` half of what Satterthwaite's formula gives for a variance that is a mean of squares, whose
        fourth moment so few of them show too small; at least three.
        """
        most = FREEDOM_OF_PAIRS * len(scores) if self.pairs else float(len(scores) - 1)
        most = most if self.freedom is None else min(self.freedom, most)
        if not self.few_decide:
            return np.full(scores.shape[1:], most)
        single, _, _ = self._split_pairs(scores)
        squares = np.square(single - single.mean(axis=0))
        total = squares.sum(axis=0)
        excess = len(single) * np.square(squares).sum(axis=0) - total**2  # of the fourth moment, times total^2
        few = np.divide(len(single) * total**2, excess, out=np.full(total.shape, np.inf), where=excess > 0)
        return np.clip(few, min(FEWEST_DEGREES, most), most)

    def on(self, n_samples: int, n_groups: int | None = None) -> "Resampling":
        """The same for so many rows or, where there are groups, for parts of whole groups.

        These tell of a deviation no more than so many numbers do, and pairs no more than half as many.
        """
        if n_groups is None:
            return replace(self, times=min(self.times, n_samples)) if self.in_turn else self
        most = (n_groups - 1) // 2 if self.pairs else n_groups - 1
        freedom = most if self.freedom is None else min(self.freedom, most)
        times = min(self.times, n_groups) if self.in_turn else self.times
        return replace(self, freedom=freedom, times=times, taken_off=self.taken_off_groups)

    @property
    def in_words(self) -> str:
        if self.in_turn:
            part = f"all but one block of {self.times}, each left out once"
        else:
            part = "half of the rows" if self.one_in == 2 else f"all but one row in {self.one_in}"
        doubt = "" if self.checked else f"; {UNCHECKED}"
        pairs = f", and {self.pairs} pairs of halves" if self.pairs else ""
        few = ", fewer degrees of freedom where few rows decide" if self.few_decide else ""
        return f"{self.times} scores of {part}{pairs}{few}{doubt}"


def draw_part(n_samples: int, groups: IntArray | None, method: Resampling, seed: int, number: int) -> IntArray:
    """Rows of part `number` of so many, or with `groups` of whole groups.

    Args:
        n_samples: of all rows.
        groups: (n_samples,) 0, 1, ... without gaps, or None.
        method: how parts are drawn.
        seed: by which metrics part rows or groups, and which ones are left out.
        number: from 0; of pairs of halves after the others, the two of a pair one after the other.
    """
    by_group = None if groups is None else np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups)))
    n_units = n_samples if by_group is None else len(by_group) - 1
    if number >= method.times:
        pair, second = divmod(number - method.times, 2)
        draw = np.random.default_rng([seed, 2, pair, 1])
        units = part_of_rows(n_units, 2, seed, draw, other=bool(second))
    elif method.in_turn:
        units = all_but_a_block(n_units, method.times, number, seed)
    else:
        units = part_of_rows(n_units, method.one_in, seed, np.random.default_rng([seed, method.one_in, number]))
    return units if by_group is None else np.concatenate([by_group[each] for each in units])


def part_of_rows(n_samples: int, one_in: int, seed: int, draw: np.random.Generator, *, other: bool = False) -> IntArray:
    """Rows of a part, one in `one_in` left out, ordered so that those to train on stay rows to train on.

    With `other` the half that shares no row with the one drawn likewise.

    Metrics part rows by a permutation that `seed` decides. Of each `one_in` neighbours in that permutation one is left
    out, and the others are put where the permutation of the smaller sample finds them in the same order. Else the rows
    to train and to test on would be drawn anew, and their luck would count twice.
    """
    n_groups = n_samples // one_in
    groups = permutation(n_samples, seed)[: n_groups * one_in].reshape(n_groups, one_in)
    out = (draw.integers(0, one_in, n_groups)[:, None] + other) % one_in
    return _in_permutation(np.where(np.arange(one_in - 1) < out, groups[:, :-1], groups[:, 1:]).ravel(), seed)


def all_but_a_block(n_samples: int, n_blocks: int, number: int, seed: int) -> IntArray:
    """Rows without those of block `number`, ordered as `part_of_rows` orders them.

    Of each `n_blocks` neighbours in the permutation by which metrics part rows, each is in another block.
    """
    rows = permutation(n_samples, seed)[np.arange(n_samples) % n_blocks != number]
    return _in_permutation(rows, seed)


def _in_permutation(rows: IntArray, seed: int) -> IntArray:
    """These rows where the permutation of as many rows finds them in this order."""
    part = np.empty(len(rows), dtype=np.int64)
    part[permutation(len(part), seed)] = rows
    return part


@lru_cache(maxsize=4)
def permutation(n_samples: int, seed: int) -> IntArray:
    """Of all rows, to be read alone."""
    order = np.random.default_rng(seed).permutation(n_samples)
    order.flags.writeable = False
    return order
