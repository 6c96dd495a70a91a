"""MIG-sup: the mutual information gap of each code between factors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from unbraid.base.arguments import check_choice
from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, FloatArray, Kind
from unbraid.metrics._shared.alignment import gaps, mean_by_shares
from unbraid.metrics._shared.bins import Binning
from unbraid.metrics._shared.chance import Noise, drawn
from unbraid.metrics._shared.flags import notes_on_information, single_factor
from unbraid.metrics._shared.information import code_entropy, information_of_noise, tables
from unbraid.metrics._shared.inputs import Inputs, check_inputs, mean_and_deviation
from unbraid.metrics._shared.metric import EXTREMES, Metric

Normalise: TypeAlias = Literal["code", "factor"]
Weighting: TypeAlias = Literal["codes", "active", "information"]
ACTIVE_DEVIATION = 0.1  # standard deviation from which on a code is active: the authors take a variance of .01


@dataclass(frozen=True, eq=False, repr=False)
class MIGSup(Shown):
    score: float
    per_code: FloatArray  # (n_codes,)
    weights: FloatArray  # (n_codes,) of each code in the score, summing to 1, or all 0
    mutual_information: FloatArray  # (n_codes, n_factors), nats
    notes: tuple[str, ...] = ()
    mean_over: str = ""  # how many codes count, where not all; see `unbraid.compare`


def mig_sup(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    weights: ArrayLike | None = None,
    bins: int = 20,
    binning: Binning = "width",
    factor_bins: int | None = None,
    normalise: Normalise = "code",
    weighting: Weighting = "codes",
) -> MIGSup:
    """Gap between the two factors on which each code has most information: MIG with codes and factors exchanged.

    Args:
        codes: (n_samples, n_codes) real. Posterior means unless stated otherwise.
        factors: (n_samples, n_factors) levels; continuous factors are cut into 20 bins of equal width.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: unused; the score is deterministic.
        weights: (n_samples,) how many rows each row stands for, whole or not; default one each.
        bins: bins per code, 1 to 10 000. ubisoft-laforge takes 10.
        binning: "width": bins of equal width, as published. "mass": of as equal mass as ties allow.
        factor_bins: cut factors of more levels into so many bins of equal width; ubisoft-laforge takes 10.
        normalise: information is divided by the entropy of the "code", as ubisoft-laforge does, or by that of each
            "factor" before the two are chosen, as the authors' code (proVLAE) does.
        weighting: "codes" averages over all codes; "active" over those of a variance above .01, as the authors' code
            does; "information", ours, weights each code by what it knows of the factor it knows most of.

    Returns:
        MIGSup. `score` in [0, 1], higher is better. By "codes" idle codes count 0, and half of them halve the score. A
        factor that no code knows costs nothing. With one factor the runner-up is 0. Chance: about 0 on many rows, see
        `mig_sup_of_noise`. Not invariant to rotation of codes.

    Raises:
        ValueError: what every metric refuses, `bins` out of range, or an unknown option.

    Reference:
        Li et al. 2020, "Progressive Learning and Disentanglement of Hierarchical Representations".

    Example:
        >>> grid = FactorSpace(("a", "b"), (4, 2), ("ordinal", "ordinal")).grid()
        >>> codes = np.column_stack([grid.sum(axis=1), grid[:, 0] - grid[:, 1]])
        >>> round(mig_sup(codes, grid, bins=5).score, 6)
        0.444444
    """
    check_choice("normalise", normalise, ("code", "factor"))
    check_choice("weighting", weighting, ("codes", "active", "information"))
    inputs = check_inputs(codes, factors, kinds, seed, weights)
    statistics = tables(inputs, bins, binning, factor_bins)
    # Of factors the authors divide first, so that a code's two factors are those of the largest shares.
    per_code = (
        _per_code(statistics.information, statistics.code_entropy)
        if normalise == "code"
        else _per_code(statistics.information / statistics.factor_entropy, np.ones(inputs.n_codes))
    )
    active = np.ones(inputs.n_codes)
    if weighting == "active":
        active = (mean_and_deviation(inputs.codes, inputs.weights)[1] > ACTIVE_DEVIATION) + 0.0
    shares = statistics.information.max(axis=1) if weighting == "information" else active
    shares = shares / (shares.sum() or 1.0)
    nobody = {"active": "no code has a variance above .01", "information": "no code carries information"}
    return MIGSup(
        score=mean_by_shares(per_code, shares),
        per_code=per_code,
        weights=shares,
        mutual_information=statistics.information,
        notes=(
            *single_factor(inputs, "the runner-up of every gap is 0"),
            *notes_on_information(inputs, statistics.levels, bins, binning),
            *(() if shares.any() else (f"{nobody[weighting]}: the score is set to 0",)),
        ),
        mean_over="" if active.all() or not active.any() else f"{int(active.sum())} of {inputs.n_codes} codes",
    )


def mig_sup_of_noise(inputs: Inputs) -> Noise:
    """About 0 on many rows."""
    return drawn(_per_code(information_of_noise(inputs), code_entropy(inputs)).mean(axis=-1))


def _per_code(information: FloatArray, entropy: FloatArray) -> FloatArray:
    """(..., n_codes); 0 for a code that is constant."""
    shares = gaps(np.swapaxes(information, -1, -2)) / np.where(entropy > 0, entropy, 1.0)
    return np.minimum(shares, 1.0)  # which rounding may exceed


METRIC = Metric(
    mig_sup,
    title="Mutual information gap between factors",
    question="one_factor",
    claims={"score": ("modularity",)},
    chance=mig_sup_of_noise,
    summary="How much more information each code has on its first factor than on its second.",
    limitations="A factor without a code costs nothing. Idle codes cost as much as bad ones.",
    source="Li et al. 2020",
    version=2,
    noise_tolerance=0.01,
    invariant_to=frozenset({"permute", "flip", "scale"}),  # it averages over all codes
    standard=False,
    interval=EXTREMES,
    cites=("li2020progressive",),
    formula=(
        r"\mathrm{MIG\text{-}sup} = \frac{1}{D} \sum_{i=1}^{D} \frac{1}{H(z_i)} "
        r"\left( I(z_i; v_{k_i}) - \max_{l \ne k_i} I(z_i; v_l) \right), \qquad k_i = \arg\max_k I(z_i; v_k)",
        r"Codes are cut into 20 bins of equal width; a constant code adds 0.",
    ),
)
