"""Modularity: does each code carry information about a single factor?"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from unbraid.base.arguments import check_bins, check_choice
from unbraid.base.counted import counted
from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, BoolArray, FloatArray, Kind
from unbraid.metrics._shared.alignment import mean_by_shares
from unbraid.metrics._shared.bins import Binning
from unbraid.metrics._shared.chance import Noise, drawn
from unbraid.metrics._shared.flags import notes_on_information, single_factor
from unbraid.metrics._shared.information import binned_information, information_of_noise
from unbraid.metrics._shared.inputs import Inputs, as_levels, check_inputs
from unbraid.metrics._shared.metric import PAIRS, Metric

Weighting: TypeAlias = Literal["codes", "information"]
Variant: TypeAlias = Literal["unbraid", "disentanglement_lib"]
SILENT = 1e-12  # nats: less is rounding, as in the information of a constant code


@dataclass(frozen=True, eq=False, repr=False)
class Modularity(Shown):
    score: float
    per_code: FloatArray  # (n_codes,); 0 for a dead code
    weights: FloatArray  # (n_codes,) of each code in the score, summing to 1 unless every code is dead
    mutual_information: FloatArray  # (n_codes, n_factors), nats
    notes: tuple[str, ...] = ()
    mean_over: str = ""  # how many codes count, where not all; see `unbraid.compare`


def modularity(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    weights: ArrayLike | None = None,
    bins: int = 20,
    binning: Binning = "width",
    weighting: Weighting = "codes",
    variant: Variant = "unbraid",
) -> Modularity:
    """How far the information in each code is about one factor only.

    A code with information m_k about factor k, the largest being m, scores 1 - sum of the other m_k^2 / (m^2 (K - 1)):
    1 when it knows one factor, 0 when it knows all equally well.

    Args:
        codes: (n_samples, n_codes) real.
        factors: (n_samples, n_factors) levels; continuous factors are cut into 20 bins of equal width.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: unused; the score is deterministic.
        weights: (n_samples,) how many rows each row stands for, whole or not; default one each.
        bins: bins per code, 1 to 10 000.
        binning: "width": bins of equal width, as published. "mass": of as equal mass as ties allow; see `mig`.
        weighting: "codes" averages over codes, as published; "information" weights each code by its information
            about all factors, so that codes which know next to nothing hardly count.
        variant: a code without any information is left out of the average; "disentanglement_lib", on which most
            published tables rest, counts it as 0.

    Returns:
        Modularity. `score` in [0, 1], higher is better. With one factor every live code scores 1; with no live code
        the score is 0. Chance: far from 0 and dependent on the factors' levels, whatever the rows (.2 on two factors
        of 10 levels, .67 on those of dSprites, .999 on 2 and 40 levels); see `modularity_of_noise`. By "codes" a
        perfect code beside noise codes can fall below a rotated one; "information" mends this. Says nothing on whether
        every factor is known. Not invariant to rotation of codes.

    Raises:
        ValueError: what every metric refuses, `bins` is out of range, unknown `weighting` or `variant`.

    Reference:
        Ridgeway & Mozer 2018, "Learning Deep Disentangled Embeddings with the F-Statistic Loss", section 2.

    Example:
        >>> grid = FactorSpace(("a", "b"), (2, 3), ("ordinal", "ordinal")).grid()
        >>> modularity(grid, grid).score
        1.0
    """
    check_choice("weighting", weighting, ("codes", "information"))
    check_choice("variant", variant, ("unbraid", "disentanglement_lib"))
    check_bins("bins", bins)
    inputs = check_inputs(codes, factors, kinds, seed, weights)
    levels = as_levels(inputs)
    result = modularity_of(binned_information(inputs, bins, binning), weighting, variant)
    notes = (
        *notes_on_information(inputs, levels, bins, binning),
        *single_factor(inputs, "a code with information on it is modular by definition"),
        *result.notes,
    )
    return replace(result, notes=notes)


def modularity_of_noise(inputs: Inputs) -> Noise:
    """Far above 0, the more so the more the numbers of levels differ; 1 for a single factor."""
    draws = [_per_code(draw) for draw in information_of_noise(inputs)]
    return drawn([per_code.sum() / max(alive.sum(), 1) for per_code, alive in draws])


def modularity_of(information: FloatArray, weighting: Weighting = "codes", variant: Variant = "unbraid") -> Modularity:
    """From (n_codes, n_factors) mutual information."""
    per_code, alive = _per_code(information)
    shares = np.ones(len(alive)) if variant == "disentanglement_lib" else alive.astype(float)
    if weighting == "information":
        shares = np.where(alive, information.sum(axis=1), 0.0)
    shares = shares / (shares.sum() or 1.0)
    notes: tuple[str, ...] = ()
    if not alive.any():
        notes = ("no code carries information: the score is set to 0",)
    elif not alive.all():
        how = "counted as 0" if variant == "disentanglement_lib" and weighting == "codes" else "left out"
        notes = (f"{how}: {counted(int((~alive).sum()), 'code')} without information",)
    n_codes, n_counted = len(shares), np.count_nonzero(shares)
    mean_over = "" if n_counted in (0, n_codes) else f"{n_counted} of {n_codes} codes"
    return Modularity(mean_by_shares(per_code, shares), per_code, shares, information, notes, mean_over)


def _per_code(information: FloatArray) -> tuple[FloatArray, BoolArray]:
    """(..., n_codes) of (..., n_codes, n_factors): how far each code is about one factor, and whether about any."""
    largest = information.max(axis=-1)
    alive = largest > SILENT
    relative = information / np.where(alive, largest, 1.0)[..., None]
    leakage = ((relative**2).sum(axis=-1) - 1.0) / max(information.shape[-1] - 1, 1)
    return np.where(alive, np.clip(1.0 - leakage, 0.0, 1.0), 0.0), alive


METRIC = Metric(
    modularity,
    title="Modularity",
    question="one_factor",
    claims={"score": ("modularity",)},
    chance=modularity_of_noise,
    summary="How far the information in each code is about one factor only, averaged over codes.",
    limitations="Ignores factors without a code. With noise codes beside it, a perfect code can lose to a rotated one.",
    source="Ridgeway & Mozer 2018, section 2",
    version=2,
    noise_tolerance=0.01,
    aligned=False,
    interval=PAIRS,
    cites=("ridgeway2018learning",),
    formula=(
        r"\mathrm{Modularity} = \frac{1}{D} \sum_{j=1}^{D} \left( 1 - "
        r"\frac{\sum_{k \ne k_j} I(z_j; v_k)^2}{(K - 1) \, I(z_j; v_{k_j})^2} \right), \qquad "
        r"k_j = \arg\max_k I(z_j; v_k)",
        r"Codes without any information are left out of the mean.",
    ),
)
