"""JEMMIG: joint entropy minus the mutual information gap."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from unbraid.base.arguments import check_choice
from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, FloatArray, IntArray, Kind
from unbraid.metrics._shared.bins import Binning
from unbraid.metrics._shared.chance import Noise, drawn
from unbraid.metrics._shared.flags import notes_on_information, single_code
from unbraid.metrics._shared.information import Tables, code_entropy, factor_entropy, information_of_noise, tables
from unbraid.metrics._shared.inputs import Inputs, as_levels, check_inputs
from unbraid.metrics._shared.metric import EXTREMES, Metric

Normalise: TypeAlias = Literal["bins", "entropy"]


@dataclass(frozen=True, eq=False, repr=False)
class JEMMIG(Shown):
    score: float
    per_factor: FloatArray  # (n_factors,)
    best_code: IntArray  # (n_factors,) code that knows most of each factor
    mutual_information: FloatArray  # (n_codes, n_factors), nats
    code_entropy: FloatArray  # (n_codes,), nats
    factor_entropy: FloatArray  # (n_factors,), nats
    notes: tuple[str, ...] = ()


def jemmig(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    weights: ArrayLike | None = None,
    bins: int = 20,
    binning: Binning = "width",
    factor_bins: int | None = None,
    normalise: Normalise = "bins",
) -> JEMMIG:
    """How little each factor's best code encodes besides it, minus what the second-best code knows of it.

    With i the code that knows most of factor v and s the runner-up, 1 - (H(i, v) - I(i; v) + I(s; v)) / Z.

    Args:
        codes: (n_samples, n_codes) real. Posterior means unless stated otherwise.
        factors: (n_samples, n_factors) levels; continuous factors are cut into 20 bins of equal width.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: unused; the score is deterministic.
        weights: (n_samples,) how many rows each row stands for, whole or not; default one each.
        bins: bins per code, 1 to 10 000. ubisoft-laforge takes 10.
        binning: "width": bins of equal width, as published. "mass": of as equal mass as ties allow.
        factor_bins: cut factors of more levels into so many bins of equal width; ubisoft-laforge takes 10.
        normalise: "bins", Z = H(v) + log bins, as published; "entropy", Z = H(v) + H(i), which is ours.

    Returns:
        JEMMIG. `score` in [0, 1], higher is better, mean of `per_factor`. Unlike MIG it asks that the best code holds
        nothing but its factor. By "bins" its floor is not 0: the fewer bins a code fills, the higher it scores knowing
        nothing (noise .12, two-valued codes .30, nearly constant ones .80 in 20 bins); by "entropy" noise scores about
        0. With a single code the runner-up knows nothing. Not invariant to rotation of codes.

    Raises:
        ValueError: what every metric refuses, `bins` out of range, or an unknown option.

    Reference:
        Do & Tran 2020, "Theory and Evaluation Metrics for Learning Disentangled Representations".

    Example:
        >>> grid = FactorSpace(("a", "b"), (4, 2), ("ordinal", "ordinal")).grid()
        >>> round(jemmig(np.column_stack([grid[:, 0], grid]), grid, bins=4).score, 12)
        0.75
    """
    check_choice("normalise", normalise, ("bins", "entropy"))
    inputs = check_inputs(codes, factors, kinds, seed, weights)
    statistics = tables(inputs, bins, binning, factor_bins)
    best, per_factor = _scores(statistics, bins, normalise)
    return JEMMIG(
        score=float(per_factor.mean()),
        per_factor=per_factor,
        best_code=best,
        mutual_information=statistics.information,
        code_entropy=statistics.code_entropy,
        factor_entropy=statistics.factor_entropy,
        notes=(
            *single_code(inputs, "its runner-up has no information"),
            *notes_on_information(inputs, statistics.levels, bins, binning),
        ),
    )


def _scores(statistics: Tables, bins: int, normalise: Normalise) -> tuple[IntArray, FloatArray]:
    """(..., n_factors) the best code of each factor and its score."""
    information, entropy = statistics.information, statistics.code_entropy
    # Of codes that know as much, the one that holds least beside it: no order of columns decides.
    worth = np.round(information, 12) - 1e-13 * (entropy / max(entropy.max(), 1.0))[:, None]
    best = worth.argmax(axis=-2)
    best_information = np.take_along_axis(information, best[..., None, :], axis=-2)[..., 0, :]
    second_information = (
        np.sort(information, axis=-2)[..., -2, :] if len(entropy) > 1 else np.zeros_like(best_information)
    )
    best_entropy = entropy[best]
    most = np.maximum(np.log(bins), best_entropy) if normalise == "bins" else best_entropy
    scale = statistics.factor_entropy + most
    left = np.maximum(
        best_entropy + statistics.factor_entropy - 2 * best_information + second_information, 0.0
    )  # below which rounding may be
    return best, 1.0 - left / scale


def jemmig_of_noise(inputs: Inputs) -> Noise:
    """The more, the fewer bins a code fills: about .1 for normal codes."""
    levels = as_levels(inputs)
    noise = Tables(information_of_noise(inputs), code_entropy(inputs), factor_entropy(levels), levels)
    return drawn(_scores(noise, 20, "bins")[1].mean(axis=-1))


METRIC = Metric(
    jemmig,
    title="Joint entropy minus mutual information gap",
    question="own_code",
    claims={"score": ("modularity", "compactness")},
    chance=jemmig_of_noise,
    summary="How little else each factor's best code encodes, and how little the second-best knows of the factor.",
    limitations="Its floor is not 0: codes that fill few bins score high without information.",
    source="Do & Tran 2020",
    version=2,
    noise_tolerance=0.01,
    standard=False,
    interval=EXTREMES,
    cites=("do2020theory",),
    formula=(
        r"\mathrm{JEMMIG} = \frac{1}{K} \sum_{k=1}^{K} \left( 1 - \frac{H(z_{i_k}, v_k) - I(z_{i_k}; v_k) + "
        r"I(z_{s_k}; v_k)}{H(v_k) + \log B} \right), \qquad i_k = \arg\max_i I(z_i; v_k)",
        r"$s_k$ is the code with the second most information on factor $k$; codes are cut into $B = 20$ bins of "
        r"equal width.",
    ),
)
