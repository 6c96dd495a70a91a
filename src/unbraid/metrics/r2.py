"""Coefficient of determination (R^2)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from unbraid.base.arguments import check_choice, check_whole
from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, FloatArray, IntArray, Kind
from unbraid.data.labels import check_groups
from unbraid.metrics._shared.chance import Noise, unreadable
from unbraid.metrics._shared.inputs import Inputs, check_inputs, mean_and_scale, split_rows, standardised
from unbraid.metrics._shared.metric import PAIRS_AND_BIAS, Metric
from unbraid.metrics._shared.regression import as_blocks, explained, least_squares, notes_on_blocks, notes_on_parts
from unbraid.metrics._shared.resampling import permutation
from unbraid.metrics._shared.train_valid_test import train_valid_test
from unbraid.metrics._solvers.kernel import best_setting, kernel_ridge
from unbraid.metrics._solvers.network import perceptron

Regressor: TypeAlias = Literal["linear", "kernel", "mlp"]
HIDDEN = 256
# Of tails heavier than these, intervals held the mean in as few as 17 of 100 samples: benchmarks/interval_limits.py.
MOST_EXCESS = 7  # excess kurtosis, which 60 rows of ten columns by Student's t of ten degrees exceed in 4 of 100
ROWS_OF_MOST = 1000  # beyond as many it may grow by their cube root, as in samples by Student's t of three degrees
ROUNDING = 1e-9  # residuals of a code of variance 1 that is linear in the factors
ROWS_PER_CODE = 2  # fewer training rows for each code, and least squares mostly fits noise


@dataclass(frozen=True, eq=False, repr=False)
class R2(Shown):
    score: float  # factors from codes, mean of per_factor
    codes_from_factors: float  # mean of per_code
    per_factor: FloatArray  # (n_factors,)
    per_code: FloatArray  # (n_codes,) each code from all factors
    notes: tuple[str, ...] = ()


def r2(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    groups: ArrayLike | None = None,
    regressor: Regressor = "linear",
    max_train: int = 2000,
    sizes: Sequence[int] | None = None,
    test_codes: ArrayLike | None = None,
    test_factors: ArrayLike | None = None,
) -> R2:
    """How well all codes together predict each factor, on rows that were not fitted to; by default linearly.

    An ordered factor is read as a number, a cyclic one as its cosine and sine, a categorical one as an indicator of
    each level; R^2 = 1 - errors / variances, both summed over these columns.

    Args:
        codes: (n_samples, n_codes) real. Posterior means unless stated otherwise.
        factors: (n_samples, n_factors) levels or real values.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: draws the halves, of which each is predicted by the fit to the other, and what a regressor draws.
        groups: (n_samples,) group of each row (trial, animal, video or session); no group is in two parts.
        regressor: "linear", least squares with an intercept; "kernel", ridge regression with a Gaussian kernel, whose
            penalty (1, .1, .01 or .001) and width (.01, .2154, 4.642 or 100 times the squared distance of standardised
            rows) have the highest mean R^2 over three folds of the rows fitted to, the same for all targets; or "mlp",
            one hidden layer of 256 rectified units, 75 epochs of Adam at .001 in batches of 64.
        max_train: rows that the kernel is fitted to at most, 10 to 10 000; `seed` draws them.
        sizes: number of levels of each factor, around which cyclic ones wrap; default the highest present + 1. Where
            the last level is the first again, one less than there are (`FactorSpace.turns`).
        test_codes: (n, n_codes) rows to predict instead; all rows of `codes` are then fitted to.
        test_factors: (n, n_factors) their factors.

    Returns:
        R2. `score` at most 1, higher is better, mean of `per_factor`; not cut off at 0. `codes_from_factors` is the
        other direction (`direction="factors_to_codes"` of others), the mean of `per_code`: codes that hold nothing
        count there, and a constant one as 0.
        Chance: about -n_codes / n of n training rows, lower for codes of heavy tails, see `r2_of_noise`; a note says
        where these are less than twice as many as codes. About 0 by the kernel, below 0 by "mlp", which fits noise.
        Invariant to rotation: it says that codes tell the factors, not that each tells one; what single codes tell in
        curves, the kernel reads as well.

    Raises:
        ValueError: what every metric refuses, only one test argument is given, or an unknown regressor.

    Reference:
        von Kügelgen et al. 2021, "Self-Supervised Learning with Data Augmentations Provably Isolates Content from
        Style", experiments (linear and kernel regression). Differs: both halves are predicted in turn.

    Example:
        >>> grid = FactorSpace(("a", "b"), (8, 9), ("ordinal", "ordinal")).grid()
        >>> round(r2(grid + 5.0, grid).score, 12)
        1.0
    """
    check_choice("regressor", regressor, get_args(Regressor))
    check_whole("max_train", max_train, 10, 10_000, why="a matrix of all pairs of rows is solved")
    inputs = check_inputs(codes, factors, kinds, seed, groups=groups)
    split = train_valid_test(inputs, seed, test_codes, test_factors, (0.5, 0.5))
    blocks, z = as_blocks(split.inputs, sizes), standardised(split.inputs.codes)
    way = (split.train, split.test)
    splits = [way, way[::-1]] if test_codes is None else [way]
    v, owner, columns, groups = blocks.columns, blocks.owner, np.arange(inputs.n_codes), inputs.groups

    def judged(x: FloatArray, y: FloatArray, owner: IntArray, fit: IntArray, rest: IntArray) -> FloatArray:
        own = None if groups is None else groups[fit]
        predicted = _predicted(regressor, x[fit], y[fit], x[rest], owner, own, seed=seed, max_train=max_train)
        return explained(predicted, y[rest], owner)

    per_factor = np.mean([judged(z, v, owner, *way) for way in splits], axis=0)
    per_code = np.mean([judged(v, z, columns, *way) for way in splits], axis=0)
    fewest = min(len(fit) for fit, _ in splits)
    free = regressor == "linear" and fewest < max(ROWS_PER_CODE * inputs.n_codes, inputs.n_codes + 4)
    return R2(
        score=float(per_factor.mean()),
        codes_from_factors=float(per_code.mean()),
        per_factor=per_factor,
        per_code=per_code,
        notes=(
            *notes_on_blocks(inputs),
            *notes_on_parts(blocks, splits),
            *((unreadable(f"least squares on {inputs.n_codes} codes fits any {fewest} rows"),) if free else ()),
        ),
    )


def _predicted(
    regressor: Regressor,
    known: FloatArray,
    targets: FloatArray,
    test: FloatArray,
    owner: IntArray,
    groups: IntArray | None,
    *,
    seed: int,
    max_train: int,
) -> FloatArray:
    """(m, q) what targets (n, q), of which `owner` (q,) tells the ones read together, are predicted to be at others."""
    if regressor == "linear":
        return least_squares(known, targets, test)
    if regressor == "kernel":
        rows = permutation(len(known), seed)[:max_train]
        known, targets = known[rows], targets[rows]
        groups = None if groups is None else check_groups(groups[rows], len(rows))
    (mean, scale), (centre, unit) = mean_and_scale(known), mean_and_scale(targets)
    x, y, x_test = (known - mean) / scale, (targets - centre) / unit, (test - mean) / scale
    if regressor == "mlp":
        predicted = perceptron(x, y, hidden=HIDDEN, seed=seed)(x_test)
    else:
        folds = split_rows(len(x), (1 / 3, 1 / 3, 1 / 3), seed, groups)
        alpha, gamma = best_setting(x, y, folds, lambda guess, true: float(explained(guess, true, owner).mean()))
        predicted = kernel_ridge(x, y, x_test, alpha=alpha, gamma=gamma)
    return centre + np.where(unit < np.inf, unit, 0.0) * predicted


def r2_of_noise(inputs: Inputs) -> Noise:
    """About -n_codes / n for n rows in a half, on few rows or with codes of heavy tails far below 0."""
    n, d = inputs.n_samples // 2, inputs.n_codes
    if n < ROWS_PER_CODE * d or n < d + 4:
        return Noise(-1.0, 1.0)  # the result says that it cannot be read
    z = np.column_stack([np.ones(inputs.n_samples), standardised(inputs.codes)])
    first, second = split_rows(inputs.n_samples, (0.5, 0.5), 0, inputs.groups)
    expected, variances = np.transpose([_luck(z[fit], z[rest]) for fit, rest in ((first, second), (second, first))])
    return Noise(float(expected.mean()), float(np.sqrt(variances.mean() / inputs.n_factors)))


def _luck(fit: FloatArray, rest: FloatArray) -> tuple[float, float]:
    """Mean and variance of R^2 on other rows (m, d) where least squares is fitted to noise of variance 1 at (n, d).

    Predictions are of mean square tr(G) / m, G = (fit' fit)^-1 rest' rest, whatever the codes are distributed like.
    """
    m = len(rest)
    strays = np.linalg.pinv(fit.T @ fit, hermitian=True) @ (rest.T @ rest)
    mean, square = float(np.trace(strays)), float((strays * strays.T).sum())
    return 1 - (m + mean) / (m - 1), (4 * mean + 2 * square) / m**2


def heavy_tails(inputs: Inputs) -> str:
    """Which code or continuous factor has so heavy tails that parts of the rows do not show how far R^2 strays.

    By the largest excess kurtosis of continuous factors, and of what is left of codes after least squares on all
    factors: what factors explain of a code would hide the tails of its noise.
    """
    continuous = [factor for factor, kind in enumerate(inputs.kinds) if kind == "continuous"]
    names = [*(f"code {code}" for code in range(inputs.n_codes)), *(f"factor {factor}" for factor in continuous)]
    factors, codes = as_blocks(inputs).columns, standardised(inputs.codes)
    residuals = codes - least_squares(factors, codes, factors)
    residuals[:, np.abs(residuals).max(axis=0) < ROUNDING] = 0.0
    excess = np.mean(standardised(np.column_stack([residuals, inputs.factors[:, continuous]])) ** 4, axis=0) - 3
    most = MOST_EXCESS * max(1.0, (inputs.n_samples / ROWS_OF_MOST) ** (1 / 3))
    if excess.max() <= most:
        return ""
    what = "residuals given the factors" if (column := int(excess.argmax())) < inputs.n_codes else "values"
    return (
        f"{names[column]} has heavy tails or outliers (excess kurtosis of its {what} {excess[column]:.1f}; an interval "
        f"takes {most:.1f} or less on {inputs.n_samples:,} rows): the score rests on a few extreme rows"
    )


METRIC = Metric(
    r2,
    title="Coefficient of determination",
    question="identified",
    claims={"score": ("explicitness",)},
    range=(-math.inf, 1.0),
    chance=r2_of_noise,
    summary="How much of each factor's variance linear regression on all codes predicts, on held-out rows.",
    limitations="Blind to rotation and to nonlinear relations. Below 0 with many codes and few rows.",
    source="von Kügelgen et al. 2021, experiments",
    stochastic=True,
    aligned=False,
    version=3,
    interval=PAIRS_AND_BIAS,
    no_interval=heavy_tails,
    cites=("vonkugelgen2021self",),
    formula=(
        r"R^2 = \frac{1}{K} \sum_{k=1}^{K} \left( 1 - "
        r"\frac{\sum_n (v_k^{(n)} - a_k - w_k^{\top} z^{(n)})^2}{\sum_n (v_k^{(n)} - \bar{v}_k)^2} \right)",
        r"The intercept $a_k$ and the weights $w_k$ are fitted to one half of the rows, the sums run over the "
        r"other half; "
        r"the halves are exchanged, and the score is the mean of both. With `regressor` a kernel or a "
        r"perceptron takes "
        r"the place of the line.",
    ),
)
