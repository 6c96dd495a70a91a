"""Perceptrons of any width that regress: the probes of `_probes.py` with squared errors, or classes, in NumPy."""

from collections.abc import Callable

import numpy as np

from unbraid.base.types import FloatArray

EPOCHS, BATCH, LEARNING_RATE = 75, 64, 1e-3
FIRST, SECOND = 0.9, 0.999  # of Adam's averages


def perceptron(
    inputs: FloatArray, targets: FloatArray, *, hidden: int, seed: int, classes: bool = False
) -> Callable[[FloatArray], FloatArray]:
    """Train one hidden layer of rectified units by Adam; returns what predicts (m, q) from (m, d).

    Args:
        inputs: (n, d) standardised.
        targets: (n, q) of about unit variance; indicators where `classes`.
        hidden: units.
        seed: of initial weights and batches.
        classes: cross-entropy of the softmax instead of squared errors; what is predicted are logits.
    """
    rng = np.random.default_rng(seed)
    x, y = (np.asarray(each, dtype=np.float32) for each in (inputs, targets))
    weights = [_uniform(rng, x.shape[1], hidden), _uniform(rng, hidden, y.shape[1])]
    averages = [(np.zeros_like(each), np.zeros_like(each)) for each in weights]
    step = 0
    for _ in range(EPOCHS):
        order = rng.permutation(len(x))
        for start in range(0, len(x), BATCH):
            rows = order[start : start + BATCH]
            step += 1
            for own, means, slope in zip(weights, averages, _slopes(weights, x[rows], y[rows], classes), strict=True):
                _adam(own, *means, slope, step)
    return lambda points: _outputs(weights, np.asarray(points, dtype=np.float32)).astype(float)


def _uniform(rng: np.random.Generator, n_in: int, n_out: int) -> FloatArray:
    """(n_in + 1, n_out) weights, and biases in the last row, as PyTorch draws them."""
    return (rng.uniform(-1, 1, (n_in + 1, n_out)) / np.sqrt(max(n_in, 1))).astype(np.float32)


def _hidden(first: FloatArray, x: FloatArray) -> FloatArray:
    return np.maximum(x @ first[:-1] + first[-1], 0.0)


def _outputs(weights: list[FloatArray], x: FloatArray) -> FloatArray:
    first, second = weights
    return _hidden(first, x) @ second[:-1] + second[-1]


def _slopes(weights: list[FloatArray], x: FloatArray, y: FloatArray, classes: bool) -> tuple[FloatArray, FloatArray]:
    """Gradients of the mean over rows of half the squared error, or of the cross-entropy."""
    first, second = weights
    active = _hidden(first, x)
    predicted = active @ second[:-1] + second[-1]
    if classes:
        predicted = np.exp(predicted - predicted.max(axis=1, keepdims=True))
        predicted /= predicted.sum(axis=1, keepdims=True)
    missed = (predicted - y) / np.float32(len(x))
    below = (missed @ second[:-1].T) * (active > 0)
    return _with_bias(x, below), _with_bias(active, missed)


def _with_bias(inputs: FloatArray, errors: FloatArray) -> FloatArray:
    return np.concatenate([inputs.T @ errors, errors.sum(axis=0, keepdims=True)])


def _adam(weights: FloatArray, mean: FloatArray, square: FloatArray, slope: FloatArray, step: int) -> None:
    mean += (1 - FIRST) * (slope - mean)
    square += (1 - SECOND) * (slope * slope - square)
    root = np.sqrt(square / (1 - SECOND**step)) + 1e-8
    weights -= (LEARNING_RATE / (1 - FIRST**step)) * mean / root
