"""Random forests that are read at every depth at once.

Each tree is grown once, exactly (every value a possible cut) and until its leaves are pure; cut off at depth d it is
the tree that would have been grown to depth d. So one growth answers which depth validates best.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from unbraid.base.types import BoolArray, FloatArray, IntArray, UInt8Array
from unbraid.metrics._shared.compiled import START, helper, kernel
from unbraid.metrics._solvers.trees import in_own_order, shuffle

Importance: TypeAlias = Literal["impurity", "splits"]
MAX_DEPTH = 40
AT_ONCE = 128  # cuts whose scores are found together
FEW = 192  # rows up to which that is not worth it
NEAR = 1.0 - 1e-12  # rounding apart, scores below this share of the best cannot be it
# Not "contract": one product and one sum in a single instruction would round otherwise than where there is none.
VECTORISED = {"nnan", "ninf", "nsz", "reassoc"}


@dataclass(frozen=True, eq=False)
class Forest:
    """Entry d of each array belongs to trees of depth at most d + 1."""

    importance: FloatArray  # (n_depths, n_codes) summing to 1, or all 0 where nothing could be split
    predictions: FloatArray  # (n_depths, n_rows, n_classes) shares of the classes; (n_depths, n_rows, 1) if regressed


class SortedCodes(NamedTuple):
    """Codes of training rows and of rows to predict, those that vary in an order of their own."""

    n_codes: int  # with those that do not vary
    order: IntArray  # (n_live,)
    judged: FloatArray  # (n_judged, n_live), a column of zeros where no code varies
    columns: FloatArray  # (n_live, n_train) of the training rows
    sorted_rows: IntArray  # (n_live, n_train) training rows by increasing code


class Target(NamedTuple):
    values: FloatArray  # (n_train,) what is regressed, or the classes
    classes: IntArray  # (n_train,) what is classified, 0 where values are regressed
    n_classes: int  # 1 where values are regressed


class Drawn(NamedTuple):
    """The rows that a tree is grown on, each once, numbered in their order."""

    rows: IntArray  # (n_drawn,)
    pairs: FloatArray  # (n_drawn, 2) how often each is drawn, and its value times that
    values: FloatArray  # (n_drawn,)
    classes: IntArray  # (n_drawn,)


class Room(NamedTuple):
    """Scratch: the nodes while a tree grows, and `AT_ONCE` cuts while the best is looked for."""

    begins: IntArray  # (n_nodes,) where the rows of each node begin in the lines
    ends: IntArray  # (n_nodes,)
    n_rows: FloatArray  # (n_nodes,)
    grows: BoolArray  # (n_nodes,)
    goes_left: UInt8Array  # (n_drawn,)
    order: IntArray  # (n_codes,)
    left: FloatArray  # (n_classes,) rows of each class on the left
    n_left: FloatArray
    squares_left: FloatArray  # (sum of targets)^2 on the left, of classes summed over them
    squares_right: FloatArray
    scores: FloatArray


class Tree(NamedTuple):
    """Node 0 is the root; children follow their parents."""

    code: IntArray  # (n_nodes,) -1 at a leaf
    threshold: FloatArray  # (n_nodes,) greatest value that goes left
    left: IntArray  # (n_nodes,) the left child; the right one follows it
    depth: IntArray  # (n_nodes,)
    gain: FloatArray  # (n_nodes,) decrease of the impurity, times its rows
    output: FloatArray  # (n_nodes, n_classes)


def _regressed(values: FloatArray | IntArray) -> tuple[Target, float, float]:
    """Values less a centre, over a unit, in whole steps, so that sums are exact in any order.

    Codes that part rows alike then tie exactly, and no rounding decides between them. Whole numbers stay whole but for
    a power of 2.
    """
    centre = values.mean()
    centre = np.rint(centre) if (values == np.rint(values)).all() else centre
    strays = values - centre
    unit = 2.0 ** np.frexp(np.abs(strays).max())[1]
    steps = 2.0 ** (52 - len(values).bit_length())  # from 0 to 1, of which sums over all rows fit a float
    whole = np.rint(strays / unit * steps) / steps
    return Target(whole, np.zeros(len(values), dtype=np.int64), 1), centre, unit


def sorted_codes(codes: FloatArray, judged_codes: FloatArray) -> SortedCodes:
    """What forests for any target need of the codes (n_train, n_codes) to train on and of the codes to predict from."""
    order, known, judged = in_own_order(codes, judged_codes)
    columns = np.ascontiguousarray(known.T)
    sorted_rows = np.argsort(columns, axis=1, kind="stable").astype(np.int32)
    return SortedCodes(codes.shape[1], order, judged, columns, sorted_rows)


def fit_forest(
    codes: SortedCodes,
    answers: FloatArray | IntArray,
    *,
    classify: bool,
    n_trees: int,
    seed: int,
    by: Importance = "impurity",
    groups: IntArray | None = None,
    max_depth: int = MAX_DEPTH,
) -> Forest:
    """Fit the codes to answers (n_train,), predict the `judged` rows.

    Answers are values, split by squared error, or with `classify` classes 0, 1, ..., split by Gini impurity.
    Each tree draws as many rows as there are, with replacement; of `groups` (n_train,) 0, 1, ... as many whole groups.
    Trees grow level by level, so that those of a smaller `max_depth`, which is n_depths, are the same up to there.
    """
    target, centre, unit = _classified(answers) if classify else _regressed(answers)
    judged, columns = codes.judged, codes.columns
    rng, units = np.random.default_rng(seed), np.arange(columns.shape[1]) if groups is None else groups
    n_units = int(units.max()) + 1
    importance = np.zeros((max_depth, len(columns)))
    predictions = np.zeros((max_depth, len(judged), target.n_classes))
    for _ in range(n_trees):
        weights = np.bincount(rng.integers(0, n_units, n_units), minlength=n_units)[units]
        state = rng.integers(0, 2**63, size=1).astype(np.uint64)
        tree = _grow(columns, codes.sorted_rows, target, weights, state, max_depth)
        importance += _shares(_importance(tree, importance.shape, by == "splits"))
        _add_predictions(tree, judged, predictions)
    placed = np.zeros((max_depth, codes.n_codes))
    placed[:, codes.order] = _shares(importance)[:, : len(codes.order)]
    return Forest(placed, predictions / n_trees * unit + centre)


def _classified(classes: FloatArray | IntArray) -> tuple[Target, float, float]:
    return Target(classes.astype(float), classes.astype(np.int64), int(classes.max()) + 1), 0.0, 1.0


def _shares(importance: FloatArray) -> FloatArray:
    sums = importance.sum(axis=1, keepdims=True)
    return importance / np.where(sums > 0, sums, 1.0)


def _importance(tree: Tree, shape: tuple[int, int], count_splits: bool) -> FloatArray:
    split = tree.code >= 0
    cells = tree.depth[split] * shape[1] + tree.code[split]
    by_depth = np.bincount(cells, None if count_splits else tree.gain[split], minlength=shape[0] * shape[1])
    return by_depth.reshape(shape).cumsum(axis=0)


def _add_predictions(tree: Tree, codes: FloatArray, predictions: FloatArray) -> None:
    """Add those of each row of `codes` to (n_depths, n_rows, n_classes)."""
    # At a leaf rows stay: nothing exceeds its cut.
    leaf = tree.code < 0
    code, threshold = np.where(leaf, 0, tree.code).astype(np.uint32), np.where(leaf, np.inf, tree.threshold)
    left = np.where(leaf, np.arange(len(leaf)), tree.left).astype(np.uint32)
    nodes = np.zeros(len(codes), dtype=np.uint32)
    _descend(code, threshold, left, tree.output, int(tree.depth[-1]), codes, nodes, predictions)


@kernel()
def _descend(
    code: IntArray,
    threshold: FloatArray,
    left: IntArray,
    outputs: FloatArray,
    deepest: int,
    codes: FloatArray,
    nodes: IntArray,
    predictions: FloatArray,
) -> None:
    """All rows a level further at a time, so that none waits for another; `nodes` (n_rows,) are 0 before."""
    for depth in range(len(predictions)):
        if depth < deepest:
            for row in range(len(codes)):
                node = nodes[row]
                nodes[row] = left[node] + np.uint32(codes[row, code[node]] > threshold[node])
        if outputs.shape[1] == 1:
            for row in range(len(codes)):
                predictions[depth, row, 0] += outputs[nodes[row], 0]
        else:
            for row in range(len(codes)):
                for column in range(outputs.shape[1]):
                    predictions[depth, row, column] += outputs[nodes[row], column]


def _grow(
    columns: FloatArray, sorted_rows: IntArray, target: Target, weights: IntArray, state: IntArray, max_depth: int
) -> Tree:
    """One tree on the rows drawn `weights` (n_train,) times each."""
    rows = np.flatnonzero(weights)
    times, values, n_classes = weights[rows], target.values[rows], target.n_classes
    drawn = Drawn(
        rows.astype(np.uint32),
        np.stack([times.astype(float), times * values], axis=1),
        values,
        target.classes[rows].astype(np.uint32),
    )
    # The drawn in the order of each code, and room for as many. The rows of a node are one stretch of each line; those
    # of its children are copied to the other lines.
    lines = np.empty((2, len(columns), len(rows) + 1), dtype=np.uint32)
    _draw(sorted_rows, weights, (np.cumsum(weights > 0) - (weights > 0)).astype(np.uint32), lines)
    size = 2 * len(rows) - 1
    tree = Tree(
        np.full(size, -1, dtype=np.int32),
        np.zeros(size),
        np.zeros(size, dtype=np.int32),
        np.zeros(size, dtype=np.int32),
        np.zeros(size),
        np.zeros((size, n_classes)),
    )
    room = Room(
        np.zeros(size, dtype=np.int64),
        np.zeros(size, dtype=np.int64),
        np.zeros(size),
        np.zeros(size, dtype=bool),
        np.zeros(len(rows), dtype=np.uint8),
        np.arange(len(columns)),
        np.zeros(n_classes),
        *np.empty((4, AT_ONCE)),
    )
    n_nodes = _grow_nodes(columns, drawn, lines, state, max_depth, tree, room)
    tree.output[:n_nodes] /= room.n_rows[:n_nodes, None]
    codes, thresholds, lefts, depths, gains, outputs = tree
    return Tree(
        codes[:n_nodes], thresholds[:n_nodes], lefts[:n_nodes], depths[:n_nodes], gains[:n_nodes], outputs[:n_nodes]
    )


# From here to the end, whole arrays and indices are passed rather than views, and nothing raises an error ("numpy"):
# else references to arrays are counted within loops, which takes longer than to search nodes of few rows.
@kernel()
def _grow_nodes(
    columns: FloatArray, drawn: Drawn, lines: IntArray, state: IntArray, max_depth: int, tree: Tree, room: Room
) -> int:
    """The number of nodes; the tree and `room.n_rows` are filled in, outputs as sums."""
    rows, pairs, values, classes = drawn.rows, drawn.pairs, drawn.values, drawn.classes
    codes, thresholds, lefts, depths, gains, outputs = tree
    begins, ends, n_rows, grows = room.begins, room.ends, room.n_rows, room.grows
    order, goes_left, n_classes = room.order, room.goes_left, outputs.shape[1]
    node, n_nodes, n_drawn = START, START + 1, len(rows)
    ends[0] = n_drawn
    column = 0 if n_classes > 1 else 1
    pure = _add(pairs, values, classes, lines, node, node, node, n_drawn, node, column, outputs, n_rows)
    grows[0] = not pure and max_depth > 0
    while node < n_nodes:
        if grows[node]:
            begin, end, depth = begins[node], ends[node], depths[node]
            level = depth % 2  # which of the lines hold the node
            shuffle(order, state)
            if n_classes == 1 and end - begin <= FEW:
                code, place, gain = _best_of_few(
                    columns, rows, pairs, lines, level, begin, end, n_rows[node], outputs[node, 0], order
                )
            else:
                code, place, gain = _best_split(
                    columns, rows, pairs, classes, lines, level, begin, end, n_rows[node], outputs, node, order, room
                )
            if code >= 0:
                middle = place + 1
                low = columns[code, rows[lines[level, code, place]]]
                high = columns[code, rows[lines[level, code, middle]]]
                halfway = low + (high - low) / 2
                codes[node], gains[node], lefts[node] = code, gain, n_nodes
                thresholds[node] = halfway if halfway < high else low
                left, right = n_nodes, n_nodes + 1
                n_nodes += 2
                depths[left] = depths[right] = depth + 1
                pure_left = _add(
                    pairs, values, classes, lines, level, code, begin, middle, left, column, outputs, n_rows
                )
                pure_right = _add(
                    pairs, values, classes, lines, level, code, middle, end, right, column, outputs, n_rows
                )
                grows[left] = not pure_left and depth + 1 < max_depth
                grows[right] = not pure_right and depth + 1 < max_depth
                begins[left], ends[left] = begin, middle
                begins[right], ends[right] = middle, end
                if grows[left] or grows[right]:
                    _part(lines, level, code, begin, middle, end, goes_left)
        node += 1
    return n_nodes


@kernel()
def _draw(sorted_rows: IntArray, weights: IntArray, numbers: IntArray, lines: IntArray) -> None:
    """Into lines[0] (n_codes, n_drawn + 1) the numbers of the rows drawn, in the order of each code."""
    for code in range(len(sorted_rows)):
        filled = 0
        for place in range(sorted_rows.shape[1]):
            row = sorted_rows[code, place]
            lines[0, code, filled] = numbers[row]
            filled += weights[row] > 0


@helper()
def _add(
    pairs: FloatArray,
    values: FloatArray,
    classes: IntArray,
    lines: IntArray,
    level: int,
    code: int,
    begin: int,
    end: int,
    node: int,
    column: int,
    sums: FloatArray,
    n_rows: FloatArray,
) -> bool:
    """Fill in the sums of a node, one stretch of a line: rows of each class (column 0), or values (1).

    Returns whether all rows have one value.
    """
    pure, total, value = True, 0.0, values[lines[level, code, begin]]
    for at in range(begin, end):
        each = lines[level, code, at]
        sums[node, classes[each]] += pairs[each, column]
        pure &= values[each] == value
        total += pairs[each, 0]
    n_rows[node] = total
    return pure


@helper()
def _best_of_few(
    columns: FloatArray,
    rows: IntArray,
    pairs: FloatArray,
    lines: IntArray,
    level: int,
    begin: int,
    end: int,
    n_node: float,
    sum_node: float,
    order: IntArray,
) -> tuple[int, int, float]:
    """As `_best_split` for values, cut by cut."""
    best_score, best_unit, best_code, best_place = -1.0, 1.0, -1, -1
    for index in range(len(order)):
        code = order[index]
        if end - begin == 2 and best_code >= 0:
            break  # two rows can be parted in one way only
        n_left, sum_left = 0.0, 0.0
        for at in range(begin, end - 1):
            each = lines[level, code, at]
            n_left += pairs[each, 0]
            sum_left += pairs[each, 1]
            n_right, sum_right = n_node - n_left, sum_node - sum_left
            score, unit = sum_left * sum_left * n_right + sum_right * sum_right * n_left, n_left * n_right
            better = score * best_unit > best_score * unit
            if better and columns[code, rows[lines[level, code, at + 1]]] > columns[code, rows[each]]:
                best_score, best_unit, best_code, best_place = score, unit, code, at
    gain = best_score / best_unit - sum_node * sum_node / n_node
    return best_code, best_place, gain if gain > 0.0 else 0.0


@helper()
def _best_split(
    columns: FloatArray,
    rows: IntArray,
    pairs: FloatArray,
    classes: IntArray,
    lines: IntArray,
    level: int,
    begin: int,
    end: int,
    n_node: float,
    outputs: FloatArray,
    node: int,
    order: IntArray,
    room: Room,
) -> tuple[int, int, float]:
    """Code (-1 if none can split), last place on the left, and decrease of the impurity times the rows.

    Both impurities lead to the sum over the two sides of (sum of targets)^2 / rows, for classes summed over them.
    """
    n_classes = outputs.shape[1]
    squares_node = 0.0
    for column in range(n_classes):
        squares_node += outputs[node, column] * outputs[node, column]
    best_score, best_unit, best_code, best_place, best = -1.0, 1.0, -1, -1, -1.0
    for index in range(len(order)):
        code = order[index]
        if columns[code, rows[lines[level, code, begin]]] == columns[code, rows[lines[level, code, end - 1]]]:
            continue
        n_left, sum_left, squares_left, squares_right = 0.0, 0.0, 0.0, squares_node
        for start in range(begin, end - 1, AT_ONCE):
            n = AT_ONCE if start + AT_ONCE < end else end - 1 - start
            if n_classes > 1:
                for at in range(n):
                    each = lines[level, code, start + at]
                    weight, own = pairs[each, 0], classes[each]
                    before = room.left[own]
                    n_left += weight
                    squares_left += weight * (2.0 * before + weight)
                    squares_right -= weight * (2.0 * (outputs[node, own] - before) - weight)
                    room.left[own] = before + weight
                    room.n_left[at], room.squares_left[at], room.squares_right[at] = n_left, squares_left, squares_right
            else:
                for at in range(n):
                    each = lines[level, code, start + at]
                    n_left += pairs[each, 0]
                    sum_left += pairs[each, 1]
                    sum_right = outputs[node, 0] - sum_left
                    room.n_left[at] = n_left
                    room.squares_left[at], room.squares_right[at] = sum_left * sum_left, sum_right * sum_right
            if not _any_near(room.n_left, room.squares_left, room.squares_right, n, n_node, best * NEAR):
                continue
            highest = _score(room.n_left, room.squares_left, room.squares_right, room.scores, n, n_node)
            least, any_cut = (best if best > highest else highest) * NEAR, False
            while True:
                for at in range(n):
                    if room.scores[at] < least:
                        continue
                    place = start + at
                    low, high = rows[lines[level, code, place]], rows[lines[level, code, place + 1]]
                    if columns[code, high] > columns[code, low]:
                        any_cut, n_right = True, n_node - room.n_left[at]
                        # Across, not divided: the same comparison, and what parts rows alike ties exactly, mirrored
                        # or not.
                        score = room.squares_left[at] * n_right + room.squares_right[at] * room.n_left[at]
                        unit = room.n_left[at] * n_right
                        if score * best_unit > best_score * unit:
                            best_score, best_unit, best_code, best_place = score, unit, code, place
                            best = score / unit
                if any_cut or least <= best * NEAR or least < 0.0:
                    break
                least = best * NEAR  # between equal values there is no cut: a lower one may be the best
        for column in range(n_classes):
            room.left[column] = 0.0
    gain = best_score / best_unit - squares_node / n_node
    return best_code, best_place, gain if gain > 0.0 else 0.0


@helper(fastmath=VECTORISED)
def _any_near(
    n_left: FloatArray, squares_left: FloatArray, squares_right: FloatArray, n: int, n_node: float, least: float
) -> bool:
    """Whether any of the first `n` cuts scores at least `least`; without a division."""
    n_near = 0
    for at in range(n):
        n_right = n_node - n_left[at]
        n_near += squares_left[at] * n_right + squares_right[at] * n_left[at] >= least * (n_left[at] * n_right)
    return n_near > 0


@helper(fastmath=VECTORISED)
def _score(
    n_left: FloatArray,
    squares_left: FloatArray,
    squares_right: FloatArray,
    scores: FloatArray,
    n: int,
    n_node: float,
) -> float:
    """Fill in the scores of the first `n` cuts, give the highest."""
    highest = 0.0
    for at in range(n):
        n_right = n_node - n_left[at]
        score = (squares_left[at] * n_right + squares_right[at] * n_left[at]) / (n_left[at] * n_right)
        scores[at] = score
        highest = score if score > highest else highest
    return highest


@helper()
def _part(lines: IntArray, level: int, split: int, begin: int, middle: int, end: int, goes_left: UInt8Array) -> None:
    """Copy a stretch of all lines to the others: those that go left from `begin` on, the rest from `middle` on."""
    for at in range(begin, end):
        goes_left[lines[level, split, at]] = at < middle
    for code in range(lines.shape[1]):
        left, right = np.uint64(begin), np.uint64(middle)
        for at in range(begin, end):
            each = lines[level, code, at]
            goes = np.uint64(goes_left[each])
            lines[1 - level, code, left if goes else right] = each
            left += goes
            right += np.uint64(1) - goes
