"""Interventional robustness score (IRS)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unbraid._arguments import check_bins, check_number
from unbraid._shown import Shown
from unbraid.metrics._bins import bin_equal_width
from unbraid.metrics._chance import Noise, drawn
from unbraid.metrics._inputs import Inputs, as_levels, check_inputs, in_unit
from unbraid.types import ArrayLike, FloatArray, IntArray, Kind

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
            factor that has more. None: every level by itself, continuous factors in 20 bins. Categorical levels
            always stand by themselves: their labels are no numbers.

    Returns:
        IRS. `score` at most 1, higher is better. It can be negative, when the means at single levels lie far from the
        mean of all. Constant codes are left out; without any other the score is 0. Chance: far from 0 and dependent
        on rows, levels and the spread of codes, because the 99 % quantile is well below the maximum: .36 on Gaussian
        noise and 10 000 rows, .18 on noise shaped as the shipped codes, .75 on heavy tails, .6 on 50 rows of ten
        factors; see `irs_of_noise`. Not invariant to rotation, nor to scaling single codes,
        since a code's spread is its weight.

    Raises:
        ValueError: shapes disagree, values not finite, a factor is constant or has one sample per value, the quantile
            is not in (0, 1], or factor_bins is below 2.

    Reference:
        Suter et al. 2019, "Robustly Disentangled Causal Mechanisms", definition 3 and section 4; as estimated by
        disentanglement_lib, which most published tables used (10 000 samples, levels weighted equally). It assumes
        factors that are independent and crossed. A level of few rows has small deviations only because it has few
        rows, of a single row none; the notes name such factors.

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
    notes = levels.notes if factor_bins is None else _merged(groups, levels.sizes, inputs.kinds)
    largest = _largest(inputs.codes)
    moving = largest > 0.0
    robustness = np.zeros((inputs.n_codes, inputs.n_factors))
    if not moving.any():
        note = "every code is constant: the score is 0"
        no_factor = np.full(inputs.n_codes, -1)
        return IRS(0.0, np.zeros(inputs.n_codes), robustness, largest, no_factor, (*notes, note))
    active = np.ascontiguousarray(inputs.codes[:, moving])
    for factor in range(inputs.n_factors):
        deviation, smallest = _deviation(active, groups[:, factor], quantile)
        robustness[moving, factor] = 1 - deviation / largest[moving]
        if smallest == 1:
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
    largest = _largest(inputs.codes)
    if not largest.any():
        return Noise(0.0)
    active, groups = inputs.codes[rows][:, largest > 0.0], _groups(inputs, BINS)[rows]
    scores = []
    for _ in range(max(5, -(-50 // inputs.n_codes))):
        shuffled = rng.permutation(active)
        deviations = [_deviation(shuffled, column, QUANTILE)[0] for column in groups.T]
        scores.append(_weighted(1 - np.min(deviations, axis=0) / largest[largest > 0.0], largest[largest > 0.0]))
    return drawn(scores)


def _groups(inputs: Inputs, factor_bins: int | None) -> IntArray:
    """(n_samples, n_factors) levels, those of ordered factors in bins. Labels have no neighbours to merge with."""
    levels = as_levels(inputs).levels
    if factor_bins is None:
        return levels
    labels = np.array([kind == "categorical" for kind in inputs.kinds])
    return np.where(labels, levels, bin_equal_width(inputs.factors, factor_bins))


def _largest(codes: FloatArray) -> FloatArray:
    """(n_codes,) largest deviation from the mean; 0 for a code that is constant but for rounding."""
    # A mean of values as large as floats go would overflow.
    unit = in_unit(codes)
    largest = np.abs(unit - unit.mean(axis=0)).max(axis=0)
    exponent = np.frexp(np.abs(codes).max(axis=0))[1]
    return np.ldexp(np.where(largest > 1e-12, largest, 0.0), exponent)


def _weighted(per_code: FloatArray, largest: FloatArray) -> float:
    weights = largest / largest.max()
    return float((weights * per_code).sum() / weights.sum())


def _merged(binned: IntArray, sizes: tuple[int, ...], kinds: Sequence[Kind]) -> tuple[str, ...]:
    present = [len(np.unique(column)) for column in binned.T]
    return tuple(
        f"factor {factor}: {size} levels merged into {bins} bins"
        for factor, (bins, size, kind) in enumerate(zip(present, sizes, kinds, strict=True))
        if kind != "continuous" and bins < size
    )


def _deviation(active: FloatArray, groups: IntArray, quantile: float) -> tuple[FloatArray, int]:
    """(n_codes,) quantile of the deviation at one level, averaged over levels; and the rows of the rarest level."""
    order = np.argsort(groups, kind="stable")
    counts = np.bincount(groups)
    counts = counts[counts > 0]
    # One row per code, so that each selection below runs over adjacent numbers.
    by_code = np.ascontiguousarray(active[order].T)
    total = np.zeros(len(by_code))
    for part in np.split(by_code, np.cumsum(counts)[:-1], axis=1):
        total += _quantile(np.abs(part - part.mean(axis=1, keepdims=True)), quantile)
    return total / len(counts), int(counts.min())


def _quantile(values: FloatArray, quantile: float) -> FloatArray:
    """Quantile of each row, interpolated linearly between order statistics."""
    place = quantile * (values.shape[1] - 1)
    low = min(int(place), values.shape[1] - 1)
    high = min(low + 1, values.shape[1] - 1)
    ordered = np.partition(values, (low, high), axis=1)
    return ordered[:, low] + (place - low) * (ordered[:, high] - ordered[:, low])
