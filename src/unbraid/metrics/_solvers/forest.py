"""Random forests that are read at every depth at once.

Each tree is grown once, exactly (every value a possible cut) and until its leaves are pure; cut off at depth d it is
the tree that would have been grown to depth d. So one growth answers which depth validates best.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numba
import numpy as np

from unbraid.metrics._solvers.trees import in_own_order, shuffle
from unbraid.types import BoolArray, FloatArray, IntArray

Importance: TypeAlias = Literal["impurity", "splits"]
MAX_DEPTH = 40


@dataclass(frozen=True, eq=False)
class Forest:
    """Entry d of each array belongs to trees of depth at most d + 1."""

    importance: FloatArray  # (n_depths, n_codes) summing to 1, or all 0 where nothing could be split
    predictions: FloatArray  # (n_depths, n_rows, n_classes) shares of the classes; (n_depths, n_rows, 1) if regressed
    held_out: IntArray  # (n_held_out,) training rows that some tree was grown without
    out_of_bag: FloatArray  # (n_depths, n_held_out, n_classes) predictions of those rows by those trees


class Target(NamedTuple):
    values: FloatArray  # (n_train,) what is regressed
    classes: IntArray  # (n_train,) what is classified
    n_classes: int  # 1 where values are regressed


class Tree(NamedTuple):
    """Node 0 is the root; children follow their parents."""

    code: IntArray  # (n_nodes,) -1 at a leaf
    threshold: FloatArray  # (n_nodes,) greatest value that goes left
    left: IntArray  # (n_nodes,) the left child; the right one follows it
    depth: IntArray  # (n_nodes,)
    gain: FloatArray  # (n_nodes,) decrease of the impurity, times its rows
    output: FloatArray  # (n_nodes, n_classes)


def _regressed(values: FloatArray | IntArray) -> tuple[Target, float, float]:
    """Values less a centre, over a unit, so that sums of their squares are finite.

    In whole steps, so that sums are exact in any order: codes that part rows alike then tie exactly, and no rounding
    decides between them. Whole numbers stay whole but for a power of 2.
    """
    largest = 2.0 ** np.frexp(np.abs(values).max())[1]
    centre = (values / largest).mean() * largest
    centre = np.rint(centre) if (values == np.rint(values)).all() else centre
    strays = values / largest - centre / largest
    unit = 2.0 ** np.frexp(np.abs(strays).max())[1]
    steps = 2.0 ** (52 - len(values).bit_length())  # from 0 to 1, of which sums over all rows fit a float
    whole = np.rint(strays / unit * steps) / steps
    return Target(whole, np.zeros(len(values), dtype=np.int64), 1), centre, unit * largest


def fit_forest(
    codes: FloatArray,
    answers: FloatArray | IntArray,
    others: FloatArray,
    *,
    classify: bool,
    n_trees: int,
    seed: int,
    by: Importance = "impurity",
    n_held_out: int = 0,
    groups: IntArray | None = None,
    max_depth: int = MAX_DEPTH,
) -> Forest:
    """Fit codes (n_train, n_codes) to answers (n_train,), predict the rows of `others`.

    Answers are values, split by squared error, or with `classify` classes 0, 1, ..., split by Gini impurity.
    Out-of-bag predictions are made of at most `n_held_out` training rows, the first. Each tree draws as many rows as
    there are, with replacement; of `groups` (n_train,) 0, 1, ... as many whole groups. Trees grow level by level, so
    that those of a smaller `max_depth` are the same up to there; entries beyond it are those of that depth.
    """
    target, centre, unit = _classified(answers) if classify else _regressed(answers)
    order, known, asked = in_own_order(codes, others)
    columns = np.ascontiguousarray(known.T)
    sorted_rows = np.argsort(columns, axis=1, kind="stable").astype(np.int32)
    held_out = np.arange(min(n_held_out, len(codes)))
    rng, units = np.random.default_rng(seed), np.arange(len(codes)) if groups is None else groups
    n_units = int(units.max()) + 1
    importance = np.zeros((MAX_DEPTH, len(columns)))
    predictions = np.zeros((MAX_DEPTH, len(others), target.n_classes))
    out_of_bag, votes = np.zeros((MAX_DEPTH, len(held_out), target.n_classes)), np.zeros(len(held_out))
    for _ in range(n_trees):
        weights = np.bincount(rng.integers(0, n_units, n_units), minlength=n_units)[units]
        state = rng.integers(0, 2**63, size=1).astype(np.uint64)
        tree = _grow(columns, sorted_rows, target, weights, state, max_depth)
        importance += _shares(_importance(tree, len(columns), by == "splits"))
        _add_predictions(tree, asked, np.arange(len(others)), predictions)
        spared = held_out[weights[held_out] == 0]
        votes[spared] += 1
        _add_predictions(tree, known[spared], spared, out_of_bag)
    placed = np.zeros((MAX_DEPTH, codes.shape[1]))
    placed[:, order] = _shares(importance)[:, : len(order)]
    kept = held_out[votes > 0]
    spared = out_of_bag[:, kept] / votes[kept, None]
    return Forest(placed, predictions / n_trees * unit + centre, kept, spared * unit + centre)


def _classified(classes: FloatArray | IntArray) -> tuple[Target, float, float]:
    return Target(np.zeros(len(classes)), classes.astype(np.int64), int(classes.max()) + 1), 0.0, 1.0


def _shares(importance: FloatArray) -> FloatArray:
    sums = importance.sum(axis=1, keepdims=True)
    return importance / np.where(sums > 0, sums, 1.0)


@numba.njit(cache=True, nogil=True)
def _importance(tree: Tree, n_codes: int, count_splits: bool) -> FloatArray:
    importance = np.zeros((MAX_DEPTH, n_codes))
    for node in range(len(tree.code)):
        if tree.code[node] >= 0:
            importance[tree.depth[node], tree.code[node]] += 1.0 if count_splits else tree.gain[node]
    for depth in range(1, MAX_DEPTH):
        importance[depth] += importance[depth - 1]
    return importance


@numba.njit(cache=True, nogil=True)
def _add_predictions(tree: Tree, codes: FloatArray, places: IntArray, predictions: FloatArray) -> None:
    """Row r of `codes` adds to the predictions of row `places[r]`."""
    for row in range(len(codes)):
        node = 0
        for depth in range(MAX_DEPTH):
            if tree.code[node] >= 0:
                node = tree.left[node] + int(codes[row, tree.code[node]] > tree.threshold[node])
            predictions[depth, places[row]] += tree.output[node]


@numba.njit(cache=True, nogil=True)
def _grow(
    columns: FloatArray, sorted_rows: IntArray, target: Target, weights: IntArray, state: IntArray, max_depth: int
) -> Tree:
    """One tree on the rows drawn `weights` (n_train,) times each."""
    n_codes = len(columns)
    n_drawn = 0
    for row in range(len(weights)):
        n_drawn += weights[row] > 0
    # The rows of a node are one stretch of each line of `rows`, in the order of that code.
    rows = np.empty((n_codes, n_drawn), dtype=np.int32)
    for code in range(n_codes):
        filled = 0
        for row in sorted_rows[code]:
            if weights[row] > 0:
                rows[code, filled] = row
                filled += 1
    size = 2 * n_drawn - 1
    tree = Tree(
        np.full(size, -1, dtype=np.int32),
        np.zeros(size),
        np.zeros(size, dtype=np.int32),
        np.zeros(size, dtype=np.int32),
        np.zeros(size),
        np.zeros((size, target.n_classes)),
    )
    begins, ends = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    ends[0] = n_drawn
    counts = np.zeros((2, target.n_classes))
    order = np.arange(n_codes)
    goes_left = np.zeros(len(weights), dtype=np.bool_)
    kept = np.empty(n_drawn, dtype=np.int32)
    n_nodes, node = 1, 0
    while node < n_nodes:
        begin, end = begins[node], ends[node]
        pure = _summarise(rows[0, begin:end], target, weights, tree.output[node])
        if not pure and tree.depth[node] < max_depth:
            shuffle(order, state)
            code, place, gain = _best_split(columns, rows, begin, end, target, weights, order, counts)
            if code >= 0:
                low, high = columns[code, rows[code, place]], columns[code, rows[code, place + 1]]
                middle = low + (high - low) / 2
                tree.code[node], tree.gain[node], tree.left[node] = code, gain, n_nodes
                tree.threshold[node] = middle if middle < high else low
                for at in range(begin, end):
                    goes_left[rows[code, at]] = at <= place
                for each in range(n_codes):
                    _partition(rows[each, begin:end], goes_left, kept)
                begins[n_nodes], ends[n_nodes] = begin, place + 1
                begins[n_nodes + 1], ends[n_nodes + 1] = place + 1, end
                tree.depth[n_nodes] = tree.depth[n_nodes + 1] = tree.depth[node] + 1
                n_nodes += 2
        node += 1
    return Tree(
        tree.code[:n_nodes], tree.threshold[:n_nodes], tree.left[:n_nodes], tree.depth[:n_nodes], tree.gain[:n_nodes],
        tree.output[:n_nodes],
    )  # fmt: skip


@numba.njit(cache=True)
def _summarise(rows: IntArray, target: Target, weights: IntArray, output: FloatArray) -> bool:
    """Fill in what a node predicts; whether all its rows agree."""
    pure, total = True, 0.0
    for row in rows:
        if target.n_classes > 1:
            output[target.classes[row]] += weights[row]
            pure &= target.classes[row] == target.classes[rows[0]]
        else:
            output[0] += weights[row] * target.values[row]
            pure &= target.values[row] == target.values[rows[0]]
        total += weights[row]
    output /= total
    return pure


@numba.njit(cache=True)
def _best_split(
    columns: FloatArray,
    rows: IntArray,
    begin: int,
    end: int,
    target: Target,
    weights: IntArray,
    order: IntArray,
    counts: FloatArray,
) -> tuple[int, int, float]:
    """Code (-1 if none can split), last place on the left, and decrease of the impurity times the rows.

    Both impurities lead to the sum over the two sides of (sum of targets)^2 / rows, for classes summed over them.
    """
    left, right = counts[0], counts[1]
    n_node, sum_node = 0.0, 0.0
    counts[:] = 0.0
    for row in rows[0, begin:end]:
        n_node += weights[row]
        sum_node += weights[row] * target.values[row]
        right[target.classes[row]] += weights[row]
    squares_node = float((right * right).sum()) if target.n_classes > 1 else sum_node * sum_node
    best_score, best_unit, best_code, best_place = -1.0, 1.0, -1, -1
    for code in order:
        column, line = columns[code], rows[code]
        if column[line[begin]] == column[line[end - 1]]:
            continue
        n_left, sum_left, squares_left, squares_right = 0.0, 0.0, 0.0, squares_node
        for place in range(begin, end - 1):
            row = line[place]
            weight = float(weights[row])
            n_left += weight
            if target.n_classes > 1:
                own = target.classes[row]
                squares_left += weight * (2.0 * left[own] + weight)
                squares_right -= weight * (2.0 * right[own] - weight)
                left[own] += weight
                right[own] -= weight
            else:
                sum_left += weight * target.values[row]
                squares_left, squares_right = sum_left * sum_left, (sum_node - sum_left) * (sum_node - sum_left)
            n_right = n_node - n_left
            # Across, not divided: the same comparison, and what parts rows alike ties exactly, mirrored or not.
            score, unit = squares_left * n_right + squares_right * n_left, n_left * n_right
            if score * best_unit > best_score * unit and column[line[place + 1]] > column[row]:
                best_score, best_unit, best_code, best_place = score, unit, code, place
        if target.n_classes > 1:
            right += left
            left[:] = 0.0
    return best_code, best_place, max(float(best_score / best_unit - squares_node / n_node), 0.0)


@numba.njit(cache=True)
def _partition(rows: IntArray, goes_left: BoolArray, kept: IntArray) -> None:
    """Move the rows that go left to the front, both sides staying in order."""
    n_left, n_right = 0, 0
    for row in rows:
        kept[n_right] = row
        rows[n_left] = row
        n_left += goes_left[row]
        n_right += not goes_left[row]
    rows[n_left:] = kept[:n_right]
