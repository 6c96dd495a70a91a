"""Mutual information gap from the posteriors themselves, without bins."""

import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from unbraid.base.arguments import check_choice, check_whole
from unbraid.base.repr import Shown
from unbraid.base.threads import map_ordered
from unbraid.base.types import ArrayLike, FloatArray, IntArray, Kind
from unbraid.data.row_index import refuse_other_order
from unbraid.metrics._shared.aggregate import (
    centred_posteriors,
    check_log_variances,
    log_ratio_moments,
    log_ratio_table,
    panels,
    sum_up,
)
from unbraid.metrics._shared.alignment import gaps
from unbraid.metrics._shared.chance import unreadable, zero_chance
from unbraid.metrics._shared.flags import notes_on_dependence, single_code
from unbraid.metrics._shared.information import factor_entropy
from unbraid.metrics._shared.inputs import Inputs, Levels, NotDefined, Part, as_levels, check_inputs
from unbraid.metrics._shared.metric import FEW_UNCHECKED_HALVES, Metric
from unbraid.metrics._shared.resampling import Numbers

DRAWS = 1_500_000  # held at once for each core at work
NULL_DRAWS = 100
LARGEST_NOISE = 0.04  # score of noise up to which nothing is noted
N_DRAWS, MOST_DRAWS = 10_000, 10_000_000  # for each level
NEEDS = "needs the log-variances of the posterior"


@dataclass(frozen=True, eq=False, repr=False)
class ExactMIG(Shown):
    score: float
    standard_error: float  # of the score; 0 for quadrature
    per_factor: FloatArray  # (n_factors,)
    mutual_information: FloatArray  # (n_codes, n_factors), nats
    mutual_information_error: FloatArray  # (n_codes, n_factors), nats, standard errors
    factor_entropy: FloatArray  # (n_factors,), nats
    notes: tuple[str, ...] = ()


def mig_exact(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    log_variances: ArrayLike | None = None,
    n_samples: int = N_DRAWS,
    method: Literal["monte_carlo", "quadrature"] = "monte_carlo",
) -> ExactMIG:
    """Gap between the two latents with the most information on each factor, under the posteriors q(z_j given x).

    I(z_j; v_k) is the mean over the values of v_k of the divergence of q(z_j given v_k) from q(z_j), the mixtures of
    the posteriors of the rows with that value and of all rows. Both run over every row.

    Args:
        codes: (n_samples, n_codes) means of the Gaussian posteriors.
        factors: (n_samples, n_factors) levels; continuous factors are cut into 20 bins of equal width.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: of the draws; unused by quadrature.
        log_variances: (n_samples, n_codes) natural logarithms of the posteriors' variances.
        n_samples: draws from q(z_j given v_k) for each value of each factor.
        method: "monte_carlo" as in the paper, or "quadrature": the same integral without sampling error
            (about 1e-9), and the faster of the two.

    Returns:
        ExactMIG. `score` in [0, 1], higher is better, mean of `per_factor`; with a single code the runner-up is 0.
        Ceiling: 1, for any number of levels. Chance: about 0; latents equal to the prior give exactly 0. Finite
        samples of rows bias it upwards, the more the sharper the posteriors: one row per value and sharp posteriors
        make every latent look informed. `standard_error` is that of the draws, not of the choice of rows, and takes
        the two best latents as given. Not invariant to rotation of codes.

    Raises:
        NotDefined: there are no log-variances.
        ValueError: what every metric refuses, `n_samples` below 2, unknown `method`.

    Reference:
        Chen et al. 2018, "Isolating Sources of Disentanglement in VAEs", workshop version, eq. 4 with eq. 8 and §5.5.
        Differs from the paper: log q(z_j) is averaged over the draws from the slices, weighted by p(v_k), instead of
        over separate draws. Densities are interpolated from tables (errors below 1e-5).

    Example:
        >>> grid = np.repeat(FactorSpace(("a", "b"), (2, 3), ("ordinal", "ordinal")).grid(), 2, axis=0)
        >>> round(mig_exact(grid, grid, log_variances=np.full(grid.shape, -9.0), method="quadrature").score, 9)
        1.0
    """
    refuse_other_order(codes=codes, log_variances=log_variances)
    inputs = check_inputs(codes, factors, kinds, seed)
    check_choice("method", method, ("monte_carlo", "quadrature"))
    check_whole("n_samples", n_samples, 2, MOST_DRAWS, why="the draws of a level have to fit in memory")
    levels = as_levels(inputs)
    if log_variances is None:
        raise NotDefined(NEEDS)
    variances = check_log_variances(log_variances, inputs.stored.shape)
    entropies = factor_entropy(levels)
    rng = np.random.default_rng(seed) if method == "monte_carlo" else None
    information, errors = _information(inputs, variances, levels.levels, levels.sizes, rng, n_samples)
    information, errors = np.clip(information, 0.0, entropies), errors if rng is not None else np.zeros_like(errors)
    per_factor, standard_error = _gaps(information, errors, entropies)
    return ExactMIG(
        score=float(per_factor.mean()),
        standard_error=standard_error,
        per_factor=per_factor,
        mutual_information=information,
        mutual_information_error=errors,
        factor_entropy=entropies,
        notes=(
            *levels.notes,
            *single_code(inputs, "the runner-up of every gap is 0"),
            *notes_on_dependence(levels),
            *_notes_on_rows(inputs, variances, levels, entropies),
        ),
    )


def _gaps(information: FloatArray, errors: FloatArray, entropies: FloatArray) -> tuple[FloatArray, float]:
    """(n_factors,) gap of each factor, and the standard error of their mean."""
    nothing = np.zeros((1, len(entropies)))
    order = np.argsort(np.vstack([nothing, information]), axis=0, kind="stable")[-2:]
    runner_up, best = np.take_along_axis(np.vstack([nothing, information]), order, axis=0)
    gap_errors = np.sqrt((np.take_along_axis(np.vstack([nothing, errors]), order, axis=0) ** 2).sum(axis=0))
    return (best - runner_up) / entropies, float(np.sqrt(((gap_errors / entropies) ** 2).sum()) / len(entropies))


def _notes_on_rows(
    inputs: Inputs, log_variances: FloatArray | IntArray, levels: Levels, entropies: FloatArray
) -> tuple[str, ...]:
    """That noise is told by few rows of sharp posteriors, as if codes lay in bins about as wide as these."""
    # Variance of the means over that of each posterior, by logarithms; bounded, since posteriors may be very sharp.
    log_places = []
    for columns, values in inputs.column_blocks():
        with np.errstate(divide="ignore"):  # of a constant code
            spread = np.log(values.var(axis=0))
        log_places.append(np.logaddexp(0.0, np.minimum(spread - log_variances[:, columns], 1e4)).mean(axis=0))
    places = np.exp(np.minimum(0.5 * np.concatenate(log_places), 50.0))
    freedom = np.outer(2 * (places - 1), np.array(levels.sizes) - 1)
    draws = np.random.default_rng(0).standard_gamma(freedom / 2, (NULL_DRAWS, *freedom.shape)) / inputs.n_samples
    noise = float(np.mean(gaps(np.minimum(draws, entropies)) / entropies))
    n_places = places.max()
    if noise <= LARGEST_NOISE and inputs.n_samples >= n_places * max(levels.sizes):
        return ()
    few = f"{inputs.n_samples} rows for {max(levels.sizes)} levels"
    return (unreadable(f"{few} of posteriors that tell {n_places:.0f} places apart"),)


class _Slices(NamedTuple):
    """Some values of the factors, and what one code's information on them is found from."""

    code: int
    values: slice  # of all factors' values, one after the other
    means: FloatArray  # (n_samples,) of the code, about their median
    scales: FloatArray  # (n_samples,)
    members: IntArray  # (n_samples, any) which of these values each row has, from 1; -1 for none
    largest: FloatArray  # (n_values + 1,) that log q(z given v) - log q(z) can be
    draws: FloatArray | None  # (n_values, n_samples) from each q(z given v); None: by quadrature
    n_samples: int


def mig_exact_of_shuffles(
    inputs: Inputs, orders: IntArray, *, log_variances: FloatArray | IntArray
) -> list[tuple[float, FloatArray]]:
    """Score and `per_factor` by quadrature, row i of the factors beside row `orders[t, i]` of the codes.

    All orders that are given at once share the work on the codes, which is most of it.
    """
    levels = as_levels(inputs)
    entropies, variances = factor_entropy(levels), check_log_variances(log_variances, inputs.stored.shape)
    moved = np.empty((inputs.n_samples, len(orders), inputs.n_factors), dtype=np.int64)
    for number, order in enumerate(orders):
        moved[order, number] = levels.levels
    columns, sizes = moved.reshape(inputs.n_samples, -1), levels.sizes * len(orders)
    information, _ = _information(inputs, variances, columns, sizes, None, n_samples=1)
    by_order = information.reshape(inputs.n_codes, *moved.shape[1:]).transpose(1, 0, 2)
    per_factor = gaps(np.clip(by_order, 0.0, entropies)) / entropies
    return [(float(each.mean()), each) for each in per_factor]


def mig_exact_of_parts(
    whole: Inputs, seed: int, *, log_variances: FloatArray | IntArray | None = None
) -> Callable[[Part], Numbers]:
    """By quadrature, and one normal number for each code and factor in place of the draws.

    The mean of so many draws is normal about the integral, and quadrature gives their variance, too: scores of parts
    are distributed as those by draws are, but take a quarter of the time. The normal numbers follow from the seed and
    the codes: the same rows have the same luck, and other codes another.
    """
    if log_variances is None:
        raise NotDefined(NEEDS)
    variances = check_log_variances(log_variances, whole.stored.shape)

    def of_part(part: Part) -> Numbers:
        inputs, levels = part.inputs, as_levels(part.inputs)
        entropies = factor_entropy(levels)
        own = variances.take(part.rows, axis=0)
        information, of_one = _information(inputs, own, levels.levels, levels.sizes, None, n_samples=1)
        errors = of_one / np.sqrt(N_DRAWS)
        rng = np.random.default_rng([seed, zlib.crc32(inputs.codes.tobytes())])
        drawn = np.clip(information + errors * rng.standard_normal(errors.shape), 0.0, entropies)
        per_factor, standard_error = _gaps(drawn, errors, entropies)
        return Numbers({"score": float(per_factor.mean()), "standard_error": standard_error}, per_factor)

    return of_part


def _information(
    inputs: Inputs,
    log_variances: FloatArray | IntArray,
    levels: IntArray,
    sizes: Sequence[int],
    rng: np.random.Generator | None,
    n_samples: int,
) -> tuple[FloatArray, FloatArray]:
    """(n_codes, n_columns) mutual information of each code with each column of levels, and its standard error.

    Without `rng` it is that by quadrature, and the error is what `n_samples` draws for each value would have.
    """
    first = np.concatenate([[0], np.cumsum(sizes)])
    # One number per value of any column: the values of column k are first[k] .. first[k + 1] - 1.
    values = levels + first[:-1]
    share = np.bincount(values.ravel(), minlength=first[-1]) / inputs.n_samples
    divergence, variance = np.zeros((2, inputs.n_codes, first[-1]))
    tasks = _all_slices(inputs, log_variances, values, share, rng, n_samples)
    for task, moments in map_ordered(_divergences, tasks):
        divergence[task.code, task.values], variance[task.code, task.values] = moments
    information = np.add.reduceat(share * divergence, first[:-1], axis=1)
    return information, np.sqrt(np.add.reduceat(share**2 * variance, first[:-1], axis=1))


def _all_slices(
    inputs: Inputs,
    log_variances: FloatArray | IntArray,
    values: IntArray,
    share: FloatArray,
    rng: np.random.Generator | None,
    n_samples: int,
) -> Iterator[_Slices]:
    """Those of all codes, in the order in which they are drawn."""
    step = max(1, DRAWS // n_samples)
    spans = [slice(start, min(start + step, len(share))) for start in range(0, len(share), step)]
    members = [_members(values, span) for span in spans]
    for code in range(inputs.n_codes):
        means, scales, *_ = centred_posteriors(inputs.code(code), log_variances[:, code].astype(np.float64))
        for span, own in zip(spans, members, strict=True):
            largest = np.concatenate([[np.inf], -np.log(share[span])])
            draws = None if rng is None else _draws(means, scales, own, len(share[span]), n_samples, rng)
            yield _Slices(code, span, means, scales, own, largest, draws, n_samples)


def _members(values: IntArray, span: slice) -> IntArray:
    """Of `_Slices`, without columns in which no row has any of these values."""
    members = np.where((values >= span.start) & (values < span.stop), values - span.start + 1, -1)
    return np.ascontiguousarray(members[:, (members > 0).any(axis=0)])


def _divergences(slices: _Slices, _: threading.Event) -> tuple[FloatArray, FloatArray]:
    """(n_values,) KL divergence of q(z given v) from q(z), and the variance of a mean of `n_samples` draws."""
    n_values, n_samples = len(slices.largest) - 1, slices.n_samples
    parts = panels(slices.means, slices.scales, slices.members, n_values + 1)
    sums = np.zeros((n_values, 2))
    if slices.draws is None:
        for part in parts:
            sums += log_ratio_moments(part)[1:]
        return sums[:, 0], np.maximum(sums[:, 1] - sums[:, 0] ** 2, 0.0) / n_samples
    for part in parts:
        sums += sum_up(slices.draws, part, log_ratio_table(part, slices.largest)[1:])
    divergence = sums[:, 0] / n_samples
    spread = sums[:, 1] - n_samples * divergence**2
    return divergence, np.maximum(spread, 0.0) / (n_samples - 1) / n_samples


def _draws(
    means: FloatArray, scales: FloatArray, slices: IntArray, n_slices: int, n_samples: int, rng: np.random.Generator
) -> FloatArray:
    """(n_slices, n_samples) from the mixture of each slice 1 .. n_slices."""
    draws = rng.standard_normal((n_slices, n_samples))
    for column in slices.T:
        rows = np.argsort(column, kind="stable")
        present, begin, count = np.unique(column[rows], return_index=True, return_counts=True)
        for piece, at, size in zip(present, begin, count, strict=True):
            if piece > 0:
                chosen = rows[at + rng.integers(size, size=n_samples)]
                draws[piece - 1] = means[chosen] + scales[chosen] * draws[piece - 1]
    return draws


METRIC = Metric(
    mig_exact,
    title="Mutual information gap, exact",
    question="own_code",
    claims={"score": ("compactness",)},
    chance=zero_chance,
    summary="How much more information the best latent's posterior has on a factor than the second best's.",
    limitations="Cannot see information that only several latents have together. Too high with few, sharp posteriors.",
    source="Chen et al. 2018, eq. 4 with eq. 8 and section 5.5",
    needs=NEEDS,
    stochastic=True,
    slow=True,
    tolerance=0.01,
    interval=FEW_UNCHECKED_HALVES,
    of_parts=mig_exact_of_parts,
    of_shuffles=mig_exact_of_shuffles,
    cites=("chen2018isolating",),
    formula=(
        r"I(z_j; v_k) = \sum_{v} p(v) \, \mathrm{KL}\left( q(z_j | v_k = v) \,\|\, q(z_j) \right), \qquad "
        r"q(z_j | v_k = v) = \frac{1}{N_v} \sum_{n: v_k^{(n)} = v} q(z_j | x_n)",
        r"The score is the gap of MIG with this $I$. $q(z_j | x_n)$ is the Gaussian posterior of one image, and "
        r"$q(z_j)$ the mixture over all $N$.",
    ),
)
