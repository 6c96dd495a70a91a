"""Mutual information gap (MIG)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unbraid.base.arguments import check_bins
from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, FloatArray, Kind
from unbraid.metrics._shared.alignment import gaps
from unbraid.metrics._shared.bins import Binning, bin_codes
from unbraid.metrics._shared.chance import Noise, drawn
from unbraid.metrics._shared.flags import notes_on_information, single_code
from unbraid.metrics._shared.information import (
    binned_information,
    factor_entropy,
    information_of_noise,
    mutual_information,
)
from unbraid.metrics._shared.inputs import Inputs, as_levels, check_inputs
from unbraid.metrics._shared.metric import PAIRS_AND_BIAS, Metric

VISIBLE = 5e-4  # a difference that three decimals show


@dataclass(frozen=True, eq=False, repr=False)
class MIG(Shown):
    score: float
    ceiling: float
    per_factor: FloatArray  # (n_factors,)
    mutual_information: FloatArray  # (n_codes, n_factors), nats
    factor_entropy: FloatArray  # (n_factors,), nats
    notes: tuple[str, ...] = ()


def mig(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    weights: ArrayLike | None = None,
    bins: int = 20,
    binning: Binning = "width",
) -> MIG:
    """Gap between the two codes with the most information on each factor.

    Args:
        codes: (n_samples, n_codes) real. Posterior means unless stated otherwise.
        factors: (n_samples, n_factors) levels; continuous factors are cut into 20 bins of equal width.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: unused; the score is deterministic.
        weights: (n_samples,) how many rows each row stands for, whole or not; default one each.
        bins: bins per code, 1 to 10 000.
        binning: "width": bins of equal width, as published. "mass": of as equal mass as ties allow, on which outliers
            and the scale of a code have no hold. Either way a code of at most `bins` values has a bin for each.

    Returns: MIG. `score` in [0, 1], higher is better, mean of `per_factor`. With a single code the runner-up is 0.
        `ceiling` is what the levels of the factors, numbered 0, 1, ..., would score as codes: below 1 when a factor has
        more levels than there are bins (0.85 for 32 equally frequent levels in 20 bins), and when factors depend on
        each other. It is no bound: of dependent factors, a code of what one has beyond another can score more.
        Chance: what the bias of plug-in estimates leaves between the two best of n_codes, see `mig_of_noise`: about 0
        on many rows, more with a single code. Notes tell of rows that are too few, codes that outliers squeeze into
        one bin, and dependent factors. Not invariant to rotation of codes.

    Raises:
        ValueError: what every metric refuses, or `bins` is out of range.

    Reference:
        Chen et al. 2018, "Isolating Sources of Disentanglement in VAEs", workshop version, eq. 4; UDR eq. 14.
        Differs from the paper: binned posterior means (the convention of disentanglement_lib, on which most
        published tables rest), not samples of q(z|x); for those see `mig_exact`.

    Example:
        >>> grid = FactorSpace(("a", "b"), (2, 3), ("ordinal", "ordinal")).grid()
        >>> round(mig(grid, grid).score, 12)
        1.0
    """
    check_bins("bins", bins)
    inputs = check_inputs(codes, factors, kinds, seed, weights)
    levels = as_levels(inputs)
    information = binned_information(inputs, bins, binning)
    entropies = factor_entropy(levels)
    per_factor = np.minimum(gaps(information) / entropies, 1.0)  # which rounding may exceed
    own = mutual_information(bin_codes(levels.levels.astype(float), bins, binning, inputs.weights), levels)
    score, ceiling = float(per_factor.mean()), float(np.minimum(gaps(own) / entropies, 1.0).mean())
    above = "the score is above its ceiling, which is what the factors themselves score as codes, and no bound"
    return MIG(
        score=score,
        ceiling=ceiling,
        per_factor=per_factor,
        mutual_information=information,
        factor_entropy=entropies,
        notes=(
            *single_code(inputs, "the runner-up of every gap is 0"),
            *notes_on_information(inputs, levels, bins, binning),
            *([above] if score > ceiling + VISIBLE else []),
        ),
    )


def mig_of_noise(inputs: Inputs) -> Noise:
    """About 0 on many rows; more for a single code."""
    left = np.stack([gaps(draw) for draw in information_of_noise(inputs)]) / factor_entropy(as_levels(inputs))
    return drawn(left.mean(axis=-1))


METRIC = Metric(
    mig,
    title="Mutual information gap",
    question="own_code",
    claims={"score": ("compactness",)},
    chance=mig_of_noise,
    summary="How much more information the best code has on a factor than the second best.",
    limitations="Cannot see information that only several codes have together. Two factors may share one code.",
    source="Chen et al. 2018, eq. 4; Duan et al. 2020 (UDR), eq. 14",
    version=2,
    noise_tolerance=0.01,
    interval=PAIRS_AND_BIAS,
    cites=("chen2018isolating", "duan2020unsupervised"),
    formula=(
        r"\mathrm{MIG} = \frac{1}{K} \sum_{k=1}^{K} \frac{1}{H(v_k)} "
        r"\left( I(z_{j_k}; v_k) - \max_{j \ne j_k} I(z_j; v_k) \right), \qquad j_k = \arg\max_j I(z_j; v_k)",
        r"Codes are cut into 20 bins of equal width; $I$ is the plug-in estimate over rows.",
    ),
)
