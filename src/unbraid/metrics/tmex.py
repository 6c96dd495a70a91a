"""T-MEX: how many cells of the table of codes and factors depend otherwise than they should."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unbraid.base.arguments import check_number
from unbraid.base.counted import counted
from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, FloatArray, IntArray, Kind
from unbraid.metrics._shared.alignment import align
from unbraid.metrics._shared.chance import unreadable
from unbraid.metrics._shared.inputs import Inputs, check_inputs, check_matrix, split_rows, standardised
from unbraid.metrics._shared.metric import Metric
from unbraid.metrics._shared.regression import Blocks, as_blocks, least_squares, notes_on_blocks

ALPHA = 0.05
NOTHING = 1e-20  # share of a variance that rounding leaves
MOST = 1e9  # ratio of mean and deviation
ROWS_PER_COLUMN = 10  # fewer, and a normal variable is no model of the statistic


@dataclass(frozen=True, eq=False, repr=False)
class TMEX(Shown):
    score: float  # number of cells that differ, and of factors without a code
    dependent: IntArray  # (n_codes, n_factors) 1 where independence is rejected
    expected: IntArray  # (n_codes, n_factors) 1 where a dependence should be
    p_values: FloatArray  # (n_codes, n_factors)
    n_rows: float  # that were tested
    notes: tuple[str, ...] = ()


def tmex(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    groups: ArrayLike | None = None,
    expected: ArrayLike | None = None,
    alpha: float = ALPHA,
    sizes: Sequence[int] | None = None,
) -> TMEX:
    """In how many cells a code depends on a factor, given the other factors, where it should not, or fails to.

    Each cell is tested by the generalised covariance measure: the residuals of the code and of the factor, each by
    least squares from all other factors, are multiplied; T = sqrt(n) mean / deviation of the products is normal where
    both are independent.

    Args:
        codes: (n_samples, n_codes) real.
        factors: (n_samples, n_factors) levels or real values. A cyclic factor is read as its cosine and sine, a
            categorical one as indicators of its levels; the least of their p values counts, times their number.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: draws the halves.
        groups: (n_samples,) group of each row (trial, animal, video or session); no group is in two parts.
        expected: (n_codes, n_factors) of 0 and 1, where a dependence should be. Without it one half of the rows
            matches each factor with a code of its own, by |T|, and the other half is tested against that: matched on
            the same rows, noise would be best.
        alpha: probability with which a cell is rejected by luck.
        sizes: number of levels of each factor, around which cyclic ones wrap; default the highest present + 1.

    Returns:
        TMEX. `score` at least 0, lower is better. With many rows any leak is rejected, however small (30 of 50 cells
        of trained models): compare at equal rows, and look at `p_values`. Chance: noise lacks the dependence of each
        factor, and has `alpha` of the other cells. Sees linear dependence only. Not invariant to rotation of codes.

    Raises:
        ValueError: what every metric refuses, `expected` of another shape or with other values than 0 and 1, or `alpha`
            out of range.

    Reference:
        Yao et al. 2025, "The Third Pillar of Causal Analysis? A Measurement Perspective on Causal Representations",
        with the test of Shah & Peters 2020.

    Example:
        >>> grid = np.random.default_rng(0).standard_normal((2000, 2))
        >>> tmex(grid @ [[1, 0], [1, 1]], grid, expected=np.eye(2)).score
        1.0
    """
    check_number("alpha", alpha, above=0.0, below=1.0)
    inputs = check_inputs(codes, factors, kinds, seed, groups=groups)
    blocks, z = as_blocks(inputs, sizes), standardised(inputs.codes)
    rows, n_unmatched = np.arange(inputs.n_samples), 0
    notes: tuple[str, ...] = notes_on_blocks(inputs)
    if expected is None:
        known, rows = split_rows(inputs.n_samples, (0.5, 0.5), seed, inputs.groups)
        matched = align(_statistics(z[known], blocks.columns[known], blocks)[0])
        target = (matched == np.arange(inputs.n_codes)[:, None]).astype(np.int64)
        n_unmatched = int((matched < 0).sum())
        if n_unmatched:
            sizes_of = f"{counted(inputs.n_codes, 'code')} for {counted(inputs.n_factors, 'factor')}"
            notes += (f"{sizes_of}: {n_unmatched} without one, counted as 1",)
    else:
        target = _checked(expected, inputs)
    p_values = _statistics(z[rows], blocks.columns[rows], blocks)[1]
    dependent = (p_values <= alpha).astype(np.int64)
    if len(rows) < ROWS_PER_COLUMN * (blocks.columns.shape[1] + 1):
        notes += (unreadable(f"{len(rows)} rows for least squares on {blocks.columns.shape[1]} columns of factors"),)
    return TMEX(float((dependent != target).sum() + n_unmatched), dependent, target, p_values, float(len(rows)), notes)


def _checked(expected: ArrayLike, inputs: Inputs) -> IntArray:
    matrix = check_matrix(expected, "expected", "n_factors")
    if matrix.shape != (inputs.n_codes, inputs.n_factors) or not np.isin(matrix, (0, 1)).all():
        raise ValueError(
            f"expected must be ({inputs.n_codes}, {inputs.n_factors}), codes by factors, of 0 and 1; "
            f"got shape {matrix.shape} with values {matrix.min():g} to {matrix.max():g}"
        )
    return matrix.astype(np.int64)


def _statistics(codes: FloatArray, columns: FloatArray, blocks: Blocks) -> tuple[FloatArray, FloatArray]:
    """(n_codes, n_factors) largest |T| over the columns of a factor, and p values."""
    from scipy.special import ndtr

    n_factors = len(blocks.single)
    largest, p_values = np.zeros((codes.shape[1], n_factors)), np.ones((codes.shape[1], n_factors))
    for factor in range(n_factors):
        own = columns[:, blocks.owner == factor]
        rest = columns[:, blocks.owner != factor]
        both = np.hstack([codes, own])
        predicted = least_squares(rest, both, rest) if n_factors > 1 else both.mean(axis=0)
        left = both - predicted
        # What the others explain but for rounding is explained.
        left[:, (left**2).mean(axis=0) <= NOTHING * both.var(axis=0)] = 0.0
        products = left[:, : codes.shape[1], None] * left[:, None, codes.shape[1] :]
        mean, spread = products.mean(axis=0), products.std(axis=0)
        certain = spread <= 1 / MOST * np.abs(mean)  # products that hardly vary, as of factors of two values
        t = np.sqrt(len(codes)) * np.where(certain, MOST * (mean != 0), np.abs(mean) / np.where(certain, 1.0, spread))
        largest[:, factor] = t.max(axis=1)
        p_values[:, factor] = np.minimum(1.0, own.shape[1] * 2 * ndtr(-largest[:, factor]))
    return largest, p_values


METRIC = Metric(
    tmex,
    title="Test-based measurement exclusivity",
    question="changes",
    claims={"score": ("modularity", "compactness")},
    best=0.0,
    higher_is_better=False,
    range=(0.0, math.inf),
    summary="In how many cells a code depends on a factor where it should not, or does not where it should.",
    limitations="Ignores how strong a leak is: enough rows find any. Sees linear dependence only.",
    source="Yao et al. 2025",
    version=2,
    stochastic=True,
    aligned=False,
    standard=False,
    interval="it counts rejected tests, of which fewer rows give fewer",
    cites=("yao2025third", "shah2020hardness"),
    formula=(
        r"\mathrm{T\text{-}MEX} = \sum_{ik} \left| W_{ik} - E_{ik} \right|, \qquad W_{ik} = \left[ \, 2 "
        r"\Phi(-|T_{ik}|) "
        r"\leq .05 \, \right], \qquad T_{ik} = \sqrt{N} \, \frac{\mathrm{mean}(r_i r_k)}{\mathrm{sd}(r_i r_k)}",
        r"$r_i$ and $r_k$ are the residuals of code $i$ and of factor $k$ by least squares from all other "
        r"factors; $E$ "
        r"is what should depend, by default a code of its own for each factor, matched on other rows.",
    ),
)
