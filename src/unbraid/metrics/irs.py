"""Interventional robustness score (IRS)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unbraid.base.arguments import check_bins, check_number
from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, FloatArray, IntArray, Kind
from unbraid.metrics._shared.bins import bin_equal_width
from unbraid.metrics._shared.chance import Noise, drawn
from unbraid.metrics._shared.inputs import Inputs, as_levels, check_inputs, note_on, opened
from unbraid.metrics._shared.metric import EXTREMES_AND_PAIRS, Metric
from unbraid.metrics._shared.sharing import shared

QUANTILE, BINS = 0.99, 20
NULL_ROWS = 10_000


@dataclass(frozen=True, eq=False, repr=False)
class IRS(Shown):
    score: float
    per_code: FloatArray  # (n_codes,) 1 less the least normalised deviation; 0 for a constant code
    robustness: FloatArray  # (n_codes, n_factors); 0 for a constant code
    weights: FloatArray  # (n_codes,) largest deviation of each code from its mean: its weight in the score
    code_factor: IntArray  # (n_codes,) factor that each code is most robust for; -1 for a constant code
    notes: tuple[str, ...] = ()


def irs(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    quantile: float = QUANTILE,
    factor_bins: int | None = BINS,
) -> IRS:
    """How little each code moves when everything but its own factor changes.

    Among the rows with one level of a factor, a code deviates from its mean there by at most (in the quantile)
    some amount; averaged over levels and divided by the code's largest deviation among all rows, and taken from 1, this
    is the code's robustness for that factor. Each code counts with its best factor, weighted by its largest deviation.

    Args:
        codes: (n_samples, n_codes) real. Posterior means unless stated otherwise.
        factors: (n_samples, n_factors) levels.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: unused; the score is deterministic.
        quantile: of the deviations at one level, in (0, 1]. 0.99 as disentanglement_lib; 1 is the paper's maximum.
        factor_bins: cut each ordered factor into this many bins of equal width, which merges neighbouring levels of a
            factor that has more; those of a cyclic one begin behind the widest gap of its circle. None: every level by
            itself, continuous factors in 20 bins. Categorical levels always stand by themselves: their labels are no
            numbers.

    Returns:
        IRS. `score` at most 1, higher is better. It can be negative, when the means at single levels lie far from the
        mean of all. Constant codes are left out; without any other the score is 0. Chance: far from 0 and dependent
        on rows, levels and the spread of codes (.36 on Gaussian noise and 10 000 rows, .75 on heavy tails); see
        `irs_of_noise`. Not invariant to rotation, nor to scaling single codes, since a code's spread is its weight.

    Raises:
        ValueError: what every metric refuses, the quantile is not in (0, 1], or factor_bins is below 2.

    Reference:
        Suter et al. 2019, "Robustly Disentangled Causal Mechanisms", definition 3 and section 4; as estimated by
        disentanglement_lib, which most published tables used (10 000 samples, levels weighted equally). It assumes
        factors that are independent and crossed. Levels of few rows have small deviations; notes name such factors.

    Example:
        >>> grid = FactorSpace(("a", "b"), (3, 4), ("ordinal", "ordinal")).grid()
        >>> irs(grid, grid).score
        1.0
    """
    inputs = check_inputs(codes, factors, kinds, seed)
    check_number("quantile", quantile, above=0, most=1)
    if factor_bins is not None:
        check_bins("factor_bins, where not None,", factor_bins, 2)
    levels = as_levels(inputs)
    groups = _groups(inputs, factor_bins)
    notes = levels.notes if factor_bins is None else _notes_on_bins(groups, levels.sizes, inputs, factor_bins)
    largest = _largest_of(inputs)
    moving = largest > 0.0
    robustness = np.zeros((inputs.n_codes, inputs.n_factors))
    if not moving.any():
        note = "every code is constant: the score is 0"
        no_factor = np.full(inputs.n_codes, -1)
        return IRS(0.0, np.zeros(inputs.n_codes), robustness, largest, no_factor, (*notes, note))
    for columns, values in inputs.column_blocks():
        known = moving[columns]
        active, codes = values[:, known], np.arange(inputs.n_codes)[columns][known]
        robustness[codes] = 1 - _by_level(active, groups, quantile) / largest[codes, None]
    for factor, column in enumerate(groups.T):
        if np.any(np.bincount(column) == 1):
            notes += (f"factor {factor} has levels of a single row, which count as perfectly robust",)
    per_code = np.where(moving, robustness.max(axis=1), 0.0)
    return IRS(
        score=_weighted(per_code, largest),
        per_code=per_code,
        robustness=robustness,
        weights=largest,
        code_factor=np.where(moving, robustness.argmax(axis=1), -1),
        notes=notes,
    )


def irs_of_noise(inputs: Inputs) -> Noise:
    """Far above 0, by the spread of codes, the rows and the levels."""
    # No law of its own: as many rows as tell the shape of codes and the counts of levels, shuffled.
    rng = np.random.default_rng(0)
    rows = rng.permutation(inputs.n_samples)[:NULL_ROWS]
    largest = _largest_of(inputs)
    if not largest.any():
        return Noise(0.0)
    active, groups = inputs.stored[rows].astype(np.float64)[:, largest > 0.0], _groups(inputs, BINS)[rows]
    scores = []
    for _ in range(max(5, -(-50 // inputs.n_codes))):
        least = _by_level(rng.permutation(active), groups, QUANTILE).min(axis=1)
        scores.append(_weighted(1 - least / largest[largest > 0.0], largest[largest > 0.0]))
    return drawn(scores)


def _by_level(active: FloatArray, groups: IntArray, quantile: float) -> FloatArray:
    """(n_codes, n_factors) quantile of the deviation at one level of a factor, averaged over levels."""
    deviations = np.empty((active.shape[1], groups.shape[1]))
    for factor, column in enumerate(groups.T):
        by_code = active[np.argsort(column, kind="stable")].T
        counts = np.bincount(column)
        ends = np.cumsum(counts[counts > 0])
        deviations[:, factor] = np.mean(
            [_away(level, quantile) for level in np.split(by_code, ends[:-1], axis=1)], axis=0
        )
    return deviations


def _away(values: FloatArray, quantile: float) -> FloatArray:
    """(n_codes,) quantile of the deviation from the mean, of values (n_codes, any)."""
    away = np.abs(values - values.mean(axis=1, keepdims=True))
    return np.quantile(away, quantile, axis=1)


def _groups(inputs: Inputs, factor_bins: int | None) -> IntArray:
    """(n_samples, n_factors) levels, those of ordered factors in bins. Labels have no neighbours to merge with."""
    levels = as_levels(inputs).levels
    if factor_bins is None:
        return levels
    labels = np.array([kind == "categorical" for kind in inputs.kinds])
    return np.where(labels, levels, bin_equal_width(opened(inputs), factor_bins))


@shared
def _largest_of(inputs: Inputs) -> FloatArray:
    return np.concatenate([_largest(values) for _, values in inputs.column_blocks()])


def _largest(codes: FloatArray) -> FloatArray:
    """(n_codes,) largest deviation from the mean; 0 for a code that is constant but for rounding."""
    mean, high, low = codes.mean(axis=0), codes.max(axis=0), codes.min(axis=0)
    largest = np.maximum(high - mean, mean - low)
    return np.where(largest > 1e-12 * np.maximum(high, -low), largest, 0.0)


def _weighted(per_code: FloatArray, largest: FloatArray) -> float:
    weights = largest / largest.max()
    return float((weights * per_code).sum() / weights.sum())


def _notes_on_bins(binned: IntArray, sizes: tuple[int, ...], inputs: Inputs, factor_bins: int) -> tuple[str, ...]:
    measured = [factor for factor, kind in enumerate(inputs.kinds) if kind == "continuous"]
    discrete = [factor for factor in range(len(sizes)) if factor not in measured and factor not in inputs.angles]
    merged = [factor for factor in discrete if len(np.unique(binned[:, factor])) < sizes[factor]]
    reading = f"cut into {factor_bins} bins of equal width"
    return (
        *note_on(measured, reading, "continuous"),
        *note_on(inputs.angles, reading, "an angle", "angles"),
        *note_on(merged, f"merged into {factor_bins} bins", "of many levels"),
    )


METRIC = Metric(
    irs,
    title="Interventional robustness score",
    question="changes",
    claims={"score": ("modularity",)},
    range=(-math.inf, 1.0),
    chance=irs_of_noise,
    summary="How little each code moves when every factor but its own changes.",
    limitations="Noise scores far above 0, little below a rotated code. Codes of large spread count most.",
    source="Suter et al. 2019, section 4",
    version=3,
    invariant_to=frozenset({"permute", "flip", "dead"}),
    aligned=False,
    interval=EXTREMES_AND_PAIRS,
    cites=("suter2019robustly",),
    formula=(
        r"\mathrm{IRS} = \frac{\sum_j M_j \max_k R_{jk}}{\sum_j M_j}, \qquad "
        r"R_{jk} = 1 - \frac{1}{V_k} \sum_{v} \frac{Q_{.99}\left( |z_j - \mathbb{E}[z_j | v_k = v]| \; | \; "
        r"v_k = v \right)}{M_j}",
        r"$M_j$ is the largest deviation of code $j$ from its mean, $V_k$ the number of levels of factor $k$, "
        r"$Q_{.99}$ the 99 % quantile.",
    ),
)
