"""Codes and continuous factors cut into bins, alike for a column, the column mirrored and the column rescaled."""

from typing import Literal, TypeAlias

import numpy as np

from unbraid.base.arguments import check_choice
from unbraid.base.types import FloatArray, IntArray

Binning: TypeAlias = Literal["width", "mass"]
CONSTANT = 1e-12  # of its largest value: a column that varies less is constant but for rounding
ROUNDING = 8 * float(np.finfo(float).eps)  # relative error that rescaling a column may leave in a value
CELLS = 32_768  # that are cut at a time, so that they stay in the cache
FIRST = 256  # rows that show of most columns that they have more different values than bins


def but_for_rounding(values: FloatArray, bits: int) -> FloatArray:
    """To so many places of a binary fraction, at which codes that have steps of any sort are not halfway between."""
    return np.rint(values * 2.0**bits) / 2.0**bits


def bin_codes(values: FloatArray, bins: int, binning: Binning, weights: FloatArray | None = None) -> IntArray:
    """(n_samples, n_columns) bin of each value, of equal width or of equal mass.

    `weights` (n_samples,) say how many rows each row stands for.

    Raises:
        ValueError: `binning` is neither.
    """
    check_choice("binning", binning, ("width", "mass"))
    return bin_equal_width(values, bins, weights) if binning == "width" else bin_equal_mass(values, bins, weights)


def bin_equal_width(values: FloatArray, bins: int = 20, weights: FloatArray | None = None) -> IntArray:
    """(n_samples, n_columns) bin of each value, 0, 1, ...

    A column of no more than `bins` different values, of two rows each on average, has one bin for each. Others are cut
    at the edges of `numpy.histogram`, equal widths over [min, max]. A value on an edge, up to rounding, goes to the bin
    nearer the middle of the range; one in the exact middle of an even number of bins has a bin of its own, number
    `bins`. So mirrored columns fall into mirrored bins. A constant column is all in bin 0.
    """
    values = np.ascontiguousarray(values, dtype=np.float64)
    low, span, largest = _extent(values)
    return _cut(values, low, span, ROUNDING * largest, bins, _rows(values, weights))


def _rows(values: FloatArray, weights: FloatArray | None) -> int:
    return len(values) if weights is None else int(weights.sum())


def bin_equal_mass(values: FloatArray, bins: int = 20, weights: FloatArray | None = None) -> IntArray:
    """(n_samples, n_columns) bin of each value such that bins hold about as many rows each; equals are never parted.

    The mean ranks of the values, on which neither scale nor outliers have a hold, cut as `bin_equal_width` cuts values.
    """
    ranks = places(values, weights)
    n_samples, n_columns = len(values) if weights is None else float(weights.sum()), values.shape[1]
    span = np.where(_extent(np.ascontiguousarray(values, dtype=np.float64))[1] > 0.0, n_samples, 0.0)
    rounding = np.full(n_columns, ROUNDING * n_samples)
    return _cut(ranks, np.zeros(n_columns), span, rounding, bins, _rows(values, weights))


def places(values: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """(n_samples, n_columns) mean of the places, 1/2, 3/2, ..., that each value of a column has, equals alike.

    With `weights` (n_samples,) those of a column in which each row is there as often as its weight says.
    """
    midranks = np.empty(values.shape)
    for column, own in zip(values.T, midranks.T, strict=True):
        present, place = np.unique(column, return_inverse=True)
        mass = np.bincount(place, weights=weights, minlength=len(present))
        own[:] = (np.cumsum(mass) - mass / 2)[place]
    return midranks


def _extent(values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(n_columns,) each: minimum; range, 0 for a constant column; largest absolute value."""
    low, high = values.min(axis=0), values.max(axis=0)
    largest = np.maximum(np.abs(low), np.abs(high))
    span = high - low
    return low, np.where(span > CONSTANT * largest, span, 0.0), largest


def _few_values(column: FloatArray, rounding: float, most: int) -> FloatArray:
    """The different values of a column in ascending order, or none where they are more than `most`."""
    known: list[float] = []
    while len(column):
        if len(known) == most:
            return np.empty(0)
        known.append(column[0])
        column = column[np.abs(column - column[0]) > rounding]
    return np.sort(known)


def _cut(
    values: FloatArray, low: FloatArray, span: FloatArray, rounding: FloatArray, bins: int, n_rows: int
) -> IntArray:
    """`span` is the range of each column, or 0 for a constant one; `n_rows` how many the values stand for."""
    n_samples, n_columns = values.shape
    binned = np.empty((n_samples, n_columns), dtype=np.int32)
    constant, most = span == 0.0, min(bins, n_rows // 2)
    span = np.where(constant, 1.0, span)
    at_edge = bins * (2 * rounding / span + ROUNDING)
    for start in range(0, n_samples, rows_at_once := max(1, CELLS // max(n_columns, 1))):
        rows = slice(start, start + rows_at_once)
        place = (values[rows] - low) / span * bins
        edge = np.rint(place)
        inner = np.where(2 * edge < bins, edge, np.where(2 * edge > bins, edge - 1, bins))
        binned[rows] = np.where(np.abs(place - edge) > at_edge, place, inner)
    binned[:, constant] = 0
    # Values further apart than rounding are different ones, however many lie between.
    different = 1 + (np.diff(np.sort(values[:FIRST], axis=0), axis=0) > rounding).sum(axis=0)
    for column in np.flatnonzero(~constant & (different <= most)):
        if len(known := _few_values(values[:, column], rounding[column], most)):
            binned[:, column] = np.searchsorted(known, values[:, column] - rounding[column])
    return binned
