"""TAD: total AUROC difference of binary attributes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unbraid.base.arguments import check_number
from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, FloatArray, Kind
from unbraid.metrics._shared.alignment import gaps
from unbraid.metrics._shared.bins import places
from unbraid.metrics._shared.chance import Noise, drawn
from unbraid.metrics._shared.information import factor_entropy, mutual_information
from unbraid.metrics._shared.inputs import Inputs, Levels, NotDefined, as_levels, check_inputs
from unbraid.metrics._shared.metric import FEW_UNCHECKED_HALVES, Metric
from unbraid.metrics.explicitness import roc_areas

LEAST_AUROC, MOST_SHARED = 0.75, 0.2
NULL_DRAWS = 50
FAR = 6  # deviations that no code of noise is from an area of a half


@dataclass(frozen=True, eq=False, repr=False)
class TAD(Shown):
    score: float  # sum of the gaps of the attributes that count
    n_captured: float  # attributes that count
    mean_gap: float  # of these; 0 without any
    per_factor: FloatArray  # (n_factors,) gap of each attribute, 0 where it does not count
    auroc: FloatArray  # (n_codes, n_factors) in the better direction
    shared_entropy: FloatArray  # (n_factors,) largest share of an attribute's entropy that another removes
    notes: tuple[str, ...] = ()


def tad(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    weights: ArrayLike | None = None,
    least_auroc: float = LEAST_AUROC,
    most_shared: float = MOST_SHARED,
) -> TAD:
    """How much better the best code alone predicts each binary attribute than the second best, summed.

    An attribute counts if its best code has an area under the ROC curve of `least_auroc`, and if no other attribute
    removes more than `most_shared` of its entropy.

    Args:
        codes: (n_samples, n_codes) real. Posterior means unless stated otherwise.
        factors: (n_samples, n_factors) attributes of two values each.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: unused; the score is deterministic.
        weights: (n_samples,) how many rows each row stands for, whole or not; default one each.
        least_auroc: .5 to 1.
        most_shared: 0 to 1. An attribute that is listed twice shares everything with itself, and drops out both times.

    Returns:
        TAD. `score` from 0 to half the number of attributes, higher is better; a sum, so that lists of other attributes
        do not compare (`mean_gap` does). A code that tells by small values tells as well as by large ones. Codes that
        tell the same cost all: 0. With a single code the runner-up is .5, where copies in use take 0. Chance: 0, and
        more where few rows have one of the values, see `tad_of_noise`. Not invariant to rotation of codes.

    Raises:
        NotDefined: a factor has other than two values.
        ValueError: what every metric refuses, or a limit out of range.

    Reference:
        Yeats et al. 2022, "NashAE: Disentangling Representations through Adversarial Covariance Minimization",
        total AUROC difference. All rows are scored; InfoDiffusion scores training rows of five folds, DisDiff
        integrates the curve over 11 thresholds.

    Example:
        >>> grid = np.repeat(FactorSpace(("a", "b"), (2, 2), ("ordinal", "ordinal")).grid(), 5, axis=0)
        >>> result = tad(grid, grid)
        >>> round(result.score, 12), result.n_captured
        (1.0, 2.0)
    """
    check_number("least_auroc", least_auroc, least=0.5, most=1.0)
    check_number("most_shared", most_shared, least=0.0, most=1.0)
    inputs = check_inputs(codes, factors, kinds, seed, weights)
    positive = inputs.factors > inputs.factors.min(axis=0)
    for column, values in enumerate(inputs.factors.T):
        if (values[positive[:, column]] != values.max()).any():
            raise NotDefined(f"needs binary factors, and factor {column} has {len(np.unique(values))} values")
    levels = as_levels(inputs, bins=2)
    areas = np.stack(
        [roc_areas(inputs.codes, positive[:, [column]], inputs.weights) for column in range(inputs.n_factors)], axis=1
    )
    auroc = np.maximum(areas, 1.0 - areas)
    shared = _shared(levels)
    counts = (auroc.max(axis=0) >= least_auroc) & (shared <= most_shared)
    # Codes better than guessing by nothing: the runner-up of a single one is a guess.
    per_factor = np.where(counts, gaps(auroc - 0.5), 0.0)
    dropped = np.flatnonzero(shared > most_shared)
    return TAD(
        score=float(per_factor.sum()),
        n_captured=float(counts.sum()),
        mean_gap=float(per_factor.sum() / max(counts.sum(), 1)),
        per_factor=per_factor,
        auroc=auroc,
        shared_entropy=shared,
        notes=tuple(
            f"factor {factor}: another attribute removes {shared[factor]:.0%} of its entropy; it does not count"
            for factor in dropped
        ),
    )


def _shared(levels: Levels) -> FloatArray:
    """(n_factors,) largest share of an attribute's entropy that another removes."""
    removed = mutual_information(levels.levels, levels) / factor_entropy(levels)
    np.fill_diagonal(removed, 0.0)
    return removed.max(axis=0)


def tad_of_noise(inputs: Inputs) -> Noise:
    """0 on many rows, more where few rows have one of the two values."""
    n_samples, rng = inputs.n_samples, np.random.default_rng(0)
    rarer = (inputs.factors > inputs.factors.min(axis=0)).sum(axis=0)
    rarer = np.minimum(rarer, n_samples - rarer)
    pairs = rarer * (n_samples - rarer)
    # The deviation of an area under the curve of noise, Mann and Whitney.
    near = FAR * np.sqrt((n_samples + 1) / (12 * pairs)) >= LEAST_AUROC - 0.5
    counts = np.flatnonzero(near & (_shared(as_levels(inputs, bins=2)) <= MOST_SHARED))
    if not len(counts):
        return Noise(0.0)
    ranks, above = places(inputs.codes), np.zeros((NULL_DRAWS, inputs.n_codes, len(counts)))
    for draw in range(NULL_DRAWS):
        for place, factor in enumerate(counts):
            rows = rng.choice(n_samples, rarer[factor], replace=False)
            wins = ranks[rows].sum(axis=0) - rarer[factor] ** 2 / 2
            above[draw, :, place] = np.abs(wins / pairs[factor] - 0.5)
    captured = above.max(axis=1) >= LEAST_AUROC - 0.5
    return drawn(np.where(captured, gaps(above), 0.0).sum(axis=1))


METRIC = Metric(
    tad,
    binary=True,
    title="Total AUROC difference",
    question="attributes",
    claims={"score": ("compactness",)},
    best=1.0,  # of two attributes: half their number
    range=(0.0, math.inf),
    chance=tad_of_noise,
    summary="How much better the best code predicts each binary attribute than the second best, summed.",
    limitations="A sum: not comparable between lists of attributes. An attribute in two codes adds nothing.",
    source="Yeats et al. 2022 (NashAE)",
    needs="needs binary factors",
    standard=False,
    interval=FEW_UNCHECKED_HALVES,
    cites=("yeats2022nashae",),
    formula=(
        r"\mathrm{TAD} = \sum_{k: \, a_{i_k k} \geq .75, \; \max_j I(v_j; v_k) \leq .2 H(v_k)} "
        r"\left( a_{i_k k} - \max_{i \ne i_k} a_{ik} \right), \qquad i_k = \arg\max_i a_{ik}",
        r"$a_{ik}$ is the area under the ROC curve of code $i$ for attribute $k$, in the better direction.",
    ),
)
