"""One code for each factor, no code for two factors."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from unbraid.base.types import BoolArray, FloatArray, IntArray
from unbraid.metrics._shared.bins import Binning, bin_codes, bin_equal_width, but_for_rounding, places
from unbraid.metrics._shared.information import mutual_information
from unbraid.metrics._shared.inputs import Levels, column_slices, standardised
from unbraid.metrics._shared.sharing import of_codes, shared, without_sharing
from unbraid.metrics._shared.train_test_split import TrainTestSplit, varying_codes
from unbraid.metrics._solvers.trees import as_seen

BINS = 20
FIRST = 64  # rows that tell most columns apart
BITS = 30  # of standardised values, of which rounding and another unit leave more
BY_LUCK = 1e-6  # probability that a code that knows nothing of a factor passes for one that does


def align(worth: FloatArray, order: tuple[IntArray, IntArray] | None = None) -> IntArray:
    """(n_factors,) code of each factor such that the sum of `worth` (n_codes, n_factors) is largest.

    With fewer codes than factors some factors have none: -1.

    Args:
        worth: (n_codes, n_factors); a difference of 1e-12 counts as none.
        order: of codes and of factors, all or some of them, in which they come where several alignments are the best.
    """
    from scipy.optimize import linear_sum_assignment  # a fifth of a second to import

    rows, columns = (np.arange(size) for size in worth.shape) if order is None else order
    # Whole numbers, so that of sums as large as each other no last bit decides.
    codes, factors = linear_sum_assignment(np.rint(worth[np.ix_(rows, columns)] * 1e12), maximize=True)
    alignment = np.full(worth.shape[1], -1)
    alignment[columns[factors]] = rows[codes]
    return alignment


def align_live(split: TrainTestSplit, worth: FloatArray) -> IntArray:
    """`align` among the codes that vary over the training rows: a dead one tells no factor, and none is given it."""
    rows, alive = np.concatenate([split.train, split.test]), varying_codes(split)
    by_code = by_content(content_keys(split.rows.stored, rows, alive))
    factors = np.arange(len(split.sizes))
    by_factor = by_content(content_keys(split.levels.levels, rows, factors, classes=factors))
    return align(worth, (alive[by_code], by_factor))


def by_content(keys: Sequence[tuple[Any, ...]]) -> IntArray:
    """Order of columns of which these are the `content_keys`."""
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)


def content_keys(
    table: FloatArray | IntArray,
    rows: IntArray,
    columns: IntArray,
    *,
    classes: Sequence[int] | IntArray = (),
    ranked: bool = False,
) -> list[tuple[Any, ...]]:
    """What each of these columns holds in these rows, for an order that does not depend on where columns stand.

    Of numbers neither scale, shift, sign nor rounding changes it, and where they are `ranked` no monotone change does;
    of columns that are `classes` it is the same whatever these are called.
    """

    def read(some_rows: IntArray, some: IntArray) -> list[tuple[float, ...]]:
        values = table[np.ix_(some_rows, some)].astype(np.float64)
        for place in np.flatnonzero(np.isin(some, classes)):
            values[:, place] = as_seen(but_for_rounding(values[:, place], BITS))[1]
        own = but_for_rounding(standardised(places(values) if ranked else values), BITS)
        leading = np.take_along_axis(own, (own != 0.0).argmax(axis=0)[None], axis=0)
        return [tuple(column) for column in (own * np.sign(leading) + 0.0).T.tolist()]

    keys: list[tuple[Any, ...]] = [(begun,) for begun in read(rows[:FIRST], columns)]
    often = Counter(keys)
    tied = [place for place, key in enumerate(keys) if often[key] > 1]  # to be told apart by later rows
    for place, whole in zip(tied, read(rows, columns[tied]), strict=True):
        keys[place] += (whole,)
    return keys


def notes_on_unaligned(alignment: IntArray) -> tuple[str, ...]:
    return tuple(
        f"factor {factor} has no code of its own (fewer codes that vary than factors): it scores 0"
        for factor in np.flatnonzero(alignment < 0)
    )


@shared
def training_information(split: TrainTestSplit, binning: Binning = "width") -> FloatArray:
    """(n_codes, n_factors) mutual information of binned codes and factors, by the training rows alone."""
    levels = Levels(split.levels.levels[split.train], split.sizes, ())
    stored, blocks = split.rows.stored, column_slices(*split.rows.stored.shape)
    step, parts = _training_bins, iter([stored])
    if len(blocks) > 1:
        step, parts = without_sharing(step), (stored[:, block] for block in blocks)
    return np.concatenate([mutual_information(step(part, split.train, binning), levels) for part in parts])


@of_codes
def _training_bins(stored: FloatArray | IntArray, train: IntArray, binning: Binning) -> IntArray:
    return bin_codes(stored[train].astype(np.float64), BINS, binning)


def gaps(worth: FloatArray) -> FloatArray:
    """(..., n_factors) from (..., n_codes, n_factors): the best code less the second best, or less 0 without one."""
    nothing = np.zeros_like(worth[..., :1, :])
    ranked = np.sort(np.concatenate([nothing, worth], axis=-2), axis=-2)
    return ranked[..., -1, :] - ranked[..., -2, :]


def mean_by_shares(values: FloatArray, shares: FloatArray) -> float:
    """Of values of at most 1; the shares add up to 1, which rounding may exceed."""
    return float(min(shares @ values, 1.0))


def beyond_luck(split: TrainTestSplit, information: FloatArray) -> BoolArray:
    """(n_codes, n_factors) whether `training_information` is more than independence would give by luck.

    The likelihood-ratio test: 2 N I is close to a chi-squared variable under independence.
    """
    from scipy.special import chdtri  # scipy.stats takes half a second to import

    codes, levels = bin_equal_width(split.codes[split.train], BINS), split.levels.levels[split.train]
    classes, sizes = (np.array([len(np.unique(column)) for column in part.T]) for part in (codes, levels))
    freedom = np.outer(classes - 1, sizes - 1)
    return 2 * len(split.train) * information > chdtri(np.maximum(freedom, 1), BY_LUCK)
