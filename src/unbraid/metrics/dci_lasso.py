"""DCI with lasso regression: which codes explain a factor linearly."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from unbraid.base.types import ArrayLike, FloatArray, IntArray, Kind
from unbraid.metrics._shared.inputs import (
    Inputs,
    Part,
    check_inputs,
    mean_and_scale,
    split_rows,
    standardised,
)
from unbraid.metrics._shared.metric import DCI_CLAIMS, DCI_FORMULA, HALVES, Metric
from unbraid.metrics._shared.resampling import Numbers
from unbraid.metrics._shared.sharing import shared
from unbraid.metrics._shared.train_valid_test import FRACTIONS, train_valid_test
from unbraid.metrics._solvers.lasso import CONVERGED, validated_lasso
from unbraid.metrics.dci import (
    DCI,
    Completeness,
    Predicted,
    constant_nrmse,
    dci_from_importance,
    dci_result,
    notes_on_kinds,
    target_scale,
)

N_PENALTIES = 100
SMALLEST_PENALTY = 1e-4  # relative to the one above which every weight is 0
PENALTIES = np.geomspace(1.0, SMALLEST_PENALTY, N_PENALTIES)
FLAT = 1e-10  # variance in units of that of all rows, below which a column is taken for itself
MANY = 64  # codes, above which the path ends after so many penalties as this without a lower validation error:
PATIENCE = 10
IDENTICAL = 1.0 - 1e-10  # correlation from which two codes count as one


def dci_lasso(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    groups: ArrayLike | None = None,
    completeness: Completeness = "mean",
    test_codes: ArrayLike | None = None,
    test_factors: ArrayLike | None = None,
) -> DCI:
    """Disentanglement, completeness and informativeness by one lasso per factor.

    Args:
        codes: (n_samples, n_codes) real. Posterior means unless stated otherwise.
        factors: (n_samples, n_factors). Levels of every kind are read as numbers.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: of the split into 80 % training, 10 % validation and 10 % test rows.
        groups: (n_samples,) group of each row (trial, animal, video or session); no group is in two parts.
        completeness: "mean" over factors (the paper) or "weighted" by importance (disentanglement_lib).
        test_codes: (n, n_codes) rows to test on; all rows of `codes` then train (8/9) and validate (1/9).
        test_factors: (n, n_factors) their factors.

    Returns:
        DCI. `disentanglement` and `completeness` in [0, 1], higher is better. `informativeness` is the mean test
        NRMSE, lower is better: 0 is a perfect prediction; `baseline` is the error of the training mean on the same
        rows, near 1. `importance` holds the absolute weights, `tuned` the penalty of each factor. Chance: not 0 for the
        first two. A factor of noise has no importances where validation keeps no weight, and then adds nothing to
        `disentanglement`; else the ratios of small weights count as those of large ones: compare with shuffled rows
        (`null`). Sees linear relations only: a cyclic factor is never read out whole, and a categorical one depends on
        how its levels are numbered. Not invariant to rotation of codes. Codes that are identical up to sign and scale
        share their weight evenly.

    Raises:
        ValueError: what every metric refuses, too few rows, or an unknown option.

    Reference:
        Eastwood & Williams 2018, sections 2 and 4.3, tables 1a and 3. The penalty is that of lowest validation error
        among 100, log-spaced over four decades below the one that leaves no weight; the paper states no grid. With
        more than 64 codes the penalties end where ten in a row have brought no lower error: the weakest take nearly
        all of the time.

    Example:
        >>> grid = FactorSpace(("a", "b"), (8, 9), ("ordinal", "ordinal")).grid()
        >>> scores = dci_lasso(grid, grid)
        >>> scores.disentanglement, scores.completeness
        (1.0, 1.0)
    """
    inputs = check_inputs(codes, factors, kinds, seed, groups=groups)
    return dci_result(lasso_predicted(inputs, seed, test_codes, test_factors), completeness)


@shared
def lasso_predicted(
    inputs: Inputs, seed: int, test_codes: ArrayLike | None, test_factors: ArrayLike | None
) -> Predicted:
    split = train_valid_test(inputs, seed, test_codes, test_factors)
    rows = split.inputs
    model = fit_lasso(rows.stored, rows.factors, split.train, split.valid)
    missed = (model.predict(rows.stored[split.test]) - rows.factors[split.test]) / target_scale(
        rows.factors, split.train
    )
    return Predicted(
        importance=np.abs(model.weights),
        errors=np.sqrt((missed**2).mean(axis=0)),
        baseline=constant_nrmse(split),
        classified=(False,) * rows.n_factors,
        tuned=model.penalties,
        notes=(f"lasso, absolute weights; {split.note}", *notes_on_kinds(rows.kinds), *model.notes),
    )


@dataclass(frozen=True, eq=False)
class Lasso:
    weights: FloatArray  # (n_codes, n_factors) for standardised codes and factors
    penalties: FloatArray  # (n_factors,)
    missed: FloatArray  # (n_factors,) how far from the optimum; see `lasso_path`
    code_mean: FloatArray
    code_scale: FloatArray
    factor_mean: FloatArray
    factor_scale: FloatArray

    def predict(self, codes: FloatArray | IntArray) -> FloatArray:
        return self.factor_mean + (codes - self.code_mean) / self.code_scale @ self.weights * self.factor_scale

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(
            f"factor {factor}: the lasso has not converged (off by {self.missed[factor]:.0e})"
            for factor in np.flatnonzero(self.missed > CONVERGED)
        )


def fit_lasso(codes: FloatArray | IntArray, factors: FloatArray, train: IntArray, valid: IntArray) -> Lasso:
    """One lasso per factor, its penalty of least validation error; both sides standardised by the training rows."""
    x, y = codes[train].astype(np.float64), factors[train]
    (code_mean, code_scale), (factor_mean, factor_scale) = mean_and_scale(x), mean_and_scale(y)
    x -= code_mean  # in their place: these may be most of the memory that there is
    x /= code_scale
    y = (y - factor_mean) / factor_scale
    x_valid, y_valid = (codes[valid] - code_mean) / code_scale, (factors[valid] - factor_mean) / factor_scale
    gram, moments = x.T @ x / len(x), x.T @ y / len(x)
    del x

    def errors(factor: int, path: FloatArray) -> FloatArray:
        return ((y_valid[:, [factor]] - x_valid @ path.T) ** 2).mean(axis=0)

    weights, penalties, missed = _weights(gram, moments, errors)
    return Lasso(
        weights=weights,
        penalties=penalties,
        missed=missed,
        code_mean=code_mean,
        code_scale=code_scale,
        factor_mean=factor_mean,
        factor_scale=np.where(np.isfinite(factor_scale), factor_scale, 0.0),
    )


def _weights(
    gram: FloatArray, moments: FloatArray, errors: Callable[[int, FloatArray], FloatArray]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(n_codes, n_factors) weights of least validation error, and (n_factors,) their penalties and what they miss.

    `errors` are those (n,) of weights (n, n_codes) for a factor.
    """
    twin, sign = _twins(gram)
    single = np.flatnonzero(twin == np.arange(len(twin)))
    single_gram = np.ascontiguousarray(gram[np.ix_(single, single)])
    patience = PATIENCE if len(gram) > MANY else None
    weights, penalties, missed = np.zeros(moments.shape), *np.zeros((2, moments.shape[1]))
    for factor, products in enumerate(moments.T):

        def of_single(path: FloatArray, factor: int = factor) -> FloatArray:
            placed = np.zeros((len(path), len(gram)))
            placed[:, single] = path
            return errors(factor, placed)

        weights[single, factor], penalties[factor], missed[factor] = validated_lasso(
            single_gram, products[single], np.abs(products).max() * PENALTIES, of_single, patience
        )
    shared_by = np.bincount(twin, minlength=len(twin))[twin]
    return weights[twin] * (sign / shared_by)[:, None], penalties, missed


def lasso_of_parts(whole: Inputs, seed: int) -> Callable[[Part], tuple[FloatArray, Callable[[], FloatArray]]]:
    """Of parts of the rows the (n_codes, n_factors) importances and what computes the (n_factors,) errors.

    All rows are standardised once; those of a part have their means and products taken together.
    """
    n_codes = whole.n_codes
    columns = np.hstack([standardised(whole.codes), standardised(whole.factors), np.ones((whole.n_samples, 1))])

    def of_part(part: Part) -> tuple[FloatArray, Callable[[], FloatArray]]:
        *fitting, test_rows = split_rows(len(part.rows), FRACTIONS, seed, part.inputs.groups)
        train, valid = (columns.take(part.rows[each], axis=0) for each in fitting)
        products = train.T @ train / len(train)
        mean = products[-1, :-1]
        variance = np.diag(products)[:-1] - mean**2
        if (variance < FLAT * (1.0 + mean**2)).any():  # a column that hardly moves here: its products cancel
            known = lasso_predicted(part.inputs, seed, None, None)
            return known.importance, lambda: known.errors
        scale = np.sqrt(variance)
        related = (products[:-1, :-1] - np.outer(mean, mean)) / np.outer(scale, scale)
        gram, moments = np.ascontiguousarray(related[:n_codes, :n_codes]), related[:n_codes, n_codes:]
        valid = (valid[:, :-1] - mean) / scale
        met = valid.T @ valid / len(valid)
        own, other, noise = met[:n_codes, :n_codes], met[:n_codes, n_codes:], np.diag(met)[n_codes:]

        def errors(factor: int, path: FloatArray) -> FloatArray:
            return ((path @ own - 2 * other[:, factor]) * path).sum(axis=1) + noise[factor]

        weights, _, _ = _weights(gram, moments, errors)

        def test_errors() -> FloatArray:
            test = (columns.take(part.rows[test_rows], axis=0)[:, :-1] - mean) / scale
            missed = test[:, :n_codes] @ weights - test[:, n_codes:]
            return np.sqrt((missed**2).mean(axis=0))

        return np.abs(weights), test_errors

    return of_part


def dci_lasso_of_parts(whole: Inputs, seed: int) -> Callable[[Part], Numbers]:
    """What `dci_lasso` says of parts of the rows."""
    fitted = lasso_of_parts(whole, seed)

    def of_part(part: Part) -> Numbers:
        importance, errors = fitted(part)
        scores, missed = dci_from_importance(importance), float(errors().mean())
        values = {
            "disentanglement": scores.disentanglement, "completeness": scores.completeness,
            "informativeness": missed, "nrmse": missed,
        }  # fmt: skip
        return Numbers(values, scores.per_factor)

    return of_part


def _twins(gram: FloatArray) -> tuple[IntArray, FloatArray]:
    """For each code the first that is identical to it up to sign and scale, and that sign."""
    identical = np.abs(gram) >= IDENTICAL
    np.fill_diagonal(identical, True)
    first = identical.argmax(axis=1)
    return first, np.where(gram[np.arange(len(gram)), first] < 0, -1.0, 1.0)


METRIC = Metric(
    dci_lasso,
    title="DCI, lasso",
    question="one_factor",
    headline="disentanglement",
    claims=DCI_CLAIMS,
    summary="How far each code is about one factor only, by the weights of linear regression.",
    limitations="Sees linear relations only. A factor for which no weight is left does not lower disentanglement.",
    source="Eastwood & Williams 2018, sections 2 and 4.3",
    version=4,
    stochastic=True,
    tolerance=1e-6,
    interval=HALVES,
    of_parts=dci_lasso_of_parts,
    cites=("eastwood2018framework",),
    formula=(
        DCI_FORMULA + r", \qquad R_{ij} = |W_{ij}|",
        r"$W$ are the weights of one lasso per factor on standardised codes; $H_K$ is entropy to the base $K$. "
        r"Completeness is $C_j = 1 - H_D(\tilde{P}_{\cdot j})$ with columns made to sum to 1, informativeness the "
        r"normalised error on test rows.",
    ),
)
