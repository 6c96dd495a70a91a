"""Logistic regression to its optimum, with an L2 penalty of 1/2 on the coefficients and none on the intercept.

The objective is that of scikit-learn's LogisticRegression with its default C = 1. Inputs are standardised codes. The
penalty stays the same when codes are rotated, and along their principal axes the Hessian is nearly diagonal: conjugate
gradients then take few steps, however many codes there are and however alike.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from unbraid._utils.threads import one_blas_thread
from unbraid.types import BoolArray, FloatArray, IntArray

TOLERANCE = 1e-6  # largest entry of the gradient of the mean loss at the end
MAX_STEPS = 100
MAX_INNER_STEPS = 200
BLOCK = 2048  # rows at a time, so that what belongs to them stays in the cache
NOTHING = 1e-10  # probabilities below do not steer a step; their products would leave single precision


class Regression(NamedTuple):
    weights: FloatArray  # (n_codes + 1, n_columns) coefficients, intercepts last
    converged: bool


class _Model(NamedTuple):
    probabilities: Callable[[FloatArray], FloatArray]  # of logits (n, n_columns)
    steepness: Callable[[FloatArray], FloatArray]  # of probabilities: what `bent` reads
    bent: Callable[[FloatArray, FloatArray], FloatArray]  # steepness, change of logits -> change of probabilities
    joint: bool  # whether the columns are one problem


def softmax_regression(codes: FloatArray, levels: IntArray, n_classes: int) -> Regression:
    """The softmax classifier, a column per class."""
    return _along_axes(codes, np.eye(n_classes, dtype=bool)[levels], SOFTMAX)


def one_vs_rest_regression(codes: FloatArray, positive: BoolArray) -> Regression:
    """One binary classifier per column of `positive` (n_samples, n_problems)."""
    return _along_axes(codes, positive, BINARY)


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
        found = minimize(
            fall, np.zeros(len(inputs) * n_classes), jac=True, method="L-BFGS-B",
            options={"maxiter": steps, "maxls": 50, "gtol": 1e-4, "ftol": 64 * np.finfo(float).eps},
        )  # fmt: skip
        return float(_lacking(found.x.reshape(-1, n_classes).T @ inputs, levels)[0].mean())


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


def _softmax_bent(chances: FloatArray, change: FloatArray) -> FloatArray:
    return chances * (change - np.einsum("nc,nc->n", chances, change)[:, None])


def _logistic(logits: FloatArray) -> FloatArray:
    from scipy.special import expit

    return expit(logits)


SOFTMAX = _Model(softmax, lambda chances: chances, _softmax_bent, joint=True)
BINARY = _Model(_logistic, lambda chances: chances * (1.0 - chances), np.multiply, joint=False)


def _along_axes(codes: FloatArray, chosen: BoolArray, model: _Model) -> Regression:
    with one_blas_thread():
        axes = _principal_axes(codes)
        inputs = np.column_stack([codes @ axes, np.ones(len(codes))])
        weights, converged = _newton(inputs, chosen, model)
        return Regression(np.vstack([axes @ weights[:-1], weights[-1:]]), converged)


def _principal_axes(codes: FloatArray) -> FloatArray:
    """(n_codes, rank) orthonormal."""
    n_samples, n_codes = codes.shape
    wide = n_codes > n_samples
    variances, axes = np.linalg.eigh(codes @ codes.T if wide else codes.T @ codes)
    kept = variances > variances.max(initial=0.0) * max(n_samples, n_codes) * np.finfo(float).eps
    return codes.T @ axes[:, kept] / np.sqrt(variances[kept]) if wide else axes[:, kept]


def _newton(inputs: FloatArray, chosen: BoolArray, model: _Model) -> tuple[FloatArray, bool]:
    """Weights (width, n_columns), and whether they are the optimum.

    Newton's method on all problems at once; each step is found by conjugate gradients and shortened until the slope
    along it has fallen.
    """
    axis = None if model.joint else 0
    penalty = np.full((inputs.shape[1], 1), 1.0 / len(inputs))
    penalty[-1] = 0.0
    # Single precision suffices for the Hessian: it steers the steps, the gradient decides where they end.
    single, spread = inputs.astype(np.float32), (inputs**2).mean(axis=0)[:, None]
    weights = np.zeros((inputs.shape[1], chosen.shape[1]))
    chances, gradient = _slope(inputs, chosen, weights, penalty, model)
    for _ in range(MAX_STEPS):
        unsolved = np.broadcast_to(np.abs(gradient).max(axis=axis) > TOLERANCE, chosen.shape[1])
        if not unsolved.any():
            return weights, True
        left = chances[:, unsolved]
        steepness = model.steepness(np.where(left < NOTHING, 0.0, left).astype(np.float32))
        curvature = penalty + spread * (left * (1.0 - left)).mean(axis=0) + 1e-9
        direction = np.zeros_like(weights)
        direction[:, unsolved] = _conjugate_gradients(
            single, steepness, penalty, gradient[:, unsolved], curvature, model
        )
        slope, length = np.sum(gradient * direction, axis=axis), np.ones(1 if model.joint else chosen.shape[1])
        while True:
            moved = weights + length * direction
            chances, gradient = _slope(inputs, chosen, moved, penalty, model)
            # Along a convex function a slope that stays downhill, or rises less than it fell, means progress.
            too_far = (np.sum(gradient * direction, axis=axis) > -0.5 * slope) & (length > 1e-6)
            if not too_far.any():
                break
            length[too_far] /= 2
        weights = moved
    return weights, False


def _slope(
    inputs: FloatArray, chosen: BoolArray, weights: FloatArray, penalty: FloatArray, model: _Model
) -> tuple[FloatArray, FloatArray]:
    """Probabilities (n_samples, n_columns) and the gradient of the mean losses."""
    chances, gradient = np.empty(chosen.shape), penalty * weights
    for rows in _blocks(len(inputs)):
        chances[rows] = model.probabilities(inputs[rows] @ weights)
        gradient += inputs[rows].T @ (chances[rows] - chosen[rows]) / len(inputs)
    return chances, gradient


def _conjugate_gradients(
    inputs: FloatArray,
    steepness: FloatArray,
    penalty: FloatArray,
    gradient: FloatArray,
    curvature: FloatArray,
    model: _Model,
) -> FloatArray:
    """Solve Hessian @ direction = -gradient, as well as the step is worth; `curvature` is about its diagonal."""
    axis = None if model.joint else 0
    direction, residual = np.zeros_like(gradient), -gradient
    search = residual / curvature
    norm = np.sum(residual * search, axis=axis)
    enough = np.minimum(0.0625, np.abs(gradient).max(axis=axis)) * norm
    for _ in range(MAX_INNER_STEPS):
        sums, single = np.zeros_like(search, dtype=np.float32), search.astype(np.float32)
        for rows in _blocks(len(inputs)):
            sums += inputs[rows].T @ model.bent(steepness[rows], inputs[rows] @ single)
        bent = penalty * search + sums / len(inputs)
        resistance = np.sum(search * bent, axis=axis)
        length = np.divide(norm, resistance, out=np.zeros_like(norm), where=(norm > enough) & (resistance > 0.0))
        direction += length * search
        residual -= length * bent
        scaled = residual / curvature
        before, norm = norm, np.sum(residual * scaled, axis=axis)
        if not (norm > enough).any():
            break
        search = scaled + np.divide(norm, before, out=np.zeros_like(norm), where=before > 0.0) * search
    return direction


def _blocks(n_samples: int) -> Iterator[slice]:
    return (slice(start, start + BLOCK) for start in range(0, n_samples, BLOCK))
