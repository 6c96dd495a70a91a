"""DCIMIG: the mutual information gap of codes, one code for each factor."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, FloatArray, Kind
from unbraid.metrics._shared.alignment import gaps
from unbraid.metrics._shared.bins import Binning
from unbraid.metrics._shared.chance import Noise, drawn
from unbraid.metrics._shared.flags import notes_on_information, single_factor
from unbraid.metrics._shared.information import factor_entropy, information_of_noise, tables
from unbraid.metrics._shared.inputs import Inputs, as_levels, check_inputs
from unbraid.metrics._shared.metric import HALVES, Metric


@dataclass(frozen=True, eq=False, repr=False)
class DCIMIG(Shown):
    score: float
    per_factor: FloatArray  # (n_factors,) largest gap of a code that knows most of this factor, over its entropy
    per_code: FloatArray  # (n_codes,) gap between the two factors that each code knows most of, nats
    mutual_information: FloatArray  # (n_codes, n_factors), nats
    factor_entropy: FloatArray  # (n_factors,), nats
    notes: tuple[str, ...] = ()


def dcimig(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    weights: ArrayLike | None = None,
    bins: int = 20,
    binning: Binning = "width",
    factor_bins: int | None = None,
) -> DCIMIG:
    """How much information each factor's best code has on it and on no other factor.

    Each code gives the gap between the two factors that it knows most of to the first of them; the score is the sum
    over factors of the largest gap given, over the sum of their entropies.

    Args:
        codes: (n_samples, n_codes) real. Posterior means unless stated otherwise.
        factors: (n_samples, n_factors) levels; continuous factors are cut into 20 bins of equal width.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: unused; the score is deterministic.
        weights: (n_samples,) how many rows each row stands for, whole or not; default one each.
        bins: bins per code, 1 to 10 000. ubisoft-laforge takes 10.
        binning: "width": bins of equal width, as published. "mass": of as equal mass as ties allow.
        factor_bins: cut factors of more levels into so many bins of equal width; ubisoft-laforge takes 10.

    Returns:
        DCIMIG. `score` in [0, 1], higher is better. Blind to redundancy: a factor in two codes costs nothing, where
        MIG falls to 0. Factors of large entropy count more. With one factor the runner-up is 0. Chance: about 0 on many
        rows, see `dcimig_of_noise`. Not invariant to rotation of codes.

    Raises:
        ValueError: what every metric refuses, or `bins` out of range.

    Reference:
        Sepliarskaia et al. 2021, "How to Not Measure Disentanglement".

    Example:
        >>> grid = FactorSpace(("a", "b"), (4, 2), ("ordinal", "ordinal")).grid()
        >>> codes = np.column_stack([grid.sum(axis=1), grid[:, 0] - grid[:, 1]])
        >>> round(dcimig(codes, grid, bins=5).score, 6)
        0.333333
    """
    inputs = check_inputs(codes, factors, kinds, seed, weights)
    statistics = tables(inputs, bins, binning, factor_bins)
    per_code, largest = _gaps(statistics.information)
    return DCIMIG(
        score=float(min(largest.sum() / statistics.factor_entropy.sum(), 1.0)),
        per_factor=np.minimum(largest / statistics.factor_entropy, 1.0),
        per_code=per_code,
        mutual_information=statistics.information,
        factor_entropy=statistics.factor_entropy,
        notes=(
            *single_factor(inputs, "the runner-up of every gap is 0"),
            *notes_on_information(inputs, statistics.levels, bins, binning),
        ),
    )


def dcimig_of_noise(inputs: Inputs) -> Noise:
    """About 0 on many rows."""
    largest = _gaps(information_of_noise(inputs))[1]
    return drawn(largest.sum(axis=-1) / factor_entropy(as_levels(inputs)).sum())


def _gaps(information: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(..., n_codes) gap of each code, and (..., n_factors) the largest given to each factor."""
    per_code = gaps(np.swapaxes(information, -1, -2))
    mine = information.argmax(axis=-1)[..., None] == np.arange(information.shape[-1])
    return per_code, np.where(mine, per_code[..., None], 0.0).max(axis=-2)


METRIC = Metric(
    dcimig,
    title="DCIMIG",
    question="one_factor",
    claims={"score": ("modularity", "compactness")},
    chance=dcimig_of_noise,
    summary="How much information each factor's best code has on it and on no other factor.",
    limitations="Does not see whether other codes have the same information. Factors of large entropy count more.",
    source="Sepliarskaia et al. 2021",
    version=2,
    noise_tolerance=0.01,
    standard=False,
    interval=HALVES,
    cites=("sepliarskaia2021measure",),
    formula=(
        r"\mathrm{DCIMIG} = \frac{\sum_k \max_{i: k_i = k} g_i}{\sum_k H(v_k)}, \qquad "
        r"g_i = I(z_i; v_{k_i}) - \max_{l \ne k_i} I(z_i; v_l), \qquad k_i = \arg\max_k I(z_i; v_k)",
        r"Codes are cut into 20 bins of equal width; a factor on which no code has its largest information adds 0.",
    ),
)
