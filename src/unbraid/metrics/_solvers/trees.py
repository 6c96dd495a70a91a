"""What trained predictors share: an order of codes of their own, values as ranks, and random numbers."""

from collections import Counter
from collections.abc import Callable
from typing import TypeVar, cast

import numpy as np

from unbraid.base.types import FloatArray, IntArray
from unbraid.metrics._shared.compiled import helper

ClassArray = TypeVar("ClassArray", FloatArray, IntArray)
FIRST = 4096  # rows that tell most codes apart
STEP = np.uint64(0x9E3779B97F4A7C15)  # of SplitMix64


def own_order(codes: FloatArray) -> tuple[IntArray, FloatArray]:
    """Codes that vary (n_live,) in an order, each with a sign (n_live,), that follow from what they hold.

    What is drawn at random for a code is then the same wherever it stands, turned over or not, and however many
    constant codes stand beside it; rescaling changes nothing, since only the ranks of the values count.
    """
    return order_of(codes.shape[1], lambda code: codes[:, code])


def order_of(n_codes: int, column: Callable[[int], FloatArray]) -> tuple[IntArray, FloatArray]:
    """`own_order` of codes that are given one by one."""
    keys: dict[int, bytes] = {}
    signs: dict[int, int] = {}

    def key(code: int, n_rows: int | None) -> bytes:
        centred = np.unique(column(code), return_inverse=True)[1]
        centred = 2 * centred - centred.max()
        moved = np.flatnonzero(centred)
        signs[code] = int(np.sign(centred[moved[0]])) if len(moved) else 0
        return (signs[code] * centred[:n_rows]).astype(np.int32).tobytes()

    for code in range(n_codes):
        begun = key(code, FIRST)
        if signs[code]:
            keys[code] = begun
    often = Counter(keys.values())
    for code in [code for code, begun in keys.items() if often[begun] > 1]:  # to be told apart by later rows
        keys[code] = key(code, None)
    order = sorted(keys, key=keys.__getitem__)
    return np.array(order, dtype=np.int64), np.array([signs[code] for code in order], dtype=float)


def in_own_order(codes: FloatArray, judged_codes: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """Which codes vary, in `own_order`, and these columns of both; a column of zeros where none varies."""
    order, signs = own_order(codes)
    if not len(order):
        return order, np.zeros((len(codes), 1)), np.zeros((len(judged_codes), 1))
    return order, np.ascontiguousarray(codes[:, order] * signs), np.ascontiguousarray(judged_codes[:, order] * signs)


def as_seen(classes: ClassArray) -> tuple[ClassArray, IntArray]:
    """The distinct classes in the order in which rows show them, and the place (n_rows,) of each row's own.

    However classes are numbered, they come in the same order.
    """
    present, first, places = np.unique(classes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return cast(ClassArray, present[order]), np.argsort(order)[places]


def ranks(train: FloatArray, test: FloatArray) -> tuple[IntArray, IntArray]:
    """Position of each value of one column among the distinct training values; a test value takes the nearest."""
    present, train_ranks = np.unique(train, return_inverse=True)
    low, high = present[:-1], present[1:]
    middle = low + (high - low) / 2
    # Between neighbouring floats the middle rounds to one of them; it belongs to its left side.
    cuts = np.where(middle < high, middle, low)
    return train_ranks, np.searchsorted(cuts, test)


def coarse_bins(train_ranks: IntArray, targets: FloatArray) -> IntArray:
    """(n_distinct,) bin of each distinct value: one each where that suffices, else up to `targets` rows each."""
    counts = np.bincount(train_ranks)
    if len(counts) <= len(targets) + 1:
        return np.arange(len(counts))
    # Bins end where the count comes nearest to each target, of two as near ones the inner: a mirrored column has its
    # bins mirrored.
    below = np.cumsum(counts)[:-1]
    after = np.clip(np.searchsorted(below, targets), 1, len(below) - 1)
    nearer = np.sign(below[after] + below[after - 1] - 2 * targets)  # 1 where the one before is
    last = np.unique(after - ((nearer > 0) | ((nearer == 0) & (targets > len(train_ranks) / 2))))
    return np.searchsorted(last, np.arange(len(counts)))


@helper()
def shuffle(order: IntArray, state: IntArray) -> None:
    """Fisher-Yates in place: of equally good codes each is first equally often, so that they share importance.

    `state` is uint64 (1,), of the SplitMix64 sequence.
    """
    for last in range(len(order) - 1, 0, -1):
        state[0] += STEP
        mixed = state[0]
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
        other = np.int64(((mixed >> np.uint64(32)) * np.uint64(last + 1)) >> np.uint64(32))
        order[last], order[other] = order[other], order[last]
