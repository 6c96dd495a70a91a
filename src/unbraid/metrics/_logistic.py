"""Logistic regression to its optimum, with an L2 penalty of 1/2 on the coefficients and none on the intercept.

The objective is that of scikit-learn's LogisticRegression with its default C = 1. Inputs are standardised codes.
"""

from collections.abc import Iterator

import numpy as np
from scipy.special import expit
from threadpoolctl import threadpool_limits

from unbraid.types import BoolArray, FloatArray, IntArray

TOLERANCE = 1e-6  # largest entry of the gradient of the mean loss at the end
MAX_STEPS = 100
BLOCK = 2048  # rows at a time, so that what belongs to them stays in the cache


def softmax_regression(codes: FloatArray, levels: IntArray, n_classes: int) -> FloatArray:
    """(n_codes + 1, n_classes) coefficients of the softmax classifier, intercepts last.

    Newton's method; each step is found by conjugate gradients and shortened until the slope along it has fallen.
    """
    with threadpool_limits(1, "blas"):
        return _softmax_newton(_with_ones(codes), levels, n_classes)


def one_vs_rest_regression(codes: FloatArray, positive: BoolArray) -> FloatArray:
    """(n_codes + 1, n_problems) coefficients of one binary classifier per column of `positive` (n_samples, n_problems).

    Newton's method on all problems at once.
    """
    with threadpool_limits(1, "blas"):
        return _binary_newton(_with_ones(codes), positive)


def _with_ones(codes: FloatArray) -> FloatArray:
    return np.column_stack([codes, np.ones(len(codes))])


def _penalty(inputs: FloatArray) -> FloatArray:
    """(width, 1) curvature of the penalty, on the scale of the mean loss."""
    penalty = np.full((inputs.shape[1], 1), 1.0 / len(inputs))
    penalty[-1] = 0.0
    return penalty


def _blocks(n_samples: int) -> Iterator[slice]:
    return (slice(start, start + BLOCK) for start in range(0, n_samples, BLOCK))


def _softmax_newton(inputs: FloatArray, levels: IntArray, n_classes: int) -> FloatArray:
    penalty = _penalty(inputs)
    weights = np.zeros((inputs.shape[1], n_classes))
    chances, gradient = _softmax_slope(inputs, levels, weights, penalty)
    for _ in range(MAX_STEPS):
        size = np.abs(gradient).max()
        if size <= TOLERANCE:
            break
        direction = _conjugate_gradients(inputs, chances, penalty, gradient, min(0.5, np.sqrt(size)))
        slope, length = np.sum(gradient * direction), 1.0
        while True:
            moved = weights + length * direction
            chances, gradient = _softmax_slope(inputs, levels, moved, penalty)
            # Along a convex function a slope that stays downhill, or rises less than it fell, means progress.
            if np.sum(gradient * direction) <= -0.5 * slope or length < 1e-6:
                break
            length /= 2
        weights = moved
    return weights


def _softmax_slope(
    inputs: FloatArray, levels: IntArray, weights: FloatArray, penalty: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Probabilities (n_samples, n_classes) and the gradient of the mean loss."""
    chances, gradient = np.empty((len(inputs), weights.shape[1])), penalty * weights
    for rows in _blocks(len(inputs)):
        logits = inputs[rows] @ weights
        logits -= logits.max(axis=1, keepdims=True)
        np.exp(logits, out=logits)
        logits /= logits.sum(axis=1, keepdims=True)
        chances[rows] = logits
        logits[np.arange(len(logits)), levels[rows]] -= 1.0
        gradient += inputs[rows].T @ logits / len(inputs)
    return chances, gradient


def _conjugate_gradients(
    inputs: FloatArray, chances: FloatArray, penalty: FloatArray, gradient: FloatArray, accuracy: float
) -> FloatArray:
    """Solve Hessian @ direction = -gradient until the residual has shrunk by `accuracy`."""
    direction, residual = np.zeros_like(gradient), -gradient
    search, norm = residual.copy(), np.sum(gradient**2)
    enough = accuracy**2 * norm
    for _ in range(gradient.size):
        curved = penalty * search
        for rows in _blocks(len(inputs)):
            bent = inputs[rows] @ search
            bent -= np.einsum("nc,nc->n", chances[rows], bent)[:, None]
            bent *= chances[rows]
            curved += inputs[rows].T @ bent / len(inputs)
        curvature = np.sum(search * curved)
        if curvature <= 1e-15 * np.sum(search**2):
            break
        length = norm / curvature
        direction += length * search
        residual -= length * curved
        before, norm = norm, np.sum(residual**2)
        if norm <= enough:
            break
        search = residual + norm / before * search
    return direction if direction.any() else -gradient


def _binary_newton(inputs: FloatArray, positive: BoolArray) -> FloatArray:
    penalty = _penalty(inputs)
    n_problems = positive.shape[1]
    weights, lengths = np.zeros((inputs.shape[1], n_problems)), np.ones(n_problems)
    gradient, curvature = _binary_slope(inputs, positive, weights, penalty)
    for _ in range(MAX_STEPS):
        open_problems = np.abs(gradient).max(axis=0) > TOLERANCE
        if not open_problems.any():
            break
        chosen = np.flatnonzero(open_problems)
        direction = np.zeros_like(weights)
        direction[:, chosen] = -np.linalg.solve(curvature[chosen], gradient.T[chosen][:, :, None])[:, :, 0].T
        slope = np.sum(gradient * direction, axis=0)
        lengths = open_problems.astype(float)
        while True:
            moved = weights + lengths * direction
            gradient, curvature = _binary_slope(inputs, positive, moved, penalty)
            too_far = (np.sum(gradient * direction, axis=0) > -0.5 * slope) & (lengths > 1e-6)
            if not too_far.any():
                break
            lengths[too_far] /= 2
        weights = moved
    return weights


def _binary_slope(
    inputs: FloatArray, positive: BoolArray, weights: FloatArray, penalty: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Gradients (width, n_problems) and Hessians (n_problems, width, width) of the mean losses."""
    n_samples, width = inputs.shape
    upper = np.triu_indices(width)
    gradient, sums = penalty * weights, np.zeros((weights.shape[1], len(upper[0])))
    for block in _blocks(n_samples):
        rows = inputs[block]
        chances = expit(rows @ weights)
        gradient += rows.T @ (chances - positive[block]) / n_samples
        # Single precision suffices for the Hessian: it steers the steps, the gradient decides where they end.
        single = rows.astype(np.float32)
        products = single[:, upper[0]] * single[:, upper[1]]
        sums += (chances * (1.0 - chances)).astype(np.float32).T @ products
    curvature = np.zeros((weights.shape[1], width, width))
    curvature[:, upper[0], upper[1]] = sums / n_samples
    curvature[:, upper[1], upper[0]] = curvature[:, upper[0], upper[1]]
    # A trace of curvature keeps intercepts of all but separated classes solvable.
    curvature[:, np.arange(width), np.arange(width)] += penalty[:, 0] + 1e-9
    return gradient, curvature
