"""Explicitness."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from unbraid.base.arguments import check_choice
from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, FloatArray, Kind
from unbraid.metrics._shared.bins import but_for_rounding, places
from unbraid.metrics._shared.chance import Noise
from unbraid.metrics._shared.inputs import Inputs, as_levels
from unbraid.metrics._shared.linear_heads import linear_heads
from unbraid.metrics._shared.metric import FEW_UNCHECKED_HALVES, Metric
from unbraid.metrics._shared.sharing import shared
from unbraid.metrics._shared.train_test_split import (
    TRAIN_FRACTION,
    TrainTestSplit,
    standardised_codes,
    train_test_split,
    training_codes,
)
from unbraid.metrics._solvers.logistic import one_vs_rest_regression

BITS = 30  # of a logit: rows that only rounding tells apart are a tie


@dataclass(frozen=True, eq=False, repr=False)
class Explicitness(Shown):
    score: float
    auc: float
    per_factor: FloatArray  # (n_factors,) 2 AUC - 1, mean over the classes of the factor
    auc_per_class: tuple[FloatArray, ...]  # per factor (n_classes,); NaN for a class that could not be tested
    notes: tuple[str, ...] = ()


def explicitness(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    groups: ArrayLike | None = None,
    classifier: Literal["one_vs_rest", "softmax"] = "one_vs_rest",
) -> Explicitness:
    """How well linear classifiers on all codes separate each level of a factor from its other levels.

    Args:
        codes: (n_samples, n_codes) real. Posterior means unless stated otherwise; standardised here.
        factors: (n_samples, n_factors) levels; continuous factors are cut into 20 bins of equal width.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: draws the rows (one in five) for testing.
        groups: (n_samples,) group of each row (trial, animal, video or session); no group is in two parts.
        classifier: "one_vs_rest" fits one binary logistic regression per level; "softmax" one multinomial
            regression per factor and ranks by its probabilities.

    Returns:
        Explicitness. `score` = 2 AUC - 1 in [-1, 1], higher is better, with `auc` the mean area under the ROC curve
        on test rows over the levels of each factor and then over factors; logits that agree to 1e-9 tie, and count
        half. Chance: about 0 (AUC .5); see `explicitness_of_noise` for how far it strays. Invariant to rotation.
        Ceiling: a line through one code cannot single out a middle level, so a perfect code of n ordered levels reaches
        about 1/2 for large n ("one_vs_rest"; .57 for 8 levels), but 1 when every level has a direction of its own, and
        1 with "softmax".

    Raises:
        ValueError: what every metric refuses, or `classifier` is unknown.

    Reference:
        Ridgeway & Mozer 2018, "Learning Deep Disentangled Embeddings with the F-Statistic Loss", section 3.
        Logistic regression as in scikit-learn by default (L2 penalty 1/2 |w|^2 beside the summed loss, intercept
        free), which disentanglement_lib uses too; there it was one-vs-rest until scikit-learn 0.22 and softmax
        since, so tables made with either exist. Levels that the training or the test rows lack are left out.
    """
    check_choice("classifier", classifier, ("one_vs_rest", "softmax"))
    rows = train_test_split(codes, factors, kinds, seed, groups=groups)
    if classifier == "one_vs_rest":
        scores, unsound = _one_vs_rest_logits(rows)
    else:
        heads = linear_heads(rows)
        scores, unsound = _log_odds(heads.logits), heads.notes
    levels = rows.levels.levels
    areas, notes = [], [*rows.notes, *unsound]
    for factor, (size, ranked) in enumerate(zip(rows.sizes, scores, strict=True)):
        positive = levels[rows.test, factor][:, None] == np.arange(size)
        area = roc_areas(but_for_rounding(ranked, BITS), positive)
        area[np.bincount(levels[rows.train, factor], minlength=size) == 0] = np.nan
        missing = np.flatnonzero(np.isnan(area))
        if len(missing) == size:
            notes.append(f"factor {factor}: no level is in both training and test rows; it counts as chance")
        elif len(missing):
            notes.append(f"factor {factor}: {len(missing)} of {size} levels are missing from training or test rows")
        areas.append(area)
    by_factor = np.array([0.5 if np.isnan(area).all() else np.nanmean(area) for area in areas])
    auc = float(by_factor.mean())
    return Explicitness(2 * auc - 1, auc, 2 * by_factor - 1, tuple(areas), tuple(notes))


@shared
def _one_vs_rest_logits(rows: TrainTestSplit) -> tuple[list[FloatArray], tuple[str, ...]]:
    """(n_test, n_classes) per factor, and notes."""
    levels = rows.levels.levels[rows.train]
    positive = np.concatenate([levels[:, [k]] == np.arange(size) for k, size in enumerate(rows.sizes)], axis=1)
    weights, converged = one_vs_rest_regression(training_codes(rows), positive)
    logits = np.einsum("nd,dp->np", standardised_codes(rows)[rows.test], weights[:-1]) + weights[-1]
    notes = () if converged else ("the linear classifiers have not converged",)
    return np.split(logits, np.cumsum(rows.sizes)[:-1], axis=1), notes


def _log_odds(of_factors: Sequence[FloatArray]) -> list[FloatArray]:
    """(n_test, n_classes) per factor, of logits: log p / (1 - p), which ranks as p does and saturates nowhere."""
    odds = []
    for logits in of_factors:
        rest = np.stack(
            [np.logaddexp.reduce(np.delete(logits, c, axis=1), axis=1) for c in range(logits.shape[1])], axis=1
        )
        odds.append(logits - rest)
    return odds


def explicitness_of_noise(inputs: Inputs) -> Noise:
    """About 0."""
    n_test, variances = max(2.0, (1 - TRAIN_FRACTION) * inputs.n_samples), []
    for levels in as_levels(inputs).levels.T:
        positive = np.clip(np.bincount(levels) / inputs.n_samples * n_test, 1.0, n_test - 1.0)
        # Of the area under one curve, Mann and Whitney; the levels' areas have one constraint between them.
        area = (n_test + 1) / (12 * positive * (n_test - positive))
        variances.append(4 * area.mean() / (len(area) - 1))
    return Noise(0.0, float(np.sqrt(np.sum(variances)) / len(variances)))


def roc_areas(scores: FloatArray, positive: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """(n_columns,) area under the ROC curve of each column; ties count half, NaN where one side is empty.

    `weights` (n_rows,) say how many rows each row stands for.
    """
    counted = positive + 0.0 if weights is None else positive * weights[:, None]
    n_positive = counted.sum(axis=0)
    n_negative = (len(positive) if weights is None else weights.sum()) - n_positive
    pairs = n_positive * n_negative
    wins = np.sum(places(scores, weights) * counted, axis=0) - n_positive**2 / 2
    return np.where(pairs > 0, wins / np.where(pairs > 0, pairs, 1.0), np.nan)


METRIC = Metric(
    explicitness,
    title="Explicitness",
    question="told",
    claims={"score": ("explicitness",)},
    range=(-1.0, 1.0),
    chance=explicitness_of_noise,
    summary="How well a linear classifier on all codes separates each level of a factor from the others.",
    limitations="Blind to rotation. A line on one code cannot separate middle levels: perfect codes reach about 1/2.",
    source="Ridgeway & Mozer 2018, section 3",
    version=3,
    stochastic=True,
    slow=True,
    tolerance=1e-4,
    aligned=False,
    interval=FEW_UNCHECKED_HALVES,
    cites=("ridgeway2018learning",),
    formula=(
        r"\mathrm{Explicitness} = \frac{1}{K} \sum_{k=1}^{K} \frac{1}{V_k} \sum_{v} \left( 2 \, "
        r"\mathrm{AUC}_{kv} - 1 \right)",
        r"$\mathrm{AUC}_{kv}$ is the area under the ROC curve, on test rows, of a logistic regression on all codes "
        r"that separates level $v$ of factor $k$ from the others.",
    ),
)
