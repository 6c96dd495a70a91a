"""A random forest of one factor, and how far it is off at every depth."""

from typing import NamedTuple

from unbraid.base.types import FloatArray, IntArray
from unbraid.metrics._shared.train_valid_test import TrainValidTest
from unbraid.metrics._solvers.forest import MAX_DEPTH, Importance, SortedCodes, fit_forest
from unbraid.metrics._solvers.trees import as_seen


class FactorForest(NamedTuple):
    """Entry d of each array belongs to trees of depth at most d + 1."""

    importance: FloatArray  # (n_depths, n_codes) summing to 1, or all 0 where nothing could be split
    errors: FloatArray  # (n_depths, n_judged) 1 for a wrong class, or a squared error in units of `scale`


def factor_forest(
    split: TrainValidTest,
    column: int,
    codes: SortedCodes,
    judged_rows: IntArray,
    *,
    scale: float,
    n_trees: int,
    seed: int,
    by: Importance = "impurity",
    max_depth: int = MAX_DEPTH,
) -> FactorForest:
    """Fit one factor, classes where it is categorical, else numbers; predict `judged_rows`.

    Args:
        split: of the rows; the forest grows on those to train on.
        column: of the factor.
        codes: of the rows to train on and of the `judged_rows`.
        judged_rows: (n_judged,) rows to predict.
        scale: of the numbers, the unit of their errors.
        n_trees, seed, by, max_depth: as for `fit_forest`.
    """
    values = split.inputs.factors[:, column]
    learnt, classify = values[split.train], split.inputs.kinds[column] == "categorical"
    present, classes = as_seen(learnt)
    forest = fit_forest(
        codes,
        classes if classify else learnt,
        classify=classify,
        n_trees=n_trees,
        seed=seed,
        by=by,
        groups=split.groups,
        max_depth=max_depth,
    )
    if classify:
        return FactorForest(
            forest.importance, (present[forest.predictions.argmax(axis=2)] != values[judged_rows]) + 0.0
        )
    return FactorForest(forest.importance, ((forest.predictions[:, :, 0] - values[judged_rows]) / scale) ** 2)
