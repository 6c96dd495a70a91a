"""Lasso to its exact optimum, from Gram matrices.

Coordinate descent crawls where codes are alike: it stops anywhere between them, and which of them it favours is a
matter of column order. Here the weights that are not zero are solved for at once (Newton's method, since the objective
is quadratic as long as no sign changes), and codes enter and leave one at a time until the optimality conditions hold.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from unbraid.base.types import BoolArray, FloatArray, IntArray
from unbraid.metrics._shared.compiled import START, helper, kernel

TOLERANCE = 1e-10  # of the optimality conditions, relative to the penalty
ROUNDING = 1e-14  # the same, relative to the greatest moment
CONVERGED = 1e-9  # of the greatest moment: what misses them by more has not converged
SINGULAR = 1e-12  # share of a code's variance that the others leave unexplained, below which it is their combination


class State(NamedTuple):
    weights: FloatArray  # (n_codes,)
    signs: FloatArray  # (n_codes,) of the weights; 0 outside
    inside: BoolArray  # (n_codes,)
    members: IntArray  # (n_codes,) the codes inside, in the order of `inverse`
    inverse: FloatArray  # (n_codes, n_codes) its upper left corner inverts the Gram matrix of the members
    solved: FloatArray  # (n_codes,) room for one number per member
    rest: FloatArray  # (n_codes,) the same


def lasso_path(gram: FloatArray, moments: FloatArray, penalties: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(n_penalties, n_codes) minimisers of mean squared error / 2 + penalty * sum of absolute weights.

    `gram` (n_codes, n_codes) is codes' codes / n_samples, `moments` (n_codes,) codes' target / n_samples; penalties are
    not negative and fall, each starting from the last. The second array (n_penalties,) says by how much the optimality
    conditions are missed, as a share of the greatest moment: a code with a weight has a slope of just the penalty, no
    other has a greater one.
    """
    n_codes = len(moments)
    path, missed = np.zeros((len(penalties), n_codes)), np.zeros(len(penalties))
    fill_path(gram, moments, penalties, _empty_state(n_codes), np.zeros(n_codes), path, missed)
    return path, missed


def validated_lasso(
    gram: FloatArray,
    moments: FloatArray,
    penalties: FloatArray,
    errors: Callable[[FloatArray], FloatArray],
    patience: int | None,
) -> tuple[FloatArray, float, float]:
    """Weights of least error along `lasso_path`, their penalty, and by how much they miss the optimality conditions.

    `errors` gives those (n,) of weights (n, n_codes). The path ends where `patience` penalties have brought no less.
    """
    state, slopes = _empty_state(len(moments)), np.zeros(len(moments))
    weights, lowest, best, off = np.zeros(len(moments)), np.inf, 0, 0.0
    n_at_once = 1 if patience else len(penalties)
    for start in range(0, len(penalties), n_at_once):
        path, missed = np.zeros((n_at_once, len(moments))), np.zeros(n_at_once)
        fill_path(gram, moments, penalties[start : start + n_at_once], state, slopes, path, missed)
        trial = errors(path)
        index = int(trial.argmin())
        if trial[index] < lowest:
            weights, lowest, best, off = path[index], trial[index], start + index, missed[index]
        elif patience and start - best >= patience:
            break
    return weights, penalties[best], off


def _empty_state(n_codes: int) -> State:
    weights, signs, solved, rest = np.zeros((4, n_codes))
    members, inside = np.zeros(n_codes, dtype=np.int64), np.zeros(n_codes, dtype=np.bool_)
    return State(weights, signs, inside, members, np.zeros((n_codes, n_codes)), solved, rest)


@kernel()
def fill_path(
    gram: FloatArray,
    moments: FloatArray,
    penalties: FloatArray,
    state: State,
    slopes: FloatArray,
    path: FloatArray,
    missed: FloatArray,
) -> None:
    """`lasso_path` into its two arrays, which hold 0 before, as does the state, or what an earlier call has left."""
    n_codes, size, greatest = len(moments), START, 0.0
    members, inverse, combination = state.members, state.inverse, state.solved
    for code in range(n_codes):
        size += state.inside[code]
        greatest = abs(moments[code]) if abs(moments[code]) > greatest else greatest
    if greatest == 0.0:
        return
    for index in range(len(penalties)):
        penalty = penalties[index]
        entrant, known = -1, False
        for _ in range(10 * n_codes + 100):
            leaver = _towards_optimum(gram, moments, penalty, state, size)
            if leaver >= 0:
                code = members[leaver]
                moved = state.weights[code] != 0.0
                size = _leave(state, size, leaver)
                if code == entrant and not moved:  # it entered by a rounding error
                    break
                continue
            entrant = _steepest(gram, moments, state, size, slopes, penalty * (1.0 + TOLERANCE) + ROUNDING * greatest)
            if entrant < 0:
                known = True  # the slopes
                break
            # It becomes a member; where it is a combination of the members, one of them makes room.
            sign, spare = 1.0 if slopes[entrant] > 0.0 else -1.0, _combine(gram, state, size, entrant)
            if spare <= SINGULAR * gram[entrant, entrant]:
                # Along this direction the fit stays as it is, and the sum of absolute weights falls.
                step, first = np.inf, START - 1
                for place in range(size):
                    code = members[place]
                    if combination[place] * sign * state.signs[code] > 0.0:
                        room = abs(state.weights[code] / combination[place])
                        if room < step:
                            step, first = room, place
                if first < 0:
                    continue
                for place in range(size):
                    state.weights[members[place]] -= step * sign * combination[place]
                size = _leave(state, size, first)
                state.weights[entrant] = step * sign
                spare = _combine(gram, state, size, entrant)
            for place in range(size):
                for other in range(size):
                    inverse[place, other] += combination[place] * combination[other] / spare
                inverse[place, size] = inverse[size, place] = -combination[place] / spare
            inverse[size, size] = 1.0 / spare
            members[size] = entrant
            state.inside[entrant], state.signs[entrant] = True, sign
            size += 1
        if not known:
            _steepest(gram, moments, state, size, slopes, penalty)
        for code in range(n_codes):
            path[index, code] = state.weights[code]
            off = slopes[code] - penalty * state.signs[code]
            off = abs(off) if state.inside[code] else abs(off) - penalty
            missed[index] = off if off > missed[index] else missed[index]
        missed[index] /= greatest


@helper()
def _towards_optimum(gram: FloatArray, moments: FloatArray, penalty: float, state: State, size: int) -> int:
    """Move the members to their optimum, or until the first of them reaches 0: its place, else -1."""
    members, solved, rest = state.members, state.solved, state.rest
    for place in range(size):
        rest[place] = moments[members[place]] - penalty * state.signs[members[place]]
        solved[place] = 0.0
    # The place that a sum is for runs innermost: sums side by side take a fraction of the time of one after the other.
    for _ in range(2):  # the second time removes what rounding has left
        for other in range(size):
            for place in range(size):
                solved[place] += state.inverse[other, place] * rest[other]
        for place in range(size):
            rest[place] = moments[members[place]] - penalty * state.signs[members[place]]
        for other in range(size):
            for place in range(size):
                rest[place] -= gram[members[other], members[place]] * solved[other]
    length, first = 1.0, -1
    for place in range(size):
        code = members[place]
        if solved[place] * state.signs[code] <= 0.0:
            way = state.weights[code] - solved[place]
            share = state.weights[code] / way if way != 0.0 else 0.0
            if share < length or first < 0:
                length, first = share, place
    for place in range(size):
        code = members[place]
        state.weights[code] += length * (solved[place] - state.weights[code])
    return first


@helper()
def _steepest(gram: FloatArray, moments: FloatArray, state: State, size: int, slopes: FloatArray, least: float) -> int:
    """The code outside of greatest slope, if this is above `least`, else -1; `slopes` is brought up to date."""
    for code in range(len(slopes)):
        slopes[code] = moments[code]
    for place in range(size):
        code = state.members[place]
        for other in range(len(slopes)):
            slopes[other] -= gram[code, other] * state.weights[code]
    steepest, greatest = -1, least
    for code in range(len(slopes)):
        if not state.inside[code] and abs(slopes[code]) > greatest:
            steepest, greatest = code, abs(slopes[code])
    return steepest


@helper()
def _combine(gram: FloatArray, state: State, size: int, code: int) -> float:
    """Into `solved` the weights by which the members come nearest to a code; the variance that this leaves."""
    spare = gram[code, code]
    for place in range(size):
        state.solved[place] = 0.0
    for other in range(size):
        for place in range(size):  # innermost, as in `_towards_optimum`
            state.solved[place] += state.inverse[other, place] * gram[code, state.members[other]]
    for place in range(size):
        spare -= state.solved[place] * gram[code, state.members[place]]
    return spare


@helper()
def _leave(state: State, size: int, place: int) -> int:
    """Take out the member at this place, of weight 0. The new size."""
    code, last, column = state.members[place], size - 1, state.rest
    state.weights[code] = state.signs[code] = 0.0
    state.inside[code] = False
    for one in range(size):
        column[one] = state.inverse[one, place]
    for one in range(size):
        for other in range(size):
            state.inverse[one, other] -= column[one] * column[other] / column[place]
    # The last takes its place.
    state.members[place] = state.members[last]
    for one in range(size):
        state.inverse[place, one] = state.inverse[last, one]
    for one in range(size):
        state.inverse[one, place] = state.inverse[one, last]
    return last
