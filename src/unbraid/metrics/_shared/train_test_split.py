"""Rows to learn from and other rows to be judged on: what every trained probe and single-code classifier needs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from unbraid.base.arguments import check_choice
from unbraid.base.types import ArrayLike, FloatArray, IntArray, Kind
from unbraid.data.row_index import refuse_other_order
from unbraid.metrics._shared.chance import unreadable
from unbraid.metrics._shared.inputs import (
    Inputs,
    Levels,
    as_levels,
    check_inputs,
    check_kinds,
    check_matrix,
    column_slices,
    split_rows,
)
from unbraid.metrics._shared.sharing import of_codes, shared
from unbraid.metrics._solvers.trees import as_seen, order_of

TRAIN_FRACTION = 0.8
NOTICEABLE = 0.05  # score of always naming the commonest level from which on a note says so
FEW = 10  # test rows that are not of the commonest level, below which an adjusted accuracy is a matter of luck

# The accuracy that counts as 0: of guessing levels as often as they occur (eq. 4 of SNC/NK 2023), or of that or always
# naming the commonest level, whichever is right more often.
ChanceRule: TypeAlias = Literal["guessing", "commonest"]


@dataclass(frozen=True, eq=False)
class TrainTestSplit:
    """Codes and levels of training rows and of test rows."""

    inputs: Inputs  # what was given as codes and factors
    rows: Inputs  # training and test rows
    levels: Levels  # of the same rows
    train: IntArray  # positions of the training rows
    test: IntArray  # positions of the test rows

    @property
    def codes(self) -> FloatArray:
        """(n_rows, n_codes)"""
        return self.rows.codes

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.levels.sizes

    @property
    def notes(self) -> tuple[str, ...]:
        return self.levels.notes


def train_test_split(
    codes: ArrayLike,
    factors: ArrayLike,
    kinds: Sequence[Kind] | None,
    seed: int,
    test_codes: ArrayLike | None = None,
    test_factors: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> TrainTestSplit:
    """Train on four rows in five and test on the others; or train on all and test on the rows given for it.

    No group of rows is on both sides.

    Raises:
        ValueError: as `with_test_rows`.
    """
    inputs = check_inputs(codes, factors, kinds, seed, weights, groups)
    both = with_test_rows(inputs, test_codes, test_factors)
    if both is None:
        return _split(inputs, seed)
    rows = np.arange(both.n_samples)
    return TrainTestSplit(
        inputs, both, as_levels(both, n_known=inputs.n_samples), rows[: inputs.n_samples], rows[inputs.n_samples :]
    )


def with_test_rows(inputs: Inputs, test_codes: ArrayLike | None, test_factors: ArrayLike | None) -> Inputs | None:
    """The rows of `inputs` and after them those to test on; None where none are given to test on.

    Raises:
        ValueError: only one of `test_codes` and `test_factors` is given, or they do not fit each other or `inputs`.
    """
    if test_codes is None and test_factors is None:
        return None
    if test_codes is None or test_factors is None:
        raise ValueError("test_codes and test_factors must be given together; only one of them was")
    refuse_other_order(test_codes=test_codes, test_factors=test_factors)
    codes = check_matrix(test_codes, "test_codes", "n_codes")
    factors = check_matrix(test_factors, "test_factors", "n_factors")
    columns = inputs.n_codes, inputs.n_factors
    if not len(codes) or len(codes) != len(factors) or (codes.shape[1], factors.shape[1]) != columns:
        raise ValueError(
            f"test_codes and test_factors must have the same number of rows, and {columns[0]} and {columns[1]} columns "
            f"as codes and factors have; got {codes.shape} and {factors.shape}"
        )
    check_kinds(inputs.kinds, factors, "test_factors")
    ranked = [kind in ("categorical", "ordinal") for kind in inputs.kinds]
    if (fractions := ranked & (factors != np.rint(factors)).any(axis=0)).any():
        raise ValueError(f"test_factors column {fractions.argmax()} must number the levels of factors: 0, 1, ...")
    return check_inputs(np.vstack([inputs.codes, codes]), np.vstack([inputs.factors, factors]), inputs.kinds)


@shared
def _split(inputs: Inputs, seed: int) -> TrainTestSplit:
    train, test = most_and_rest(inputs.n_samples, seed, inputs.groups)
    return TrainTestSplit(inputs, inputs, as_levels(inputs), train, test)


@of_codes
@shared
def most_and_rest(n_samples: int, seed: int, groups: IntArray | None) -> tuple[IntArray, ...]:
    """Rows to learn from, and the others; see `split_rows`."""
    return split_rows(n_samples, (TRAIN_FRACTION, 1 - TRAIN_FRACTION), seed, groups)


def in_order(values: FloatArray, rows: IntArray) -> IntArray:
    """These rows by ascending value of a code (n_samples,)."""
    return rows[np.argsort(values[rows], kind="stable")]


def varying_codes(split: TrainTestSplit) -> IntArray:
    """(n_live,) codes that vary over the training rows, beyond rounding."""
    return _varying(split.rows.stored, split.train)


@of_codes
@shared
def _varying(stored: FloatArray | IntArray, train: IntArray) -> IntArray:
    parts = []
    for columns in column_slices(*stored.shape):
        rows = stored[train, columns].astype(np.float64)
        parts.append(np.ptp(rows, axis=0) > 1e-12 * np.abs(rows).max(axis=0))
    return np.flatnonzero(np.concatenate(parts))


def live_codes(split: TrainTestSplit) -> tuple[IntArray, FloatArray]:
    """(n_live,) `varying_codes`, and a sign for each; see `own_order`."""
    return _live(split.rows.stored, split.train)


@of_codes
@shared
def _live(stored: FloatArray | IntArray, train: IntArray) -> tuple[IntArray, FloatArray]:
    live = _varying(stored, train)
    order, signs = order_of(len(live), lambda code: stored[train, live[code]].astype(np.float64))
    return live[order], signs


def standardised_codes(split: TrainTestSplit) -> FloatArray:
    """(n_rows, n_live) live codes, less the training mean, over the training standard deviation; see `live_codes`."""
    return _standardised(split.rows.stored, split.train)


@of_codes
@shared
def _standardised(stored: FloatArray | IntArray, train: IntArray) -> FloatArray:
    live, signs = _live(stored, train)
    columns = stored[:, live].astype(np.float64) * signs
    rows = columns[train]
    return np.ascontiguousarray((columns - rows.mean(axis=0)) / rows.std(axis=0))


def training_codes(split: TrainTestSplit) -> FloatArray:
    """(n_train, n_live) rows of `standardised_codes`."""
    return rows_of(standardised_codes(split), split.train)


@of_codes
@shared
def rows_of(codes: FloatArray, rows: IntArray) -> FloatArray:
    return codes[rows]


@shared
def renumbered(split: TrainTestSplit) -> tuple[IntArray, tuple[IntArray, ...]]:
    """Levels (n_rows, n_factors) by another number, and the level that each number stands for (size,) per factor.

    Numbers follow the order in which training rows show the levels, so that nothing drawn for a level depends on how
    it is called.
    """
    columns, names = [], []
    for column, size in zip(split.levels.levels.T, split.sizes, strict=True):
        seen, _ = as_seen(column[split.train])
        names.append(np.concatenate([seen, np.setdiff1d(np.arange(size), seen)]))
        columns.append(np.argsort(names[-1])[column])
    return np.stack(columns, axis=1), tuple(names)


def constant_rates(train: FloatArray | IntArray, test: FloatArray | IntArray) -> FloatArray:
    """(n_factors,) share of test rows not of the commonest training class; of equals, of the first seen."""
    rates = []
    for known, own in zip(train.T, test.T, strict=True):
        present, first, counts = np.unique(known, return_index=True, return_counts=True)
        rates.append(np.mean(own != present[np.lexsort([first, -counts])[0]]))
    return np.array(rates)


def class_shares(levels: IntArray, size: int) -> FloatArray:
    return np.bincount(levels, minlength=size) / len(levels)


@shared
def guessing(split: TrainTestSplit) -> FloatArray:
    """(n_factors,) accuracy on the test rows of guessing classes as often as they occur in training (eq. 4)."""
    shares = [
        [class_shares(split.levels.levels[rows, factor], size) for rows in (split.train, split.test)]
        for factor, size in enumerate(split.sizes)
    ]
    return np.array([np.dot(learnt, true) for learnt, true in shares])


def blind_accuracy(split: TrainTestSplit, chance: ChanceRule) -> FloatArray:
    """(n_factors,) accuracy on the test rows without codes."""
    if chance == "guessing":
        return guessing(split).copy()
    constant = 1.0 - constant_rates(split.levels.levels[split.train], split.levels.levels[split.test])
    return np.maximum(guessing(split), constant)


def check_chance(chance: str) -> None:
    """
    Raises:
        ValueError: it is no `ChanceRule`.
    """
    check_choice("chance", chance, get_args(ChanceRule))


def notes_on_chance(split: TrainTestSplit, chance: ChanceRule) -> tuple[str, ...]:
    """Factors whose score says little of the codes, since their levels are uneven."""
    return (*(_notes_on_the_commonest(split) if chance == "guessing" else ()), *_notes_on_test_rows(split))


def _notes_on_the_commonest(split: TrainTestSplit) -> tuple[str, ...]:
    shares = [class_shares(levels, size) for levels, size in zip(split.levels.levels.T, split.sizes, strict=True)]
    scores = adjusted(*np.array([(share.max(), share @ share) for share in shares]).T)
    return tuple(
        f"factor {factor}: always naming the commonest level scores {scores[factor]:.2f}; "
        "chance='commonest' counts that as chance"
        for factor in np.flatnonzero(scores > NOTICEABLE)
    )


def _notes_on_test_rows(split: TrainTestSplit) -> tuple[str, ...]:
    """Factors of which so few test rows have another than the commonest level that one row more or less decides."""
    rates = constant_rates(split.levels.levels[split.train], split.levels.levels[split.test])
    counts, n_test = np.rint(rates * len(split.test)).astype(int), len(split.test)
    return tuple(
        unreadable(
            f"only {counts[factor]} of {n_test} test rows have another than the commonest level of factor {factor}"
        )
        for factor in np.flatnonzero(counts < FEW)
    )


def adjusted(accuracy: FloatArray, chance: FloatArray) -> FloatArray:
    """Accuracy on a scale where chance is 0, and nothing is below 0 (eq. 3); 0 where guessing is always right."""
    return np.maximum(0.0, (accuracy - chance) / np.where(chance < 1.0, 1.0 - chance, np.inf))


def accuracies(predicted: IntArray, split: TrainTestSplit) -> FloatArray:
    """(n_factors,) share of test rows whose level is predicted; `predicted` is (n_test, n_factors)."""
    return (predicted == split.levels.levels[split.test]).mean(axis=0)
