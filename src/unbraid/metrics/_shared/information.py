"""Entropy and mutual information of binned codes and factor levels, in nats, plug-in estimates."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from unbraid.base.arguments import check_bins
from unbraid.base.threads import map_ordered
from unbraid.base.types import FloatArray, IntArray
from unbraid.metrics._shared.bins import Binning, bin_codes, bin_equal_width
from unbraid.metrics._shared.inputs import CONTINUOUS_BINS, Inputs, Levels, as_levels, column_slices, opened
from unbraid.metrics._shared.sharing import of_codes, shared

FEW_SHUFFLED = 5_000_000  # bins, over all codes and draws, up to which they are shuffled
ROUNDING = 1e-13  # nats: sums of logarithms leave less where there is no information at all


@shared
def binned_information(inputs: Inputs, bins: int = 20, binning: Binning = "width") -> FloatArray:
    """(n_codes, n_factors) mutual information of each code, in bins, with each factor."""
    levels = as_levels(inputs)
    return np.concatenate([mutual_information(binned, levels) for _, binned in bins_of_codes(inputs, bins, binning)])


def bins_of_codes(inputs: Inputs, bins: int, binning: Binning) -> Iterator[tuple[slice, IntArray]]:
    """Which codes, and the bins of their values: as `Inputs.column_blocks`, and shared only where all come at once."""
    yield from _bins_of(inputs.stored, bins, binning, inputs.weights)


def _bins_of(
    stored: FloatArray | IntArray, bins: int, binning: Binning, weights: FloatArray | None
) -> Iterator[tuple[slice, IntArray]]:
    blocks = column_slices(*stored.shape)
    for columns in blocks:
        if len(blocks) == 1:
            yield columns, _bins(stored, bins, binning, weights)
        else:
            yield columns, bin_codes(stored[:, columns].astype(np.float64), bins, binning, weights)


@of_codes
@shared
def _bins(stored: FloatArray | IntArray, bins: int, binning: Binning, weights: FloatArray | None) -> IntArray:
    return bin_codes(stored.astype(np.float64, copy=False), bins, binning, weights)


def rows_in_bins(inputs: Inputs, bins: int, binning: Binning) -> tuple[IntArray, ...]:
    """Of each code how many rows lie in each bin, whatever they stand for."""
    return _rows_in_bins(inputs.stored, bins, binning, inputs.weights)


@of_codes
@shared
def _rows_in_bins(
    stored: FloatArray | IntArray, bins: int, binning: Binning, weights: FloatArray | None
) -> tuple[IntArray, ...]:
    return tuple(np.bincount(column) for _, binned in _bins_of(stored, bins, binning, weights) for column in binned.T)


class Tables(NamedTuple):
    """What the gaps between codes, or between factors, are taken of; nats."""

    information: FloatArray  # (n_codes, n_factors)
    code_entropy: FloatArray  # (n_codes,)
    factor_entropy: FloatArray  # (n_factors,)
    levels: Levels


def tables(inputs: Inputs, bins: int, binning: Binning, factor_bins: int | None) -> Tables:
    """Of codes in bins, and of factors as they are or, above `factor_bins` levels, in bins of equal width."""
    check_bins("bins", bins)
    if factor_bins is not None:
        check_bins("factor_bins", factor_bins, 2)
    levels = as_levels(inputs)
    information = binned_information(inputs, bins, binning)
    if factor_bins is not None:
        coarse = bin_equal_width(_in_order(inputs, levels), factor_bins, inputs.weights)
        columns = [np.unique(column, return_inverse=True)[1] for column in coarse.T]
        sizes = tuple(int(column.max()) + 1 for column in columns)
        levels = Levels(np.stack(columns, axis=1).astype(np.int64), sizes, levels.notes, inputs.weights)
        parts = [mutual_information(binned, levels) for _, binned in bins_of_codes(inputs, bins, binning)]
        information = np.concatenate(parts)
    return Tables(information, code_entropy(inputs, bins, binning), factor_entropy(levels), levels)


def _in_order(inputs: Inputs, levels: Levels) -> FloatArray:
    """(n_samples, n_factors) levels, those of a circle counted from behind its widest gap."""
    ordered, around = levels.levels.astype(float), [k for k, kind in enumerate(inputs.kinds) if kind == "cyclic"]
    for column, values in zip(around, opened(inputs, CONTINUOUS_BINS).T[around] if around else (), strict=True):
        ordered[:, column] = np.unique(values, return_inverse=True)[1]
    return ordered


@shared
def code_entropy(inputs: Inputs, bins: int = 20, binning: Binning = "width") -> FloatArray:
    """(n_codes,) entropy of each code in bins."""
    counts = [
        np.bincount(column, inputs.weights) for _, binned in bins_of_codes(inputs, bins, binning) for column in binned.T
    ]
    return np.array([_entropy_of(count / count.sum()) for count in counts])


def mutual_information(binned: IntArray, levels: Levels) -> FloatArray:
    """(n_codes, n_factors) I(code; factor) from integer bins (n_samples, n_codes) and factor levels."""
    by_code = np.ascontiguousarray(binned.T, dtype=np.int64)
    information = np.empty((len(by_code), len(levels.sizes)))
    for factor, size in enumerate(levels.sizes):
        column = levels.levels[:, factor]
        for code, bins in enumerate(by_code):
            table = np.bincount(bins * size + column, levels.weights).astype(float)
            table = np.append(table, np.zeros(-len(table) % size)).reshape(-1, size)
            cells, ends = _n_log_n(table), _n_log_n(table.sum(axis=0)) + _n_log_n(table.sum(axis=1))
            n_rows = table.sum()
            information[code, factor] = np.log(n_rows) + (cells - ends) / n_rows
    return np.where(information > ROUNDING, information, 0.0)


def _n_log_n(counts: FloatArray) -> float:
    return float((counts * np.log(np.where(counts > 0, counts, 1.0))).sum())


@shared
def information_of_noise(inputs: Inputs, bins: int = 20, binning: Binning = "width") -> FloatArray:
    """(n_draws, n_codes, n_factors) mutual information that is estimated where codes are independent of factors.

    Of the bins of each code, shuffled; of many rows, so that the cost does not grow with their number, of tables drawn
    at random with the counts of bins and of levels as they are, which is the same.
    """
    n_draws = max(10, -(-100 // inputs.n_codes))
    levels = replace(as_levels(inputs), weights=None)
    columns = enumerate(column for _, binned in bins_of_codes(inputs, bins, binning) for column in binned.T)
    information = np.empty((n_draws, inputs.n_codes, inputs.n_factors))
    if n_draws * inputs.n_codes * inputs.n_samples <= FEW_SHUFFLED:
        for code, column in columns:
            information[:, code] = _of_shuffles(code, column, levels, n_draws)
    else:
        for (code, _), draws in map_ordered(lambda task, _: _of_tables(*task, levels, n_draws), columns):
            information[:, code] = draws
    return np.maximum(information, 0.0, out=information)


def _of_shuffles(code: int, bins: IntArray, levels: Levels, n_draws: int) -> FloatArray:
    draws = np.random.default_rng([0, code]).permuted(np.tile(bins, (n_draws, 1)), axis=1)
    return mutual_information(draws.T, levels)


def _of_tables(code: int, bins: IntArray, levels: Levels, n_draws: int) -> FloatArray:
    from scipy.stats import random_table  # half a second to import

    rng, draws = np.random.default_rng([0, code]), np.zeros((n_draws, len(levels.sizes)))
    by_bin, n_samples = np.bincount(bins), len(bins)
    by_bin = by_bin[by_bin > 0]
    for factor, column in enumerate(levels.levels.T if len(by_bin) > 1 else ()):  # SciPy errs on a single row
        counts = np.bincount(column)
        tables = random_table.rvs(by_bin, counts, size=n_draws, random_state=rng)
        joint = _entropy_of(tables.reshape(n_draws, -1) / n_samples)
        draws[:, factor] = _entropy_of(by_bin / n_samples) + _entropy_of(counts / n_samples) - joint
    return draws


@shared
def factor_entropy(levels: Levels) -> FloatArray:
    """(n_factors,) entropy of each factor."""
    counts = [np.bincount(column, levels.weights) for column in levels.levels.T]
    return np.array([_entropy_of(count / count.sum()) for count in counts])


def _entropy_of(probabilities: FloatArray) -> FloatArray:
    """Entropy of each row."""
    logs = np.log(np.where(probabilities > 0, probabilities, 1.0))
    return -(probabilities * logs).sum(axis=-1)
