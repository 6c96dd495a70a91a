"""Whether rows that a predictor never saw are predicted better than by a constant, and than luck would."""

import numba
import numpy as np

from unbraid.metrics._solvers.trees import STEP, below
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
    if not beats_constant(predicted, truth):
        return False
    terms = predicted[np.arange(len(columns)), columns] * values
    agreement = float(terms.sum())
    least = agreement - 1e-12 * float(np.abs(terms).sum())
    state = np.random.default_rng(seed).integers(0, 2**63, size=1).astype(np.uint64)
    return _above_shuffles(predicted, columns.copy(), values.copy(), least, round(n_factors / SIGNIFICANCE) - 1, state)


def beats_constant(predicted: FloatArray, truth: tuple[IntArray, FloatArray]) -> bool:
    """Whether these predictions have a smaller squared error than any constant; arguments as those of `beats_luck`."""
    columns, values = truth
    if not len(columns):
        return False
    agreement = float((predicted[np.arange(len(columns)), columns] * values).sum())
    # Squared errors less the sum of the squared truth: predicted^2 - 2 agreement against that of the mean.
    sums = np.bincount(columns, weights=values, minlength=predicted.shape[1])
    return bool(2.0 * agreement - (predicted**2).sum() > (sums**2).sum() / len(columns))


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
    single, others = predicted[:, 0].copy(), np.empty(len(columns), dtype=np.uint32)
    for _ in range(n_shuffles):
        _draw_partners(others, state)
        if predicted.shape[1] > 1:  # values are all 1
            for row in range(len(columns) - 1, -1, -1):
                columns[row], columns[others[row]] = columns[others[row]], columns[row]
            total = _picked(predicted, columns)
        else:
            for row in range(len(columns) - 1, -1, -1):
                values[row], values[others[row]] = values[others[row]], values[row]
            total = _product(single, values)
        if total >= least:
            return False
    return True


@numba.njit(cache=True)
def _draw_partners(others: IntArray, state: IntArray) -> None:
    """`below` each row's number + 1, from the last row to the first."""
    begun = state[0]
    for row in range(len(others)):
        state[0] = begun + np.uint64(len(others) - 1 - row) * STEP
        others[row] = below(row + 1, state)
    state[0] = begun + np.uint64(len(others)) * STEP


@numba.njit(cache=True, fastmath={"reassoc", "nsz"})
def _picked(predicted: FloatArray, columns: IntArray) -> float:
    total = 0.0
    for row in range(len(columns)):
        total += predicted[row, columns[row]]
    return total


@numba.njit(cache=True, fastmath={"reassoc", "nsz"})
def _product(one: FloatArray, other: FloatArray) -> float:
    total = 0.0
    for row in range(len(one)):
        total += one[row] * other[row]
    return total
