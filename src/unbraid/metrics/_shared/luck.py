"""Whether rows that a predictor never saw are predicted better than by a constant, and than luck would."""

import numba
import numpy as np

from unbraid.metrics._solvers.trees import below
from unbraid.types import FloatArray, IntArray

SIGNIFICANCE = 1e-3  # for all factors of a result together
N_HELD_OUT = 1_000  # rows that a predictor of importances is tested on at most


def beats_luck(predicted: FloatArray, truth: tuple[IntArray, FloatArray], n_factors: int, seed: int) -> bool:
    """Whether these predictions have a smaller squared error than any constant, and than all shuffles of the truth.

    Of `n_factors` factors that have nothing to do with what they are predicted from, one passes with a probability of
    at most `SIGNIFICANCE`, whatever the distributions: a permutation test. It needs rows enough: with fewer than some
    ten thousand ways to arrange the truth, shuffles arrive at it by themselves.

    Args:
        predicted: (n_rows, n_columns), one column per class, or one of values.
        truth: (n_rows,) the column and (n_rows,) what should be predicted there, 0 elsewhere: the class and 1, or 0 and
            the value.
        n_factors: that are tested.
        seed: of the shuffles.
    """
    columns, values = truth
    if not len(columns):
        return False
    terms = predicted[np.arange(len(columns)), columns] * values
    agreement = float(terms.sum())
    # Squared errors less the sum of the squared truth: predicted^2 - 2 agreement against that of the mean.
    sums = np.bincount(columns, weights=values, minlength=predicted.shape[1])
    if not 2.0 * agreement - (predicted**2).sum() > (sums**2).sum() / len(columns):
        return False
    least = agreement - 1e-12 * float(np.abs(terms).sum())
    state = np.random.default_rng(seed).integers(0, 2**63, size=1).astype(np.uint64)
    return _above_shuffles(predicted, columns.copy(), values.copy(), least, round(n_factors / SIGNIFICANCE) - 1, state)


def unpredicted(factor: int) -> str:
    """The note of a factor without importances."""
    return (
        f"factor {factor}: held-out rows are predicted no better than by a constant or by chance, "
        "so that no code counts as important"
    )


@numba.njit(cache=True, nogil=True)
def _above_shuffles(
    predicted: FloatArray, columns: IntArray, values: FloatArray, least: float, n_shuffles: int, state: IntArray
) -> bool:
    """Whether every shuffle of the truth, in place, agrees less than `least` with what is predicted."""
    for _ in range(n_shuffles):
        total = 0.0
        for row in range(len(columns) - 1, -1, -1):
            other = below(row + 1, state)
            columns[row], columns[other] = columns[other], columns[row]
            values[row], values[other] = values[other], values[row]
            total += predicted[row, columns[row]] * values[row]
        if total >= least:
            return False
    return True
