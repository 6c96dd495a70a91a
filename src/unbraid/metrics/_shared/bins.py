"""Codes and continuous factors cut into bins, alike for a column, the column mirrored and the column rescaled."""

from typing import Literal, TypeAlias

import numba
import numpy as np

from unbraid._utils.arguments import check_choice
from unbraid.metrics._shared.sharing import shared
from unbraid.types import FloatArray, IntArray

Binning: TypeAlias = Literal["width", "mass"]
CONSTANT = 1e-12  # of its largest value: a column that varies less is constant but for rounding
ROUNDING = 8 * float(np.finfo(float).eps)  # relative error that rescaling a column may leave in a value
ROWS_IN_CACHE = 512  # of a block whose columns are cut one after the other


def but_for_rounding(values: FloatArray, bits: int) -> FloatArray:
    """To so many places of a binary fraction, at which codes that have steps of any sort are not halfway between."""
    return np.ldexp(np.rint(np.ldexp(values, bits)), -bits)


@shared
def bin_codes(values: FloatArray, bins: int, binning: Binning, weights: FloatArray | None = None) -> IntArray:
    """(n_samples, n_columns) bin of each value, of equal width or of equal mass.

    `weights` (n_samples,) say how many rows each row stands for.

    Raises:
        ValueError: `binning` is neither.
    """
    check_choice("binning", binning, ("width", "mass"))
    return bin_equal_width(values, bins, weights) if binning == "width" else bin_equal_mass(values, bins, weights)


@shared
def bin_equal_width(values: FloatArray, bins: int = 20, weights: FloatArray | None = None) -> IntArray:
    """(n_samples, n_columns) bin of each value, 0, 1, ...

    A column of no more than `bins` different values, of two rows each on average, has one bin for each. Others are cut
    at the edges of `numpy.histogram`, equal widths over [min, max]. A value on an edge, up to rounding, goes to the bin
    nearer the middle of the range; one in the exact middle of an even number of bins has a bin of its own, number
    `bins`. So mirrored columns fall into mirrored bins. A constant column is all in bin 0.
    """
    values = np.ascontiguousarray(values, dtype=np.float64)
    low, half, largest = _extent(values)
    return _cut(values, low, half, ROUNDING * largest, bins, _rows(values, weights))


def _rows(values: FloatArray, weights: FloatArray | None) -> int:
    return len(values) if weights is None else int(weights.sum())


@shared
def bin_equal_mass(values: FloatArray, bins: int = 20, weights: FloatArray | None = None) -> IntArray:
    """(n_samples, n_columns) bin of each value such that bins hold about as many rows each; equals are never parted.

    The mean ranks of the values, on which neither scale nor outliers have a hold, cut as `bin_equal_width` cuts values.
    """
    ranks = places(values, weights)
    n_samples, n_columns = len(values) if weights is None else float(weights.sum()), values.shape[1]
    half = np.where(_extent(np.ascontiguousarray(values, dtype=np.float64))[1] > 0.0, n_samples / 2, 0.0)
    rounding = np.full(n_columns, ROUNDING * n_samples)
    return _cut(ranks, np.zeros(n_columns), half, rounding, bins, _rows(values, weights))


def places(values: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """(n_samples, n_columns) mean of the places, 1/2, 3/2, ..., that each value of a column has, equals alike.

    With `weights` (n_samples,) those of a column in which each row is there as often as its weight says.
    """
    found = np.empty(values.shape)
    for column, own in zip(values.T, found.T, strict=True):
        present, place = np.unique(column, return_inverse=True)
        mass = np.bincount(place, weights=weights, minlength=len(present))
        own[:] = (np.cumsum(mass) - mass / 2)[place]
    return found


def _extent(values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(n_columns,) each: minimum; half the range, 0 for a constant column; largest absolute value."""
    low, high = _ends(values)
    largest = np.maximum(np.abs(low), np.abs(high))
    # Halved, since the range of the largest floats has no end.
    half = high / 2 - low / 2
    return low, np.where(half > CONSTANT / 2 * largest, half, 0.0), largest


@numba.njit(cache=True, nogil=True)
def _ends(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    low, high = values[0].copy(), values[0].copy()
    for row in range(1, values.shape[0]):
        for column in range(values.shape[1]):
            value = values[row, column]
            low[column], high[column] = min(low[column], value), max(high[column], value)
    return low, high


@numba.njit(cache=True, nogil=True)
def _few_values(values: FloatArray, half: FloatArray, rounding: FloatArray, bins: int, n_rows: int) -> list[FloatArray]:
    """The different values of each column in ascending order, or none: see `bin_equal_width`."""
    n_samples, n_columns = values.shape
    few = []
    known = np.empty(min(bins, n_rows // 2))
    for column in range(n_columns):
        count = 0
        for row in range(n_samples if half[column] > 0.0 else 0):
            value, new = values[row, column], True
            for each in range(count):
                if abs(value - known[each]) <= rounding[column]:
                    new = False
                    break
            if new:
                if count == len(known):
                    count = 0
                    break
                known[count] = value
                count += 1
        few.append(np.sort(known[:count]))
    return few


@numba.njit(cache=True, nogil=True)
def _cut(
    values: FloatArray, low: FloatArray, half: FloatArray, rounding: FloatArray, bins: int, n_rows: int
) -> IntArray:
    """`half` is that of the range of each column, or 0 for a constant one; `n_rows` how many the values stand for."""
    n_samples, n_columns = values.shape
    few = _few_values(values, half, rounding, bins, n_rows)
    binned = np.zeros((n_samples, n_columns), dtype=np.int32)
    for start in range(0, n_samples, ROWS_IN_CACHE):
        rows = range(start, min(start + ROWS_IN_CACHE, n_samples))
        for column in range(n_columns):
            known, span, first = few[column], half[column], low[column] / 2
            if span == 0.0:
                continue
            if len(known):
                for row in rows:
                    binned[row, column] = np.searchsorted(known, values[row, column] - rounding[column])
                continue
            at_edge = bins * (rounding[column] / span + ROUNDING)
            for row in rows:
                place = (values[row, column] / 2 - first) / span * bins
                edge = np.rint(place)
                if abs(place - edge) > at_edge:
                    binned[row, column] = int(place)
                elif 2 * edge < bins:
                    binned[row, column] = int(edge)
                elif 2 * edge > bins:
                    binned[row, column] = int(edge) - 1
                else:
                    binned[row, column] = bins
    return binned
