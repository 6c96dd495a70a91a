"""Factor leakage: into how many codes does each factor spread?"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unbraid.base.arguments import check_bins
from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, FloatArray, Kind
from unbraid.metrics._shared.bins import Binning
from unbraid.metrics._shared.chance import Noise, drawn
from unbraid.metrics._shared.flags import notes_on_information, single_code
from unbraid.metrics._shared.information import binned_information, information_of_noise
from unbraid.metrics._shared.inputs import Inputs, as_levels, check_inputs
from unbraid.metrics._shared.metric import HALVES, Metric

SILENT = 1e-12  # nats: less is rounding, as in the information of a constant code


@dataclass(frozen=True, eq=False, repr=False)
class FactorLeakage(Shown):
    nm_auc: float
    auc: float
    mean: float  # nats
    norm_mean: float
    per_factor: FloatArray  # (n_factors,) nm_auc of each factor alone
    mutual_information: FloatArray  # (n_codes, n_factors), nats
    notes: tuple[str, ...] = ()


def factor_leakage(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    weights: ArrayLike | None = None,
    bins: int = 20,
    binning: Binning = "width",
) -> FactorLeakage:
    """How much information codes other than the best have on each factor; lower is better.

    For each factor the codes are ranked by their information about it: s_1 >= ... >= s_D, relative to the best
    r_i = s_i / s_1. Averages are over factors.

    Args:
        codes: (n_samples, n_codes) real.
        factors: (n_samples, n_factors) levels; continuous factors are cut into 20 bins of equal width.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: unused; the score is deterministic.
        weights: (n_samples,) how many rows each row stands for, whole or not; default one each.
        bins: bins per code, 1 to 10 000.
        binning: "width": bins of equal width, as published. "mass": of as equal mass as ties allow; see `mig`.

    Returns:
        FactorLeakage, four variants of one idea, all lower is better:
        `mean`: average of s_2 .. s_D, in nats; 0 to the entropy of the factors. Blind to lost factors: 0 for codes
        that know nothing. `norm_mean`: average of r_2 .. r_D, in [0, 1].
        `auc`: average over i = 0 .. D - 1 of the average of r_(i+1) .. r_D, in [1 / D^2, 1]: it counts the best code
        too, so that a perfect code scores 1 / D^2, not 0. `nm_auc`: the same over i = 1 .. D - 1, in [0, 1]; the
        headline, because its best value is 0 for every D.
        With one code there is nothing to leak into: 0, but `auc` is 1. A factor that no code knows counts as spread
        evenly (r_i = 1). Chance: below 1 and falling with the number of codes, see `leakage_of_noise`. A factor that
        lawfully takes two codes, as a cyclic one does, leaks. Not invariant to rotation of codes.

    Raises:
        ValueError: what every metric refuses, or `bins` is out of range.

    Reference:
        Painter et al. 2020, "Linear Disentangled Representations and Unsupervised Action Estimation", as computed by
        the authors' code, which also leaves out the first factor of every data set and draws 1 000 rows: here all
        factors and rows take part.

    Example:
        >>> grid = FactorSpace(("a", "b"), (2, 3), ("ordinal", "ordinal")).grid()
        >>> leakage = factor_leakage(grid, grid)
        >>> round(leakage.nm_auc, 12), round(leakage.auc, 12)
        (0.0, 0.25)
    """
    check_bins("bins", bins)
    inputs = check_inputs(codes, factors, kinds, seed, weights)
    levels = as_levels(inputs)
    notes = notes_on_information(inputs, levels, bins, binning)
    information = binned_information(inputs, bins, binning)
    ranked = np.sort(information, axis=0)[::-1]
    relative, tails = _relative_and_tails(ranked)
    unknown = np.flatnonzero(ranked[0] <= SILENT)
    notes += tuple(f"factor {k} no code has information on it: it counts as spread evenly" for k in unknown)
    notes += single_code(inputs, "there is no other to leak into")
    per_factor = _mean_of_others(tails)
    return FactorLeakage(
        nm_auc=float(per_factor.mean()),
        auc=float(tails.mean()),
        mean=float(_mean_of_others(ranked).mean()),
        norm_mean=float(_mean_of_others(relative).mean()),
        per_factor=per_factor,
        mutual_information=information,
        notes=notes,
    )


def leakage_of_noise(inputs: Inputs) -> Noise:
    """About .5 to .8, less the more codes there are; 0 for a single one."""
    ranked = np.sort(information_of_noise(inputs), axis=-2)[..., ::-1, :]
    return drawn(_mean_of_others(_relative_and_tails(ranked)[1]).mean(axis=-1))


def _relative_and_tails(ranked: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(..., n_codes, n_factors) information over that of the best code, and its mean over this rank and all later."""
    best = ranked[..., :1, :]
    relative = np.where(best <= SILENT, 1.0, ranked / np.where(best <= SILENT, 1.0, best))
    n_codes = ranked.shape[-2]
    tails = relative[..., ::-1, :].cumsum(axis=-2)[..., ::-1, :] / np.arange(n_codes, 0, -1)[:, None]
    return relative, tails


def _mean_of_others(ranked: FloatArray) -> FloatArray:
    """(..., n_factors) mean over all ranks but the first; 0 where there is no other."""
    return ranked[..., 1:, :].sum(axis=-2) / max(ranked.shape[-2] - 1, 1)


METRIC = Metric(
    factor_leakage,
    title="Factor leakage",
    question="own_code",
    headline="nm_auc",
    claims={"nm_auc": ("compactness",)},
    best=0.0,
    higher_is_better=False,
    chance=leakage_of_noise,
    summary="How much information codes other than the best have on each factor, relative to the best.",
    limitations="A factor that needs two codes, such as a cyclic one, counts as leaking.",
    source="Painter et al. 2020; definition as in the authors' code",
    version=2,
    noise_tolerance=0.01,
    invariant_to=frozenset({"permute", "flip", "scale"}),  # it averages over all codes
    interval=HALVES,
    cites=("painter2020linear",),
    formula=(
        r"\mathrm{leakage} = \frac{1}{D - 1} \sum_{i=1}^{D-1} \frac{1}{K (D - i)} \sum_{k=1}^{K} \sum_{r > i} "
        r"\frac{I_{(r)k}}{I_{(1)k}}",
        r"$I_{(r)k}$ is the information about factor $k$ of the code that ranks $r$-th for it.",
    ),
)
