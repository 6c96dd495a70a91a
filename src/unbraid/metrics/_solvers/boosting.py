"""Gradient-boosted trees of depth 3 for classes.

What is fitted is what scikit-learn's GradientBoostingClassifier fits: multinomial deviance, one tree per class and
iteration, squared-error splits, one Newton step per leaf. A split is searched on histograms of at most `MAX_BINS` bins
per code, then value by value within the few bins that may hold a better cut than those at their ends: bins alone move
disentanglement by several hundredths.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numba
import numpy as np

from unbraid.metrics._solvers.trees import as_seen, coarse_bins, ranks, shuffle
from unbraid.types import BoolArray, FloatArray, IntArray, UInt8Array

Whole: TypeAlias = int | np.integer[Any]

MAX_BINS = 128
# A bin is searched value by value where the cut at one of its ends, raised by this many standard deviations of a walk
# of residuals through it, would be the best. At 1.5 no better cut inside another bin was missed in trials.
SLACK = 1.5
# Probabilities stay away from 0 and Newton steps from overflow: only a class of a few samples comes near either.
SMALLEST = 1e-60
LARGEST_STEP = 100.0


@dataclass(frozen=True, eq=False)
class Boosted:
    importance: FloatArray  # (n_codes,) total decrease of the squared error, summing to 1, or all 0
    classes: IntArray  # (n_present,) that training rows have
    probabilities: FloatArray  # (n_test, n_present)

    @property
    def predicted(self) -> IntArray:
        """(n_test,) the likeliest class of each row."""
        return self.classes[self.probabilities.argmax(axis=1)]


class RankedCodes(NamedTuple):
    """Codes as ranks among the distinct training values, training rows first, and those in coarse bins."""

    ranks: IntArray  # (n_codes, n_samples)
    bins: UInt8Array  # (n_train, n_codes)
    starts: IntArray  # (n_codes + 1,) where the bins of each code begin among all bins
    sorted_rows: IntArray  # (n_codes, n_train) training rows by increasing code
    ends: IntArray  # (n_bins of all codes,) how many training rows lie up to the end of each bin


class Work(NamedTuple):
    """Room for one tree. Nodes count as in a heap: the children of node i are 2i + 1 (left) and 2i + 2."""

    count_bits: int
    histograms: IntArray  # (7, n_bins of all codes) sum of residuals and, in the low bits, count of rows
    squares: FloatArray  # (7,) sum of squared residuals
    lefts: IntArray  # (n_bins of all codes,) histogram summed up to the end of each bin
    cuts: FloatArray  # (3, n_bins of all codes)
    nodes: UInt8Array  # (n_samples,) node of each row within the current level
    members: IntArray  # (n_train,)
    order: IntArray  # (n_codes,)
    state: IntArray  # (1,) of the random numbers


def ranked_codes(train_codes: FloatArray, test_codes: FloatArray) -> RankedCodes:
    all_ranks, bins, sizes, sorted_rows, ends = [], [], [], [], []
    for train, test in zip(train_codes.T, test_codes.T, strict=True):
        train_ranks, test_ranks = ranks(train, test)
        binned = coarse_bins(train_ranks, MAX_BINS)[train_ranks]
        all_ranks.append(np.concatenate([train_ranks, test_ranks]))
        bins.append(binned)
        sizes.append(binned.max() + 1)
        sorted_rows.append(np.argsort(train_ranks, kind="stable"))
        ends.append(np.cumsum(np.bincount(binned)))
    return RankedCodes(
        ranks=np.stack(all_ranks).astype(np.int32),
        bins=np.stack(bins, axis=1).astype(np.uint8),
        starts=np.cumsum([0, *sizes]),
        sorted_rows=np.stack(sorted_rows).astype(np.int32),
        ends=np.concatenate(ends),
    )


def boosted_classes(
    codes: RankedCodes, train_classes: IntArray, *, n_iterations: int, learning_rate: float, seed: int
) -> Boosted:
    """Fit the classes of the training rows, predict those of the test rows."""
    present, labels = as_seen(train_classes)
    n_codes, n_samples = codes.ranks.shape
    if len(present) == 1:
        return Boosted(np.zeros(n_codes), present, np.ones((n_samples - len(labels), 1)))
    state = np.random.default_rng(seed).integers(0, 2**63, size=1).astype(np.uint64)
    importance, odds = _boost(codes, labels, len(present), n_iterations, learning_rate, state)
    tested = odds[:, len(labels) :].T
    if len(present) == 2:
        tested = np.column_stack([np.ones(len(tested)), tested])
    return Boosted(importance / max(importance.sum(), SMALLEST), present, tested / tested.sum(axis=1, keepdims=True))


@numba.njit(cache=True, nogil=True)
def _boost(
    codes: RankedCodes, labels: IntArray, n_classes: int, n_iterations: int, learning_rate: float, state: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Importance (n_codes,) and, up to a factor per row, the odds (n_trees, n_samples) of each class.

    Two classes need one tree per iteration: the odds of the second against the first.
    """
    (n_codes, n_samples), n_train, n_slots = codes.ranks.shape, len(labels), codes.starts[-1]
    n_trees = n_classes if n_classes > 2 else 1
    newton = (n_classes - 1) / n_classes if n_classes > 2 else 1.0
    # A sum of residuals and a count of rows share one integer: one addition serves both, exact in any order.
    count_bits = 1
    while (1 << count_bits) <= n_train:
        count_bits += 1
    scale = 2.0 ** min(30, 62 - 2 * count_bits)

    odds = np.empty((n_trees, n_samples))
    frequency = np.bincount(labels, minlength=n_classes) / n_train
    for tree in range(n_trees):
        odds[tree] = frequency[tree] if n_classes > 2 else frequency[1] / frequency[0]

    importance = np.zeros(n_codes)
    by_tree = np.empty((n_trees, n_train), dtype=np.int32)
    by_row = np.empty((n_train, n_trees), dtype=np.int32)
    sums = np.empty((n_slots, n_trees), dtype=np.int64)
    totals = np.empty(n_samples)
    work = Work(
        count_bits,
        np.empty((7, n_slots), dtype=np.int64),
        np.empty(7),
        np.empty(n_slots, dtype=np.int64),
        np.empty((3, n_slots)),
        np.empty(n_samples, dtype=np.uint8),
        np.empty(n_train, dtype=np.int32),
        np.arange(n_codes),
        state,
    )
    for _ in range(n_iterations):
        if n_classes > 2:
            _normalise(odds, totals)
        _residuals(odds, labels, scale, by_tree, by_row)
        _root_sums(codes, by_row, sums)
        for tree in range(n_trees):
            for code in range(n_codes):
                before = 0
                for slot in range(codes.starts[code], codes.starts[code + 1]):
                    work.histograms[0, slot] = (sums[slot, tree] << count_bits) + codes.ends[slot] - before
                    before = codes.ends[slot]
            leaf_sums = _grow(codes, by_tree[tree], work, importance)
            _step(odds[tree], n_classes, work.nodes, leaf_sums / scale, n_train, newton, learning_rate)
    return importance, odds


@numba.njit(cache=True)
def _normalise(odds: FloatArray, totals: FloatArray) -> None:
    totals[:] = 0.0
    for tree in range(len(odds)):
        for row in range(len(totals)):
            totals[row] += odds[tree, row]
    for row in range(len(totals)):
        totals[row] = 1.0 / totals[row]
    for tree in range(len(odds)):
        for row in range(len(totals)):
            odds[tree, row] = max(odds[tree, row] * totals[row], SMALLEST)


@numba.njit(cache=True)
def _residuals(odds: FloatArray, labels: IntArray, scale: float, by_tree: IntArray, by_row: IntArray) -> None:
    """Class indicator less probability, as whole numbers, in both layouts."""
    n_trees, n_train = by_tree.shape
    for tree in range(n_trees):
        for row in range(n_train):
            probability = odds[tree, row] if n_trees > 1 else odds[tree, row] / (1.0 + odds[tree, row])
            by_tree[tree, row] = np.int32(np.rint(-probability * scale))
    for row in range(n_train):
        if n_trees > 1:
            by_tree[labels[row], row] += np.int32(scale)
        elif labels[row] == 1:
            by_tree[0, row] += np.int32(scale)
    for first in range(0, n_train, 64):  # in blocks, so that both layouts stay in the cache
        for tree in range(n_trees):
            for row in range(first, min(first + 64, n_train)):
                by_row[row, tree] = by_tree[tree, row]


@numba.njit(cache=True)
def _root_sums(codes: RankedCodes, residuals: IntArray, sums: IntArray) -> None:
    """Residuals of every class summed over the rows of each bin; the innermost loop is over neighbours in memory."""
    sums[:] = 0
    n_trees = sums.shape[1]
    for row in range(len(residuals)):
        for code in range(codes.bins.shape[1]):
            slot = codes.starts[code] + codes.bins[row, code]
            for tree in range(n_trees):
                sums[slot, tree] += residuals[row, tree]


@numba.njit(cache=True)
def _grow(codes: RankedCodes, residuals: IntArray, work: Work, importance: FloatArray) -> FloatArray:
    """One tree of depth 3: sets `work.nodes` to leaves 0..7, adds to `importance`, returns the leaves' sums.

    `work.histograms[0]` is filled.
    """
    mask = (np.int64(1) << work.count_bits) - 1
    split_code = np.zeros(7, dtype=np.int64)
    split_rank = np.full(7, np.iinfo(np.int32).max, dtype=np.int32)  # where nothing is gained, all go left
    packed = np.zeros(15, dtype=np.int64)  # sum and count of each node
    for slot in range(codes.starts[1]):
        packed[0] += work.histograms[0, slot]
    work.squares[0] = 0.0
    for row in range(len(residuals)):
        work.squares[0] += float(residuals[row]) * float(residuals[row])
    work.nodes[:] = 0
    for depth in range(3):
        first = (1 << depth) - 1
        for node in range(first, 2 * first + 1):
            code, rank, left, gain = _best_split(codes, residuals, work, node, node - first, packed[node])
            packed[2 * node + 1], packed[2 * node + 2] = left, packed[node] - left
            if gain > 0.0:
                split_code[node], split_rank[node] = code, rank
                importance[code] += gain
        _descend(codes.ranks, split_code, split_rank, depth, work.nodes)
        if depth < 2:
            smaller = np.zeros(2 * (first + 1), dtype=np.bool_)
            for node in range(first, 2 * first + 1):
                smaller[2 * (node - first) + int((packed[2 * node + 1] & mask) > (packed[2 * node + 2] & mask))] = True
            _children(codes, residuals, work, 2 * first + 1, smaller)
    return (packed[7:] >> work.count_bits).astype(np.float64)


@numba.njit(cache=True)
def _best_split(
    codes: RankedCodes, residuals: IntArray, work: Work, node: int, in_level: int, packed: Whole
) -> tuple[Whole, Whole, Whole, float]:
    """Code, greatest rank on the left, packed sum and count of the left, and decrease of the squared error."""
    count_bits, lefts = work.count_bits, work.lefts
    mask = (np.int64(1) << count_bits) - 1
    n_node, sum_node = float(packed & mask), float(packed >> count_bits)
    if n_node < 2.0:
        return 0, 0, packed, 0.0
    enough = _search(codes, work, node, n_node, sum_node)
    shuffle(work.order, work.state)
    best, best_code, best_place, best_left = 0.0, 0, -1, packed
    for code in work.order:
        start = codes.starts[code]
        for slot in range(start, codes.starts[code + 1]):
            if work.cuts[0, slot] < enough:
                continue
            begin, end = codes.ends[slot - 1] if slot > start else 0, codes.ends[slot]
            left = lefts[slot - 1] if slot > start else np.int64(0)
            last, last_rank = -1, -1
            if codes.ranks[code, codes.sorted_rows[code, begin]] == codes.ranks[code, codes.sorted_rows[code, end - 1]]:
                begin, last, left = end, end - 1, lefts[slot]
            for place in range(begin, end):
                row = codes.sorted_rows[code, place]
                if work.nodes[row] != in_level:
                    continue
                rank = codes.ranks[code, row]
                if rank != last_rank and last >= 0:
                    gain = _gain(left, n_node, sum_node, count_bits, best)
                    if gain > best:
                        best, best_code, best_place, best_left = gain, code, last, left
                left += (np.int64(residuals[row]) << count_bits) + 1
                last, last_rank = place, rank
            gain = _gain(left, n_node, sum_node, count_bits, best)
            if gain > best:
                best, best_code, best_place, best_left = gain, code, last, left
    if best_place < 0:
        return 0, 0, packed, 0.0
    return best_code, _middle(codes, work, best_code, best_place, in_level), best_left, best / n_node


@numba.njit(cache=True)
def _search(codes: RankedCodes, work: Work, node: int, n_node: float, sum_node: float) -> float:
    """What the best cut between bins gains; `work.cuts[0]` becomes what a cut within each bin might gain.

    Both are roots of the gain, whose square is what a split is chosen by.
    """
    mask = (np.int64(1) << work.count_bits) - 1
    histogram, lefts = work.histograms[node], work.lefts
    might, score, n_left = work.cuts[0], work.cuts[1], work.cuts[2]
    for code in range(len(work.order)):
        left = np.int64(0)
        for slot in range(codes.starts[code], codes.starts[code + 1]):
            left += histogram[slot]
            lefts[slot] = left
    for slot in range(len(lefts)):
        n_left[slot] = float(lefts[slot] & mask)
        score[slot] = float(lefts[slot] >> work.count_bits)
        might[slot] = float(histogram[slot] & mask)
    reach = SLACK * np.sqrt(work.squares[node] * n_node)
    for slot in range(len(lefts)):
        here = might[slot]
        scale = 1.0 / np.sqrt(max(n_left[slot] * (n_node - n_left[slot]), 0.5))
        score[slot] = abs(n_node * score[slot] - n_left[slot] * sum_node) * scale
        # In the first and the last bin a single row may be all that is cut off.
        outer = (n_left[slot] == here) | (n_left[slot] == n_node)
        might[slot] = -1.0 if here == 0.0 else (np.inf if outer else score[slot] + reach * np.sqrt(here) * scale)
    best = 0.0
    for slot in range(len(lefts)):
        best = max(best, score[slot])
    for code in range(len(work.order)):
        for slot in range(codes.starts[code] + 1, codes.starts[code + 1]):
            if might[slot] >= 0.0:
                might[slot] += max(score[slot - 1] - score[slot], 0.0)
    return best * (1.0 - 1e-9)


@numba.njit(cache=True)
def _middle(codes: RankedCodes, work: Work, code: Whole, place: int, in_level: int) -> Whole:
    """The rank halfway between the last row on the left and the node's next greater one."""
    low = codes.ranks[code, codes.sorted_rows[code, place]]
    for after in range(place + 1, codes.sorted_rows.shape[1]):
        row = codes.sorted_rows[code, after]
        if work.nodes[row] == in_level and codes.ranks[code, row] > low:
            return (low + codes.ranks[code, row]) // 2
    return low


@numba.njit(cache=True, inline="always")
def _gain(left: Whole, n_node: float, sum_node: float, count_bits: int, least: float) -> float:
    """Decrease of the squared error, times the rows of the node; 0 where it does not exceed `least`."""
    mask = (np.int64(1) << count_bits) - 1
    n_left = float(left & mask)
    n_right = n_node - n_left
    sum_left = float(left >> count_bits)
    # Written so that mirroring a code changes not even the rounding: ties must stay ties.
    difference = n_right * sum_left - n_left * (sum_node - sum_left)
    if difference * difference > least * (n_left * n_right):
        return difference * difference / (n_left * n_right)
    return 0.0


@numba.njit(cache=True)
def _descend(ranks: IntArray, code: IntArray, cut: IntArray, depth: int, nodes: UInt8Array) -> None:
    """Number of the node within the next level that each row falls into."""
    n_samples = len(nodes)
    if depth == 0:
        column = ranks[code[0]]
        for row in range(n_samples):
            nodes[row] = np.uint8(column[row] > cut[0])
    elif depth == 1:
        low, high = ranks[code[1]], ranks[code[2]]
        for row in range(n_samples):
            below = np.uint8(low[row] > cut[1])
            above = np.uint8(2) + np.uint8(high[row] > cut[2])
            nodes[row] = above if nodes[row] == 1 else below
    else:
        first, second, third, fourth = ranks[code[3]], ranks[code[4]], ranks[code[5]], ranks[code[6]]
        for row in range(n_samples):
            node = nodes[row]
            a = np.uint8(first[row] > cut[3])
            b = np.uint8(2) + np.uint8(second[row] > cut[4])
            c = np.uint8(4) + np.uint8(third[row] > cut[5])
            d = np.uint8(6) + np.uint8(fourth[row] > cut[6])
            low = b if node == 1 else a
            high = d if node == 3 else c
            nodes[row] = high if node > 1 else low


@numba.njit(cache=True)
def _children(codes: RankedCodes, residuals: IntArray, work: Work, first: int, smaller: BoolArray) -> None:
    """Histograms of the nodes of one level: the smaller child row by row, its sibling by subtraction."""
    found = 0
    for row in range(len(residuals)):
        work.members[found] = row
        found += smaller[work.nodes[row]]
    for node in range(len(smaller)):
        if smaller[node]:
            work.histograms[first + node] = 0
            work.squares[first + node] = 0.0
    for member in range(found):
        row = work.members[member]
        node = first + work.nodes[row]
        histogram = work.histograms[node]
        work.squares[node] += float(residuals[row]) * float(residuals[row])
        value = (np.int64(residuals[row]) << work.count_bits) + 1
        for code in range(codes.bins.shape[1]):
            histogram[codes.starts[code] + codes.bins[row, code]] += value
    for node in range(first, first + len(smaller)):
        if not smaller[node - first]:
            parent, sibling = (node - 1) // 2, ((node - 1) ^ 1) + 1
            work.squares[node] = work.squares[parent] - work.squares[sibling]
            for slot in range(work.histograms.shape[1]):
                work.histograms[node, slot] = work.histograms[parent, slot] - work.histograms[sibling, slot]


@numba.njit(cache=True)
def _step(
    odds: FloatArray,
    n_classes: int,
    nodes: UInt8Array,
    leaf_sums: FloatArray,
    n_train: int,
    newton: float,
    learning_rate: float,
) -> None:
    """One Newton step per leaf: sum of residuals over sum of p (1 - p)."""
    curvature = np.zeros((4, 8))  # four sums in turn, so that one need not wait for the other
    for row in range(n_train):
        probability = odds[row] if n_classes > 2 else odds[row] / (1.0 + odds[row])
        curvature[row & 3, nodes[row]] += probability * (1.0 - probability)
    factor = np.ones(8)
    for leaf in range(8):
        below = curvature[:, leaf].sum()
        if below > SMALLEST:
            step = learning_rate * newton * leaf_sums[leaf] / below
            factor[leaf] = np.exp(min(max(step, -LARGEST_STEP), LARGEST_STEP))
    for row in range(len(odds)):
        odds[row] *= factor[nodes[row]]
    if n_classes == 2:  # with more they are normalised
        for row in range(len(odds)):
            odds[row] = min(max(odds[row], SMALLEST), 1.0 / SMALLEST)
