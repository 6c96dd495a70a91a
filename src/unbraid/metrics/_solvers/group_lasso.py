"""Lasso and multi-task lasso from Gram matrices: small problems, tens of thousands of them.

Minimises tr(W' Q W) / 2 - tr(W' C) + alpha * penalty(W) with Q = X'X / n and C = X'Y / n, which is scikit-learn's
|XW - Y|^2 / 2n + alpha * penalty(W): the sum of the norms of the rows of W (multi-task), or of all its entries.
"""

import numpy as np

from unbraid.base.types import FloatArray
from unbraid.metrics._shared.compiled import helper, kernel
from unbraid.metrics._solvers.lasso import CONVERGED, State, fill_path

N_PENALTIES = 100
SMALLEST_PENALTY = 1e-3  # of the one at which all weights vanish
PATH_TOLERANCE = 1e-7
TOLERANCE = 1e-10
N_SWEEPS = 10_000
PATIENCE = 8
MISSED = 1e-6  # of the penalty at which all weights vanish: what misses an optimum by more has not converged


@kernel(_nrt=True)
def cross_validated(
    xx: FloatArray,
    xy: FloatArray,
    yy: FloatArray,
    x_sums: FloatArray,
    y_sums: FloatArray,
    counts: FloatArray,
) -> tuple[FloatArray, float, bool]:
    """Weights (n_inputs, n_targets) of the multi-task lasso at the penalty of least cross-validated error, and that.

    Also whether these weights have converged: whether they meet the conditions of an optimum.

    100 penalties down to a thousandth of the one at which all weights vanish; intercepts fitted. What is given are the
    raw second moments and sums of each held-out fold; its training fold is the total less these.

    Args:
        xx: (n_folds, n_inputs, n_inputs) X'X of each fold.
        xy: (n_folds, n_inputs, n_targets) X'Y.
        yy: (n_folds,) sum of all squared targets.
        x_sums: (n_folds, n_inputs).
        y_sums: (n_folds, n_targets).
        counts: (n_folds,) rows.
    """
    n_folds, n_inputs, n_targets = xy.shape
    everything = np.full(n_folds, 1.0)
    gram, cross, _, _ = _centred(xx, xy, x_sums, y_sums, counts, everything)
    largest = 0.0
    for one in range(n_inputs):
        largest = max(largest, np.sqrt((cross[one] ** 2).sum()))
    weights = np.zeros((n_inputs, n_targets))
    if largest <= 1e-12:
        return weights, largest, True
    errors, row, gradient = np.zeros(N_PENALTIES), np.empty(n_targets), np.empty_like(cross)
    ratio = np.log(SMALLEST_PENALTY) / (N_PENALTIES - 1)
    for fold in range(n_folds):
        everything[fold] = 0.0
        train_gram, train_cross, mean_x, mean_y = _centred(xx, xy, x_sums, y_sums, counts, everything)
        everything[fold] = 1.0
        n_held = counts[fold]
        held_gram, held_cross, held_squares = np.empty_like(gram), np.empty_like(cross), yy[fold]
        for target in range(n_targets):
            held_squares += mean_y[target] * (n_held * mean_y[target] - 2.0 * y_sums[fold, target])
        for one in range(n_inputs):
            shift = n_held * mean_x[one] - x_sums[fold, one]
            for other in range(n_inputs):
                held_gram[one, other] = xx[fold, one, other] + shift * mean_x[other] - mean_x[one] * x_sums[fold, other]
            for target in range(n_targets):
                held_cross[one, target] = (
                    xy[fold, one, target] + shift * mean_y[target] - mean_x[one] * y_sums[fold, target]
                )
        weights[:] = 0.0
        gradient[:] = train_cross
        for place in range(N_PENALTIES):
            multi_task(train_gram, train_cross, weights, gradient, largest * np.exp(ratio * place), PATH_TOLERANCE)
            squares = held_squares
            for one in range(n_inputs):
                for target in range(n_targets):
                    row[target] = -2.0 * held_cross[one, target]
                for other in range(n_inputs):
                    for target in range(n_targets):
                        row[target] += held_gram[one, other] * weights[other, target]
                for target in range(n_targets):
                    squares += row[target] * weights[one, target]
            errors[place] += squares / (n_held * n_targets)
    best = largest * np.exp(ratio * np.argmin(errors))
    _restart(gram, cross, weights, gradient)
    multi_task(gram, cross, weights, gradient, best, TOLERANCE)
    return weights, best, _missed(weights, gradient, best) <= MISSED * largest


@helper()
def _missed(weights: FloatArray, gradient: FloatArray, penalty: float) -> float:
    """By how much the optimality conditions are missed: a row of weights w has the gradient penalty * w / |w|.

    A row of zeros has none longer than the penalty.
    """
    missed = 0.0
    for one in range(len(weights)):
        norm = np.sqrt((weights[one] ** 2).sum())
        if norm > 0.0:
            off = np.sqrt(((gradient[one] - penalty / norm * weights[one]) ** 2).sum())
        else:
            off = np.sqrt((gradient[one] ** 2).sum()) - penalty
        missed = max(missed, off)
    return missed


@helper()
def _centred(
    xx: FloatArray, xy: FloatArray, x_sums: FloatArray, y_sums: FloatArray, counts: FloatArray, included: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Covariances X'X and X'Y and the means of X and Y, over the folds taken (1) and not (0)."""
    n_folds, n_inputs, n_targets = xy.shape
    gram, cross = np.zeros((n_inputs, n_inputs)), np.zeros((n_inputs, n_targets))
    mean_x, mean_y = np.zeros(n_inputs), np.zeros(n_targets)
    n_rows = 0.0
    for fold in range(n_folds):
        n_rows += included[fold] * counts[fold]
    for fold in range(n_folds):
        share = included[fold] / n_rows
        for target in range(n_targets):
            mean_y[target] += share * y_sums[fold, target]
        for one in range(n_inputs):
            mean_x[one] += share * x_sums[fold, one]
            for other in range(n_inputs):
                gram[one, other] += share * xx[fold, one, other]
            for target in range(n_targets):
                cross[one, target] += share * xy[fold, one, target]
    for one in range(n_inputs):
        for other in range(n_inputs):
            gram[one, other] -= mean_x[one] * mean_x[other]
        for target in range(n_targets):
            cross[one, target] -= mean_x[one] * mean_y[target]
    return gram, cross, mean_x, mean_y


@helper()
def _restart(gram: FloatArray, cross: FloatArray, weights: FloatArray, gradient: FloatArray) -> None:
    """Set the gradient to cross - gram @ weights."""
    n_inputs, n_targets = cross.shape
    for one in range(n_inputs):
        for target in range(n_targets):
            gradient[one, target] = cross[one, target]
        for other in range(n_inputs):
            for target in range(n_targets):
                gradient[one, target] -= gram[one, other] * weights[other, target]


@kernel(_nrt=True)
def multi_task(
    gram: FloatArray, cross: FloatArray, weights: FloatArray, gradient: FloatArray, penalty: float, tolerance: float
) -> None:
    """Block coordinate descent from the weights given, in place; `gradient` is kept at cross - gram @ weights.

    Correlated inputs make the descent slow: after some sweeps the rows that are not zero are solved by Newton's
    method, and the sweeps go on from there to confirm it.
    """
    n_inputs, n_targets = cross.shape
    row = np.empty(n_targets)
    for sweep in range(N_SWEEPS):
        change = 0.0
        for one in range(n_inputs):
            curvature = gram[one, one]
            if curvature <= 1e-12:  # a constant input
                continue
            squares = 0.0
            for target in range(n_targets):
                row[target] = gradient[one, target] + curvature * weights[one, target]
                squares += row[target] * row[target]
            norm = np.sqrt(squares)
            shrunk = (1.0 - penalty / norm) / curvature if norm > penalty else 0.0
            moved = 0.0
            for target in range(n_targets):
                updated = shrunk * row[target]
                row[target] = updated - weights[one, target]
                weights[one, target] = updated
                moved = max(moved, abs(row[target]))
            if moved > 0.0:
                for other in range(n_inputs):
                    shared = gram[other, one]
                    for target in range(n_targets):
                        gradient[other, target] -= shared * row[target]
                change = max(change, moved)
        if change < tolerance:
            return
        if sweep % PATIENCE == PATIENCE - 1:
            _newton(gram, cross, weights, penalty)
            _restart(gram, cross, weights, gradient)


@helper()
def _newton(gram: FloatArray, cross: FloatArray, weights: FloatArray, penalty: float) -> None:
    """Solve for the rows that are not zero; leaves the weights as they are where one of these rows wants to vanish.

    Given the norms c of its rows, W = (Q + alpha diag(1 / c))^-1 C. Newton's method finds the c that agree with it.
    """
    n_inputs, n_targets = cross.shape
    active, norms = np.empty(n_inputs, dtype=np.int64), np.empty(n_inputs)
    n_active, largest = 0, 0.0
    for one in range(n_inputs):
        norm = np.sqrt((weights[one] ** 2).sum())
        if norm > 0.0:
            active[n_active], norms[n_active] = one, norm
            n_active += 1
            largest = max(largest, norm)
    system, solved = np.empty((n_active, n_active)), np.empty((n_active, n_active + n_targets))
    slopes, excess = np.empty((n_active, n_active)), np.empty((n_active, 1))
    for _ in range(20):
        for one in range(n_active):
            if not norms[one] > 1e-12 * largest:
                return
            for other in range(n_active):
                system[one, other] = gram[active[one], active[other]]
                solved[one, other] = 0.0
            for target in range(n_targets):
                solved[one, n_active + target] = cross[active[one], target]
            system[one, one] += penalty / norms[one]
            solved[one, one] = 1.0
        if not _solve(system, solved):
            return
        worst = 0.0
        for one in range(n_active):
            new_norm = np.sqrt((solved[one, n_active:] ** 2).sum())
            if not new_norm > 0.0:
                return
            excess[one, 0] = new_norm - norms[one]
            worst = max(worst, abs(excess[one, 0]))
            for other in range(n_active):
                overlap = 0.0
                for target in range(n_targets):
                    overlap += solved[one, n_active + target] * solved[other, n_active + target]
                slope = penalty * solved[one, other] * overlap / (new_norm * norms[other] ** 2)
                slopes[one, other] = (1.0 if one == other else 0.0) - slope
        if worst <= 1e-12 * largest:
            for one in range(n_active):
                for target in range(n_targets):
                    weights[active[one], target] = solved[one, n_active + target]
            return
        if not _solve(slopes, excess):
            return
        for one in range(n_active):
            norms[one] += excess[one, 0]
            largest = max(largest, norms[one])


@helper()
def _solve(system: FloatArray, right: FloatArray) -> bool:
    """Gaussian elimination in place: `right` becomes the solution. False where the system is singular."""
    size, width = right.shape
    for step in range(size):
        pivot = step
        for row in range(step + 1, size):
            if abs(system[row, step]) > abs(system[pivot, step]):
                pivot = row
        if not abs(system[pivot, step]) > 0.0:
            return False
        if pivot != step:
            for column in range(size):
                system[step, column], system[pivot, column] = system[pivot, column], system[step, column]
            for column in range(width):
                right[step, column], right[pivot, column] = right[pivot, column], right[step, column]
        inverse = 1.0 / system[step, step]
        for column in range(step, size):
            system[step, column] *= inverse
        for column in range(width):
            right[step, column] *= inverse
        for row in range(size):
            factor = system[row, step]
            if row != step and factor != 0.0:
                for column in range(step, size):
                    system[row, column] -= factor * system[step, column]
                for column in range(width):
                    right[row, column] -= factor * right[step, column]
    return True


@kernel(_nrt=True)
def separate(gram: FloatArray, cross: FloatArray, penalty: float) -> tuple[FloatArray, bool]:
    """Weights (n_inputs, n_targets) of one lasso per target, and whether all have converged."""
    n_inputs, n_targets = cross.shape
    weights, penalties, converged = np.zeros((n_inputs, n_targets)), np.full(1, penalty), True
    for target in range(n_targets):
        state = State(
            np.zeros(n_inputs), np.zeros(n_inputs), np.zeros(n_inputs, dtype=np.bool_),
            np.zeros(n_inputs, dtype=np.int64), np.zeros((n_inputs, n_inputs)), np.zeros(n_inputs), np.zeros(n_inputs),
        )  # fmt: skip
        path, missed = np.zeros((1, n_inputs)), np.zeros(1)
        fill_path(gram, cross[:, target].copy(), penalties, state, np.zeros(n_inputs), path, missed)
        for one in range(n_inputs):
            weights[one, target] = path[0, one]
        converged &= missed[0] <= CONVERGED
    return weights, converged
