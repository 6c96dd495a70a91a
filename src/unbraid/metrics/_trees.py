"""What boosted trees and forests share: values as ranks, and a random order of codes per node."""

import numba
import numpy as np

from unbraid.types import FloatArray, IntArray


def ranks(train: FloatArray, test: FloatArray) -> tuple[IntArray, IntArray]:
    """Position of each value of one column among the distinct training values; a test value takes the nearest."""
    present, train_ranks = np.unique(train, return_inverse=True)
    low, high = present[:-1], present[1:]
    middle = low + (high - low) / 2
    # Between neighbouring floats the middle rounds to one of them; it belongs to its left side.
    cuts = np.where(middle < high, middle, low)
    return train_ranks, np.searchsorted(cuts, test)


def coarse_bins(train_ranks: IntArray, max_bins: int) -> IntArray:
    """(n_distinct,) bin of each distinct value: one each where that suffices, else of near equal counts."""
    counts = np.bincount(train_ranks)
    if len(counts) <= max_bins:
        return np.arange(len(counts))
    # Bins end where the count comes nearest to each quantile, of two as near ones the inner: a mirrored column has its
    # bins mirrored.
    below = np.cumsum(counts)[:-1]
    targets = np.arange(1, max_bins) * (len(train_ranks) / max_bins)
    after = np.clip(np.searchsorted(below, targets), 1, len(below) - 1)
    nearer = np.sign(below[after] + below[after - 1] - 2 * targets)  # 1 where the one before is
    last = np.unique(after - ((nearer > 0) | ((nearer == 0) & (targets > len(train_ranks) / 2))))
    return np.searchsorted(last, np.arange(len(counts)))


@numba.njit(cache=True)
def next_random(state: IntArray) -> np.uint64:
    """The next number of the SplitMix64 sequence; `state` is uint64 (1,)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    mixed = state[0]
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


@numba.njit(cache=True)
def shuffle(order: IntArray, state: IntArray) -> None:
    """Fisher-Yates in place: of equally good codes each is first equally often, so that they share importance."""
    for last in range(len(order) - 1, 0, -1):
        other = np.int64(next_random(state) % np.uint64(last + 1))
        order[last], order[other] = order[other], order[last]
