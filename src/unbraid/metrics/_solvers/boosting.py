"""Gradient-boosted trees of depth 3 for classes.

What is fitted is what scikit-learn's GradientBoostingClassifier fits: multinomial deviance, one tree per class and
iteration, squared-error splits, one Newton step per leaf. A split is searched on histograms of at most `MAX_BINS` bins
per code, then value by value within the few bins that may hold a better cut than those at their ends: bins alone move
disentanglement by several hundredths. Of more than `MANY` codes, most of the time would go to bins that hold no better
cut: there are fewer, narrower towards both ends, where a few rows can gain as much as many in the middle.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from unbraid.base.types import BoolArray, FloatArray, IntArray, UInt8Array
from unbraid.metrics._shared.compiled import START, helper, kernel
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
    gain_bits: IntArray  # the same numbers, read as whole ones
    walks: FloatArray  # (n_bins of all codes,) how far a walk of residuals through each bin may raise a gain
    risen: FloatArray  # (7, n_bins of all codes) sum of the residuals above 0, of rare classes
    opened: BoolArray  # (n_bins of all codes,) whether a bin is searched value by value
    inner_lefts: IntArray  # (n_train + 1,) sum and count up to and with each row of the node in one bin
    places: IntArray  # (n_train + 1,) of these rows among the sorted ones
    nodes: UInt8Array  # (n_samples,) node of each row
    members: IntArray  # (n_train + 1,)
    order: IntArray  # (n_codes,)
    state: IntArray  # (1,) of the random numbers
    split_code: IntArray  # (7,) of each node
    split_rank: IntArray  # (7,) greatest on the left
    packed: IntArray  # (15,) sum and count of each node
    smaller: BoolArray  # (7,) whether a node has fewer rows than its sibling


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
    gains = np.zeros(1 + n_slots)
    work = Work(
        count_bits,
        np.empty((7, n_slots), dtype=np.int64),
        np.empty(7),
        np.empty(n_slots, dtype=np.int64),
        gains,
        gains.view(np.int64),
        np.empty(n_slots),
        np.empty((7, n_slots)),
        np.empty(n_slots, dtype=bool),
        np.empty(n_train + 1, dtype=np.int64),
        np.empty(n_train + 1, dtype=np.int64),
        np.empty(n_samples, dtype=np.uint8),
        np.empty(n_train + 1, dtype=np.uint32),
        np.arange(n_codes),
        state,
        np.empty(7, dtype=np.int64),
        np.empty(7, dtype=np.int32),
        np.empty(15, dtype=np.int64),
        np.empty(7, dtype=bool),
    )
    _iterate(
        codes, labels, n_classes, n_iterations, learning_rate, 2.0 ** min(30, 62 - 2 * count_bits),
        np.argsort(labels, kind="stable").astype(np.uint32), np.cumsum([0, *counts]), work,
        np.empty((n_trees, n_train), dtype=np.int32), np.empty((n_train, n_trees), dtype=np.int32),
        np.empty((n_slots, n_trees), dtype=np.int64), np.empty(n_trees), np.empty(n_samples), np.empty((5, 15)),
        importance, odds,
    )  # fmt: skip
    return importance, odds


@kernel()
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
    squares: FloatArray,
    totals: FloatArray,
    leaves: FloatArray,
    importance: FloatArray,
    odds: FloatArray,
) -> None:
    """Grow all trees of depth 3: `importance` is added to, `odds` are multiplied.

    Rows `by_class` end at `ends` for each. This is one long function, since each function that is called is compiled
    once by itself and once more here.
    """
    n_trees, n_train = by_tree.shape
    newton = (n_classes - 1) / n_classes if n_classes > 2 else 1.0
    histograms, nodes, packed, risen, smaller = work.histograms, work.nodes, work.packed, work.risen, work.smaller
    split_code, split_rank, count_bits, starts = work.split_code, work.split_rank, work.count_bits, codes.starts
    mask = (np.int64(1) << count_bits) - 1
    for _ in range(n_iterations):
        _residuals(odds, labels, scale, totals, by_tree, by_row, squares)
        _root_sums(starts, codes.bins, by_row, sums)
        for tree in range(n_trees):
            residuals = by_tree[tree]
            packed[0] = 0
            for code in range(len(importance)):
                before = 0
                for slot in range(starts[code], starts[code + 1]):
                    histograms[0, slot] = (sums[slot, tree] << count_bits) + codes.ends[slot] - before
                    before = codes.ends[slot]
                    if code == 0:
                        packed[0] += histograms[0, slot]
            work.squares[0] = squares[tree]
            for node in range(7):
                split_code[node], split_rank[node] = 0, LAST_RANK  # where nothing is gained, all go left
            for row in range(len(nodes)):
                nodes[row] = 0
            # Of a rare class the rows are the only ones with residuals above 0.
            begin, end = ends[tree], ends[tree + 1]
            rare = n_trees > 1 and RARE * (end - begin) <= n_train
            for depth in range(3):
                first, last = (1 << depth) - 1, (2 << depth) - 1
                if rare:
                    for node in range(first, last):
                        for slot in range(risen.shape[1]):
                            risen[node, slot] = 0.0
                    for place in range(begin, end):
                        own_row = by_class[place]
                        for code in range(len(importance)):
                            own_slot = np.uint32(starts[code]) + codes.bins[own_row, code]
                            risen[nodes[own_row], own_slot] += residuals[own_row]
                for node in range(first, last):
                    code, rank, left, gain = _best_split(codes, residuals, work, node, packed[node], rare)
                    packed[2 * node + 1], packed[2 * node + 2] = left, packed[node] - left
                    if gain > 0.0:
                        split_code[node], split_rank[node] = code, rank
                        importance[code] += gain
                _descend(codes.ranks, split_code, split_rank, first, last, nodes)
                if depth < 2:
                    for node in range(first, last):
                        fewer_right = (packed[2 * node + 1] & mask) > (packed[2 * node + 2] & mask)
                        smaller[2 * node + 1], smaller[2 * node + 2] = not fewer_right, fewer_right
                    _children(codes, residuals, work, last, 2 * (last - first))
            _step(odds[tree], n_classes, nodes, packed, leaves, count_bits, scale, n_train, newton, learning_rate)


@helper(fastmath={"reassoc", "nsz"})
def _residuals(
    odds: FloatArray,
    labels: IntArray,
    scale: float,
    totals: FloatArray,
    by_tree: IntArray,
    by_row: IntArray,
    squares: FloatArray,
) -> None:
    """Class indicator less probability, as whole numbers, in both layouts, and their sums of squares.

    Odds of more than two classes are divided by their sums before.
    """
    n_trees, n_train = by_tree.shape
    if n_trees > 1:
        for row in range(len(totals)):
            totals[row] = 0.0
        for tree in range(n_trees):
            for row in range(len(totals)):
                totals[row] += odds[tree, row]
        for row in range(len(totals)):
            totals[row] = 1.0 / totals[row]
        for tree in range(n_trees):
            for row in range(len(totals)):
                share = odds[tree, row] * totals[row]
                odds[tree, row] = share if share > SMALLEST else SMALLEST
    for tree in range(n_trees):
        for row in range(n_train):
            probability = odds[tree, row] if n_trees > 1 else odds[tree, row] / (1.0 + odds[tree, row])
            by_tree[tree, row] = np.int32(np.rint(-probability * scale))
    for row in range(n_train):
        if n_trees > 1:
            by_tree[labels[row], row] += np.int32(scale)
        elif labels[row] == 1:
            by_tree[0, row] += np.int32(scale)
    for tree in range(n_trees):
        total = 0.0
        for row in range(n_train):
            total += np.float64(by_tree[tree, row]) * np.float64(by_tree[tree, row])
        squares[tree] = total
    for first in range(0, n_train, 64):  # in blocks, so that both layouts stay in the cache
        end = first + 64 if first + 64 < n_train else n_train
        for tree in range(n_trees):
            for row in range(first, end):
                by_row[row, tree] = by_tree[tree, row]


@helper()
def _root_sums(starts: IntArray, bins: UInt8Array, residuals: IntArray, sums: IntArray) -> None:
    """Residuals of every class summed over the rows of each bin; the innermost loop is over neighbours in memory."""
    n_slots, n_trees = sums.shape
    for slot in range(n_slots):
        for tree in range(n_trees):
            sums[slot, tree] = 0
    for first in range(0, bins.shape[1], BLOCK):
        end = first + BLOCK if first + BLOCK < bins.shape[1] else bins.shape[1]
        for row in range(len(residuals)):
            for code in range(first, end):
                slot = starts[code] + bins[row, code]
                for tree in range(n_trees):
                    sums[slot, tree] += residuals[row, tree]


@helper()
def _best_split(
    codes: RankedCodes, residuals: IntArray, work: Work, node: int, packed: Whole, bounded: bool
) -> tuple[Whole, Whole, Whole, float]:
    """Code, greatest rank on the left, packed sum and count of the left, and decrease of the squared error."""
    count_bits, lefts, gains, walks = work.count_bits, work.lefts, work.gains, work.walks
    histogram, starts, nodes, order, state = work.histograms[node], codes.starts, work.nodes, work.order, work.state
    inner_lefts, places = work.inner_lefts, work.places
    mask = (np.int64(1) << count_bits) - 1
    n_node, sum_node = np.float64(packed & mask), np.float64(packed >> count_bits)
    best, best_code, best_place, best_left = 0.0, START, START - 1, packed
    if n_node >= 2.0:
        # What the best cut between bins gains, and where a cut within a bin might gain more.
        squares = work.squares[node]
        # By subtraction, rounding may leave less than 0.
        reach = SLACK * SLACK * squares * n_node if squares >= 0.0 else np.inf
        # Numbers not below 0 are in the order of their bits, and whole ones are compared many at once.
        greatest = np.int64(0)
        for first in range(0, len(order), BLOCK):
            end = first + BLOCK if first + BLOCK < len(order) else len(order)
            for code in range(first, end):
                left = np.int64(0)
                for slot in range(starts[code], starts[code + 1]):
                    left += histogram[slot]
                    lefts[slot] = left
            for slot in range(starts[first], starts[end]):
                n_left = np.float64(lefts[slot] & mask)
                product = n_left * (n_node - n_left)
                scale = 1.0 / (product if product > 0.5 else 0.5)
                difference = n_node * np.float64(lefts[slot] >> count_bits) - n_left * sum_node
                gains[1 + slot] = difference * difference * scale
                walks[slot] = reach * np.float64(histogram[slot] & mask) * scale
            for slot in range(starts[first], starts[end]):
                greatest = work.gain_bits[1 + slot] if work.gain_bits[1 + slot] > greatest else greatest
        work.gain_bits[0] = greatest
        enough = gains[0] * NEAR
        gains[0] = 0.0
        for slot in range(len(lefts)):
            n_bin, n_left_of = histogram[slot] & mask, lefts[slot] & mask
            # Whether the roots of both add up to that of `enough`, without taking roots.
            before, after, walk = gains[slot], gains[1 + slot], walks[slot]
            highest = after if after > before else before
            lacking = enough - highest - walk
            near = (lacking <= 0.0) | (lacking * lacking <= 4.0 * highest * walk)
            # In the first and the last bin a single row may be all that is cut off.
            outer = (n_left_of == n_bin) | (n_left_of == np.int64(n_node))
            work.opened[slot] = (n_bin > 0) & (outer | near)
        shuffle(order, state)
        for code in order:
            for slot in range(starts[code], starts[code + 1]):
                if not work.opened[slot]:
                    continue
                if bounded and enough > _bound(
                    histogram[slot], lefts[slot], work.risen[node, slot], n_node, sum_node, count_bits
                ):
                    continue
                begin, end = codes.ends[slot - 1] if slot > starts[code] else 0, codes.ends[slot]
                n_cuts = 0
                if codes.single[slot]:
                    inner_lefts[0], places[0], n_cuts = lefts[slot], end - 1, 1
                else:
                    # The sorted rows that are the node's, without a branch, which would be foretold wrongly for every
                    # other row.
                    left = lefts[slot - 1] if slot > starts[code] else np.int64(0)
                    for place in range(begin, end):
                        row = codes.sorted_rows[code, place]
                        inside = np.int64(nodes[row] == node)
                        left += ((np.int64(residuals[row]) << count_bits) + 1) & -inside
                        inner_lefts[n_cuts], places[n_cuts] = left, place
                        n_cuts += inside
                # Whether any cut gains more than the best, ties between values aside: many at once.
                n_better = 0
                for cut in range(n_cuts):
                    n_left = np.float64(inner_lefts[cut] & mask)
                    n_right = n_node - n_left
                    sum_left = np.float64(inner_lefts[cut] >> count_bits)
                    difference = n_right * sum_left - n_left * (sum_node - sum_left)
                    n_better += difference * difference > best * (n_left * n_right)
                if n_better == 0:
                    continue
                for cut in range(n_cuts):
                    rank = codes.ranks[code, codes.sorted_rows[code, places[cut]]]
                    if cut + 1 < n_cuts and rank == codes.ranks[code, codes.sorted_rows[code, places[cut + 1]]]:
                        continue
                    n_left = np.float64(inner_lefts[cut] & mask)
                    n_right = n_node - n_left
                    sum_left = np.float64(inner_lefts[cut] >> count_bits)
                    # Written so that mirroring a code changes not even the rounding: ties must stay ties.
                    difference = n_right * sum_left - n_left * (sum_node - sum_left)
                    if difference * difference > best * (n_left * n_right):
                        gain = difference * difference / (n_left * n_right)  # of the squared error, times the rows
                        if gain > best:
                            best, best_code, best_place, best_left = gain, code, places[cut], inner_lefts[cut]
                            enough = best * NEAR if best * NEAR > enough else enough
    if best_place < 0:
        return 0, LAST_RANK, packed, 0.0
    # Halfway between the last row on the left and the node's next greater one.
    low = codes.ranks[best_code, codes.sorted_rows[best_code, best_place]]
    rank = low
    for place in range(best_place + 1, codes.sorted_rows.shape[1]):
        row = codes.sorted_rows[best_code, place]
        if nodes[row] == node and codes.ranks[best_code, row] > low:
            rank = (low + codes.ranks[best_code, row]) // 2
            break
    return best_code, rank, best_left, best / n_node


@helper()
def _bound(bin_sum: Whole, left: Whole, risen: float, n_node: float, sum_node: float, count_bits: int) -> float:
    """What no cut within a bin, nor at its end, can gain more than, in whatever order its rows come.

    As if all residuals above 0, whose sum is `risen`, came first or last. `bin_sum` packs the sum and count of the bin,
    `left` up to its end.
    """
    mask = (np.int64(1) << count_bits) - 1
    n_bin, n_end = np.float64(bin_sum & mask), np.float64(left & mask)
    n_begin = n_end - n_bin
    begun = n_node * np.float64((left - bin_sum) >> count_bits) - n_begin * sum_node
    below, above = (-sum_node, 0.0) if sum_node < 0.0 else (0.0, sum_node)
    rise = begun + (n_node * risen + below * n_bin)
    fall = n_node * (risen - np.float64(bin_sum >> count_bits)) + above * n_bin - begun
    greatest = rise if rise > fall else fall
    n_begin = n_begin if n_begin > 1.0 else 1.0
    n_end = n_end if n_end < n_node - 1.0 else n_node - 1.0
    begin_product, end_product = n_begin * (n_node - n_begin), n_end * (n_node - n_end)
    return greatest * greatest / (begin_product if begin_product < end_product else end_product)


@helper()
def _descend(ranks: IntArray, codes: IntArray, cuts: IntArray, first: int, last: int, nodes: UInt8Array) -> None:
    """Move each row from its node, one of `first` to `last` - 1, to a child of it."""
    for node in range(first, last):
        column, cut = ranks[codes[node]], cuts[node]
        parent, left = np.uint8(node), np.uint8(2 * node + 1)
        for row in range(len(nodes)):
            child = left + np.uint8(column[row] > cut)
            nodes[row] = child if nodes[row] == parent else nodes[row]


@helper()
def _children(codes: RankedCodes, residuals: IntArray, work: Work, first: int, n_nodes: int) -> None:
    """Histograms of the nodes of one level: the smaller child row by row, its sibling by subtraction."""
    histograms, squares, smaller, members, nodes = (
        work.histograms, work.squares, work.smaller, work.members, work.nodes,
    )  # fmt: skip
    n_members = 0
    for row in range(len(residuals)):
        members[n_members] = row
        n_members += smaller[nodes[row]]
    for node in range(first, first + n_nodes):
        if smaller[node]:
            for slot in range(histograms.shape[1]):
                histograms[node, slot] = 0
            squares[node] = 0.0
    for first_code in range(0, codes.bins.shape[1], BLOCK):
        end_code = first_code + BLOCK if first_code + BLOCK < codes.bins.shape[1] else codes.bins.shape[1]
        for member in range(n_members):
            own_row = members[member]
            own_node, residual = nodes[own_row], np.int64(residuals[own_row])
            if first_code == 0:
                squares[own_node] += np.float64(residual) * np.float64(residual)
            value = (residual << work.count_bits) + 1
            for code in range(first_code, end_code):
                histograms[own_node, np.uint32(codes.starts[code]) + codes.bins[own_row, code]] += value
    for node in range(first, first + n_nodes):
        if not smaller[node]:
            parent, sibling = (node - 1) // 2, ((node - 1) ^ 1) + 1
            squares[node] = squares[parent] - squares[sibling]
            for slot in range(histograms.shape[1]):
                histograms[node, slot] = histograms[parent, slot] - histograms[sibling, slot]


@helper()
def _step(
    odds: FloatArray,
    n_classes: int,
    nodes: UInt8Array,
    packed: IntArray,
    leaves: FloatArray,
    count_bits: int,
    scale: float,
    n_train: int,
    newton: float,
    learning_rate: float,
) -> None:
    """One Newton step per leaf: sum of residuals over sum of p (1 - p). `leaves` (5, 15) is scratch."""
    for leaf in range(7, 15):
        for turn in range(4):  # four sums in turn, so that one need not wait for the other
            leaves[turn, leaf] = 0.0
    for row in range(n_train):
        probability = odds[row] if n_classes > 2 else odds[row] / (1.0 + odds[row])
        leaves[row & 3, nodes[row]] += probability * (1.0 - probability)
    for leaf in range(7, 15):
        below = leaves[0, leaf] + leaves[1, leaf] + leaves[2, leaf] + leaves[3, leaf]
        leaves[4, leaf] = 1.0
        if below > SMALLEST:
            step = learning_rate * newton * (np.float64(packed[leaf] >> count_bits) / scale) / below
            step = -LARGEST_STEP if step < -LARGEST_STEP else step
            leaves[4, leaf] = np.exp(LARGEST_STEP if step > LARGEST_STEP else step)
    for row in range(len(odds)):
        odds[row] *= leaves[4, nodes[row]]
    if n_classes == 2:  # with more they are normalised
        for row in range(len(odds)):
            odds[row] = SMALLEST if odds[row] < SMALLEST else odds[row]
            odds[row] = 1.0 / SMALLEST if odds[row] > 1.0 / SMALLEST else odds[row]
