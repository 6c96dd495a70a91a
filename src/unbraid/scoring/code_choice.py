"""Which codes to try for a factor: those most related to it, the best pairs, the smallest set that holds it."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from unbraid.base.types import BoolArray, FloatArray, IntArray
from unbraid.scoring.readings import KNOTS, PENALTIES, HeldOut, Target, pieces_of

AT_ONCE = 256  # columns of wide codes
CELLS = 6  # bins of each code of a pair that is screened


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
        if explained(without) >= wanted_share:
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
