"""DCI with random forests: which codes explain a factor, by whatever relation."""

from collections.abc import Sequence

import numpy as np

from unbraid.base.arguments import check_choice
from unbraid.base.threads import at_once
from unbraid.base.types import ArrayLike, FloatArray, IntArray, Kind
from unbraid.metrics._shared.factor_forest import factor_forest
from unbraid.metrics._shared.inputs import check_inputs, note_on
from unbraid.metrics._shared.metric import DCI_CLAIMS, DCI_FORMULA, FEW_UNCHECKED_HALVES, Metric
from unbraid.metrics._shared.sharing import shared
from unbraid.metrics._shared.train_test_split import constant_rates
from unbraid.metrics._shared.train_valid_test import TrainValidTest, train_valid_test
from unbraid.metrics._solvers.forest import Importance, SortedCodes, sorted_codes
from unbraid.metrics.dci import DCI, Completeness, Predicted, constant_nrmse, dci_result, target_scale

N_TREES = 10


def dci_forest(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    groups: ArrayLike | None = None,
    completeness: Completeness = "mean",
    importance: Importance = "impurity",
    test_codes: ArrayLike | None = None,
    test_factors: ArrayLike | None = None,
) -> DCI:
    """Disentanglement, completeness and informativeness by one random forest of 10 trees per factor.

    Args:
        codes: (n_samples, n_codes) real. Posterior means unless stated otherwise.
        factors: (n_samples, n_factors). Categorical factors are classified, all others regressed as numbers.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: of the split into 80 % training, 10 % validation and 10 % test rows, and of the trees.
        groups: (n_samples,) group of each row (trial, animal, video or session); no group is in two parts.
        completeness: "mean" over factors (the paper) or "weighted" by importance (disentanglement_lib). Importances
            of a forest sum to 1 for each factor, so the two differ only where a factor could not be split at all.
        importance: "impurity", a code's share of the decrease of squared error or Gini impurity (what the authors'
            code reads from scikit-learn), or "splits", its share of the number of splits (what their text says).
        test_codes: (n, n_codes) rows to test on; all rows of `codes` then train (8/9) and validate (1/9).
        test_factors: (n, n_factors) their factors.

    Returns:
        DCI. `disentanglement` and `completeness` in [0, 1], higher is better. `informativeness` is the mean test
        error, lower is better: NRMSE (0 perfect, 1 what the mean predicts) for factors that are regressed, rate of
        wrong classes for categorical ones; `nrmse` and `error_rate` are the means of each sort, `baseline` what a
        constant scores on the same rows. `tuned` holds the depth of the trees of each factor. Chance: not 0. A factor
        that cannot be predicted has importances that sum to 1 as those of any other. Validation then prefers trees of
        few cuts, whose importances are in a few codes: noise scores up to .7. Compare with shuffled rows (`null`).
        Invariant to order, sign and monotone changes of codes, up to where cuts fall between values; not to rotation.

    Raises:
        ValueError: what every metric refuses, too few rows, or an unknown option.

    Reference:
        Eastwood & Williams 2018, sections 2 and 4.3, tables 1b and 4. The depth is that of lowest validation error
        from 1 to 40, the shallowest of equals; the paper states no range. Every split considers all codes. Differs
        from the paper: it had no categorical factors.

    Example:
        >>> grid = FactorSpace(("a", "b"), (8, 9), ("ordinal", "ordinal")).grid()
        >>> scores = dci_forest(np.tile(grid, (4, 1)), np.tile(grid, (4, 1)))
        >>> scores.disentanglement, scores.completeness
        (1.0, 1.0)
    """
    check_choice("importance", importance, ("impurity", "splits"))
    split = train_valid_test(check_inputs(codes, factors, kinds, seed, groups=groups), seed, test_codes, test_factors)
    return dci_result(forest_predicted(split, seed, importance), completeness)


@shared
def forest_predicted(split: TrainValidTest, seed: int, importance: Importance) -> Predicted:
    rows = split.inputs
    scale, n_valid = target_scale(rows.factors, split.train), len(split.valid)
    classified = [kind == "categorical" for kind in rows.kinds]
    codes, judged_rows = _sorted_codes(split)

    def fitted(column: int, _: object) -> tuple[FloatArray, float, float]:
        """Importances (n_codes,), test error and depth of the forest of a factor whose validation error is least."""
        forest = factor_forest(
            split, column, codes, judged_rows, scale=scale[column], n_trees=N_TREES, seed=seed, by=importance
        )
        best = int(np.argmin(forest.errors[:, :n_valid].mean(axis=1)))
        error = float(forest.errors[best, n_valid:].mean())
        return forest.importance[best], error if classified[column] else float(np.sqrt(error)), best + 1.0

    costs = [len(np.unique(column)) for column in rows.factors.T]
    importances, errors, depths = zip(*at_once(fitted, range(rows.n_factors), costs), strict=True)
    rates = constant_rates(rows.factors[split.train], rows.factors[split.test])
    what = "share of impurity decrease" if importance == "impurity" else "share of splits"
    return Predicted(
        importance=np.stack(importances, axis=1),
        errors=np.array(errors),
        baseline=np.where(classified, rates, constant_nrmse(split)),
        classified=tuple(classified),
        tuned=np.array(depths),
        notes=(
            f"random forest of {N_TREES} trees, {what}; {split.note}",
            *note_on(np.flatnonzero(classified).tolist(), "classified", "categorical"),
            *note_on([k for k, kind in enumerate(rows.kinds) if kind == "cyclic"], "regressed as numbers", "cyclic"),
        ),
    )


@shared
def _sorted_codes(split: TrainValidTest) -> tuple[SortedCodes, IntArray]:
    """Sorted codes of the training rows and of the validation and test rows, and the latter rows."""
    codes, judged_rows = split.inputs.codes, np.concatenate([split.valid, split.test])
    return sorted_codes(codes[split.train], codes[judged_rows]), judged_rows


METRIC = Metric(
    dci_forest,
    title="DCI, random forest",
    question="one_factor",
    headline="disentanglement",
    claims=DCI_CLAIMS,
    summary="How far each code is about one factor only, by the splits of random forests.",
    limitations="A factor that can hardly be predicted still distributes its full share of importance.",
    source="Eastwood & Williams 2018, sections 2 and 4.3",
    version=4,
    stochastic=True,
    slow=True,
    tolerance=0.03,
    linear=False,
    interval=FEW_UNCHECKED_HALVES,
    cites=("eastwood2018framework",),
    formula=(
        DCI_FORMULA,
        r"$R_{ij}$ is the share of code $i$ in the decrease of impurity of a random forest of ten trees that "
        r"predicts factor $j$.",
    ),
)
