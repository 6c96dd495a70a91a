"""Prediction of factor combinations that were kept out of training."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from unbraid.base.arguments import check_choice
from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, BoolArray, FloatArray, IntArray, Kind
from unbraid.metrics._shared.inputs import Inputs, NotDefined, check_gap, check_inputs, mean_and_deviation, split_rows
from unbraid.metrics._shared.metric import FEW_UNCHECKED_HALVES, Metric
from unbraid.metrics._solvers.forest import fit_forest, sorted_codes
from unbraid.metrics.dci import notes_on_kinds
from unbraid.metrics.dci_forest import N_TREES
from unbraid.metrics.dci_lasso import fit_lasso

Gap: TypeAlias = ArrayLike | Callable[[FloatArray], ArrayLike]
Regressor: TypeAlias = Literal["lasso", "forest"]


@dataclass(frozen=True, eq=False, repr=False)
class ZeroShot(Shown):
    score: float  # mean of per_factor
    ordinary: float  # the same on test rows outside the gap
    per_factor: FloatArray  # (n_factors,) NRMSE on the rows of the gap
    ordinary_per_factor: FloatArray  # (n_factors,)
    baseline: FloatArray  # (n_factors,) NRMSE of the training mean on the rows of the gap
    ordinary_baseline: FloatArray  # (n_factors,) the same on test rows outside it
    notes: tuple[str, ...] = ()


def zero_shot(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    groups: ArrayLike | None = None,
    held_out: Gap | None = None,
    regressor: Regressor = "lasso",
) -> ZeroShot:
    """Error of the DCI regressors on combinations of factors that were held out of their training.

    Args:
        codes: (n_samples, n_codes) real. Posterior means unless stated otherwise.
        factors: (n_samples, n_factors). Levels of every kind are regressed as numbers.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: of the split into 80 % training, 10 % validation and 10 % test rows, and of the forest.
        groups: (n_samples,) group of each row (trial, animal, video or session); no group is in two parts.
        held_out: the combinations to keep out: a function from factors (n, n_factors) to a mask (n,), or a mask
            (n_samples,). The mask says which rows are in the gap.
        regressor: "lasso" as in `dci_lasso`, or "forest" as in `dci_forest`.

    Returns:
        ZeroShot. `score` is the mean NRMSE over factors on all rows of the gap, lower is better, at least 0: 0 is a
        perfect prediction, 1 is as far off as the mean is on ordinary rows. It can exceed 1, since values
        in the gap may all lie far from the mean: `baseline` is what the training mean scores there, which is chance.
        `ordinary` and `ordinary_baseline` are the same on the test rows outside the gap. All are in units of the
        standard deviation over the training rows. Not invariant to rotation of codes with a forest; with a lasso
        nearly so.

    Raises:
        NotDefined: there is no `held_out`.
        ValueError: `held_out` is no such mask, holds no row or all, leaves a factor constant, or the input is unsound.

    Reference:
        Eastwood & Williams 2018, appendix B.2, table 5: rows are split first, then each part is parted by the
        factors of its own rows. There the models, too, were trained without the gap; with codes of a model that saw it,
        the number is about the regressors alone.

    Example:
        >>> grid = FactorSpace(("a", "b"), (10, 10), ("ordinal", "ordinal")).grid()
        >>> apart = lambda factors: (factors[:, 0] > 6) & (factors[:, 1] > 6)
        >>> zero_shot(grid, grid, held_out=apart).score < 0.001
        True
    """
    inputs = check_inputs(codes, factors, kinds, seed, groups=groups)
    if held_out is None:
        raise NotDefined("needs held_out: a condition on the factors")
    split = split_rows(inputs.n_samples, (0.8, 0.1, 0.1), seed, inputs.groups)
    parts = [_rows_and_gap(inputs, rows, held_out) for rows in split]
    train, valid, test = (rows[~inside] for rows, inside in parts)
    in_gap = np.concatenate([rows[inside] for rows, inside in parts])
    return errors_in_gap(inputs, train, valid, test, in_gap, regressor, seed)


def errors_in_gap(
    inputs: Inputs,
    train: IntArray,
    valid: IntArray,
    test: IntArray,
    held_out: IntArray,
    regressor: Regressor = "lasso",
    seed: int = 0,
) -> ZeroShot:
    """`zero_shot` for parts that are made already: positions of rows outside the gap, and of those in it.

    Raises:
        ValueError: a part is empty, or a factor constant over the training rows.
    """
    check_choice("regressor", regressor, ("lasso", "forest"))
    _check_parts(inputs, train, valid, test, held_out)
    judged = np.concatenate([test, held_out])
    if regressor == "lasso":
        model = fit_lasso(inputs.codes, inputs.factors, train, valid)
        predicted, how, unsound = model.predict(inputs.codes[judged]), "lasso", model.notes
    else:
        predicted, how = _by_forest(inputs, train, valid, judged, seed), f"random forest of {N_TREES} trees"
        unsound = ()
    mean, deviation = mean_and_deviation(inputs.factors[train])
    ordinary, unseen = _nrmse(predicted, inputs.factors[judged], deviation, len(test))
    ordinary_baseline, baseline = _nrmse(mean, inputs.factors[judged], deviation, len(test))
    return ZeroShot(
        score=float(unseen.mean()),
        ordinary=float(ordinary.mean()),
        per_factor=unseen,
        ordinary_per_factor=ordinary,
        baseline=baseline,
        ordinary_baseline=ordinary_baseline,
        notes=(
            f"{how}; {len(held_out)} held-out rows; outside {len(train)} training, {len(valid)} validation "
            f"and {len(test)} test rows",
            *notes_on_kinds(inputs.kinds),
            *unsound,
        ),
    )


def _nrmse(predicted: FloatArray, true: FloatArray, unit: FloatArray, n_test: int) -> tuple[FloatArray, FloatArray]:
    """(n_factors,) of the first `n_test` rows, and of the others."""
    squared = ((predicted - true) / unit) ** 2
    return np.sqrt(squared[:n_test].mean(axis=0)), np.sqrt(squared[n_test:].mean(axis=0))


def _rows_and_gap(inputs: Inputs, rows: IntArray, gap: Gap) -> tuple[IntArray, BoolArray]:
    """These rows, and which of them are in the gap."""
    factors = inputs.factors[rows]
    if callable(gap):
        return rows, check_gap(gap(factors), len(rows), "return")
    return rows, check_gap(gap, inputs.n_samples)[rows]


def _check_parts(inputs: Inputs, train: IntArray, valid: IntArray, test: IntArray, held_out: IntArray) -> None:
    if not len(held_out):
        raise ValueError("held_out holds no row: nothing to test on")
    for name, rows in (("training", train), ("validation", valid), ("test", test)):
        if not len(rows):
            raise ValueError(
                f"held_out leaves no {name} row outside it; {len(held_out)} of {inputs.n_samples} are inside"
            )
    left = inputs.factors[train]
    constant = np.flatnonzero((left == left[0]).all(axis=0))
    if len(constant):
        raise ValueError(
            f"held_out leaves factors column {constant[0]} constant outside it (always {left[0, constant[0]]:g}): "
            "it must keep out combinations, not all other values of a factor"
        )


def _by_forest(inputs: Inputs, train: IntArray, valid: IntArray, judged: IntArray, seed: int) -> FloatArray:
    """Prediction (n_judged, n_factors) by the depth of least validation error."""
    predicted = np.empty((len(judged), inputs.n_factors))
    codes = sorted_codes(inputs.codes[train], inputs.codes[np.concatenate([valid, judged])])
    for column in range(inputs.n_factors):
        values = inputs.factors[:, column]
        forest = fit_forest(codes, values[train], classify=False, n_trees=N_TREES, seed=seed)
        answers = forest.predictions[:, :, 0]
        errors = ((answers[:, : len(valid)] - values[valid]) ** 2).mean(axis=1)
        predicted[:, column] = answers[np.argmin(errors), len(valid) :]
    return predicted


METRIC = Metric(
    zero_shot,
    title="Zero-shot error",
    question="unseen",
    claims={"score": ("explicitness",)},
    best=0.0,
    higher_is_better=False,
    range=(0.0, math.inf),
    summary="Error of linear regression on combinations of factors that were held out of its training.",
    limitations="Tests the regressor only, unless the encoder was trained without these combinations too.",
    source="Eastwood & Williams 2018, appendix B.2",
    needs="needs held_out: a condition on the factors",
    version=3,
    stochastic=True,
    tolerance=1e-3,
    aligned=False,
    interval=FEW_UNCHECKED_HALVES,
    cites=("eastwood2018framework",),
    formula=(
        r"\mathrm{error} = \frac{1}{K} \sum_{k=1}^{K} "
        r"\sqrt{ \frac{1}{|G|} \sum_{n \in G} \frac{(\hat{v}_k^{(n)} - v_k^{(n)})^2}{\sigma_k^2} }",
        r"$G$ are the held-out rows, on which no regressor is trained, $\sigma_k$ the standard deviation of factor "
        r"$k$ over the training rows.",
    ),
)
