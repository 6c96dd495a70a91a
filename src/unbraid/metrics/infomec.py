"""InfoMEC: modularity, compactness and explicitness by information."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from unbraid.base.arguments import check_choice, check_whole
from unbraid.base.counted import counted
from unbraid.base.repr import Shown
from unbraid.base.threads import at_once
from unbraid.base.types import ArrayLike, BoolArray, FloatArray, IntArray, Kind
from unbraid.metrics._shared.alignment import gaps
from unbraid.metrics._shared.bins import bin_equal_width
from unbraid.metrics._shared.information import factor_entropy, mutual_information
from unbraid.metrics._shared.inputs import Inputs, Levels, as_levels, check_inputs, standardised
from unbraid.metrics._shared.metric import FEW_UNCHECKED_HALVES, Metric
from unbraid.metrics._shared.neighbours import neighbour_information
from unbraid.metrics._shared.regression import as_blocks, explained, least_squares
from unbraid.metrics._shared.sharing import shared
from unbraid.metrics._solvers.logistic import unpenalised_cross_entropy

Variant: TypeAlias = Literal["standalone", "training", "training_binned", "tripod"]
BINS = 20
MOST_BINS = 1000
SILENT = 1e-12  # share of a factor's entropy: less is rounding
STEPS = 100  # of logistic regression: where levels can be parted, the best weights are infinite
UNTOLD = 0.05  # explicitness below which shares of information are those of noise


class _Rule(NamedTuple):
    neighbours: int | None  # None for equal-width bins
    least_spread: float  # of that of the widest code
    interquartile: bool  # whether the spread is the interquartile range, or all of it
    least_discrete: float | None  # spread of a discrete code itself; None where the share counts


RULES: dict[str, _Rule] = {
    "standalone": _Rule(10, 1 / 20, interquartile=False, least_discrete=0.0),
    "training": _Rule(3, 1 / 8, interquartile=False, least_discrete=None),
    "training_binned": _Rule(None, 1 / 8, interquartile=False, least_discrete=None),
    "tripod": _Rule(10, 1 / 10, interquartile=True, least_discrete=0.1),
}


@dataclass(frozen=True, eq=False, repr=False)
class InfoMEC(Shown):
    modularity: float
    compactness: float
    explicitness: float
    modularity_gap: float  # mean over active codes of the largest share of information less the second
    compactness_gap: float  # the same over factors, between the two best of all codes
    compactness_gap_active: float  # of active codes
    per_code: FloatArray  # (n_codes,) modularity; 0 for codes that are left out
    per_factor: FloatArray  # (n_factors,) compactness
    explicitness_per_factor: FloatArray  # (n_factors,)
    information: FloatArray  # (n_codes, n_factors) as shares of the factor's entropy
    active: IntArray  # codes that count
    r2: float | None = None  # of least squares from all codes, on the rows fitted to; variants of training alone
    r2_active: float | None = None  # from active codes
    notes: tuple[str, ...] = ()
    mean_over: str = ""  # how many codes modularity is of, where not of all; see `unbraid.compare`


def infomec(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    variant: Variant = "standalone",
    discrete_codes: bool = False,
    neighbours: int | None = None,
    bins: int = BINS,
    sizes: Sequence[int] | None = None,
) -> InfoMEC:
    """How concentrated the information of each code and on each factor is, and how well linear models predict it.

    With S_ik = I(code i; factor k) / H(factor k) over the active codes, modularity is the mean over codes of
    (max_k S / sum_k S - 1/K) / (1 - 1/K), compactness the same over factors and active codes. Explicitness is the mean
    over factors of 1 - CE / CE_0, the cross-entropy of multinomial logistic regression on all codes and on none.

    Args:
        codes: (n_samples, n_codes) real. Posterior means unless stated otherwise.
        factors: (n_samples, n_factors) levels; continuous factors are cut into 20 bins of equal width.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: draws what parts equal values of a code.
        variant: whose rule it is. "standalone", the file that the authors of latent_quantization give away: 10 nearest
            neighbours, codes whose range is above a twentieth of the largest are active. "training", what their
            training prints: 3 neighbours, an eighth. "training_binned", the same by bins of equal width. "tripod", the
            authors' later code: 10 neighbours, interquartile range above a tenth of the largest.
        discrete_codes: each value of a code is a class: plug-in information, and explicitness and `r2` are of
            indicators of the values. Every code that varies is active by "standalone", those whose interquartile range
            is above .1 by "tripod"; for training the rule is as above.
        neighbours: instead of the variant's number.
        bins: of each code for "training_binned", 2 to 1000. Their training prints 10, 20 and 50.
        sizes: number of levels of each factor, around which cyclic ones wrap, for `r2`.

    Returns:
        InfoMEC. `modularity` (InfoM) in [0, 1] is the headline, `compactness` (InfoC) in [0, 1], `explicitness` (InfoE)
        at most 1, each higher is better. Read explicitness beside the other two, which are shares of information,
        however little there is: noise scores .63 and .35 on five factors, and a note says so where explicitness is
        below .05. A code without information is left out of modularity, a factor of which no code knows counts 0 in
        compactness. With one active code compactness is 1, with one factor modularity is 1, with no active code all are
        0. Chance: far above 0. Blind to order and sign of codes, not to their scale (which are active) nor to rotation.

        As their training prints them, `compactness_gap` and `r2` are of all codes and `modularity_gap` of active ones;
        ours by active codes are `compactness_gap_active` and `r2_active`.

    Raises:
        ValueError: what every metric refuses, an unknown `variant`, `neighbours` below 1, `bins` out of range, or
            `bins` other than 20 where the variant has none.

    Reference:
        Hsu et al. 2023, "Disentanglement via Latent Quantization"; Hsu et al. 2024, "Tripod".
        Papers take 10 000 rows. Logistic regression takes 100 steps of L-BFGS at most, as theirs, with balanced
        classes and without a penalty, on the rows that it is judged by; no peer holds any out. `r2` differs from theirs
        where `kinds` has cyclic factors (cosine and sine here) or categorical ones (indicators): they regress numbers.

    Example:
        >>> grid = FactorSpace(("a", "b"), (4, 2), ("ordinal", "ordinal")).grid()
        >>> result = infomec(np.column_stack([grid.sum(axis=1), grid[:, 0] - grid[:, 1]]), grid, discrete_codes=True)
        >>> round(result.modularity, 6), round(result.compactness, 6)
        (0.428571, 0.0)
    """
    check_choice("variant", variant, get_args(Variant))
    rule = RULES[variant]
    if neighbours is not None:
        rule = rule._replace(neighbours=check_whole("neighbours", neighbours, 1))
    check_whole("bins", bins, 2, MOST_BINS)
    if bins != BINS and (rule.neighbours is not None or discrete_codes):
        raise ValueError('bins cut real codes for variant="training_binned" alone; others have none')
    inputs = check_inputs(codes, factors, kinds, seed)
    levels, entropies = as_levels(inputs), factor_entropy(as_levels(inputs))
    if discrete_codes or rule.neighbours is None:
        classes = _classes(inputs.codes) if discrete_codes else bin_equal_width(inputs.codes, bins)
        information = mutual_information(classes, levels) / entropies
    else:
        information = neighbour_information(inputs, rule.neighbours, seed) / entropies
    information = np.where(information > SILENT, information, 0.0)
    active = np.flatnonzero(_active(inputs.codes, rule, discrete_codes))
    shares = information[active]
    informative = shares.any(axis=1)
    per_code = np.zeros(inputs.n_codes)
    per_code[active] = _concentration(shares)
    per_factor = _concentration(shares.T) if len(active) else np.zeros(inputs.n_factors)
    explicit = _explicitness(inputs, levels, discrete_codes)
    training = variant.startswith("training")
    return InfoMEC(
        modularity=float(per_code[active][informative].mean()) if informative.any() else 0.0,
        compactness=float(per_factor.mean()),
        explicitness=float(explicit.mean()),
        modularity_gap=float(gaps(shares.T).mean()) if len(active) else 0.0,
        compactness_gap=float(gaps(information).mean()),
        compactness_gap_active=float(gaps(shares).mean()) if len(active) else 0.0,
        per_code=per_code,
        per_factor=per_factor,
        explicitness_per_factor=explicit,
        information=information,
        active=active,
        r2=_r2(inputs, np.arange(inputs.n_codes), discrete_codes, sizes) if training else None,
        r2_active=_r2(inputs, active, discrete_codes, sizes) if training else None,
        notes=(*levels.notes, *_notes(inputs, active, shares, float(explicit.mean()))),
        mean_over="" if informative.sum() in (0, inputs.n_codes) else f"{informative.sum()} of {inputs.n_codes} codes",
    )


def _concentration(shares: FloatArray) -> FloatArray:
    """(n,) of each row of (n, m): its largest entry over its sum, scaled so that an even row has 0.

    0 for a row without any, 1 for one of a single entry.
    """
    n_columns, sums = shares.shape[1], shares.sum(axis=1)
    if n_columns == 1:
        return (sums > 0) + 0.0
    largest = shares.max(axis=1) / np.where(sums > 0, sums, 1.0)
    return np.where(sums > 0, np.clip((largest - 1 / n_columns) / (1 - 1 / n_columns), 0.0, 1.0), 0.0)


def _classes(codes: FloatArray) -> IntArray:
    return np.stack([np.unique(column, return_inverse=True)[1] for column in codes.T], axis=1).astype(np.int32)


def _active(codes: FloatArray, rule: _Rule, discrete: bool) -> BoolArray:
    low, high = np.quantile(codes, [0.25, 0.75] if rule.interquartile else [0.0, 1.0], axis=0)
    spread = high - low
    if discrete and rule.least_discrete is not None:
        return spread > rule.least_discrete
    return spread > rule.least_spread * spread.max()


@shared
def _explicitness(inputs: Inputs, levels: Levels, discrete: bool) -> FloatArray:
    """(n_factors,)"""
    predictors = _predictors(inputs.codes, discrete)

    def missed(factor: int, _: threading.Event) -> float:
        return unpenalised_cross_entropy(predictors, levels.levels[:, factor], levels.sizes[factor], STEPS)

    losses = at_once(missed, range(len(levels.sizes)), levels.sizes)
    return 1.0 - np.array(losses) / np.log(levels.sizes)


def _predictors(codes: FloatArray, discrete: bool) -> FloatArray:
    """Standardised codes, or indicators of each of their values."""
    if discrete:
        columns = [(column[:, None] == np.unique(column)).astype(float) for column in codes.T]
        codes = np.concatenate(columns, axis=1)
    return standardised(codes)


def _r2(inputs: Inputs, which: IntArray, discrete: bool, sizes: Sequence[int] | None) -> float:
    if not len(which):
        return 0.0
    blocks, known = as_blocks(inputs, sizes), _predictors(inputs.codes[:, which], discrete)
    return float(explained(least_squares(known, blocks.columns, known), blocks.columns, blocks.owner).mean())


def _notes(inputs: Inputs, active: IntArray, shares: FloatArray, explicit: float) -> tuple[str, ...]:
    if not len(active):
        return ("no code is active: modularity and compactness are set to 0",)
    notes = []
    if len(active) < inputs.n_codes:
        notes.append(f"not counted as active: {counted(inputs.n_codes - len(active), 'code')} of little spread")
    silent, uncaptured = int((~shares.any(axis=1)).sum()), np.flatnonzero(~shares.any(axis=0))
    if silent:
        notes.append(f"left out of modularity: {counted(silent, 'active code')} without information")
    notes += [
        f"factor {factor}: no active code has information on it; its compactness counts 0" for factor in uncaptured
    ]
    if inputs.n_factors == 1:
        notes.append("one factor: modularity is 1 by definition")
    if len(active) == 1:
        notes.append("one active code: compactness is 1 by definition")
    if explicit < UNTOLD:
        notes.append(
            f"explicitness is {explicit:.2f}: codes have so little information that noise can have the same modularity "
            "and compactness"
        )
    return tuple(notes)


METRIC = Metric(
    infomec,
    title="InfoMEC",
    question="identified",
    headline="modularity",
    claims={name: (name,) for name in ("modularity", "compactness", "explicitness")},
    summary="How much of the information in each code is about one factor, by nearest neighbours.",
    limitations="Ignores how much information there is: noise beats a rotation. Read explicitness beside it.",
    source="Hsu et al. 2023 (Latent Quantization); Hsu et al. 2024 (Tripod)",
    version=3,
    stochastic=True,
    invariant_to=frozenset({"permute", "flip", "dead"}),
    tolerance=0.02,
    aligned=False,
    standard=False,
    interval=FEW_UNCHECKED_HALVES,
    cites=("hsu2023disentanglement", "hsu2024tripod"),
    formula=(
        r"M = \frac{1}{|A|} \sum_{i \in A} \frac{\max_k S_{ik} / \sum_k S_{ik} - 1/K}{1 - 1/K}, \qquad "
        r"S_{ik} = \frac{I(z_i; v_k)}{H(v_k)}, \qquad E = \frac{1}{K} \sum_{k=1}^{K} \left( 1 - "
        r"\frac{\mathrm{CE}_k}{\mathrm{CE}_0} \right)",
        r"$A$ are the active codes, $M$ modularity and $E$ explicitness; compactness is $M$ with factors and active "
        r"codes exchanged. $I$ is estimated by 10 nearest neighbours, $\mathrm{CE}$ is the cross-entropy "
        r"of logistic regression on all codes, and on none.",
    ),
)
