"""A random forest of one factor: how far it is off at every depth, and whether it beats luck."""

from typing import NamedTuple

import numpy as np

from unbraid.metrics._shared.luck import N_HELD_OUT, beats_luck
from unbraid.metrics._shared.train_valid_test import TrainValidTest
from unbraid.metrics._solvers.forest import MAX_DEPTH, Importance, SortedCodes, fit_forest
from unbraid.metrics._solvers.trees import as_seen
from unbraid.types import FloatArray, IntArray


class FactorForest(NamedTuple):
    """Entry d of each array belongs to trees of depth at most d + 1."""

    importance: FloatArray  # (n_depths, n_codes) summing to 1, or all 0 where nothing could be split
    errors: FloatArray  # (n_depths, n_asked) 1 for a wrong class, or a squared error in units of `scale`
    out_of_bag: FloatArray  # (n_depths, n_held_out, n_columns) and the truth of these rows, as `beats_luck` takes them
    truth: tuple[IntArray, FloatArray]

    def beats_luck(self, place: int, n_factors: int, seed: int) -> bool:
        """Whether trees of one depth predict rows that they were grown without better than luck."""
        return beats_luck(self.out_of_bag[place], self.truth, n_factors, seed)


def factor_forest(
    split: TrainValidTest,
    column: int,
    codes: SortedCodes,
    asked: IntArray,
    *,
    centre: float,
    scale: float,
    n_trees: int,
    seed: int,
    by: Importance = "impurity",
    max_depth: int = MAX_DEPTH,
) -> FactorForest:
    """Fit one factor, classes where it is categorical, else numbers; predict the rows `asked`.

    Args:
        split: of the rows; the forest grows on those to train on.
        column: of the factor.
        codes: of the rows to train on and of those asked.
        asked: (n_asked,) rows to predict.
        centre, scale: of the numbers, so that rounding does not drown what varies.
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
        n_held_out=N_HELD_OUT,
        groups=split.groups,
        max_depth=max_depth,
    )
    held_out = forest.held_out
    if classify:
        errors = (present[forest.predictions.argmax(axis=2)] != values[asked]) + 0.0
        return FactorForest(forest.importance, errors, forest.out_of_bag, (classes[held_out], np.ones(len(held_out))))
    errors = ((forest.predictions[:, :, 0] - values[asked]) / scale) ** 2
    truth = np.zeros(len(held_out), dtype=np.int64), (learnt[held_out] - centre) / scale
    return FactorForest(forest.importance, errors, (forest.out_of_bag - centre) / scale, truth)
