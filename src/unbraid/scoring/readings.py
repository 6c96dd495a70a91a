"""How much of a factor some codes tell, by predictions of rows that were held out of fitting.

Of every set of codes a few learners are tried, and the best counts: local means, which see any curve of up to three
codes; a ridge regression on the codes; and one on pieces of each code and products of any two, which sees curves and
interactions. Classes are predicted as in flexible discriminant analysis (Hastie, Tibshirani and Buja 1994, "Flexible
discriminant analysis by optimal scoring"), all of them equally likely beforehand.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import NamedTuple, TypeAlias

import numpy as np

from unbraid.base.types import FloatArray, IntArray
from unbraid.data import Representation

NEIGHBOURS = (5, 15, 50, 150)  # rows whose mean is a prediction; the best of these counts
PENALTIES = (1e-4, 1e-2, 1e-1, 1.0)  # of ridge regressions, times the number of rows
KNOTS = (0.2, 0.4, 0.6, 0.8)  # quantiles between which a code has pieces
FARTHEST = 4.0  # standard deviations beyond which a code is cut off
MOST_SETS = 32  # of codes, whose neighbours and sums of products are kept for the next factor


Splits: TypeAlias = Sequence[tuple[IntArray, IntArray]]  # rows to fit on, and rows to predict
# Of each split: features, their means, eigenvalues and eigenvectors.
Solved: TypeAlias = list[tuple[FloatArray, FloatArray, FloatArray, FloatArray]]


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
    """(..., n_rows) sum of the squares of each row."""
    return np.einsum("...j,...j->...", columns, columns)


def best_reading(
    target: Target, predictions: FloatArray, codes: Sequence[int], predicted: IntArray | None = None
) -> Reading:
    """Of several predictions those that miss least.

    Args:
        target: what is predicted.
        predictions: (n_tries, n_rows, n_columns).
        codes: by which.
        predicted: (n_tries, n_rows) classes, where these are not the likeliest by the predictions.
    """
    if target.classes is None:
        errors = squares(target.columns - predictions)
    else:
        if predicted is None:
            shares = np.bincount(target.classes) / len(target.classes)
            predicted = ((predictions + shares) / shares).argmax(axis=2)
        errors = (predicted != target.classes) * target.weights
    least = int(errors.sum(axis=1).argmin())
    return Reading(tuple(codes), predictions[least], errors[least], target.baseline)


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
        self.splits = splits = [
            (np.flatnonzero(parts != part), np.flatnonzero(parts == part)) for part in range(int(parts.max()) + 1)
        ]
        # Of functions that do not know of this object, which is then gone with its last name.
        self._nearest = lru_cache(MOST_SETS)(partial(nearest_rows, self.codes, splits))
        self._solved = lru_cache(MOST_SETS)(partial(eigenvectors, self.codes, splits))
        self._places = lru_cache(MOST_SETS)(lambda code: places_of(codes[:, code], splits))

    def by_curve(self, code: int, target: Target) -> Reading:
        """The means over neighbouring rows of one code."""
        return curve_reading(self._places(code), target, self.splits, (code,))

    def by_neighbours(self, codes: Sequence[int], target: Target) -> Reading:
        """The means over the rows nearest in all of these codes."""
        nearest = self._nearest(tuple(sorted(codes)))
        counts = np.array([k for k in NEIGHBOURS[:3] if k <= nearest.shape[1]])
        shares = (np.arange(nearest.shape[1])[:, None] < counts) / counts
        predictions = np.stack([(column[nearest] @ shares).T for column in target.columns.T], axis=2)
        return best_reading(target, predictions, sorted(codes))

    def by_line(self, codes: Sequence[Sequence[int]], target: Target) -> Reading:
        """A ridge regression on the codes; `codes` are those of each split."""
        return self._ridge(codes, target, pieces=False)

    def by_pieces(self, codes: Sequence[Sequence[int]], target: Target) -> Reading:
        """A ridge regression on pieces and products of the codes; `codes` are those of each split."""
        return self._ridge(codes, target, pieces=True)

    def _ridge(self, codes: Sequence[Sequence[int]], target: Target, *, pieces: bool) -> Reading:
        fitted = np.empty((len(PENALTIES), *target.columns.shape))
        predicted = None if target.classes is None else np.empty((len(PENALTIES), len(target.classes)), dtype=int)
        solved = self._solved(tuple(tuple(sorted(each)) for each in codes), pieces=pieces)
        for (train, test), (features, mean, values, vectors) in zip(self.splits, solved, strict=True):
            answer = target.columns[train].mean(axis=0)
            known = np.zeros_like(target.columns)
            known[train] = target.columns[train] - answer
            turned = vectors.T @ (features.T @ known)
            slopes = vectors @ (turned / (values + np.multiply(PENALTIES, len(train))[:, None])[:, :, None])
            lines = features[test] @ slopes
            if predicted is not None and target.classes is not None:
                predicted[:, test] = nearest_class(features[train] @ slopes, target.classes[train], lines)
            lines += (answer - mean @ slopes)[:, None]
            fitted[:, test] = lines
        return best_reading(target, fitted, codes[0], predicted)


def nearest_rows(all_codes: FloatArray, splits: Splits, codes: tuple[int, ...]) -> IntArray:
    """(n_rows, n_neighbours) of each row the nearest ones in the other parts by these codes, the nearest first."""
    from scipy.spatial import KDTree

    fewest = min(len(train) for train, _ in splits)
    n_nearest = max(k for k in NEIGHBOURS[:3] if k <= fewest)
    chosen, nearest = all_codes[:, list(codes)], np.empty((len(all_codes), n_nearest), dtype=np.int32)
    for train, test in splits:
        nearest[test] = train[KDTree(chosen[train]).query(chosen[test], k=n_nearest)[1]]
    return nearest


def eigenvectors(all_codes: FloatArray, splits: Splits, codes: tuple[tuple[int, ...], ...], *, pieces: bool) -> Solved:
    """Of each split features of all rows, by its codes, their means over the rows to fit on, and the spread there."""
    columns = {some: all_codes[:, list(some)] for some in codes}
    features = {some: pieces_of(known) if pieces else known for some, known in columns.items()}
    solved = []
    for (train, _), some in zip(splits, codes, strict=True):
        known = features[some][train]
        mean = known.mean(axis=0)
        values, vectors = np.linalg.eigh((known - mean).T @ (known - mean))
        solved.append((features[some], mean, np.maximum(values, 0.0), vectors))
    return solved


def places_of(values: FloatArray, splits: Splits) -> list[tuple[IntArray, IntArray]]:
    """Of each split the rows to fit on in the order of their values, and the place among them of each other row."""
    places = []
    for train, test in splits:
        order = train[np.argsort(values[train], kind="stable")]
        # The middle of the rows of equal values, so that no window lies beside them.
        first, last = (np.searchsorted(values[order], values[test], side) for side in ("left", "right"))
        places.append((order, (first + last) // 2))
    return places


def curve_reading(
    places: Sequence[tuple[IntArray, IntArray]], target: Target, splits: Splits, codes: Sequence[int]
) -> Reading:
    """The means over the rows whose values are nearest, by the number of rows that misses least."""
    counts = [k for k in NEIGHBOURS if k <= min(len(train) for train, _ in splits)]
    predictions = np.empty((len(counts), *target.columns.shape))
    for (order, middle), (_, test) in zip(places, splits, strict=True):
        sums = np.concatenate([np.zeros((1, target.columns.shape[1])), np.cumsum(target.columns[order], axis=0)])
        for place, count in enumerate(counts):
            start = np.clip(middle - count // 2, 0, len(order) - count)
            predictions[place, test] = (sums[start + count] - sums[start]) / count
    return best_reading(target, predictions, codes)


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
    """The class whose mean is nearest, in units of the spread within classes; all classes equally likely.

    Args:
        known: (n_fits, n_rows, n_classes) predictions of the rows to fit on.
        classes: of these rows.
        tested: (n_fits, n_tested, n_classes).
    """
    size = known.shape[2]
    counts, cells = np.bincount(classes, minlength=size), np.ravel(size * classes[:, None] + np.arange(size))
    sums = [np.bincount(cells, fit.ravel(), size**2).reshape(size, size) for fit in known]
    means = np.stack(sums) / np.maximum(counts, 1)[:, None]
    within = means[:, classes]
    within -= known
    spread = within.transpose(0, 2, 1) @ within / len(classes)
    turned = means @ np.linalg.pinv(spread, rcond=1e-6, hermitian=True)
    distance = tested @ (-2.0 * turned.transpose(0, 2, 1))
    distance += np.where(counts > 0, (turned * means).sum(axis=2), np.inf)[:, None]
    return distance.argmin(axis=2)
