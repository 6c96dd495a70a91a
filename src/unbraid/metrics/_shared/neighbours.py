"""Mutual information of real codes and factor levels by nearest neighbours, in nats."""

import numpy as np

from unbraid.base.types import FloatArray, IntArray
from unbraid.metrics._shared.compiled import helper, kernel
from unbraid.metrics._shared.inputs import Inputs, as_levels, standardised
from unbraid.metrics._shared.sharing import shared
from unbraid.metrics._solvers.trees import own_order

JITTER = 1e-10  # standard deviations: parts values that are equal, and no others


@shared
def neighbour_information(inputs: Inputs, neighbours: int, seed: int) -> FloatArray:
    """(n_codes, n_factors) information of each code about each factor.

    As in Ross 2014, "Mutual Information between Discrete and Continuous Data Sets".
    Each row looks how far the `neighbours`-th nearest row of its own level is, and how many rows of any level are
    nearer. Exact, at a cost of n log n for each code and factor. Equal values are parted by random numbers, the same
    for every code and turned with it, so that neither order nor signs of codes matter. Cut off at 0.
    """
    from scipy.special import digamma

    levels, live = as_levels(inputs), own_order(inputs.codes)
    jitter = JITTER * np.random.default_rng(seed).standard_normal(inputs.n_samples)
    codes = standardised(inputs.codes)
    psi = digamma(np.arange(1, inputs.n_samples + 1))
    information = np.zeros((inputs.n_codes, inputs.n_factors))
    for code, sign in zip(*live, strict=True):
        if not codes[:, code].any():
            continue  # constant but for rounding
        column = sign * codes[:, code] + jitter
        order = np.argsort(column)
        for factor, size in enumerate(levels.sizes):
            information[code, factor] = _ross(
                column[order], levels.levels[order, factor].copy(), size, min(neighbours, inputs.n_samples), psi
            )
    return np.maximum(information, 0.0)


@kernel(_nrt=True)
def _ross(values: FloatArray, levels: IntArray, n_levels: int, neighbours: int, psi: FloatArray) -> float:
    """Of ascending values; rows whose level no other row has are left out."""
    counts = np.bincount(levels, minlength=n_levels)
    usable, n = np.empty(len(values)), 0
    starts = np.zeros(n_levels + 1, dtype=np.int64)
    starts[1:] = np.cumsum(counts)
    places, filled = np.empty(len(values), dtype=np.int64), np.zeros(n_levels, dtype=np.int64)
    for row in range(len(values)):
        level = levels[row]
        if counts[level] > 1:
            usable[n] = values[row]
            places[starts[level] + filled[level]] = n
            filled[level] += 1
            n += 1
    total = 0.0
    for level in range(n_levels):
        own = places[starts[level] : starts[level] + filled[level]]
        k = min(neighbours, len(own) - 1)
        left = 0
        for place in range(len(own)):
            value = usable[own[place]]
            # The k nearest and the row itself are k + 1 in a row; which ones, moves to the right with the row.
            left = max(left, place - k)
            while left < min(place, len(own) - 1 - k) and usable[own[left + k + 1]] - value < value - usable[own[left]]:
                left += 1
            radius = float(max(value - usable[own[left]], usable[own[left + k]] - value))
            nearer = _nearer(usable, own[place], own[left], own[left + k], radius, n)
            total += psi[k - 1] - psi[nearer - 1]
        if len(own) > 0:
            total -= len(own) * psi[len(own) - 1]
    return psi[n - 1] + total / n if n > 0 else 0.0


@helper()
def _nearer(values: FloatArray, place: int, first: int, last: int, radius: float, n: int) -> int:
    """How many of the first `n` ascending values are less than `radius` from one of them, which itself counts.

    What lies from `first` to `last` is at most `radius` away.
    """
    centre = values[place]
    low, high = 0, place
    if centre - values[first] < radius:
        high = first  # the end that is nearer: the edge lies beyond it
    else:
        low = first
    while low < high:
        middle = (low + high) // 2
        if centre - values[middle] < radius:
            high = middle
        else:
            low = middle + 1
    begin = low
    low, high = place, n
    if values[last] - centre < radius:
        low = last
    else:
        high = last
    while low < high:
        middle = (low + high) // 2
        if values[middle] - centre < radius:
            low = middle + 1
        else:
            high = middle
    return max(low - begin, 1)
