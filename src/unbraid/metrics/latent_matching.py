"""The disentanglement scores of DRVI, which ask for a code of its own for each class: LMS, MSAS and MSGS."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unbraid.base.arguments import check_bins
from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, FloatArray, IntArray, Kind
from unbraid.metrics._shared.alignment import align, gaps
from unbraid.metrics._shared.chance import Noise, drawn
from unbraid.metrics._shared.flags import single_code
from unbraid.metrics._shared.information import bins_of_codes, factor_entropy, mutual_information, rows_in_bins
from unbraid.metrics._shared.inputs import Inputs, Levels, as_levels, check_inputs
from unbraid.metrics._shared.metric import Metric

BINS = 10  # of each code, as the authors cut them
NULL_DRAWS = 100  # tables of codes that know nothing, over all codes; ten for each of many


@dataclass(frozen=True, eq=False, repr=False)
class LatentMatching(Shown):
    score: float  # LMS by SMI
    msas_smi: float
    msgs_smi: float
    lms_spn: float
    msas_spn: float
    msgs_spn: float
    per_factor: FloatArray  # (n_factors,) LMS by SMI of the classes of each factor
    smi: FloatArray  # (n_codes, n_classes) scaled mutual information, the classes of all factors one after the other
    spn: FloatArray  # (n_codes, n_classes) same-process neighbours
    factor_of_class: IntArray  # (n_classes,) the column of factors that a class is a level of
    notes: tuple[str, ...] = ()


def latent_matching(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    bins: int = BINS,
) -> LatentMatching:
    """Whether each class (cell type, perturbation) has a code of its own, by two measures and three ways to sum up.

    A class is a level of a factor, against all others of it. SMI is the mutual information of the class with a code in
    bins, over the entropy of the class. SPN (same-process neighbours) sorts rows by the code: with a the share of rows
    of the class whose next row is of it, too (of all but one), and p that of the class in all rows, it is
    max(0, a - p) / (1 - p). Of the measures of all codes and classes LMS is the mean over classes if codes are matched
    to them one to one, as well as may be, MSAS that of the best code, and MSGS that of the best code less the second
    best.

    Args:
        codes: (n_samples, n_codes) real. Posterior means unless stated otherwise.
        factors: (n_samples, n_factors) levels; continuous factors are cut into 20 bins of equal width.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: unused; the score is deterministic.
        bins: of equal width, of each code for SMI.

    Returns:
        LatentMatching. All six in [0, 1], higher is better, of each factor by itself and then averaged. `score` is LMS
        by SMI: 1 if each class has a code that tells it without error. One code for a whole factor of V levels scores
        1 / V, since a code stands for one class, but 1 by MSAS and MSGS. With fewer codes than classes the others score
        0; with a single code, the runner-up of MSGS is 0. Chance: see `latent_matching_of_noise`; the best of many
        codes on a rare class scores far above 0 by luck (.15 for 128 codes of noise, 2 000 rows, 20 classes of .5 % and
        one of the rest), so ask for a null. Not invariant to rotation of codes.

    Raises:
        ValueError: what every metric refuses, or `bins` below 2.

    Reference:
        Moinfar & Theis 2024, "Unsupervised Deep Disentangled Representation of Single-Cell Omics", and drvi-py, which
        takes one factor. Rows with equal values of a code stand in random order there; here SPN is the mean over all
        such orders. A value on the edge of two bins goes to the one nearer the middle of the code's range, so that a
        mirrored code scores the same. A class of a single row, where drvi-py divides by 0, has no neighbours: 0.

    Example:
        >>> levels = np.repeat([0, 1, 2], 4)
        >>> result = latent_matching(np.eye(3)[levels], levels[:, None])
        >>> round(result.score, 12), round(result.msgs_spn, 12)
        (1.0, 0.75)
    """
    check_bins("bins", bins, 2)
    inputs = check_inputs(codes, factors, kinds, seed)
    levels = as_levels(inputs)
    classes, of = _classes(levels)
    entropies = factor_entropy(classes)
    smi = np.concatenate([mutual_information(binned, classes) for _, binned in bins_of_codes(inputs, bins, "width")])
    smi = np.minimum(smi / entropies, 1.0)
    spn = np.stack([_same_neighbours(inputs.code(code), classes.levels) for code in range(inputs.n_codes)])
    summed = np.array([[_summed(each[:, of == factor]) for factor in range(inputs.n_factors)] for each in (smi, spn)])
    (lms, msas, msgs), by_spn = summed.mean(axis=1)
    alone = np.unique(of[classes.levels.sum(axis=0) == 1])
    few = [factor for factor, size in enumerate(levels.sizes) if size > inputs.n_codes]
    return LatentMatching(
        score=float(lms),
        msas_smi=float(msas),
        msgs_smi=float(msgs),
        lms_spn=float(by_spn[0]),
        msas_spn=float(by_spn[1]),
        msgs_spn=float(by_spn[2]),
        per_factor=summed[0, :, 0],
        smi=smi,
        spn=spn,
        factor_of_class=of,
        notes=(
            *levels.notes,
            *(f"factor {factor} has more classes than there are codes: some score 0 by LMS" for factor in few),
            *(f"factor {factor} has classes of one row, which have no neighbours: 0 by SPN" for factor in alone),
            *single_code(inputs, "the runner-up of MSGS is 0"),
        ),
    )


def latent_matching_of_noise(inputs: Inputs) -> Noise:
    """Above 0, the more codes and the rarer the classes."""
    from scipy.stats import random_table  # half a second to import

    rng, levels = np.random.default_rng(0), as_levels(inputs)
    n_draws = max(10, -(-NULL_DRAWS // inputs.n_codes))
    scores = np.zeros((n_draws, inputs.n_factors))
    for factor, size in enumerate(levels.sizes):
        of_class = np.bincount(levels.levels[:, factor])
        smi = np.zeros((n_draws, inputs.n_codes, size))
        for code, counts in enumerate(rows_in_bins(inputs, BINS, "width")):
            rows = counts[counts > 0]
            if len(rows) > 1:  # SciPy errs on a single row
                tables = random_table.rvs(rows, of_class, size=n_draws, random_state=rng)
                smi[:, code] = _information(tables, rows, of_class)
        scores[:, factor] = [_summed(each)[0] for each in smi]
    return drawn(scores.mean(axis=1))


def _information(tables: IntArray, rows: IntArray, of_class: IntArray) -> FloatArray:
    """(n_draws, n_classes) SMI of each class, by tables (n_draws, n_bins, n_classes) of its rows in the bins."""
    n_samples = rows.sum()
    information = np.zeros((len(tables), len(of_class)))
    for inside, counts in ((tables, of_class), (rows[:, None] - tables, n_samples - of_class)):
        expected = rows[:, None] * counts / n_samples
        information += (inside * np.log(np.where(inside > 0, inside / expected, 1.0))).sum(axis=1) / n_samples
    share = of_class / n_samples
    return np.maximum(information, 0.0) / -(share * np.log(share) + (1 - share) * np.log1p(-share))


def _classes(levels: Levels) -> tuple[Levels, IntArray]:
    """Each level of each factor against all others, and which factor it is of."""
    own = [column[:, None] == np.arange(size) for column, size in zip(levels.levels.T, levels.sizes, strict=True)]
    indicators = np.concatenate(own, axis=1).astype(np.int64)
    return Levels(indicators, (2,) * indicators.shape[1], ()), np.repeat(np.arange(len(own)), levels.sizes)


def _same_neighbours(code: FloatArray, classes: IntArray) -> FloatArray:
    """(n_classes,) SPN of one code, (n_samples,), with indicators (n_samples, n_classes) of the classes."""
    values, group = np.unique(code, return_inverse=True)
    sizes = np.bincount(group)[:, None]
    members = np.stack([np.bincount(group, weights=column, minlength=len(values)) for column in classes.T], axis=1)
    shares = members / sizes
    # All orders of rows of one value are as likely: pairs within a value, and across to the next one.
    pairs = (shares * (members - 1)).sum(axis=0) + (shares[:-1] * shares[1:]).sum(axis=0)
    counts = classes.sum(axis=0)
    share = counts / len(code)
    return np.where(counts > 1, np.maximum(pairs / np.maximum(counts - 1, 1) - share, 0.0) / (1 - share), 0.0)


def _summed(worth: FloatArray) -> tuple[float, float, float]:
    """LMS, MSAS and MSGS of (n_codes, n_classes)."""
    matched = align(worth)
    matched_worth = np.where(matched >= 0, worth[matched, np.arange(worth.shape[1])], 0.0)
    return float(matched_worth.mean()), float(worth.max(axis=0).mean()), float(gaps(worth).mean())


METRIC = Metric(
    latent_matching,
    title="Latent matching score (DRVI)",
    question="own_code",
    claims={"msgs_smi": ("compactness",)},
    chance=latent_matching_of_noise,
    summary="How well each class of a factor can be matched to a code of its own (LMS by SMI).",
    limitations="One code for all V levels of a factor scores 1 / V. With many codes rare classes score by luck.",
    source="Moinfar & Theis 2024 (DRVI)",
    aligned=False,
    standard=False,
    cites=("moinfar2024unsupervised",),
    bibtex=r"""
@misc{moinfar2024unsupervised,
  author       = {Moinfar, Amir Ali and Theis, Fabian J.},
  title        = {Unsupervised Deep Disentangled Representation of Single-Cell Omics},
  year         = {2024},
  howpublished = {bioRxiv preprint 2024.11.06.622266},
}
""",
    formula=(
        r"\mathrm{LMS} = \frac{1}{V} \max_{\pi} \sum_{v=1}^{V} \frac{I(z_{\pi(v)}; [v])}{H([v])}",
        r"$[v]$ says whether a row is of class $v$, one of the $V$ levels of a factor, and $\pi$ gives each class "
        r"a code of its own. The mean over factors is reported.",
    ),
)
