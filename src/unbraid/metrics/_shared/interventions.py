"""Rows drawn with one factor held fixed: what the beta-VAE and FactorVAE scores vote on.

No dataset and no encoder are asked for new images: rows with the same level of a factor are drawn by index from
those given, whether or not these fill a grid. The other factors vary as they do among those rows.
"""

from dataclasses import dataclass

import numpy as np

from unbraid.base.counted import counted
from unbraid.base.types import FloatArray, IntArray
from unbraid.metrics._shared.chance import unreadable
from unbraid.metrics._shared.compiled import kernel
from unbraid.metrics._shared.inputs import Levels, NotDefined, split_rows
from unbraid.metrics._shared.sharing import shared

ROUNDING = 1e-12
AT_ONCE = 64  # codes, so that those of all rows stay in the cache


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
    low = groups.first[fixed][:, None]
    group = low + (uniform[:, :, 0] * (groups.first[fixed + 1][:, None] - low)).astype(np.int64)
    starts, counts = groups.starts[group], groups.counts[group]
    one = (uniform[:, :, 1] * counts).astype(np.int64)
    other = (uniform[:, :, 2] * (counts - 1)).astype(np.int64)
    return np.stack([groups.rows[starts + one], groups.rows[starts + other + (other >= one)]], axis=2), fixed


def draw_batches(groups: Groups, n_points: int, batch_size: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Rows (n_points, batch_size) that all share one level of one factor, and that factor (n_points,).

    Factor uniform per batch, level uniform over that factor's levels, rows uniform within it.
    """
    fixed = rng.integers(len(groups.first) - 1, size=n_points)
    level = rng.random(n_points)
    uniform = rng.random((n_points, batch_size))
    group = groups.first[fixed] + (level * np.diff(groups.first)[fixed]).astype(np.int64)
    places = groups.starts[group][:, None] + (uniform * groups.counts[group][:, None]).astype(np.int64)
    return np.take(groups.rows, places), fixed


def mean_differences(codes: FloatArray, pairs: IntArray) -> FloatArray:
    """(n_points, n_codes) mean over a batch of the absolute difference between the two codes of a pair."""
    means = np.zeros((len(pairs), codes.shape[1]))
    for first in range(0, codes.shape[1], AT_ONCE):
        block = np.ascontiguousarray(codes[:, first : first + AT_ONCE])
        part = np.zeros((len(pairs), block.shape[1]))
        _mean_differences(block, pairs, part)
        means[:, first : first + AT_ONCE] = part
    return means


@kernel()
def _mean_differences(codes: FloatArray, pairs: IntArray, means: FloatArray) -> None:
    n_points, batch_size, _ = pairs.shape
    for point in range(n_points):
        for pair in range(batch_size):
            one, other = np.uint64(pairs[point, pair, 0]), np.uint64(pairs[point, pair, 1])
            for code in range(codes.shape[1]):
                means[point, code] += abs(codes[one, code] - codes[other, code])
        for code in range(codes.shape[1]):
            means[point, code] /= batch_size


def votes_of_least(
    codes: FloatArray, batches: IntArray, fixed: IntArray, n_factors: int, first_wins: bool = False
) -> FloatArray:
    """(n_codes, n_factors) how often each code varied least in a batch that held a factor fixed.

    Equals share the vote, unless the first of them wins it. Codes are of about unit variance: what differs by less than
    `ROUNDING` is equal.
    """
    variances = np.empty((len(batches), codes.shape[1]))
    for first in range(0, codes.shape[1], AT_ONCE):
        block = np.ascontiguousarray(codes[:, first : first + AT_ONCE])
        total, part = np.zeros((2, len(batches), block.shape[1]))
        _variances(block, batches, total, part)
        variances[:, first : first + AT_ONCE] = part
    least = variances <= variances.min(axis=1, keepdims=True) + ROUNDING
    if first_wins:
        least &= np.cumsum(least, axis=1) == 1
    points, winners = np.nonzero(least)
    votes = np.zeros((codes.shape[1], n_factors))
    np.add.at(votes, (winners, fixed[points]), 1.0 / least.sum(axis=1)[points])
    return votes


@kernel()
def _variances(codes: FloatArray, batches: IntArray, total: FloatArray, variances: FloatArray) -> None:
    """Of each code in each batch into `variances` (n_points, n_codes); both of these are 0 before."""
    n_points, batch_size = batches.shape
    for point in range(n_points):
        origin = np.uint64(batches[point, 0])
        for place in range(1, batch_size):
            row = np.uint64(batches[point, place])
            for code in range(codes.shape[1]):
                # Counted from the first row of the batch, so that a code that stands still has variance 0 exactly.
                step = codes[row, code] - codes[origin, code]
                total[point, code] += step
                variances[point, code] += step * step
        for code in range(codes.shape[1]):
            squares, summed = variances[point, code], total[point, code]
            variances[point, code] = (squares - summed * summed / batch_size) / batch_size
