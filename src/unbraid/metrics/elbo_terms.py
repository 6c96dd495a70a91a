"""The three parts of the KL term of the ELBO: index-code information, total correlation, dimension-wise KL."""

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unbraid.base.arguments import check_draws, check_whole
from unbraid.base.repr import Shown
from unbraid.base.threads import map_ordered
from unbraid.base.types import ArrayLike, FloatArray, IntArray, Kind
from unbraid.data.row_index import refuse_other_order
from unbraid.metrics._shared.aggregate import (
    centred_posteriors,
    check_log_variances,
    exp_down,
    log_ratio_moments,
    log_ratio_table,
    look_up,
    panels,
)
from unbraid.metrics._shared.chance import unreadable, zero_chance
from unbraid.metrics._shared.compiled import helper, kernel
from unbraid.metrics._shared.inputs import NotDefined, check_inputs, check_matrix
from unbraid.metrics._shared.metric import FEW_UNCHECKED_HALVES, Metric

BLOCK = 128  # rows whose distance from a sample is bounded together
AT_ONCE = 512  # samples whose densities one core finds before it takes others
NEGLIGIBLE = 50.0  # nats below a sample's own density at which rows are left out: at most n_samples * 2e-22
APART = 0.4  # share of log(number of rows) that index-code information may have before noise is above .06 nats
# Sums in any order that the compiler fixes, and fused products; nothing here is NaN.
VECTORISED = {"reassoc", "contract", "nsz", "nnan"}
LOG_TWO_PI = float(np.log(2 * np.pi))


@dataclass(frozen=True, eq=False, repr=False)
class ELBOTerms(Shown):
    index_code_mi: float  # nats, as all that follow
    total_correlation: float
    dimension_wise_kl: float
    kl: float  # closed form, or of `prior_kl`
    standard_error: float  # of index_code_mi and of total_correlation
    kl_sampled: float  # plain estimate of the sum of the three parts
    kl_sampled_error: float
    kl_per_code: FloatArray  # (n_codes,) mean KL of each posterior from the prior
    dimension_wise_kl_per_code: FloatArray  # (n_codes,) KL of each code's aggregate posterior from the prior
    notes: tuple[str, ...] = ()


def elbo_terms(
    codes: ArrayLike,
    factors: ArrayLike | None = None,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    log_variances: ArrayLike | None = None,
    prior_kl: ArrayLike | None = None,
    n_samples: int = 10_000,
) -> ELBOTerms:
    """Mean KL of the posteriors from the prior, split into its three parts.

    With q(z) the mixture of the posteriors of all rows and p(z) the prior (standard normal without `prior_kl`),
    mean KL(q(z|n) | p) = I(z; n) + KL(q(z) | prod q(z_j)) + sum KL(q(z_j) | p(z_j)).

    Args:
        codes: (n_samples, n_codes) means of the Gaussian posteriors.
        factors: unused, but checked when given.
        kinds: unused, but checked when given with `factors`.
        seed: of the draws.
        log_variances: (n_samples, n_codes) natural logarithms of the posteriors' variances.
        prior_kl: (n_samples, n_codes) KL of each posterior from the prior that the model has, code by code. It says all
            that the parts need of a prior with independent codes.
        n_samples: draws from the posteriors, spread evenly over the rows. The density of each is summed over all
            rows, so the cost is n_samples times the number of rows, less the rows that are provably far away.

    Returns:
        ELBOTerms, in nats. `total_correlation`, at least 0, is the headline: lower is better, 0 when the codes are
        independent under q(z). `index_code_mi` is between 0 and log(number of rows), and reaches that bound when the
        posteriors do not overlap; then total correlation grows with every sharper code, also of independent ones, and
        a note says so. Latents equal to the prior contribute 0 to all parts. `standard_error` is that of the draws and
        not of the choice of rows; `kl` and `dimension_wise_kl` have none. `kl_sampled` is what the draws alone say
        about `kl`: far more than `kl_sampled_error` apart, the draws are not to be trusted. Chance: 0, as for
        codes that know nothing. Not invariant to scaling (the prior is fixed) or rotation of codes.

    Raises:
        NotDefined: there are no log-variances.
        ValueError: shapes disagree, values not finite, fewer than two rows, `n_samples` below 4
            or, times the number of codes, above 100 million.

    Reference:
        Chen et al. 2018, "Isolating Sources of Disentanglement in VAEs", workshop version, eq. 1. For training the
        paper estimates the parts from minibatches, with bias (eq. 3); here every density is over all rows, one
        dimension at a time by quadrature, and the entropy of q(z) by sampling, with log q(z|n) and
        log prod q(z_j), whose means are known, as control variates.

    Example:
        >>> means = np.random.default_rng(0).standard_normal((500, 1)) * [1.0, 1.0, 0.0]
        >>> terms = elbo_terms(means, log_variances=np.zeros((500, 3)))
        >>> bool(terms.total_correlation > 0.1), float(terms.kl_per_code[2])
        (True, 0.0)
    """
    means = check_matrix(codes, "codes", "n_codes", 2) if factors is None else check_inputs(codes, factors, kinds).codes
    check_whole("seed", seed, 0)
    check_whole("n_samples", n_samples, 4)
    check_draws(means.shape[1], n_samples=n_samples)
    if log_variances is None:
        raise NotDefined("needs the log-variances of the posterior")
    refuse_other_order(codes=codes, log_variances=log_variances, prior_kl=prior_kl)
    checked_variances = check_log_variances(log_variances, means.shape).astype(np.float64, copy=False)
    from_prior = None if prior_kl is None else _check_prior_kl(prior_kl, means.shape)
    by_code = [centred_posteriors(*columns) for columns in zip(means.T, checked_variances.T, strict=True)]
    scales = np.stack([each.scales for each in by_code], axis=1)
    log_scales = np.log(scales)
    kl = _kl_from_normal(means, log_scales) if from_prior is None else from_prior
    means = np.stack([each.means for each in by_code], axis=1)
    rows = _spread_over_rows(len(means), n_samples, rng := np.random.default_rng(seed))
    noise = rng.standard_normal((len(rows), means.shape[1]))
    samples = means[rows] + scales[rows] * noise

    negative_entropy, log_marginals = _marginals(means, scales, samples)
    log_scale = log_scales.mean(axis=0)
    kl_per_code = np.maximum(kl.mean(axis=0), 0.0)
    # -E log p is the entropy of the posteriors plus their KL from p.
    cross_entropy = kl_per_code + log_scale + 0.5 * (LOG_TWO_PI + 1.0)
    marginal_kl = np.clip(negative_entropy + cross_entropy, 0.0, kl_per_code)

    log_own = -(0.5 * (LOG_TWO_PI + noise**2) + log_scales[rows]).sum(axis=1)
    log_joint = _log_aggregate(samples, log_own, means, scales)
    mean_log_own = -(0.5 * (LOG_TWO_PI + 1.0) + log_scale).sum()
    mean_log_joint, error = _with_controls(
        log_joint, np.stack([log_own, log_marginals], axis=1), np.array([mean_log_own, negative_entropy.sum()])
    )
    if from_prior is None:
        drawn = samples + [each.centre for each in by_code]
        plain_kl = (0.5 * (drawn**2 - noise**2) - log_scales[rows]).sum(axis=1)
    else:
        plain_kl = from_prior[rows].sum(axis=1)
    sharper = sum(each.sharper for each in by_code)
    index_code_mi = float(np.clip(mean_log_own - mean_log_joint, 0.0, np.log(len(means))))
    return ELBOTerms(
        index_code_mi=index_code_mi,
        total_correlation=float(max(mean_log_joint - negative_entropy.sum(), 0.0)),
        dimension_wise_kl=float(marginal_kl.sum()),
        kl=float(kl_per_code.sum()),
        standard_error=error,
        kl_sampled=float(plain_kl.mean()),
        kl_sampled_error=float(plain_kl.std(ddof=1) / np.sqrt(len(rows))),
        kl_per_code=kl_per_code,
        dimension_wise_kl_per_code=marginal_kl,
        notes=_notes(sharper, index_code_mi, len(means)),
    )


def _notes(sharper: int, index_code_mi: float, n_rows: int) -> tuple[str, ...]:
    notes = []
    if sharper:
        notes.append(f"{sharper} posteriors are sharper than rounding can tell: widened to 1e-8 of the means' spread")
    if index_code_mi > APART * np.log(n_rows):
        notes.append(
            unreadable(
                f"the posteriors of {n_rows} rows hardly overlap (index-code information {index_code_mi:.2f} of "
                f"{np.log(n_rows):.2f} nats), so that independent codes would have a total correlation as well"
            )
        )
    return tuple(notes)


def _kl_from_normal(means: FloatArray, log_scales: FloatArray) -> FloatArray:
    """(n_samples, n_codes) KL of each posterior from the standard normal."""
    return 0.5 * (means**2 + np.exp(2 * log_scales) - 1.0) - log_scales


def _check_prior_kl(prior_kl: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    checked = check_matrix(prior_kl, "prior_kl", "n_codes")
    if checked.shape != shape:
        raise ValueError(f"prior_kl must have the shape of codes, {shape}; got {checked.shape}")
    if checked.min() < -1e-3:  # rounding apart
        raise ValueError(f"prior_kl must be at least 0; got {checked.min():g}")
    return checked


def _spread_over_rows(n_rows: int, n_samples: int, rng: np.random.Generator) -> IntArray:
    """Every row equally often, and once more for as many rows, drawn without replacement, as are left over."""
    rounds, rest = divmod(n_samples, n_rows)
    return np.concatenate([np.tile(np.arange(n_rows), rounds), rng.permutation(n_rows)[:rest]])


def _marginals(means: FloatArray, scales: FloatArray, samples: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(n_codes,) of `_marginal`, and the sum over codes of log q at each sample."""
    columns = range(means.shape[1])
    # Copied, since a walk along numbers that lie apart takes longer.
    parts = dict(
        map_ordered(lambda j, _: _marginal(*(each[:, j].copy() for each in (means, scales, samples))), columns)
    )
    return np.array([parts[j][0] for j in columns]), np.sum([parts[j][1] for j in columns], axis=0)


def _marginal(means: FloatArray, scales: FloatArray, samples: FloatArray) -> tuple[float, FloatArray]:
    """Integral of q log q for one code's aggregate posterior, and log q at each sample; means are about 0."""
    negative_entropy, logs = 0.0, np.zeros(len(samples))
    for part in panels(means, scales, np.empty((len(means), 0), dtype=np.int64), 1):
        negative_entropy += float(log_ratio_moments(part)[0, 0])
        logs += look_up(samples, part, log_ratio_table(part, np.array([np.inf]))[0])
    return negative_entropy, logs


def _with_controls(values: FloatArray, controls: FloatArray, known: FloatArray) -> tuple[float, float]:
    """Mean of `values` and its standard error, from their regression on controls (any, 2) of known mean."""
    centred = controls - controls.mean(axis=0)
    slopes = np.linalg.lstsq(centred, values - values.mean(), rcond=1e-12)[0]
    residuals = values - values.mean() - centred @ slopes
    error = np.sqrt((residuals**2).sum() / (len(values) - 1 - controls.shape[1]) / len(values))
    return float(values.mean() + (known - controls.mean(axis=0)) @ slopes), float(error)


def _log_aggregate(samples: FloatArray, log_own: FloatArray, means: FloatArray, scales: FloatArray) -> FloatArray:
    """(len(samples),) log q(z), the mixture of all rows; `log_own` is the density under each sample's own row."""
    n_rows, n_codes = means.shape
    order = _neighbours_together(means / np.sqrt((scales**2).mean(axis=0)))
    n_blocks = -(-n_rows // BLOCK)
    # Rows that fill up the last block repeat the last row, at no height.
    order = np.concatenate([order, np.full(n_blocks * BLOCK - n_rows, order[-1])])
    heights = -np.log(scales[order]).sum(axis=1)
    tops = heights.reshape(n_blocks, BLOCK).max(axis=1)
    heights[n_rows:] = -1e300
    by_block = (n_blocks, BLOCK, n_codes)
    centres = np.ascontiguousarray(means[order].reshape(by_block).transpose(0, 2, 1))
    widths = np.ascontiguousarray(scales[order].reshape(by_block).transpose(0, 2, 1))
    precisions, heights = -0.5 / widths**2, heights.reshape(n_blocks, BLOCK)
    bounds = np.stack([centres.min(axis=2), centres.max(axis=2), widths.max(axis=2)], axis=2)
    own, logs = log_own + 0.5 * n_codes * LOG_TWO_PI, np.empty(len(samples))

    def of_part(first: int, _: threading.Event) -> FloatArray:
        part = slice(first, first + AT_ONCE)
        part_logs = np.empty(len(samples[part]))
        _log_sum(samples[part], own[part], centres, precisions, heights, bounds, tops, np.empty(BLOCK), part_logs)
        return part_logs

    for first, part_logs in map_ordered(of_part, range(0, len(samples), AT_ONCE)):
        logs[first : first + AT_ONCE] = part_logs
    return logs - 0.5 * n_codes * LOG_TWO_PI - np.log(n_rows)


def _neighbours_together(points: FloatArray) -> IntArray:
    """Order of rows in which consecutive blocks of `BLOCK` are close, by halving along the widest direction."""
    waiting, ordered = [np.arange(len(points))], []
    while waiting:
        rows = waiting.pop()
        if len(rows) <= BLOCK:
            ordered.append(rows)
            continue
        values = points[rows, np.argmax(np.ptp(points[rows], axis=0))]
        half = -(-(len(rows) // 2) // BLOCK) * BLOCK
        split = np.argpartition(values, half)
        waiting += [rows[split[half:]], rows[split[:half]]]
    return np.concatenate(ordered)


@kernel()
def _log_sum(
    samples: FloatArray,
    log_own: FloatArray,
    centres: FloatArray,
    precisions: FloatArray,
    heights: FloatArray,
    bounds: FloatArray,
    tops: FloatArray,
    terms: FloatArray,
    logs: FloatArray,
) -> None:
    """Into `logs` go those of the sum of the Gaussians of all rows, without their factor (2 pi)^(-n_codes / 2)."""
    n_blocks, n_codes, _ = centres.shape
    for index in range(len(samples)):
        largest, total, negligible = log_own[index], 0.0, log_own[index] - NEGLIGIBLE
        for block in range(n_blocks):
            best = tops[block]
            for code in range(n_codes):
                value = samples[index, code]
                below, above = bounds[block, code, 0] - value, value - bounds[block, code, 1]
                outside = below if below > above else above
                if outside > 0.0:
                    away = outside / bounds[block, code, 2]
                    best -= 0.5 * away * away
                if best < negligible:
                    break
            if best < negligible:
                continue
            highest = _exponents(samples, index, centres, precisions, heights, block, terms)
            if highest > largest:
                total *= np.exp(largest - highest)
                largest = highest
            total += _sum_of_powers(terms, largest)
        logs[index] = largest + np.log(total)


# Whole arrays and which part of them: views of parts are counted, which takes longer than the arithmetic.
@helper(fastmath=VECTORISED)
def _exponents(
    samples: FloatArray,
    index: int,
    centres: FloatArray,
    precisions: FloatArray,
    heights: FloatArray,
    block: int,
    terms: FloatArray,
) -> float:
    """Of a sample and the rows of a block; returns the highest of the terms that it writes."""
    for row in range(len(terms)):
        terms[row] = heights[block, row]
    for code in range(samples.shape[1]):
        value = samples[index, code]
        for row in range(len(terms)):
            away = value - centres[block, code, row]
            terms[row] += away * away * precisions[block, code, row]
    highest = terms[0]
    for row in range(1, len(terms)):
        highest = terms[row] if terms[row] > highest else highest
    return highest


@helper(fastmath=VECTORISED)
def _sum_of_powers(terms: FloatArray, largest: float) -> float:
    total = 0.0
    for row in range(len(terms)):
        power = terms[row] - largest
        total += exp_down(power if power > -70.0 else -70.0)
    return total


METRIC = Metric(
    elbo_terms,
    title="Parts of the ELBO's KL term",
    question="independent",
    headline="total_correlation",
    best=0.0,
    higher_is_better=False,
    range=(0.0, math.inf),
    chance=zero_chance,
    noise_tolerance=0.06,
    summary="Total correlation: how far the latents are from being independent of each other, in nats.",
    limitations="Independent is not informative: codes without information score 0. Grows as posteriors sharpen.",
    source="Chen et al. 2018, eq. 1",
    needs="needs the log-variances of the posterior",
    stochastic=True,
    slow=True,
    invariant_to=frozenset({"permute", "flip"}),
    tolerance=0.05,
    aligned=False,
    interval=FEW_UNCHECKED_HALVES,
    cites=("chen2018isolating",),
    formula=(
        r"\frac{1}{N} \sum_n \mathrm{KL}\left( q(z|x_n) \,\|\, p(z) \right) = "
        r"I_q(z; n) + \mathrm{KL}\left( q(z) \,\|\, \prod_j q(z_j) \right) + "
        r"\sum_j \mathrm{KL}\left( q(z_j) \,\|\, p(z_j) \right)",
        r"The three parts are the index-code information, the total correlation and the dimension-wise divergence; "
        r"$q(z)$ is the mixture of the posteriors of all images.",
    ),
)
