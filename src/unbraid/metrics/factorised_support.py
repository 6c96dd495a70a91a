"""Hausdorff factorised support: whether codes take all combinations of their values."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from unbraid.base.arguments import check_choice, check_whole
from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, FloatArray, IntArray, Kind
from unbraid.metrics._shared.compiled import kernel
from unbraid.metrics._shared.inputs import check_inputs, check_matrix, standardised
from unbraid.metrics._shared.metric import Metric

Order: TypeAlias = Literal["random", "rows"]


@dataclass(frozen=True, eq=False, repr=False)
class FactorisedSupport(Shown):
    score: float  # sum over pairs of codes
    mean_pair: float  # the same, per pair
    per_pair: FloatArray  # (n_codes, n_codes) mean over batches, symmetric; 0 for pairs that were not drawn
    n_batches: float
    notes: tuple[str, ...] = ()


def factorised_support(
    codes: ArrayLike,
    factors: ArrayLike | None = None,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    batch_size: int = 128,
    order: Order = "random",
    standardise: bool = True,
    n_pairs: int | None = None,
) -> FactorisedSupport:
    """How far recombined values of two codes lie from those that occur together.

    For each pair of codes and each batch of rows, the largest over all recombined points (code i of one row, code j of
    another) of the least squared distance to a row; summed over pairs, averaged over batches.

    Args:
        codes: (n_samples, n_codes) real.
        factors: unused, but checked when given.
        kinds: unused, but checked when given with `factors`.
        seed: of the order in which rows make up batches, and of the pairs.
        batch_size: rows of a batch. All rows are one batch where they are fewer.
        order: which rows make up a batch: "random", drawn by `seed`, where rows left over are not used; or "rows", each
            next ones as they come, and those left over a batch like any other, as the authors' code does.
        standardise: each code to variance 1 first; the authors do not, so that their values grow with its scale.
        n_pairs: of codes, drawn at random, whose mean stands for all pairs; default all pairs.

    Returns:
        FactorisedSupport. `score` at least 0, lower is better: 0 when every combination occurs. It grows with the
        number of pairs of codes (`mean_pair` does not), and is far from 0 for independent codes too, since few rows
        cannot show every combination: compare only equal numbers of codes and `batch_size`. Says nothing on whether
        any factor is known; constant codes and a single code score 0. Not invariant to rotation of codes.

    Raises:
        ValueError: values not finite, or so large that squared distances are not; fewer than two rows, `batch_size`
            below 2 or above 4096, `n_pairs` below 1.

    Reference:
        Roth et al. 2023, "Disentanglement of Correlated Factors via Hausdorff Factorized Support". Differs:
        standardised codes, rows in random order; `order="rows", standardise=False` is their code.

    Example:
        >>> corners = np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
        >>> factorised_support(corners, standardise=False).score
        0.0
        >>> factorised_support(corners[:3], standardise=False).score
        1.0
    """
    check_whole("seed", seed, 0)
    check_whole("batch_size", batch_size, 2, 4096, why="all its rows are recombined")
    check_choice("order", order, get_args(Order))
    if n_pairs is not None:
        check_whole("n_pairs", n_pairs, 1)
    matrix = check_matrix(codes, "codes", "n_codes", 2)
    if factors is not None:
        check_inputs(codes, factors, kinds)
    n_samples, n_codes = matrix.shape
    rng = np.random.default_rng(seed)
    rows = rng.permutation(n_samples)
    values = standardised(matrix) if standardise else matrix
    batches = _batches(values if order == "rows" else values[rows], min(batch_size, n_samples), order == "rows")
    firsts, seconds = np.triu_indices(n_codes, 1)
    drawn = np.arange(len(firsts))
    if n_pairs is not None and n_pairs < len(firsts):
        drawn = np.sort(rng.choice(len(firsts), n_pairs, replace=False))
    n_batches = sum(batch.shape[1] for batch in batches)
    distances = np.zeros(len(drawn))
    for batch in batches:
        places = np.argsort(batch, axis=2)
        pairs = zip(firsts[drawn], seconds[drawn], strict=True)
        distances += [_farthest(batch[i], batch[j], places[i]) / n_batches for i, j in pairs]
    per_pair = np.zeros((n_codes, n_codes))
    per_pair[firsts[drawn], seconds[drawn]] = per_pair[seconds[drawn], firsts[drawn]] = distances
    mean = float(distances.mean()) if len(drawn) else 0.0
    notes = () if len(firsts) else ("one code: there is nothing to recombine, and the score is 0",)
    return FactorisedSupport(mean * len(firsts), mean, per_pair, float(n_batches), notes)


def _batches(values: FloatArray, size: int, rest: bool) -> list[FloatArray]:
    """(n_codes, n_batches, size) of all whole batches, and with `rest` one shorter batch of the rows left over."""
    cut = len(values) // size * size
    parts = [np.ascontiguousarray(values[:cut].T).reshape(values.shape[1], -1, size)]
    return [*parts, np.ascontiguousarray(values[cut:].T)[:, None]] if rest and cut < len(values) else parts


@kernel(_nrt=True, error_model="python")
def _farthest(one: FloatArray, other: FloatArray, order: IntArray) -> float:
    """Sum over batches (n_batches, size) of the largest least squared distance; `order` sorts `one`."""
    total, size = 0.0, one.shape[1]
    for batch in range(len(one)):
        x, y = one[batch][order[batch]], other[batch][order[batch]]
        worst = 0.0
        for at in range(size):
            for height in y:
                # Rows outwards from the one whose first value this is, until none nearer can follow.
                least = (y[at] - height) ** 2
                left, right = at - 1, at + 1
                while least > worst and (left >= 0 or right < size):
                    to_left = (x[at] - x[left]) ** 2 if left >= 0 else np.inf
                    to_right = (x[right] - x[at]) ** 2 if right < size else np.inf
                    if min(to_left, to_right) >= least:
                        break
                    if to_left <= to_right:
                        least = min(least, to_left + (y[left] - height) ** 2)
                        left -= 1
                    else:
                        least = min(least, to_right + (y[right] - height) ** 2)
                        right += 1
                worst = max(worst, least)
        total += worst
    return total


METRIC = Metric(
    factorised_support,
    title="Hausdorff factorised support",
    question="support",
    best=0.0,
    higher_is_better=False,
    range=(0.0, math.inf),
    summary="How far recombined values of two codes are from those that occur together; needs no factors.",
    limitations="Ignores information on factors. Grows with the number of codes, and is far from 0 on few rows.",
    source="Roth et al. 2023",
    stochastic=True,
    aligned=False,
    standard=False,
    interval="it is a distance between extremes, which subsets of the rows miss",
    cites=("roth2023disentanglement",),
    formula=(
        r"\mathrm{HFS} = \frac{1}{|B|} \sum_{b \in B} \sum_{i < j} \max_{m, n \in b} \min_{r \in b} "
        r"\left\| (z_i^{(m)}, z_j^{(n)}) - (z_i^{(r)}, z_j^{(r)}) \right\|^2",
        r"$B$ are batches of 128 rows; codes are standardised.",
    ),
)
