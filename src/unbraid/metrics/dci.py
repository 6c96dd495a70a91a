"""Disentanglement, completeness and informativeness (DCI): what its three predictors share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from unbraid.base.arguments import check_choice
from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, FloatArray, IntArray, Kind
from unbraid.metrics._shared.alignment import mean_by_shares
from unbraid.metrics._shared.chance import UNREADABLE
from unbraid.metrics._shared.inputs import check_matrix, mean_and_deviation, note_on
from unbraid.metrics._shared.train_valid_test import TrainValidTest

Completeness: TypeAlias = Literal["mean", "weighted"]


@dataclass(frozen=True, eq=False, repr=False)
class DCI(Shown):
    disentanglement: float
    completeness: float
    informativeness: float  # mean test error over factors; lower is better
    importance: FloatArray  # (n_codes, n_factors)
    per_code: FloatArray  # (n_codes,) disentanglement of each code
    per_factor: FloatArray  # (n_factors,) completeness of each factor
    code_weights: FloatArray  # (n_codes,) summing to 1, or all 0
    errors: FloatArray  # (n_factors,) test error of each factor
    baseline: FloatArray  # (n_factors,) error of a constant on the same rows: the training mean or commonest class
    tuned: FloatArray  # (n_factors,) what validation picked: penalty of a lasso, depth of trees
    nrmse: float | None = None  # mean over the factors that were regressed
    error_rate: float | None = None  # mean over the factors that were classified
    notes: tuple[str, ...] = ()
    mean_over: str = ""  # factors that have any importance, where not all have; see `unbraid.compare`


@dataclass(frozen=True, eq=False, repr=False)
class DisentanglementCompleteness(Shown):
    disentanglement: float
    completeness: float
    per_code: FloatArray  # (n_codes,)
    per_factor: FloatArray  # (n_factors,)
    code_weights: FloatArray  # (n_codes,)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Predicted:
    """What a predictor of the factors leaves behind for DCI."""

    importance: FloatArray  # (n_codes, n_factors)
    errors: FloatArray  # (n_factors,)
    baseline: FloatArray  # (n_factors,) errors of a constant
    classified: tuple[bool, ...]  # whether an error is a rate of wrong classes rather than an NRMSE
    tuned: FloatArray  # (n_factors,)
    notes: tuple[str, ...]


def dci_from_importance(importance: ArrayLike, *, completeness: Completeness = "mean") -> DisentanglementCompleteness:
    """Disentanglement and completeness of a matrix of importances.

    D_i = 1 - H_K(R_i. / sum of row i), C_j = 1 - H_D(R_.j / sum of column j), entropies to base K = n_factors and
    D = n_codes. Disentanglement is the mean of D_i weighted by each code's share of all importance.

    Args:
        importance: (n_codes, n_factors), not negative; only ratios matter.
        completeness: "mean" over factors (the paper), or "weighted" by each factor's share of all importance
            (disentanglement_lib). The same where every factor's importances sum to 1, as those of trees do.

    Returns:
        DisentanglementCompleteness, both in [0, 1], higher is better. A code of no importance has weight 0; a factor
        for which no code is important has completeness 0, and a matrix of zeros scores 0 and 0. With one factor every
        live code has disentanglement 1, with one code every predicted factor has completeness 1: the base of the
        entropy is degenerate there.

    Raises:
        ValueError: not a finite matrix, a negative entry, or an unknown `completeness`.

    Reference:
        Eastwood & Williams 2018, section 2; the worked matrices of SNC/NK 2023, appendix A, are weighted.

    Example:
        >>> scores = dci_from_importance([[0.5, 0.5], [0.0, 0.2]], completeness="weighted")
        >>> round(scores.disentanglement, 4), round(scores.completeness, 4)
        (0.1667, 0.4965)
    """
    check_choice("completeness", completeness, ("mean", "weighted"))
    matrix = check_matrix(importance, "importance", "n_factors", 1)
    if (matrix < 0).any():
        row, column = np.argwhere(matrix < 0)[0]
        raise ValueError(f"importance must not be negative; row {row}, column {column} is {matrix[row, column]:g}")
    matrix = matrix / (matrix.max() or 1.0)
    per_code, per_factor = _concentration(matrix), _concentration(matrix.T)
    code_weights, factor_weights = _shares(matrix.sum(axis=1)), _shares(matrix.sum(axis=0))
    return DisentanglementCompleteness(
        disentanglement=mean_by_shares(per_code, code_weights),
        completeness=float(per_factor.mean()) if completeness == "mean" else mean_by_shares(per_factor, factor_weights),
        per_code=per_code,
        per_factor=per_factor,
        code_weights=code_weights,
        notes=_degenerate(matrix),
    )


def _degenerate(matrix: FloatArray) -> tuple[str, ...]:
    """Where a score follows from the shape of the matrix alone."""
    (n_codes, n_factors), captured = matrix.shape, np.flatnonzero(matrix.any(axis=0))
    if not len(captured):
        return ("no code is important for any factor: disentanglement and completeness are 0",)
    notes = []
    if n_factors == 1:
        notes.append("one factor: disentanglement is 1 by definition")
    elif len(captured) == 1:
        notes.append(
            f"disentanglement {UNREADABLE}: codes are important for factor {captured[0]} alone, so it must be 1"
        )
    if n_codes == 1:
        restriction = "" if len(captured) == n_factors else ", of factors that the code is important for"
        notes.append(f"one code: completeness is 1 by definition{restriction}")
    return tuple(notes)


def _concentration(matrix: FloatArray) -> FloatArray:
    """One less the entropy of each row, to the base of its length: 1 in one place, 0 evenly spread, 0 without any."""
    sums = matrix.sum(axis=1, keepdims=True)
    shares = matrix / np.where(sums > 0, sums, 1.0)
    entropy = -(shares * np.log(np.where(shares > 0, shares, 1.0))).sum(axis=1)
    # Rounding leaves an even row a hair beyond the ends.
    values = np.clip(1.0 - entropy / np.log(max(matrix.shape[1], 2)), 0.0, 1.0)
    return np.where(sums[:, 0] > 0, values, 0.0)


def _shares(sums: FloatArray) -> FloatArray:
    total = sums.sum()
    return sums / total if total > 0 else np.zeros_like(sums)


def dci_result(predicted: Predicted, completeness: Completeness) -> DCI:
    scores = dci_from_importance(predicted.importance, completeness=completeness)
    classified, important = np.array(predicted.classified), predicted.importance.any(axis=0)
    return DCI(
        disentanglement=scores.disentanglement,
        completeness=scores.completeness,
        informativeness=float(predicted.errors.mean()),
        importance=predicted.importance,
        per_code=scores.per_code,
        per_factor=scores.per_factor,
        code_weights=scores.code_weights,
        errors=predicted.errors,
        baseline=predicted.baseline,
        tuned=predicted.tuned,
        nrmse=None if classified.all() else float(predicted.errors[~classified].mean()),
        error_rate=float(predicted.errors[classified].mean()) if classified.any() else None,
        notes=predicted.notes + scores.notes,
        mean_over="" if important.all() or not important.any() else _factors(np.flatnonzero(important)),
    )


def _factors(columns: IntArray) -> str:
    return f"factor{'s' * (len(columns) > 1)} {', '.join(map(str, columns))}"


def target_scale(factors: FloatArray, train: IntArray) -> FloatArray:
    """(n_factors,) standard deviation over the training rows, the unit of an NRMSE.

    Over all rows where a factor is constant in training.
    """
    constant = (factors[train] == factors[train[0]]).all(axis=0)
    return np.where(constant, mean_and_deviation(factors)[1], mean_and_deviation(factors[train])[1])


def constant_nrmse(split: TrainValidTest) -> FloatArray:
    """(n_factors,) test NRMSE of the training mean."""
    train, test = split.inputs.factors[split.train], split.inputs.factors[split.test]
    missed = (test - mean_and_deviation(train)[0]) / target_scale(split.inputs.factors, split.train)
    return np.sqrt((missed**2).mean(axis=0))


def notes_on_kinds(kinds: Sequence[Kind]) -> tuple[str, ...]:
    """Which factors are read as plain numbers although they are not."""
    return tuple(
        note
        for kind in ("categorical", "cyclic")
        for note in note_on([k for k, each in enumerate(kinds) if each == kind], "levels are read as numbers", kind)
    )
