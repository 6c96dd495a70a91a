"""How much of a factor some codes tell, by predictions of rows that were held out of fitting.

Of every set of codes a few learners are tried, and the best counts: local means, which see any curve of up to three
codes; a ridge regression on the codes; and one on pieces of each code and products of any two, which sees curves and
interactions. Classes are predicted as in flexible discriminant analysis (Hastie, Tibshirani and Buja 1994, "Flexible
discriminant analysis by optimal scoring"), all of them equally likely beforehand.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from unbraid.base.types import BoolArray, FloatArray, IntArray

NEIGHBOURS = (5, 15, 50, 150)  # rows whose mean is a prediction; the best of these counts
MOST_NEIGHBOURED = 3  # codes of which local means are taken together
PENALTIES = (1e-4, 1e-2, 1e-1, 1.0)  # of ridge regressions, times the number of rows
KNOTS = (0.2, 0.4, 0.6, 0.8)  # quantiles between which a code has pieces
FARTHEST = 4.0  # standard deviations beyond which a code is cut off
MOST_NEAREST = 32  # sets of codes whose neighbours are kept, for the next factor
AT_ONCE = 256  # columns of wide codes
CELLS = 6  # bins of each code of a pair that is screened


class Target(NamedTuple):
    """A factor as columns to predict: a number, cosine and sine, or an indicator of each class."""

    columns: FloatArray  # (n_rows, n_columns), each of mean 0
    classes: IntArray | None  # (n_rows,) of a categorical factor
    weights: FloatArray  # (n_rows,) of an error: of classes all classes weigh the same
    chance: float  # error without codes, of a row of weight 1 on average
    baseline: FloatArray  # (n_rows,) error without codes


@dataclass(frozen=True, eq=False)
class Reading:
    """Held-out predictions of one target, and what they miss."""

    codes: tuple[int, ...]
    predictions: FloatArray  # (n_rows, n_columns)
    errors: FloatArray  # (n_rows,) whose mean over that of `baseline` is the share that is missed
    baseline: FloatArray  # (n_rows,)

    @cached_property
    def score(self) -> float:
        """R², or balanced accuracy above chance as a share of the most that there could be."""
        return 1.0 - float(self.errors.sum() / self.baseline.sum())

    @cached_property
    def error(self) -> float:
        """Standard error of the score."""
        total = float(self.baseline.sum())
        strays = self.errors - (1.0 - self.score) * self.baseline
        return float(np.sqrt((strays**2).sum())) / total


def number_target(values: FloatArray) -> Target:
    """Of a number, or of vectors (n_rows, n_columns) that are predicted together."""
    columns = values.reshape(len(values), -1).astype(float)
    columns = columns - columns.mean(axis=0)
    columns = columns / max(float(np.sqrt((columns**2).sum(axis=1).mean())), 1e-300)
    return Target(columns, None, np.ones(len(columns)), 1.0, squares(columns))


def class_target(levels: FloatArray | IntArray) -> Target:
    present, classes = np.unique(levels, return_inverse=True)
    shares = np.bincount(classes) / len(classes)
    columns = (classes[:, None] == np.arange(len(present))) - shares
    weights, chance = 1.0 / (len(present) * shares[classes]), 1.0 - 1.0 / len(present)
    return Target(columns, classes, weights, chance, chance * weights)


def squares(columns: FloatArray) -> FloatArray:
    """(n_rows,) sum of the squares of each row."""
    return np.einsum("ij,ij->i", columns, columns)


def reading(
    target: Target, predictions: FloatArray, codes: Sequence[int], predicted: IntArray | None = None
) -> Reading:
    """What these predictions miss; `predicted` are classes, where these are not the likeliest by the predictions."""
    if target.classes is None:
        return Reading(tuple(codes), predictions, squares(target.columns - predictions), target.baseline)
    if predicted is None:
        shares = np.bincount(target.classes) / len(target.classes)
        predicted = ((predictions + shares) / shares).argmax(axis=1)
    errors = (predicted != target.classes) * target.weights
    return Reading(tuple(codes), predictions, errors, target.baseline)


def best(readings: Sequence[Reading]) -> Reading:
    return max(readings, key=lambda reading: reading.score)


class HeldOut:
    """Rows in parts, each predicted by what was fitted on the others.

    Args:
        codes: (n_rows, n_codes), in standard deviations.
        parts: (n_rows,) the part of each row: 0, 1, ...
    """

    def __init__(self, codes: FloatArray, parts: IntArray) -> None:
        self.codes = np.clip(codes, -FARTHEST, FARTHEST)
        self.full_codes = codes
        self._nearest = lru_cache(MOST_NEAREST)(self._nearest_rows)
        self.splits: list[tuple[IntArray, IntArray]] = [
            (np.flatnonzero(parts != part), np.flatnonzero(parts == part)) for part in range(int(parts.max()) + 1)
        ]

    def by_curve(self, code: int, targets: Sequence[Target]) -> list[Reading]:
        """Of each target the means over neighbouring rows of one code."""
        return curve_readings(self.full_codes[:, code], targets, self.splits, (code,))

    def by_neighbours(self, codes: Sequence[int], target: Target) -> Reading:
        """The means over the rows nearest in all of these codes."""
        nearest = self._nearest(tuple(sorted(codes)))
        counts = [k for k in NEIGHBOURS[:3] if k <= nearest.shape[1]]
        predictions, total, low = np.empty((len(counts), *target.columns.shape)), 0.0, 0
        for place, count in enumerate(counts):
            total = total + target.columns[nearest[:, low:count]].sum(axis=1)
            predictions[place], low = total / count, count
        return best([reading(target, predictions[place], sorted(codes)) for place in range(len(counts))])

    def _nearest_rows(self, codes: tuple[int, ...]) -> IntArray:
        """(n_rows, n_neighbours) of each row the nearest ones in the other parts, the nearest first."""
        from scipy.spatial import KDTree

        fewest = min(len(train) for train, _ in self.splits)
        n_nearest = max(k for k in NEIGHBOURS[:3] if k <= fewest)
        chosen, nearest = self.codes[:, list(codes)], np.empty((len(self.codes), n_nearest), dtype=np.int32)
        for train, test in self.splits:
            nearest[test] = train[KDTree(chosen[train]).query(chosen[test], k=n_nearest)[1]]
        return nearest

    def by_line(self, codes: Sequence[Sequence[int]], target: Target) -> Reading:
        """A ridge regression on the codes; `codes` are those of each split."""
        return self._ridge([self.codes[:, list(each)] for each in codes], target, codes[0])

    def by_pieces(self, codes: Sequence[Sequence[int]], target: Target) -> Reading:
        """A ridge regression on pieces and products of the codes; `codes` are those of each split."""
        same = all(list(each) == list(codes[0]) for each in codes)
        features = [pieces_of(self.codes[:, list(each)]) for each in (codes[:1] if same else codes)]
        return self._ridge(features * len(codes) if same else features, target, codes[0])

    def _ridge(self, features: Sequence[FloatArray], target: Target, codes: Sequence[int]) -> Reading:
        fitted = np.empty((len(PENALTIES), *target.columns.shape))
        predicted = None if target.classes is None else np.empty((len(PENALTIES), len(target.classes)), dtype=int)
        for (train, test), columns in zip(self.splits, features, strict=True):
            known, tested = columns[train], columns[test]
            mean, answer = known.mean(axis=0), target.columns[train].mean(axis=0)
            known, tested = known - mean, tested - mean
            values, vectors = np.linalg.eigh(known.T @ known)
            turned = vectors.T @ (known.T @ (target.columns[train] - answer))
            for place, penalty in enumerate(PENALTIES):
                slopes = vectors @ (turned / (np.maximum(values, 0.0) + penalty * len(train))[:, None])
                fitted[place, test] = tested @ slopes + answer
                if predicted is not None and target.classes is not None:
                    classes, of_test = target.classes[train], fitted[place, test]
                    predicted[place, test] = nearest_class(known @ slopes + answer, classes, of_test)
        return best(
            [
                reading(target, fitted[place], codes, None if predicted is None else predicted[place])
                for place in range(len(PENALTIES))
            ]
        )


def curve_readings(
    values: FloatArray, targets: Sequence[Target], splits: Sequence[tuple[IntArray, IntArray]], codes: Sequence[int]
) -> list[Reading]:
    """Of each target the means over the rows whose values are nearest, by the number of rows that misses least."""
    columns = np.concatenate([target.columns for target in targets], axis=1)
    counts = [k for k in NEIGHBOURS if k <= min(len(train) for train, _ in splits)]
    predictions = np.empty((len(counts), *columns.shape))
    for train, test in splits:
        order = np.argsort(values[train], kind="stable")
        ascending = values[train][order]
        sums = np.concatenate([np.zeros((1, columns.shape[1])), np.cumsum(columns[train][order], axis=0)])
        # The middle of the rows of equal values, so that no window lies beside them.
        middle = np.searchsorted(ascending, values[test], "left") + np.searchsorted(ascending, values[test], "right")
        for place, count in enumerate(counts):
            start = np.clip(middle // 2 - count // 2, 0, len(train) - count)
            predictions[place, test] = (sums[start + count] - sums[start]) / count
    bounds = np.cumsum([0, *(target.columns.shape[1] for target in targets)])
    return [
        best([reading(target, predictions[place, :, low:high], codes) for place in range(len(counts))])
        for target, low, high in zip(targets, bounds[:-1], bounds[1:], strict=True)
    ]


def pieces_of(codes: FloatArray) -> FloatArray:
    """(n_rows, n_features): the codes, their parts above each of some quantiles, and the products of any two."""
    knots = np.quantile(codes, KNOTS, axis=0)
    columns = [codes, *(np.maximum(codes - knot, 0.0) for knot in knots)]
    if codes.shape[1] > 1:
        first, second = np.triu_indices(codes.shape[1], 1)
        columns.append(codes[:, first] * codes[:, second])
    features = np.concatenate(columns, axis=1)
    spread = features.std(axis=0)
    return features / np.where(spread > 1e-9, spread, 1.0)


def nearest_class(known: FloatArray, classes: IntArray, tested: FloatArray) -> IntArray:
    """The class whose mean is nearest, in units of the spread within classes; all classes equally likely."""
    counts = np.bincount(classes, minlength=known.shape[1])
    means = np.stack([np.bincount(classes, weights=column, minlength=len(counts)) for column in known.T], axis=1)
    means /= np.maximum(counts, 1)[:, None]
    within = known - means[classes]
    spread = within.T @ within / len(known)
    inverse = np.linalg.pinv(spread, rcond=1e-6, hermitian=True)
    distance = -2.0 * (tested @ inverse) @ means.T + ((means @ inverse) * means).sum(axis=1)
    return np.where(counts > 0, distance, np.inf).argmin(axis=1)


def ranks_of(codes: FloatArray) -> FloatArray:
    """(n_rows, n_codes) float32 from 0 to 1; the middle one of equal values."""
    ranks = np.empty(codes.shape, dtype=np.float32)
    for code, column in enumerate(codes.T):
        ascending = np.sort(column)
        both = np.searchsorted(ascending, column, "left") + np.searchsorted(ascending, column, "right")
        ranks[:, code] = both / (2.0 * len(column))
    return ranks


def screen_features(codes: FloatArray) -> FloatArray:
    """(3, n_rows, n_codes) float32: the rank of each code, how far that is from the middle, and a wave of it."""
    ranks = ranks_of(codes)
    return np.stack([ranks, np.abs(ranks - 0.5), np.cos(4 * np.pi * ranks)])


def relatedness(matrix: Any, targets: Sequence[Target], row_sets: Sequence[IntArray]) -> FloatArray:
    """The largest share of each target that a line in one of the features of a code explains.

    Args:
        matrix: (n_rows, n_codes) an array, or a sparse matrix of SciPy by columns.
        targets: of the same rows.
        row_sets: such as the rows that each split fits on.

    Returns:
        (n_row_sets, n_targets, n_codes) float32 from 0 to 1; 0 of codes that do not vary.
    """
    columns = np.concatenate([target.columns for target in targets], axis=1).astype(np.float32)
    widths = [target.columns.shape[1] for target in targets]
    bounds = np.cumsum([0, *widths])[:-1]
    answers = []
    for rows in row_sets:
        answer = columns[rows] - columns[rows].mean(axis=0)
        spread = np.sqrt(np.maximum(np.add.reduceat((answer**2).sum(axis=0), bounds), 1e-12))
        answers.append(answer / spread.repeat(widths))
    shares = np.zeros((len(row_sets), len(targets), matrix.shape[1]), dtype=np.float32)
    for start in range(0, matrix.shape[1], AT_ONCE):
        part = matrix[:, start : start + AT_ONCE]
        features = screen_features(part.toarray() if hasattr(part, "toarray") else np.asarray(part))
        for place, (rows, answer) in enumerate(zip(row_sets, answers, strict=True)):
            own = shares[place, :, start : start + AT_ONCE]
            for kind in features:
                known = kind[rows] - kind[rows].mean(axis=0)
                products = (answer.T @ known) ** 2 / np.maximum((known**2).sum(axis=0), 1e-6)
                np.maximum(own, np.add.reduceat(products, bounds, axis=0), out=own)
    return shares


def best_pairs(
    ranks: FloatArray, target: Target, rows: IntArray, codes: Sequence[int], most: int
) -> list[tuple[int, int]]:
    """The pairs of codes whose bins tell most of a target on these rows, above what either code tells alone.

    Args:
        ranks: (n_rows, n_codes) from 0 to 1.
        target: of all rows.
        rows: that count.
        codes: to choose from.
        most: how many pairs.
    """
    if len(codes) < 2:
        return []
    bins = np.minimum((ranks[rows][:, list(codes)] * CELLS).astype(int), CELLS - 1)
    cells = np.zeros((len(rows), len(codes), CELLS), dtype=np.float32)
    np.put_along_axis(cells, bins[:, :, None], 1.0, axis=2)
    flat = cells.reshape(len(rows), -1)
    counts = (flat.T @ flat).reshape(len(codes), CELLS, len(codes), CELLS)
    answer = target.columns[rows] - target.columns[rows].mean(axis=0)
    explained = np.zeros((len(codes), len(codes)))
    for column in answer.T.astype(np.float32):
        sums = (flat.T @ (flat * column[:, None])).reshape(counts.shape)
        explained += (sums**2 / np.maximum(counts, 1.0)).sum(axis=(1, 3))
    filled = (counts > 0).sum(axis=(1, 3))
    total = float((answer**2).sum())
    adjusted = 1.0 - (1.0 - explained / total) * (len(rows) - 1) / np.maximum(len(rows) - filled, 1)
    alone = np.diag(adjusted)
    gain = adjusted - np.maximum(alone[:, None], alone)
    first, second = np.triu_indices(len(codes), 1)
    order = np.argsort(-np.where(gain > 0.01, adjusted, adjusted - 2.0)[first, second], kind="stable")[:most]
    return [(codes[int(first[place])], codes[int(second[place])]) for place in order]


def smallest_set(
    held_out: HeldOut, target: Target, candidates: Sequence[int], share: float, *, pieces: bool
) -> list[int]:
    """Codes by which a ridge regression reaches this share of what it reaches by all candidates.

    They are found forwards, the code that adds most first, and pruned backwards. Squared errors decide, which follow
    from sums of products, so that no row is predicted.
    """
    columns = held_out.codes[:, list(candidates)]
    features, owners = (pieces_of(columns), _owners(len(candidates))) if pieces else (columns, _alone(len(candidates)))
    moments = [_Moments.sums(features, target.columns, train, test) for train, test in held_out.splits]

    def explained(codes: Sequence[int]) -> float:
        chosen = np.flatnonzero(~owners[:, np.setdiff1d(np.arange(len(candidates)), codes)].any(axis=1))
        return 1.0 - sum(each.error(chosen) for each in moments) / sum(each.total for each in moments)

    wanted_share = share * explained(range(len(candidates)))
    chosen: list[int] = []
    while len(chosen) < len(candidates):
        rest = [code for code in range(len(candidates)) if code not in chosen]
        scores = [explained([*chosen, code]) for code in rest]
        chosen.append(rest[int(np.argmax(scores))])
        if max(scores) >= wanted_share:
            break
    for code in list(chosen[:-1]):
        without = [each for each in chosen if each != code]
        if len(without) > 0 and explained(without) >= wanted_share:
            chosen = without
    return [candidates[code] for code in chosen]


class _Moments(NamedTuple):
    """Sums of products over the rows to fit on and over those held out, about the means of the former."""

    known: FloatArray
    known_answer: FloatArray
    test: FloatArray
    test_answer: FloatArray
    total: float
    n_rows: int

    @classmethod
    def sums(cls, features: FloatArray, columns: FloatArray, train: IntArray, test: IntArray) -> "_Moments":
        mean, answer = features[train].mean(axis=0), columns[train].mean(axis=0)
        known, tested = features[train] - mean, features[test] - mean
        learnt, true = columns[train] - answer, columns[test] - answer
        return cls(
            known.T @ known, known.T @ learnt, tested.T @ tested, tested.T @ true, float((true**2).sum()), len(train)
        )

    def error(self, chosen: IntArray) -> float:
        grid = np.ix_(chosen, chosen)
        penalty = PENALTIES[1] * self.n_rows * np.eye(len(chosen))
        slopes = np.linalg.solve(self.known[grid] + penalty, self.known_answer[chosen])
        return (
            self.total
            - 2.0 * float((slopes * self.test_answer[chosen]).sum())
            + float((slopes * (self.test[grid] @ slopes)).sum())
        )


def _alone(n_codes: int) -> BoolArray:
    return np.eye(n_codes, dtype=bool)


def _owners(n_codes: int) -> BoolArray:
    """(n_features, n_codes) whether a column of `pieces_of` is of a code."""
    own = np.tile(np.eye(n_codes, dtype=bool), (1 + len(KNOTS), 1))
    products = [np.isin(np.arange(n_codes), pair) for pair in combinations(range(n_codes), 2)]
    return np.concatenate([own, np.array(products, dtype=bool).reshape(-1, n_codes)])
