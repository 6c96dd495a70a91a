"""Codes and factors that are independent: the information they seem to share, and tests of it.

Everything is over all orders of the rows, that is over all tables of counts with the margins at hand.
"""

from functools import lru_cache

import numpy as np

from unbraid.base.types import FloatArray, IntArray
from unbraid.metrics._shared.bins import bin_equal_mass
from unbraid.metrics._shared.inputs import Levels

MASSES = 10  # bins of equal mass in which codes are tested
REACH = 10  # standard deviations of a count, and rows, beyond which nothing is summed


def expected_information(binned: IntArray, levels: Levels) -> FloatArray:
    """(n_codes, n_factors) mean mutual information over all orders of the rows.

    With N the rows, a those of a bin and b those of a level, a cell has n rows by the hypergeometric distribution, and
    the information is log N + (sum of n log n over cells - over bins - over levels) / N.
    """
    from scipy.special import xlogy  # a tenth of a second to import

    n_rows, n_codes = binned.shape
    n_bins = int(binned.max(initial=0)) + 1
    counts = np.bincount((binned + n_bins * np.arange(n_codes)).ravel(), minlength=n_codes * n_bins)
    bins, place = np.unique(counts, return_inverse=True)
    place, of_bins = place.reshape(n_codes, n_bins), xlogy(counts, counts).reshape(n_codes, n_bins).sum(axis=1)
    columns = []
    for column, size in zip(levels.levels.T, levels.sizes, strict=True):
        totals = np.bincount(column, minlength=size)
        of_cells = np.zeros(len(bins))
        for total, times in zip(*np.unique(totals, return_counts=True), strict=True):
            of_cells += times * _mean_of_cells(n_rows, bins, total)
        columns.append(np.log(n_rows) + (of_cells[place].sum(axis=1) - of_bins - xlogy(totals, totals).sum()) / n_rows)
    return np.maximum(np.stack(columns, axis=1), 0.0)


def _mean_of_cells(n_rows: int, bins: IntArray, total: int) -> FloatArray:
    """(n_bins,) mean of n log n for the n of `total` rows that fall into bins of so many rows."""
    from scipy.special import xlogy

    middle, reach = np.rint(bins * (total / n_rows)).astype(np.int64), _reach(n_rows, bins, total)
    n = middle[:, None] + np.arange(-reach, reach + 1)
    return (_chances(n, n_rows, bins[:, None], total) * xlogy(np.maximum(n, 0), np.maximum(n, 0))).sum(axis=1)


def _reach(n_rows: int, bins: IntArray, total: int) -> int:
    """How far from its mean the number of `total` rows in bins of so many rows may be, but for a negligible chance."""
    variances = bins * (total / n_rows) * (1 - total / n_rows) * (n_rows - bins) / max(n_rows - 1, 1)
    return int(REACH * np.sqrt(variances.max(initial=0.0))) + REACH


def _chances(n: IntArray, n_rows: int, bins: IntArray, total: int) -> FloatArray:
    """Hypergeometric probabilities of n of `total` rows in bins of so many of all rows; 0 where that is impossible."""
    factorials = _log_factorials(n_rows)
    possible = np.clip(n, np.maximum(0, bins + total - n_rows), np.minimum(bins, total))
    logs = (
        factorials[bins] - factorials[possible] - factorials[bins - possible]
        + factorials[n_rows - bins] - factorials[total - possible] - factorials[n_rows - bins - total + possible]
        + factorials[total] + factorials[n_rows - total] - factorials[n_rows]
    )  # fmt: skip
    return np.where(n == possible, np.exp(logs), 0.0)


@lru_cache(maxsize=2)
def _log_factorials(n: int) -> FloatArray:
    return np.cumsum(np.log(np.maximum(np.arange(n + 1), 1)))


def association_p(values: FloatArray, levels: Levels) -> FloatArray:
    """(n_codes,) p of the hypothesis that a code is independent of every factor, by single tests and Šidák.

    Codes (n_samples, n_codes) that are 0 in more than half of the rows are tested for whether they are 0, others in
    bins of equal mass.
    """
    n_rows, sparse = len(values), 2 * (values != 0.0).sum(axis=0) < len(values)
    p = np.ones((values.shape[1], len(levels.sizes)))
    if sparse.any():
        rows, codes = np.nonzero(values[:, sparse])
        for factor, size in enumerate(levels.sizes):
            cells = codes * size + levels.levels[rows, factor]
            counts = np.bincount(cells, minlength=sparse.sum() * size).reshape(-1, size)
            p[sparse, factor] = _fisher(counts, np.bincount(levels.levels[:, factor], minlength=size), n_rows)
    if not sparse.all():
        masses = bin_equal_mass(values[:, ~sparse], MASSES)
        n_bins, n_codes = int(masses.max()) + 1, masses.shape[1]
        for factor, size in enumerate(levels.sizes):
            cells = (masses + n_bins * np.arange(n_codes)) * size + levels.levels[:, [factor]]
            counts = np.bincount(cells.ravel(), minlength=n_codes * n_bins * size)
            p[~sparse, factor] = _chi_square(counts.reshape(n_codes, n_bins, size).astype(float))
    return _any_of(p)


def _any_of(p: FloatArray) -> FloatArray:
    """p that the smallest of independent p (n, n_tests) is as small; of ones that depend on each other, no smaller."""
    with np.errstate(divide="ignore"):
        return -np.expm1(p.shape[1] * np.log1p(-p.min(axis=1)))


def _fisher(counts: IntArray, totals: IntArray, n_rows: int) -> FloatArray:
    """(n_codes,) mid-p of the level that differs most, after Šidák.

    Of the rows in which a code is not 0, so many are of each level, (n_codes, n_levels), which has `totals`
    (n_levels,) of all rows.
    """
    fires, present = counts.sum(axis=1), np.flatnonzero(totals)
    tests = np.empty((len(fires), 1 if len(present) == 2 else len(present)))  # the other of two says the same
    for test, level in zip(tests.T, present, strict=False):
        n, total = counts[:, level], int(totals[level])
        outward = np.where(n * n_rows >= fires * total, 1, -1)[:, None] * np.arange(2 * _reach(n_rows, fires, total))
        tail = _chances(n[:, None] + outward, n_rows, fires[:, None], total)
        test[:] = np.minimum(1.0, 2 * tail.sum(axis=1) - tail[:, 0])
    return _any_of(tests)


def _chi_square(tables: FloatArray) -> FloatArray:
    """(n_tables,) p of Pearson's statistic of tables (n_tables, n_bins, n_levels), empty rows and columns left out."""
    from scipy.special import gammaincc

    n = tables[0].sum()
    a, b = tables.sum(axis=2), tables.sum(axis=1)
    r, c = (a > 0).sum(axis=1), (b > 0).sum(axis=1)
    over_a, over_b = (np.where(side > 0, 1 / np.where(side > 0, side, 1.0), 0.0) for side in (a, b))
    statistic = n * (np.einsum("tij,ti,tj->t", tables**2, over_a, over_b) - 1)
    mean = n / (n - 1) * (r - 1) * (c - 1)
    spare = max(n - 2, 1), max(n - 3, 1)
    v1, v2 = (r - 1) * (n - r) / (n - 1), (c - 1) * (n - c) / (n - 1)
    w1, w2 = (n * over_a.sum(axis=1) - r**2) / spare[0], (n * over_b.sum(axis=1) - c**2) / spare[0]
    variance = 2 * n / spare[1] * (v1 - w1) * (v2 - w2) + n**2 / (n - 1) * w1 * w2
    known = (mean > 0) & (variance > 0)
    mean, variance = np.where(known, mean, 1.0), np.where(known, variance, 1.0)
    return np.where(known, gammaincc(mean**2 / variance, np.maximum(statistic, 0.0) * mean / variance), 1.0)
