"""Gradient-boosted trees of depth 3 for classes.

What is fitted is what scikit-learn's GradientBoostingClassifier fits: multinomial deviance, one tree per class and
iteration, squared-error splits, one Newton step per leaf. A split is searched on histograms of at most `MAX_BINS` bins
per code, then value by value within the few bins that may hold a better cut than those at their ends: bins alone move
disentanglement by several hundredths. Of more than `MANY` codes, most of the time would go to bins that hold no better
cut: there are fewer, narrower towards both ends, where a few rows can gain as much as many in the middle.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numba
import numpy as np
from numba.extending import register_jitable

from unbraid.base.types import BoolArray, FloatArray, IntArray, UInt8Array
from unbraid.metrics._shared.compiled import START
from unbraid.metrics._solvers.trees import as_seen, coarse_bins, ranks, shuffle

Whole: TypeAlias = int | np.integer[Any]

MAX_BINS, MAX_BINS_OF_MANY = 128, 32
MANY = 64
OUTERMOST = 8  # rows in the first and the last bin of many codes
# A bin is searched value by value where the cut at one of its ends, raised by this many standard deviations of a walk
# of residuals through it, would be the best. At 1.5 no better cut inside another bin was missed in trials.
SLACK = 1.5
LAST_RANK = np.int32(np.iinfo(np.int32).max)
NEAR = 1.0 - 2e-9  # rounding apart, what gains less than this share of the best is not the best
# For a class of at most one row in so many, it is worth the work to sum its residuals by themselves: see `_bound`.
RARE = 8
# From so many trees on, it is faster to sum the residuals of all of them in one pass over the rows.
TOGETHER = 8
BLOCK = 64  # codes whose histograms are filled together, so that they stay in the cache
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
    sorted_rows: IntArray  # (n_codes, n_train) training rows by increasing code; unsigned: see `Work`
    ends: IntArray  # (n_bins of all codes,) how many training rows lie up to the end of each bin
    single: BoolArray  # (n_bins of all codes,) whether all training rows in a bin have one value


class Work(NamedTuple):
    """Room for one tree. Nodes count as in a heap: the children of node i are 2i + 1 (left) and 2i + 2.

    What is an index into another array is unsigned, since numba would ask of each whether it is negative.
    """

    count_bits: int
    histograms: IntArray  # (7, n_bins of all codes) sum of residuals and, in the low bits, count of rows
    squares: FloatArray  # (7,) sum of squared residuals
    lefts: IntArray  # (n_bins of all codes,) histogram summed up to the end of each bin
    gains: FloatArray  # (1 + n_bins of all codes,) of the cuts between bins: that before each bin, that at its end
    walks: FloatArray  # (n_bins of all codes,) how far a walk of residuals through each bin may raise a gain
    risen: FloatArray  # (7, n_bins of all codes) sum of the residuals above 0, of rare classes
    opened: BoolArray  # (n_bins of all codes,) whether a bin is searched value by value
    inner_lefts: IntArray  # (n_train + 1,) sum and count up to and with each row of the node in one bin
    places: IntArray  # (n_train + 1,) of these rows among the sorted ones
    nodes: UInt8Array  # (n_samples,) node of each row within the current level
    members: IntArray  # (n_train + 1,)
    order: IntArray  # (n_codes,)
    state: IntArray  # (1,) of the random numbers


def ranked_codes(train_codes: FloatArray, test_codes: FloatArray) -> RankedCodes:
    all_ranks, bins, sizes, sorted_rows, ends, single = [], [], [], [], [], []
    targets = _rows_below_cuts(*train_codes.shape)
    for train, test in zip(train_codes.T, test_codes.T, strict=True):
        train_ranks, test_ranks = ranks(train, test)
        bins_of_values = coarse_bins(train_ranks, targets)
        binned = bins_of_values[train_ranks]
        all_ranks.append(np.concatenate([train_ranks, test_ranks]))
        bins.append(binned)
        sizes.append(binned.max() + 1)
        sorted_rows.append(np.argsort(train_ranks, kind="stable"))
        ends.append(np.cumsum(np.bincount(binned)))
        single.append(np.bincount(bins_of_values) == 1)
    return RankedCodes(
        ranks=np.stack(all_ranks).astype(np.int32),
        bins=np.stack(bins, axis=1).astype(np.uint8),
        starts=np.cumsum([0, *sizes]),
        sorted_rows=np.stack(sorted_rows).astype(np.uint32),
        ends=np.concatenate(ends),
        single=np.concatenate(single),
    )


def _rows_below_cuts(n_rows: int, n_codes: int) -> FloatArray:
    """How many rows bins are to have up to each of their inner ends."""
    if n_codes <= MANY or n_rows <= MAX_BINS_OF_MANY:
        return np.arange(1, MAX_BINS) * (n_rows / MAX_BINS)
    outermost = np.log(n_rows / OUTERMOST - 1)
    return n_rows / (1 + np.exp(-np.linspace(-outermost, outermost, MAX_BINS_OF_MANY - 1)))


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


def _boost(
    codes: RankedCodes, labels: IntArray, n_classes: int, n_iterations: int, learning_rate: float, state: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Importance (n_codes,) and, up to a factor per row, the odds (n_trees, n_samples) of each class.

    Two classes need one tree per iteration: the odds of the second against the first.
    """
    (n_codes, n_samples), n_train, n_slots = codes.ranks.shape, len(labels), codes.starts[-1]
    n_trees = n_classes if n_classes > 2 else 1
    # A sum of residuals and a count of rows share one integer: one addition serves both, exact in any order.
    count_bits = n_train.bit_length()
    counts = np.bincount(labels, minlength=n_classes)
    frequency = counts / n_train
    prior = frequency if n_classes > 2 else frequency[1:] / frequency[0]
    odds = np.repeat(prior[:, None], n_samples, axis=1)
    importance = np.zeros(n_codes)
    work = Work(
        count_bits,
        np.empty((7, n_slots), dtype=np.int64),
        np.empty(7),
        np.empty(n_slots, dtype=np.int64),
        np.zeros(1 + n_slots),
        np.empty(n_slots),
        np.empty((7, n_slots)),
        np.empty(n_slots, dtype=bool),
        np.empty(n_train + 1, dtype=np.int64),
        np.empty(n_train + 1, dtype=np.int64),
        np.empty(n_samples, dtype=np.uint8),
        np.empty(n_train + 1, dtype=np.uint32),
        np.arange(n_codes),
        state,
    )
    _iterate(
        codes, labels, n_classes, n_iterations, learning_rate, 2.0 ** min(30, 62 - 2 * count_bits),
        np.argsort(labels, kind="stable").astype(np.uint32), np.cumsum([0, *counts]), work,
        np.empty((n_trees, n_train), dtype=np.int32), np.empty((n_train, n_trees), dtype=np.int32),
        np.empty((n_slots, n_trees), dtype=np.int64), np.empty(n_samples), importance, odds,
    )  # fmt: skip
    return importance, odds


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _iterate(
    codes: RankedCodes,
    labels: IntArray,
    n_classes: int,
    n_iterations: int,
    learning_rate: float,
    scale: float,
    by_class: IntArray,
    ends: IntArray,
    work: Work,
    by_tree: IntArray,
    by_row: IntArray,
    sums: IntArray,
    totals: FloatArray,
    importance: FloatArray,
    odds: FloatArray,
) -> None:
    """Grow all trees: `importance` is added to, `odds` are multiplied. Rows `by_class` end at `ends` for each."""
    n_trees, n_train = by_tree.shape
    newton = (n_classes - 1) / n_classes if n_classes > 2 else 1.0
    leaf_sums = np.empty(8)
    for _ in range(n_iterations):
        if n_classes > 2:
            _normalise(odds, totals)
        _residuals(odds, labels, scale, by_tree, by_row)
        if n_trees < TOGETHER:
            _root_sums_by_tree(codes.starts, codes.bins, by_tree, sums)
        else:
            _root_sums(codes.starts, codes.bins, by_row, sums)
        for tree in range(n_trees):
            _root(codes, by_tree[tree], sums[:, tree], work)
            begin, end = ends[tree], ends[tree + 1]
            if n_trees == 1 or RARE * (end - begin) > n_train:
                end = begin
            _grow(codes, by_tree[tree], by_class[begin:end], work, importance, leaf_sums)
            _step(odds[tree], n_classes, work.nodes, leaf_sums, scale, n_train, newton, learning_rate)


@register_jitable
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


@register_jitable
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


@register_jitable
def _root_sums(starts: IntArray, bins: UInt8Array, residuals: IntArray, sums: IntArray) -> None:
    """Residuals of every class summed over the rows of each bin; the innermost loop is over neighbours in memory."""
    sums[:] = 0
    n_trees = sums.shape[1]
    for first in range(0, bins.shape[1], BLOCK):
        end = min(first + BLOCK, bins.shape[1])
        for row in range(len(residuals)):
            for code in range(first, end):
                slot = starts[code] + bins[row, code]
                for tree in range(n_trees):
                    sums[slot, tree] += residuals[row, tree]


@register_jitable
def _root_sums_by_tree(starts: IntArray, bins: UInt8Array, residuals: IntArray, sums: IntArray) -> None:
    """As `_root_sums`, which is slower for few trees: they are too few neighbours."""
    sums[:] = 0
    for code in range(bins.shape[1]):
        column = bins[:, code].copy()
        for tree in range(len(residuals)):
            own, by_row = sums[starts[code] : starts[code + 1], tree], residuals[tree]
            for row in range(len(column)):
                own[column[row]] += by_row[row]


@register_jitable(fastmath={"reassoc", "nsz"})
def _root(codes: RankedCodes, residuals: IntArray, sums: IntArray, work: Work) -> None:
    """Histogram and sum of squares of all rows."""
    for code in range(len(work.order)):
        before = 0
        for slot in range(codes.starts[code], codes.starts[code + 1]):
            work.histograms[0, slot] = (sums[slot] << work.count_bits) + codes.ends[slot] - before
            before = codes.ends[slot]
    squares = 0.0
    for row in range(len(residuals)):
        squares += float(residuals[row]) * float(residuals[row])
    work.squares[0] = squares


@register_jitable
def _grow(
    codes: RankedCodes, residuals: IntArray, rare: IntArray, work: Work, importance: FloatArray, leaf_sums: FloatArray
) -> None:
    """One tree of depth 3: sets `work.nodes` to leaves 0..7 and `leaf_sums` to the sums there, adds to `importance`.

    Histogram and squares of the root are filled. `rare` are the rows of a rare class, the only ones with residuals
    above 0; of other classes none are given.
    """
    mask = (np.int64(1) << work.count_bits) - 1
    split_code, split_rank = np.empty(7, dtype=np.int64), np.empty(7, dtype=np.int32)
    for node in range(7):
        split_code[node], split_rank[node] = 0, LAST_RANK  # where nothing is gained, all go left
    packed, smaller = np.empty(15, dtype=np.int64), np.empty(4, dtype=np.bool_)  # sum and count of each node
    packed[0] = 0
    for slot in range(codes.starts[1]):
        packed[0] += work.histograms[0, slot]
    work.nodes[:] = 0
    for depth in range(3):
        first = (1 << depth) - 1
        if len(rare):
            for node in range(first, 2 * first + 1):
                for slot in range(work.risen.shape[1]):
                    work.risen[node, slot] = 0.0
            _rise(codes.starts, codes.bins, residuals, rare, work.nodes, work.risen[first:])
        for node in range(first, 2 * first + 1):
            code, rank, left, gain = _best_split(
                codes, residuals, work, node, node - first, packed[node], len(rare) > 0
            )
            packed[2 * node + 1], packed[2 * node + 2] = left, packed[node] - left
            if gain > 0.0:
                split_code[node], split_rank[node] = code, rank
                importance[code] += gain
        _descend(codes.ranks, split_code, split_rank, depth, work.nodes)
        if depth < 2:
            for node in range(first, 2 * first + 1):
                fewer_right = (packed[2 * node + 1] & mask) > (packed[2 * node + 2] & mask)
                smaller[2 * (node - first)], smaller[2 * (node - first) + 1] = not fewer_right, fewer_right
            _children(codes, residuals, work, 2 * first + 1, smaller[: 2 * (first + 1)])
    for leaf in range(8):
        leaf_sums[leaf] = float(packed[7 + leaf] >> work.count_bits)


@register_jitable
def _best_split(
    codes: RankedCodes, residuals: IntArray, work: Work, node: int, in_level: int, packed: Whole, bounded: bool
) -> tuple[Whole, Whole, Whole, float]:
    """Code, greatest rank on the left, packed sum and count of the left, and decrease of the squared error."""
    count_bits, lefts = work.count_bits, work.lefts
    mask = (np.int64(1) << count_bits) - 1
    n_node, sum_node = float(packed & mask), float(packed >> count_bits)
    if n_node < 2.0:
        return 0, 0, packed, 0.0
    enough = _search(codes, work, node, n_node, sum_node)
    shuffle(work.order, work.state)
    best, best_code, best_place, best_left = 0.0, START, START - 1, packed
    for code in work.order:
        start = codes.starts[code]
        ranks, rows, opened = codes.ranks[code], codes.sorted_rows[code], work.opened[start : codes.starts[code + 1]]
        for slot in range(start, codes.starts[code + 1]):
            if not opened[slot - start]:
                continue
            bin_sum, risen = work.histograms[node, slot], work.risen[node, slot]
            if bounded and _bound(bin_sum, lefts[slot], risen, n_node, sum_node, count_bits) < enough:
                continue
            begin, end = codes.ends[slot - 1] if slot > start else 0, codes.ends[slot]
            if codes.single[slot]:
                work.inner_lefts[0], work.places[0], n_cuts = lefts[slot], end - 1, 1
            else:
                left = lefts[slot - 1] if slot > start else np.int64(0)
                n_cuts = _walk(
                    rows[begin:end],
                    begin,
                    residuals,
                    work.nodes,
                    work.inner_lefts,
                    work.places,
                    count_bits,
                    in_level,
                    left,
                )
            inner_lefts, places = work.inner_lefts[:n_cuts], work.places[:n_cuts]
            if not _any_better(inner_lefts, n_node, sum_node, count_bits, best):
                continue
            for cut in range(n_cuts):
                if cut + 1 < n_cuts and ranks[rows[places[cut]]] == ranks[rows[places[cut + 1]]]:
                    continue
                gain = _gain(inner_lefts[cut], n_node, sum_node, count_bits, best)
                if gain > best:
                    best, best_code, best_place, best_left = gain, code, places[cut], inner_lefts[cut]
                    enough = max(enough, best * NEAR)
    if best_place < 0:
        return 0, 0, packed, 0.0
    return (
        best_code,
        _middle(codes.ranks[best_code], codes.sorted_rows[best_code], work.nodes, best_place, in_level),
        best_left,
        best / n_node,
    )


@register_jitable
def _search(codes: RankedCodes, work: Work, node: int, n_node: float, sum_node: float) -> float:
    """What the best cut between bins gains; sets `work.opened` where a cut within a bin might gain more."""
    mask = (np.int64(1) << work.count_bits) - 1
    histogram, lefts, gains, walks = work.histograms[node], work.lefts, work.gains, work.walks
    for code in range(len(work.order)):
        left = np.int64(0)
        for slot in range(codes.starts[code], codes.starts[code + 1]):
            left += histogram[slot]
            lefts[slot] = left
    squares = work.squares[node]
    reach = SLACK * SLACK * squares * n_node if squares >= 0.0 else np.inf  # by subtraction, rounding may leave less
    for slot in range(len(lefts)):
        n_left = float(lefts[slot] & mask)
        scale = 1.0 / max(n_left * (n_node - n_left), 0.5)
        difference = n_node * float(lefts[slot] >> work.count_bits) - n_left * sum_node
        gains[1 + slot] = difference * difference * scale
        walks[slot] = reach * float(histogram[slot] & mask) * scale
    enough = _greatest(gains) * NEAR
    for slot in range(len(lefts)):
        n_bin, n_left = histogram[slot] & mask, lefts[slot] & mask
        # Whether the roots of both add up to that of `enough`, without taking roots.
        gain, walk = max(gains[slot], gains[1 + slot]), walks[slot]
        lacking = enough - gain - walk
        near = (lacking <= 0.0) | (lacking * lacking <= 4.0 * gain * walk)
        # In the first and the last bin a single row may be all that is cut off.
        outer = (n_left == n_bin) | (n_left == np.int64(n_node))
        work.opened[slot] = (n_bin > 0) & (outer | near)
    return enough


@register_jitable
def _greatest(values: FloatArray) -> float:
    """Of numbers not below 0, which are in the order of their bits: whole numbers are compared many at once."""
    best = np.int64(0)
    for value in values.view(np.int64):
        best = max(best, value)
    return np.int64(best).view(np.float64)


@register_jitable
def _rise(
    starts: IntArray, bins: UInt8Array, residuals: IntArray, rows: IntArray, nodes: UInt8Array, risen: FloatArray
) -> None:
    """Residuals above 0 summed over the rows of each bin of each node."""
    begins = starts.astype(np.uint32)
    for row in rows:
        histogram, own = risen[nodes[row]], bins[row]
        for code in range(len(own)):
            histogram[begins[code] + own[code]] += residuals[row]


@register_jitable(inline="always")
def _bound(bin_sum: Whole, left: Whole, risen: float, n_node: float, sum_node: float, count_bits: int) -> float:
    """What no cut within a bin, nor at its end, can gain more than, in whatever order its rows come.

    As if all residuals above 0, whose sum is `risen`, came first or last. `bin_sum` packs the sum and count of the bin,
    `left` up to its end.
    """
    mask = (np.int64(1) << count_bits) - 1
    n_bin, n_end = float(bin_sum & mask), float(left & mask)
    n_begin = n_end - n_bin
    begun = n_node * float((left - bin_sum) >> count_bits) - n_begin * sum_node
    rise = n_node * risen + max(-sum_node, 0.0) * n_bin
    fall = n_node * (risen - float(bin_sum >> count_bits)) + max(sum_node, 0.0) * n_bin
    greatest = max(begun + rise, fall - begun)
    n_begin, n_end = max(n_begin, 1.0), min(n_end, n_node - 1.0)
    return greatest * greatest / min(n_begin * (n_node - n_begin), n_end * (n_node - n_end))


@register_jitable
def _walk(
    rows: IntArray,
    begin: int,
    residuals: IntArray,
    nodes: UInt8Array,
    inner_lefts: IntArray,
    places: IntArray,
    count_bits: int,
    in_level: int,
    left: Whole,
) -> Whole:
    """How many of the sorted rows are the node's; sets `places` and `inner_lefts` of them.

    Without a branch, which would be foretold wrongly for every other row.
    """
    n_inside = 0
    for place in range(len(rows)):
        row = rows[place]
        inside = np.int64(nodes[row] == in_level)
        left += ((np.int64(residuals[row]) << count_bits) + 1) & -inside
        inner_lefts[n_inside], places[n_inside] = left, begin + place
        n_inside += inside
    return n_inside


@register_jitable
def _any_better(lefts: IntArray, n_node: float, sum_node: float, count_bits: int, best: float) -> bool:
    """Whether any cut gains more than `best`, ties between values aside; the formula of `_gain`, many at once."""
    mask = (np.int64(1) << count_bits) - 1
    n_better = 0
    for cut in range(len(lefts)):
        n_left = float(lefts[cut] & mask)
        n_right = n_node - n_left
        sum_left = float(lefts[cut] >> count_bits)
        difference = n_right * sum_left - n_left * (sum_node - sum_left)
        n_better += difference * difference > best * (n_left * n_right)
    return n_better > 0


@register_jitable
def _middle(ranks: IntArray, rows: IntArray, nodes: UInt8Array, place: int, in_level: int) -> Any:
    """The rank halfway between the last row on the left and the node's next greater one."""
    low = ranks[rows[place]]
    for after in range(place + 1, len(rows)):
        row = rows[after]
        if nodes[row] == in_level and ranks[row] > low:
            return (low + ranks[row]) // 2
    return low


@register_jitable(inline="always")
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


@register_jitable
def _descend(ranks: IntArray, code: IntArray, cut: IntArray, depth: int, nodes: UInt8Array) -> None:
    """Number of the node within the next level that each row falls into."""
    n_samples = len(nodes)
    if depth == 0:
        column, end = ranks[code[0]], cut[0]
        for row in range(n_samples):
            nodes[row] = np.uint8(column[row] > end)
    elif depth == 1:
        low, high = ranks[code[1]], ranks[code[2]]
        low_end, high_end = cut[1], cut[2]
        for row in range(n_samples):
            below = np.uint8(low[row] > low_end)
            above = np.uint8(2) + np.uint8(high[row] > high_end)
            nodes[row] = above if nodes[row] == 1 else below
    else:
        first, second, third, fourth = ranks[code[3]], ranks[code[4]], ranks[code[5]], ranks[code[6]]
        first_end, second_end, third_end, fourth_end = cut[3], cut[4], cut[5], cut[6]
        for row in range(n_samples):
            node = nodes[row]
            a = np.uint8(first[row] > first_end)
            b = np.uint8(2) + np.uint8(second[row] > second_end)
            c = np.uint8(4) + np.uint8(third[row] > third_end)
            d = np.uint8(6) + np.uint8(fourth[row] > fourth_end)
            low = b if node == 1 else a
            high = d if node == 3 else c
            nodes[row] = high if node > 1 else low


@register_jitable
def _children(codes: RankedCodes, residuals: IntArray, work: Work, first: int, smaller: BoolArray) -> None:
    """Histograms of the nodes of one level: the smaller child row by row, its sibling by subtraction."""
    n_members = 0
    for row in range(len(residuals)):
        work.members[n_members] = row
        n_members += smaller[work.nodes[row]]
    for node in range(len(smaller)):
        if smaller[node]:
            for slot in range(work.histograms.shape[1]):
                work.histograms[first + node, slot] = 0
            work.squares[first + node] = 0.0
    _fill(
        codes.starts, codes.bins, residuals, work.nodes, work.count_bits, work.members[:n_members],
        work.histograms[first:], work.squares[first:],
    )  # fmt: skip
    for node in range(first, first + len(smaller)):
        if not smaller[node - first]:
            parent, sibling = (node - 1) // 2, ((node - 1) ^ 1) + 1
            work.squares[node] = work.squares[parent] - work.squares[sibling]
            for slot in range(work.histograms.shape[1]):
                work.histograms[node, slot] = work.histograms[parent, slot] - work.histograms[sibling, slot]


@register_jitable
def _fill(
    starts: IntArray,
    bins: UInt8Array,
    residuals: IntArray,
    nodes: UInt8Array,
    count_bits: int,
    rows: IntArray,
    histograms: IntArray,
    squares: FloatArray,
) -> None:
    """Add rows to the histograms of their nodes."""
    begins = starts.astype(np.uint32)
    for first in range(0, bins.shape[1], BLOCK):
        end = min(first + BLOCK, bins.shape[1])
        for row in rows:
            histogram, own = histograms[nodes[row]], bins[row]
            if first == 0:
                squares[nodes[row]] += float(residuals[row]) * float(residuals[row])
            value = (np.int64(residuals[row]) << count_bits) + 1
            for code in range(first, end):
                histogram[begins[code] + own[code]] += value


@register_jitable
def _step(
    odds: FloatArray,
    n_classes: int,
    nodes: UInt8Array,
    leaf_sums: FloatArray,
    scale: float,
    n_train: int,
    newton: float,
    learning_rate: float,
) -> None:
    """One Newton step per leaf: sum of residuals over sum of p (1 - p)."""
    curvature = np.zeros((4, 8))  # four sums in turn, so that one need not wait for the other
    for row in range(n_train):
        probability = odds[row] if n_classes > 2 else odds[row] / (1.0 + odds[row])
        curvature[row & 3, nodes[row]] += probability * (1.0 - probability)
    factor = np.empty(8)
    for leaf in range(8):
        below = curvature[0, leaf] + curvature[1, leaf] + curvature[2, leaf] + curvature[3, leaf]
        factor[leaf] = 1.0
        if below > SMALLEST:
            step = learning_rate * newton * (leaf_sums[leaf] / scale) / below
            factor[leaf] = np.exp(min(max(step, -LARGEST_STEP), LARGEST_STEP))
    for row in range(len(odds)):
        odds[row] *= factor[nodes[row]]
    if n_classes == 2:  # with more they are normalised
        for row in range(len(odds)):
            odds[row] = min(max(odds[row], SMALLEST), 1.0 / SMALLEST)
