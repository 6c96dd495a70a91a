"""Mutual information gap (MIG)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unbraid._shown import Shown
from unbraid.metrics._information import binned_information, factor_entropy, mutual_information
from unbraid.metrics._inputs import as_levels, bin_equal_width, check_inputs
from unbraid.types import ArrayLike, FloatArray, Kind


@dataclass(frozen=True, eq=False, repr=False)
class MIG(Shown):
    score: float
    ceiling: float
    per_factor: FloatArray  # (n_factors,)
    mutual_information: FloatArray  # (n_codes, n_factors), nats
    factor_entropy: FloatArray  # (n_factors,), nats
    notes: tuple[str, ...] = ()


def mig(
    codes: ArrayLike, factors: ArrayLike, *, kinds: Sequence[Kind] | None = None, seed: int = 0, bins: int = 20
) -> MIG:
    """Gap between the two codes that know most about each factor.

    Args:
        codes: (n_samples, n_codes) real. Posterior means unless stated otherwise.
        factors: (n_samples, n_factors) levels; continuous factors are cut into 20 bins of equal width.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: unused; the score is deterministic.
        bins: equal-width bins per code.

    Returns:
        MIG. `score` in [0, 1], higher is better, mean of `per_factor`. With a single code the runner-up is 0.
        `ceiling` is what the factors themselves would score as codes: below 1 when a factor has more levels
        than there are bins (0.85 for 32 equally frequent levels in 20 bins). Chance: about 0, biased
        upwards at small n_samples. Not invariant to rotation of codes.

    Raises:
        ValueError: shapes disagree, values not finite, a factor is constant or has one sample per value.

    Reference:
        Chen et al. 2018, "Isolating Sources of Disentanglement in VAEs", workshop version, eq. 4; UDR eq. 14.
        Differs from the paper: binned posterior means (the convention of disentanglement_lib, on which most
        published tables rest), not samples of q(z|x); for those see `mig_exact`.

    Example:
        >>> grid = FactorSpace(("a", "b"), (2, 3), ("ordinal", "ordinal")).grid()
        >>> round(mig(grid, grid).score, 12)
        1.0
    """
    inputs = check_inputs(codes, factors, kinds)
    levels = as_levels(inputs)
    information = binned_information(inputs, bins)
    entropies = factor_entropy(levels)
    ranked = np.sort(np.vstack([np.zeros(inputs.n_factors), information]), axis=0)
    gaps = (ranked[-1] - ranked[-2]) / entropies
    own = mutual_information(bin_equal_width(levels.levels.astype(float), bins), levels)
    return MIG(
        score=float(gaps.mean()),
        ceiling=float(np.mean(np.diag(own) / entropies)),
        per_factor=gaps,
        mutual_information=information,
        factor_entropy=entropies,
        notes=levels.notes,
    )
