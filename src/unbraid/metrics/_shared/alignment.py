"""One code for each factor, no code for two factors."""

import numpy as np

from unbraid.metrics._shared.bins import Binning, bin_codes, bin_equal_width
from unbraid.metrics._shared.information import mutual_information
from unbraid.metrics._shared.inputs import Levels
from unbraid.metrics._shared.sharing import alone, shared
from unbraid.metrics._shared.train_test_split import TrainTestSplit, live_codes
from unbraid.types import BoolArray, FloatArray, IntArray

BINS = 20
BY_LUCK = 1e-6  # probability that a code that knows nothing of a factor passes for one that does


def align(worth: FloatArray) -> IntArray:
    """(n_factors,) code of each factor such that the sum of `worth` (n_codes, n_factors) is largest.

    With fewer codes than factors some factors have none: -1.
    """
    from scipy.optimize import linear_sum_assignment  # a fifth of a second to import

    # Rounded, so that of codes as good as each other no last bit decides.
    codes, factors = linear_sum_assignment(np.round(worth, 12), maximize=True)
    alignment = np.full(worth.shape[1], -1)
    alignment[factors] = codes
    return alignment


def align_live(split: TrainTestSplit, worth: FloatArray) -> IntArray:
    """`align` among the codes that vary over the training rows: a dead one tells no factor, and none is given it."""
    live = live_codes(split)[0]  # in an order of their own, so that of equally good alignments no column decides
    return np.append(live, -1)[align(worth[live])]


def notes_on_unaligned(alignment: IntArray) -> tuple[str, ...]:
    return tuple(
        f"factor {factor} has no code of its own (fewer codes that vary than factors): it scores 0"
        for factor in np.flatnonzero(alignment < 0)
    )


@shared
def training_information(split: TrainTestSplit, binning: Binning = "width") -> FloatArray:
    """(n_codes, n_factors) mutual information of binned codes and factors, by the training rows alone."""
    levels = Levels(split.levels.levels[split.train], split.sizes, ())
    return np.concatenate(
        [
            mutual_information(alone(bin_codes)(values[split.train], BINS, binning), levels)
            for _, values in split.rows.column_blocks()
        ]
    )


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
