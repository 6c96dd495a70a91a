"""Kernel ridge regression with a Gaussian kernel, and its settings by cross-validation."""

from collections.abc import Callable
from itertools import product

import numpy as np

from unbraid.base.types import FloatArray, IntArray

ALPHAS = (1.0, 0.1, 0.01, 0.001)
GAMMAS = (0.01, 0.2154, 4.642, 100.0)  # of squared distances between standardised rows
NOTHING = 1e-30  # products of smaller numbers leave the normal range, where processors are 15 times slower
AT_ONCE = 4096  # rows that are predicted together


def kernel_ridge(known: FloatArray, targets: FloatArray, test: FloatArray, *, alpha: float, gamma: float) -> FloatArray:
    """(m, q) what ridge regression without an intercept, fitted to known (n, d) and targets (n, q), predicts."""
    weights = _solved(_gaussian(squared_distances(known, known), gamma), targets, alpha)
    parts = [test[start : start + AT_ONCE] for start in range(0, len(test), AT_ONCE)]
    return np.concatenate([_gaussian(squared_distances(part, known), gamma) @ weights for part in parts])


def best_setting(
    known: FloatArray,
    targets: FloatArray,
    folds: tuple[IntArray, ...],
    judge: Callable[[FloatArray, FloatArray], float],
) -> tuple[float, float]:
    """The (alpha, gamma) with the highest mean of judge(predicted, true) over folds; of equals the first."""
    away, scores = squared_distances(known, known), {}
    for gamma in GAMMAS:
        gram = _gaussian(away, gamma)
        for alpha, fold in product(ALPHAS, folds):
            fit = np.setdiff1d(np.arange(len(known)), fold)
            weights = _solved(gram[np.ix_(fit, fit)], targets[fit], alpha)
            score = judge(gram[np.ix_(fold, fit)] @ weights, targets[fold])
            scores[alpha, gamma] = scores.get((alpha, gamma), 0.0) + score
    return max(product(ALPHAS, GAMMAS), key=lambda setting: scores[setting])


def squared_distances(one: FloatArray, other: FloatArray) -> FloatArray:
    """(n, m) between the rows of two matrices."""
    away = (one**2).sum(axis=1)[:, None] + (other**2).sum(axis=1) - 2 * one @ other.T
    return np.maximum(away, 0.0)


def _gaussian(away: FloatArray, gamma: float) -> FloatArray:
    kernel = np.exp(-gamma * away)
    kernel[kernel < NOTHING] = 0.0
    return kernel


def _solved(gram: FloatArray, targets: FloatArray, alpha: float) -> FloatArray:
    from scipy.linalg import cho_factor, cho_solve

    return cho_solve(cho_factor(gram + alpha * np.eye(len(gram)), overwrite_a=True), targets)
