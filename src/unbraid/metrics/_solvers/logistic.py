"""Logistic regression to its optimum, with an L2 penalty on the coefficients and none on the intercept.

The objective is that of scikit-learn's LogisticRegression, by default with its C = 1, a penalty of 1/2 times the sum of
squares. Inputs are standardised codes. The penalty stays the same when codes are rotated, and along their principal
axes the Hessian is nearly diagonal: conjugate gradients then take few steps, however many codes there are and however
alike.
"""

import threading
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from unbraid.base.threads import at_once, one_blas_thread
from unbraid.base.types import BoolArray, FloatArray, IntArray
from unbraid.metrics._shared.sharing import of_codes, shared

TOLERANCE = 1e-6  # largest entry of the gradient of the mean loss at the end
ROUGH, FINAL = 1e-3, 1e-4  # the same of fits that are compared on validation rows, and of the last one
PENALTIES = (1e4, 1e3, 1e2, 1e1, 1.0)  # that are compared, as 1 / C
SCALES = 2.0 ** np.arange(-4, 9)  # of logits, of which validation rows take the best
MAX_STEPS = 100
MAX_INNER_STEPS = 200
BLOCK = 2048  # rows at a time, so that what belongs to them stays in the cache
COLUMNS = 16  # binary problems that are solved together
NOTHING = 1e-10  # probabilities below do not steer a step; their products would leave single precision


class Regression(NamedTuple):
    weights: FloatArray  # (n_codes + 1, n_columns) coefficients, intercepts last
    converged: bool


class _Inputs(NamedTuple):
    axes: FloatArray  # (n_codes, rank) principal axes
    double: FloatArray  # (n_samples, rank + 1) codes along them, and a column of ones
    single: FloatArray  # the same in single precision
    spread: FloatArray  # (rank + 1, 1) mean squares

    def of_rows(self, rows: IntArray) -> "_Inputs":
        return _Inputs(self.axes, self.double[rows], self.single[rows], self.spread)


def softmax_regression(codes: FloatArray, levels: IntArray, n_classes: int, tolerance: float = TOLERANCE) -> Regression:
    """The softmax classifier, a column per class."""
    return softmax_regressions(codes, levels[:, None], [n_classes], tolerance)[0]


def softmax_regressions(
    codes: FloatArray, levels: IntArray, sizes: Sequence[int], tolerance: float = TOLERANCE
) -> list[Regression]:
    """The softmax classifier of each factor, whose levels (n_samples, n_factors) are 0 .. sizes[factor] - 1."""

    def fit(factor: int, stopped: threading.Event) -> Regression:
        return _fit(inputs, np.eye(sizes[factor], dtype=bool)[levels[:, factor]], True, stopped, tolerance)

    with one_blas_thread():
        inputs = _along_axes(codes)
        return at_once(fit, range(len(sizes)), sizes)


def validated_regressions(
    codes: FloatArray, levels: IntArray, sizes: Sequence[int], fit: IntArray, validation: IntArray
) -> list[Regression]:
    """The softmax classifier of each factor, with the penalty and the codes that do best on validation rows.

    Penalties fall from the strongest for as long as the log loss on `validation` does, of logits that are scaled by a
    factor as suits these rows best: what a penalty does to the size of logits changes no prediction. This is done on
    all codes and, where they are less than half, on those alone whose means differ between levels (analysis of
    variance, p < .05 / n_codes); the other codes then have weight 0. All but the last fit are to the rows `fit`, the
    last is to both. Validation rows of levels that `fit` lacks do not count.
    """
    n_codes = codes.shape[1]

    def chosen(factor: int, stopped: threading.Event) -> Regression:
        column, size = levels[:, factor], sizes[factor]
        columns, inputs = np.arange(n_codes), whole
        loss, penalty, start = _best_penalty(inputs, known, column, size, fit, validation, stopped)
        informative = np.flatnonzero(_differing(*centred, column[fit], size))
        if 2 * len(informative) < n_codes:
            part = _along_axes(codes[:, informative])
            part_loss, part_penalty, part_start = _best_penalty(
                part, part.of_rows(fit), column, size, fit, validation, stopped
            )
            if part_loss < loss:
                columns, inputs, penalty, start = informative, part, part_penalty, part_start
        along, converged = _newton(inputs, np.eye(size, dtype=bool)[column], True, stopped, penalty, start, FINAL)
        weights = np.zeros((n_codes + 1, size))
        weights[columns], weights[-1] = inputs.axes @ along[:-1], along[-1]
        return Regression(weights, converged)

    with one_blas_thread():
        whole = _all_along_axes(codes)
        known, centred = _known(whole, fit), _centred(codes, fit)
        return at_once(chosen, range(len(sizes)), sizes)


def _best_penalty(
    inputs: _Inputs,
    known: _Inputs,
    levels: IntArray,
    size: int,
    fit: IntArray,
    validation: IntArray,
    stopped: threading.Event,
) -> tuple[float, float, FloatArray]:
    """Lowest loss on validation rows, its penalty, and the weights along principal axes; `known` are the rows `fit`."""
    indicators = np.eye(size, dtype=bool)[levels[fit]]
    rows = validation[np.isin(levels[validation], levels[fit])]
    lowest, best, weights = np.inf, PENALTIES[0], np.zeros((known.double.shape[1], size))
    start = weights
    for penalty in PENALTIES:
        weights, _ = _newton(known, indicators, True, stopped, penalty, weights, ROUGH)
        loss = _scaled_log_loss((inputs.double[rows] @ weights).T, levels[rows])
        if loss >= lowest:
            break
        lowest, best, start = loss, penalty, weights
    return lowest, best, start


def _scaled_log_loss(logits: FloatArray, levels: IntArray) -> float:
    """Mean log loss of logits (n_classes, n) after scaling by the best of SCALES, which changes no prediction."""
    if not len(levels):
        return 0.0
    return min(float(_lacking(scale * logits, levels)[0].mean()) for scale in SCALES)


@of_codes
@shared
def _all_along_axes(codes: FloatArray) -> _Inputs:
    return _along_axes(codes)


@of_codes
def _known(inputs: _Inputs, fit: IntArray) -> _Inputs:
    return inputs.of_rows(fit)


@of_codes
def _centred(codes: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray]:
    """These rows of codes, less their means, and the sums (n_codes,) of their squares."""
    centred = codes[rows] - codes[rows].mean(axis=0)
    return centred, (centred**2).sum(axis=0)


def _differing(centred: FloatArray, squares: FloatArray, levels: IntArray, size: int) -> BoolArray:
    """(n_codes,) whether the mean of a code differs between levels, by an F-test at .05 / n_codes."""
    from scipy.special import fdtrc

    counts = np.bincount(levels, minlength=size)
    indicators = np.eye(size)[:, counts > 0][levels]
    n_samples, n_classes = indicators.shape
    if n_classes < 2 or n_samples <= n_classes:
        return np.ones(len(squares), dtype=bool)
    between = ((indicators.T @ centred) ** 2 / counts[counts > 0, None]).sum(axis=0)
    within = np.maximum(squares - between, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = between / (n_classes - 1) / (within / (n_samples - n_classes))
    return fdtrc(n_classes - 1, n_samples - n_classes, ratio) * len(squares) < 0.05


def one_vs_rest_regression(codes: FloatArray, positive: BoolArray) -> Regression:
    """One binary classifier per column of `positive` (n_samples, n_problems)."""
    parts = np.array_split(positive, -(-positive.shape[1] // COLUMNS), axis=1)
    with one_blas_thread():
        inputs = _all_along_axes(codes)
        fits = at_once(
            lambda part, stopped: _fit(inputs, np.ascontiguousarray(part), False, stopped),
            parts,
            [part.shape[1] for part in parts],
        )
    return Regression(np.hstack([fit.weights for fit in fits]), all(fit.converged for fit in fits))


def unpenalised_cross_entropy(codes: FloatArray, levels: IntArray, n_classes: int, steps: int) -> float:
    """Nats a row that the softmax classifier without a penalty lacks on the rows it is fitted to.

    Each class weighs the same in the fit, whatever its rows, and each row in the result. Where classes can be parted
    there is no optimum: L-BFGS takes at most `steps` steps, as scikit-learn does, from the same start.
    """
    from scipy.optimize import minimize  # a fifth of a second to import

    # Classes in rows: all that is done to a block runs along its samples, of which there are more.
    inputs = np.vstack([codes.T, np.ones(len(codes))])
    worth = (1.0 / (n_classes * np.bincount(levels, minlength=n_classes)))[levels]
    own = np.zeros((n_classes, len(inputs)))
    np.add.at(own, levels, worth[:, None] * inputs.T)

    def fall(flat: FloatArray) -> tuple[float, FloatArray]:
        weights, missed, slope = np.ascontiguousarray(flat.reshape(-1, n_classes).T), 0.0, -own
        for rows in _blocks(len(codes)):
            lacking, powers, sums = _lacking(weights @ inputs[:, rows], levels[rows])
            missed += float(worth[rows] @ lacking)
            powers *= worth[rows] / sums
            slope += powers @ inputs[:, rows].T
        return missed, slope.T.ravel()

    with one_blas_thread():
        optimum = minimize(
            fall, np.zeros(len(inputs) * n_classes), jac=True, method="L-BFGS-B",
            options={"maxiter": steps, "maxls": 50, "gtol": 1e-4, "ftol": 64 * np.finfo(float).eps},
        )  # fmt: skip
        return float(_lacking(optimum.x.reshape(-1, n_classes).T @ inputs, levels)[0].mean())


def _lacking(logits: FloatArray, levels: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Nats (n,) that each sample lacks, powers (n_classes, n), in the place of the logits, and their sums (n,)."""
    logits -= logits.max(axis=0)
    own = logits[levels, np.arange(len(levels))]
    powers = np.exp(logits, out=logits)
    sums = powers.sum(axis=0)
    return np.log(sums) - own, powers, sums


def softmax(logits: FloatArray) -> FloatArray:
    """(n, n_classes) probabilities."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def _along_axes(codes: FloatArray) -> _Inputs:
    axes = _principal_axes(codes)
    double = np.ascontiguousarray(np.column_stack([codes @ axes, np.ones(len(codes))]))
    # Single precision suffices for the Hessian: it steers the steps, the gradient decides where they end.
    return _Inputs(axes, double, double.astype(np.float32), np.mean(double**2, axis=0)[:, None])


def _fit(
    inputs: _Inputs, chosen: BoolArray, joint: bool, stopped: threading.Event, tolerance: float = TOLERANCE
) -> Regression:
    weights, converged = _newton(inputs, chosen, joint, stopped, tolerance=tolerance)
    return Regression(np.vstack([inputs.axes @ weights[:-1], weights[-1:]]), converged)


def _principal_axes(codes: FloatArray) -> FloatArray:
    """(n_codes, rank) orthonormal."""
    n_samples, n_codes = codes.shape
    wide = n_codes > n_samples
    variances, axes = np.linalg.eigh(codes @ codes.T if wide else codes.T @ codes)
    nonzero = variances > variances.max(initial=0.0) * max(n_samples, n_codes) * np.finfo(float).eps
    return codes.T @ axes[:, nonzero] / np.sqrt(variances[nonzero]) if wide else axes[:, nonzero]


def _newton(
    inputs: _Inputs,
    chosen: BoolArray,
    joint: bool,
    stopped: threading.Event,
    strength: float = 1.0,
    start: FloatArray | None = None,
    tolerance: float = TOLERANCE,
) -> tuple[FloatArray, bool]:
    """Weights (width, n_columns), and whether they are the optimum; `joint`: columns are the classes of one problem.

    Newton's method on all problems at once; each step is found by conjugate gradients and shortened until the slope
    along it has fallen. Once `stopped` is set there is no further step.
    """
    axis, (n_samples, width) = None if joint else 0, inputs.double.shape
    penalty = np.full((width, 1), strength / n_samples)
    penalty[-1] = 0.0
    weights = np.zeros((width, chosen.shape[1])) if start is None else start
    steepness = np.empty(chosen.shape, dtype=np.float32)
    gradient, unsure = _slope(inputs.double, chosen, weights, penalty, joint, steepness)
    for _ in range(MAX_STEPS):
        unsolved = np.broadcast_to(np.abs(gradient).max(axis=axis) > tolerance, chosen.shape[1])
        if stopped.is_set() or not unsolved.any():
            return weights, not unsolved.any()
        direction = np.zeros_like(weights)
        direction[:, unsolved] = _conjugate_gradients(
            inputs.single,
            steepness if unsolved.all() else np.ascontiguousarray(steepness[:, unsolved]),
            penalty,
            np.ascontiguousarray(gradient[:, unsolved]),
            penalty + inputs.spread * unsure[unsolved] + 1e-9,
            joint,
        )
        slope, length = np.sum(gradient * direction, axis=axis), np.ones(1 if joint else chosen.shape[1])
        while True:
            moved = weights + length * direction
            gradient, unsure = _slope(inputs.double, chosen, moved, penalty, joint, steepness)
            # Along a convex function a slope that stays downhill, or rises less than it fell, means progress.
            too_far = (np.sum(gradient * direction, axis=axis) > -0.5 * slope) & (length > 1e-6)
            if not too_far.any():
                break
            length[too_far] /= 2
        weights = moved
    return weights, False


def _slope(
    inputs: FloatArray,
    chosen: BoolArray,
    weights: FloatArray,
    penalty: FloatArray,
    joint: bool,
    steepness: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Gradient of the mean losses, and the mean of p (1 - p) (n_columns,) over the probabilities p.

    Into `steepness` (n_samples, n_columns) goes what the Hessian is made of.
    """
    n_samples, n_columns = chosen.shape
    gradient, part, unsure = penalty * weights, np.empty(weights.shape), np.zeros(n_columns)
    block = np.empty((min(BLOCK, n_samples), n_columns))
    for rows in _blocks(n_samples):
        chances = block[: len(inputs[rows])]
        np.dot(inputs[rows], weights, out=chances)
        _probabilities(chances, joint)
        variances = chances * (1.0 - chances)
        unsure += variances.sum(axis=0)
        steepness[rows] = np.where(chances >= NOTHING, chances if joint else variances, 0.0)
        chances -= chosen[rows]
        gradient += np.dot(inputs[rows].T, chances, out=part) / n_samples
    return gradient, unsure / n_samples


def _probabilities(logits: FloatArray, joint: bool) -> None:
    """In the place of logits."""
    if joint:
        logits -= logits.max(axis=1, keepdims=True)
        np.exp(logits, out=logits)
        logits /= logits @ np.ones((logits.shape[1], 1))
    else:
        from scipy.special import expit  # a tenth of a second to import

        expit(logits, out=logits)


def _conjugate_gradients(
    inputs: FloatArray,
    steepness: FloatArray,
    penalty: FloatArray,
    gradient: FloatArray,
    curvature: FloatArray,
    joint: bool,
) -> FloatArray:
    """Solve Hessian @ direction = -gradient, as well as the step is worth; `curvature` is about its diagonal."""
    axis, (n_samples, n_columns) = None if joint else 0, steepness.shape
    direction, residual = np.zeros(gradient.shape), -gradient
    search = residual / curvature
    norm = (residual * search).sum(axis=axis)
    enough = np.minimum(0.0625, np.abs(gradient).max(axis=axis)) * norm
    part = np.empty(gradient.shape, dtype=np.float32)
    ones = np.ones((n_columns, 1), dtype=np.float32)  # whose product is a fifth of the time of a sum
    block = np.empty((min(BLOCK, n_samples), n_columns), dtype=np.float32)
    blocks = [
        (inputs[rows], inputs[rows].T, steepness[rows], block[: len(inputs[rows])]) for rows in _blocks(n_samples)
    ]
    for _ in range(MAX_INNER_STEPS):
        single, sums = search.astype(np.float32), np.zeros(gradient.shape, dtype=np.float32)
        for rows, across, steep, change in blocks:
            np.dot(rows, single, out=change)
            change *= steep
            if joint:
                change -= steep * (change @ ones)
            sums += np.dot(across, change, out=part)
        bent = penalty * search + sums / n_samples
        resistance = (search * bent).sum(axis=axis)
        length = _ratio(np.where(norm > enough, norm, 0.0), resistance)
        direction += length * search
        residual -= length * bent
        eased = residual / curvature
        before, norm = norm, (residual * eased).sum(axis=axis)
        search = eased + _ratio(norm, before) * search
        if not (norm > enough).any():
            break
    return direction


def _ratio(one: FloatArray, other: FloatArray) -> FloatArray:
    """0 where the second is not above 0."""
    return np.divide(one, other, out=np.zeros(np.shape(one)), where=other > 0.0)


def _blocks(n_samples: int) -> Iterator[slice]:
    return (slice(start, start + BLOCK) for start in range(0, n_samples, BLOCK))
