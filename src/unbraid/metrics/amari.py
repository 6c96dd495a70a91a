"""Amari's distance of an importance matrix from a permutation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from unbraid.base.arguments import check_choice
from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, FloatArray, Kind
from unbraid.metrics._shared.inputs import Inputs, Part, check_inputs, check_matrix
from unbraid.metrics._shared.metric import FIFTHS, Metric
from unbraid.metrics._shared.resampling import Numbers
from unbraid.metrics._shared.train_valid_test import train_valid_test
from unbraid.metrics.dci import Predicted
from unbraid.metrics.dci_boosted import boosted_predicted
from unbraid.metrics.dci_forest import forest_predicted
from unbraid.metrics.dci_lasso import lasso_of_parts, lasso_predicted

Predictor: TypeAlias = Literal["lasso", "forest", "boosted"]


@dataclass(frozen=True, eq=False, repr=False)
class Amari(Shown):
    score: float
    error: float  # as in the paper, 0 or more
    importance: FloatArray  # (n_codes, n_factors)
    notes: tuple[str, ...] = ()


def amari(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    groups: ArrayLike | None = None,
    importance: Predictor = "lasso",
) -> Amari:
    """How far the importances of codes for factors are from one code per factor and one factor per code.

    Args:
        codes: (n_samples, n_codes) real. Posterior means unless stated otherwise.
        factors: (n_samples, n_factors); see `dci_lasso`, `dci_forest` and `dci_boosted` for what is made of each kind.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: of the split into training, validation and test rows, and of the trees.
        groups: (n_samples,) group of each row (trial, animal, video or session); no group is in two parts.
        importance: whose importances: "lasso", "forest" or "boosted", each as in its DCI.

    Returns:
        Amari, as `amari_from_importance` gives. `score` in [0, 1], lower is better. Chance: depends on how evenly
        the importances of noise spread; 1 where the lasso keeps no weight. Not invariant to rotation of codes.

    Raises:
        ValueError: as the DCI of that predictor, or an unknown `importance`.

    Reference:
        Yang & Amari 1997, section 6.1, as quoted by Eastwood & Williams 2018, eq. 1. There P is the product of mixing
        and un-mixing matrix; here it is the importance matrix, so that factors need no linear mixing.

    Example:
        >>> grid = FactorSpace(("a", "b"), (8, 9), ("ordinal", "ordinal")).grid()
        >>> amari(grid, grid).score
        0.0
    """
    predicted = _predicted(check_inputs(codes, factors, kinds, seed, groups=groups), seed, importance)
    distance = amari_from_importance(predicted.importance)
    return Amari(distance.score, distance.error, predicted.importance, predicted.notes + distance.notes)


def amari_of_parts(whole: Inputs, seed: int) -> Callable[[Part], Numbers]:
    """What `amari` says of parts of the rows."""
    fitted = lasso_of_parts(whole, seed)

    def of_part(part: Part) -> Numbers:
        distance = amari_from_importance(fitted(part)[0])
        return Numbers({"score": distance.score, "error": distance.error}, np.empty(0))

    return of_part


def amari_from_importance(importance: ArrayLike) -> Amari:
    """The Amari error of a matrix; signs are ignored.

    Args:
        importance: (n_codes, n_factors).

    Returns:
        Amari. `error`, 0 or more, is the sum over rows of (sum / maximum - 1), plus the same over columns. A row of
        zeros, a dead code, adds nothing. A column of zeros, a factor that no code captures, adds what an even column
        adds.
        `score` is in [0, 1]: the error, with an even row for each live code missing to n_factors, over its greatest
        value n (n_factors - 1) + n_factors (n - 1), n the number of live codes but at least n_factors. It is 0 for one
        code per factor, besides dead ones, and 1 for an even matrix and for one of zeros.

    Raises:
        ValueError: not a finite matrix.

    Example:
        >>> amari_from_importance([[0.0, 2.0], [1.0, 0.0], [0.0, 0.0]]).score
        0.0
        >>> amari_from_importance([[1.0, 0.5], [0.0, 1.0]]).error
        1.0
    """
    matrix = np.abs(check_matrix(importance, "importance", "n_factors"))
    live, captured = matrix.any(axis=1), matrix.any(axis=0)
    n_live, n_factors = int(live.sum()), matrix.shape[1]
    n_rows = max(n_live, n_factors)
    rows = (matrix[live] / matrix[live].max(axis=1, keepdims=True)).sum(axis=1) - 1.0
    columns = np.full(n_factors, n_rows - 1.0)
    columns[captured] = (matrix[:, captured] / matrix[:, captured].max(axis=0, initial=0.0)).sum(axis=0) - 1.0
    error = float(rows.sum() + columns.sum())
    greatest = n_rows * (n_factors - 1) + n_factors * (n_rows - 1)
    missing = (n_rows - n_live) * (n_factors - 1)
    notes = tuple(f"factor {column}: no code is important for it" for column in np.flatnonzero(~captured))
    if n_live < n_factors:
        notes += (f"fewer live codes ({n_live}) than factors ({n_factors}): no permutation is possible",)
    if greatest == 0:  # one factor, at most one live code
        return Amari(1.0 - n_live, error, matrix, notes)
    return Amari((error + missing) / greatest, error, matrix, notes)


def _predicted(inputs: Inputs, seed: int, importance: Predictor) -> Predicted:
    check_choice("importance", importance, get_args(Predictor))
    if importance == "lasso":
        return lasso_predicted(inputs, seed, None, None)
    if importance == "forest":
        return forest_predicted(train_valid_test(inputs, seed, None, None), seed, "impurity")
    split = train_valid_test(inputs, seed, None, None, (2 / 3, 1 / 3))
    return boosted_predicted(split, seed, "histogram")


METRIC = Metric(
    amari,
    title="Amari distance",
    question="one_factor",
    claims={"score": ("modularity", "compactness")},
    best=0.0,
    higher_is_better=False,
    summary="How far the weights of linear regression are from one code per factor and one factor per code.",
    limitations="Sees linear relations only. A weak second code for the same factor costs little.",
    source="Eastwood & Williams 2018, eq. 1; Yang & Amari 1997, section 6.1",
    version=4,
    stochastic=True,
    tolerance=1e-6,
    interval=FIFTHS,
    of_parts=amari_of_parts,
    cites=("eastwood2018framework", "yang1997adaptive"),
    formula=(
        r"e = \sum_{i} \left( \frac{\sum_{j} R_{ij}}{\max_j R_{ij}} - 1 \right) + "
        r"\sum_{j} \left( \frac{\sum_{i} R_{ij}}{\max_i R_{ij}} - 1 \right)",
        r"$R$ is the importance matrix; the score is $e$ over the largest value that it can take.",
    ),
)
