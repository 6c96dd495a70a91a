"""How much of a factor some codes tell, by predictions of rows that were held out of fitting.

Of every set of codes a few learners are tried, and the best counts: local means, which see any curve of up to three
codes; a ridge regression on the codes; and one on pieces of each code and products of any two, which sees curves and
interactions. Classes are predicted as in flexible discriminant analysis (Hastie, Tibshirani and Buja 1994, "Flexible
discriminant analysis by optimal scoring"), all of them equally likely beforehand.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from unbraid.base.types import FloatArray, IntArray
from unbraid.data import Representation

NEIGHBOURS = (5, 15, 50, 150)  # rows whose mean is a prediction; the best of these counts
PENALTIES = (1e-4, 1e-2, 1e-1, 1.0)  # of ridge regressions, times the number of rows
KNOTS = (0.2, 0.4, 0.6, 0.8)  # quantiles between which a code has pieces
FARTHEST = 4.0  # standard deviations beyond which a code is cut off
MOST_NEAREST = 32  # sets of codes whose neighbours are kept, for the next factor


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


def targets_of(representation: Representation) -> list[list[tuple[str, Target]]]:
    """Of each factor the ways to read it: itself first, then what a fold or a circle wound twice leaves of it."""
    targets = []
    sizes = representation.known_sizes() or (0,) * len(representation.names)
    for values, kind, size in zip(representation.factors.T, representation.kinds, sizes, strict=True):
        values = values.astype(float)
        if kind == "categorical":
            targets.append([("", class_target(values))])
        elif kind == "cyclic":
            whole = (values == np.rint(values)).all()
            angles = values * (2 * np.pi / (size or values.max() + 1)) if whole else values
            turns = [("", 1), ("wound twice", 2), ("wound three times", 3)]
            targets.append(
                [
                    (words, number_target(np.column_stack([np.cos(k * angles), np.sin(k * angles)])))
                    for words, k in turns[: 1 if whole and (size or 9) < 6 else 3]
                ]
            )
        else:
            levels = values if kind == "continuous" else np.unique(values, return_inverse=True)[1].astype(float)
            views = [("", number_target(levels))]
            if len(np.unique(levels)) > 2:
                views.append(("as its distance from the middle", number_target(np.abs(levels - np.median(levels)))))
            targets.append(views)
    return targets


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
