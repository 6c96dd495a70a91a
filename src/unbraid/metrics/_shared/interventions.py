"""Rows drawn with one factor held fixed: what the beta-VAE and FactorVAE scores vote on.

No dataset and no encoder are asked for new images: rows with the same level of a factor are drawn by index from
those given, whether or not these fill a grid. The other factors vary as they do among those rows.
"""

from dataclasses import dataclass

import numba
import numpy as np

from unbraid.base.counted import counted
from unbraid.base.types import FloatArray, IntArray
from unbraid.metrics._shared.chance import unreadable
from unbraid.metrics._shared.inputs import Levels, NotDefined, split_rows
from unbraid.metrics._shared.sharing import shared

ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Groups:
    """Rows sorted by the level of each factor; group g is `rows[starts[g] : starts[g] + counts[g]]`."""

    rows: IntArray  # (n_factors * n_samples,)
    starts: IntArray  # (n_groups,)
    counts: IntArray  # (n_groups,), each at least 2
    first: IntArray  # (n_factors + 1,) groups of factor k are first[k] .. first[k + 1] - 1
    notes: tuple[str, ...]


@shared
def group_rows(levels: Levels, among: IntArray | None = None) -> Groups:
    """Rows of each level of each factor; levels of a single row are left out, for nothing can vary within them.

    `among` are the positions (n,) of the rows to take; None takes all.

    Raises:
        NotDefined: no level of some factor has two rows.
    """
    selected = np.arange(len(levels.levels)) if among is None else among
    n_samples = len(selected)
    rows, starts, counts, first, notes = [], [], [], [0], list(levels.notes)
    for factor, size in enumerate(levels.sizes):
        column = levels.levels[selected, factor]
        rows.append(selected[np.argsort(column, kind="stable")])
        frequency = np.bincount(column, minlength=size)
        usable = frequency >= 2
        if not usable.any():
            raise NotDefined(f"needs two rows with the same level of factor {factor}")
        if not usable.all():
            alone = int((~usable).sum())
            are = "is" if alone == 1 else "are"
            notes.append(f"factor {factor}: {counted(alone, 'level')} with a single row {are} never held fixed")
        starts.append(factor * n_samples + (np.cumsum(frequency) - frequency)[usable])
        counts.append(frequency[usable])
        first.append(first[-1] + int(usable.sum()))
    return Groups(np.concatenate(rows), np.concatenate(starts), np.concatenate(counts), np.array(first), tuple(notes))


def training_and_test_groups(
    levels: Levels, seed: int, held_out: bool, row_groups: IntArray | None = None
) -> tuple[Groups, Groups]:
    """All rows for both, or one half of them for each; rows of one of the `row_groups` (n_samples,) stay together."""
    if not held_out:
        return group_rows(levels), group_rows(levels)
    first, second = split_rows(len(levels.levels), (0.5, 0.5), seed, row_groups)
    return group_rows(levels, first), group_rows(levels, second)


def counts_of_levels(levels: Levels) -> list[IntArray]:
    """By factor, the number of rows of each level that has two or more."""
    counts = [np.bincount(column) for column in levels.levels.T]
    return [each[each >= 2] for each in counts]


def remembered_rows(few: int) -> str:
    """The note where so few rows of a level are drawn again and again that noise is told by them."""
    return unreadable(
        f"noise identifies levels by their few rows (down to {few}); separate_rows=True scores other rows"
    )


def combinations(factors: FloatArray) -> IntArray:
    """(n_samples,) number of the combination of levels in each row (n_samples, n_factors): 0, 1, ... without gaps."""
    numbers = np.zeros(len(factors), dtype=np.int64)
    for column in factors.T:
        present, level = np.unique(column, return_inverse=True)
        # Renumbered at each factor, so that no product of sizes can overflow.
        numbers = np.unique(numbers * len(present) + level, return_inverse=True)[1]
    return numbers


def draw_pairs(groups: Groups, n_points: int, batch_size: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Pairs of rows (n_points, batch_size, 2) that share a level of one factor a point, and that factor (n_points,).

    Factor uniform per point, level uniform over that factor's levels per pair, and two different rows uniform within
    it: a row paired with itself differs in nothing, which would give a factor of few rows a level away.
    """
    fixed = rng.integers(len(groups.first) - 1, size=n_points)
    uniform = rng.random((n_points, batch_size, 3))
    return _pairs(groups.rows, groups.starts, groups.counts, groups.first, fixed, uniform), fixed


def draw_batches(groups: Groups, n_points: int, batch_size: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Rows (n_points, batch_size) that all share one level of one factor, and that factor (n_points,).

    Factor uniform per batch, level uniform over that factor's levels, rows uniform within it.
    """
    fixed = rng.integers(len(groups.first) - 1, size=n_points)
    level = rng.random(n_points)
    uniform = rng.random((n_points, batch_size))
    return _batches(groups.rows, groups.starts, groups.counts, groups.first, fixed, level, uniform), fixed


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _pairs(
    rows: IntArray, starts: IntArray, counts: IntArray, first: IntArray, fixed: IntArray, uniform: FloatArray
) -> IntArray:
    n_points, batch_size, _ = uniform.shape
    drawn = np.empty((n_points, batch_size, 2), dtype=np.int64)
    for point in range(n_points):
        low = first[fixed[point]]
        size = first[fixed[point] + 1] - low
        for pair in range(batch_size):
            group = low + int(uniform[point, pair, 0] * size)
            one = int(uniform[point, pair, 1] * counts[group])
            other = int(uniform[point, pair, 2] * (counts[group] - 1))
            drawn[point, pair, 0] = rows[starts[group] + one]
            drawn[point, pair, 1] = rows[starts[group] + other + (other >= one)]
    return drawn


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _batches(
    rows: IntArray,
    starts: IntArray,
    counts: IntArray,
    first: IntArray,
    fixed: IntArray,
    level: FloatArray,
    uniform: FloatArray,
) -> IntArray:
    n_points, batch_size = uniform.shape
    drawn = np.empty((n_points, batch_size), dtype=np.int64)
    for point in range(n_points):
        low = first[fixed[point]]
        group = low + int(level[point] * (first[fixed[point] + 1] - low))
        for place in range(batch_size):
            drawn[point, place] = rows[starts[group] + int(uniform[point, place] * counts[group])]
    return drawn


@numba.njit(cache=True, nogil=True, error_model="numpy")
def mean_differences(codes: FloatArray, pairs: IntArray) -> FloatArray:
    """(n_points, n_codes) mean over a batch of the absolute difference between the two codes of a pair."""
    n_points, batch_size, _ = pairs.shape
    n_codes = codes.shape[1]
    means = np.zeros((n_points, n_codes))
    for point in range(n_points):
        for pair in range(batch_size):
            one, other = pairs[point, pair, 0], pairs[point, pair, 1]
            for code in range(n_codes):
                means[point, code] += abs(codes[one, code] - codes[other, code])
        for code in range(n_codes):
            means[point, code] /= batch_size
    return means


@numba.njit(cache=True, nogil=True, error_model="numpy")
def votes_of_least(
    codes: FloatArray, batches: IntArray, fixed: IntArray, n_factors: int, first_wins: bool = False
) -> FloatArray:
    """(n_codes, n_factors) how often each code varied least in a batch that held a factor fixed.

    Equals share the vote, unless the first of them wins it. Codes are of about unit variance: what differs by less than
    `ROUNDING` is equal.
    """
    n_points, batch_size = batches.shape
    n_codes = codes.shape[1]
    votes = np.zeros((n_codes, n_factors))
    total, squares, variances = np.empty(n_codes), np.empty(n_codes), np.empty(n_codes)
    for point in range(n_points):
        origin = batches[point, 0]
        total[:] = 0.0
        squares[:] = 0.0
        for place in range(1, batch_size):
            row = batches[point, place]
            for code in range(n_codes):
                # Counted from the first row of the batch, so that a code that stands still has variance 0 exactly.
                step = codes[row, code] - codes[origin, code]
                total[code] += step
                squares[code] += step * step
        for code in range(n_codes):
            variances[code] = (squares[code] - total[code] * total[code] / batch_size) / batch_size
        highest = variances.min() + ROUNDING
        share = 1.0 if first_wins else 1.0 / (variances <= highest).sum()
        for code in range(n_codes):
            if variances[code] <= highest:
                votes[code, fixed[point]] += share
                if first_wins:
                    break
    return votes
