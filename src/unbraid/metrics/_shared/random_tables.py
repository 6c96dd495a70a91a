"""Tables of counts drawn at random with given sums of rows and of columns, as of rows of a sample shuffled."""

import math
from collections.abc import Callable

import numba
import numpy as np

from unbraid.types import FloatArray, IntArray

ROWS_PER_CELL = 10  # that are shuffled in about the time in which a cell is drawn


def random_tables(rows: IntArray, columns: IntArray, n_draws: int, rng: np.random.Generator) -> IntArray:
    """(n_draws, n_rows, n_columns) tables, each with the probability that shuffled pairs of both give it."""
    return tables_later(rows, columns, n_draws, rng)()


def tables_later(rows: IntArray, columns: IntArray, n_draws: int, rng: np.random.Generator) -> Callable[[], IntArray]:
    """`random_tables`, for which `rng` draws now; they are made when they are asked for, in any thread.

    The same as `scipy.stats.random_table`, whose module takes as long to load as the first score takes. Time grows with
    the number of cells or, where that is less, with the sum of all counts.

    Args:
        rows: (n_rows,) sums, from 0.
        columns: (n_columns,) sums, from 0, as many in all.
        n_draws: of tables.
        rng: draws a number for each cell that is free, or shuffles.
    """
    if ROWS_PER_CELL * (len(rows) - 1) * (len(columns) - 1) > rows.sum():
        tables = _shuffled(rows, columns, n_draws, rng)
        return lambda: tables
    luck = rng.random((n_draws, max(len(rows) - 1, 0), max(len(columns) - 1, 0)))
    return lambda: _filled(rows.astype(np.int64), columns.astype(np.int64), luck)


def _shuffled(rows: IntArray, columns: IntArray, n_draws: int, rng: np.random.Generator) -> IntArray:
    """Counts of pairs, one of both shuffled."""
    first, second = (np.repeat(np.arange(len(sums)), sums) for sums in (rows, columns))
    first *= len(columns)
    n_cells = len(rows) * len(columns)
    drawn = [np.bincount(first + rng.permutation(second), minlength=n_cells) for _ in range(n_draws)]
    return np.stack(drawn).reshape(n_draws, len(rows), len(columns))


@numba.njit(cache=True, nogil=True)
def _filled(rows: IntArray, columns: IntArray, luck: FloatArray) -> IntArray:
    """Cell by cell, each given those before it, which is hypergeometric."""
    tables = np.zeros((len(luck), len(rows), len(columns)), dtype=np.int64)
    for draw in range(len(luck)):
        left, total = columns.copy(), columns.sum()  # of the columns, in this row and those below
        for row in range(len(rows) - 1):
            to_place, others = rows[row], total
            for column in range(len(columns) - 1):
                others -= left[column]
                count = _hypergeometric(left[column], others, to_place, luck[draw, row, column])
                tables[draw, row, column] = count
                to_place -= count
            tables[draw, row, -1] = to_place
            left -= tables[draw, row]
            total -= rows[row]
        tables[draw, -1] = left
    return tables


@numba.njit(cache=True)
def _hypergeometric(good: int, bad: int, taken: int, luck: float) -> int:
    """How many of `good` are among those `taken` of both, by a number from 0 to 1.

    Probabilities are added up outwards from the most likely count, until they exceed it.
    """
    least, most = max(0, taken - bad), min(good, taken)
    if least == most:
        return least
    mode = int((taken + 1) * ((good + 1) / (good + bad + 2)))
    mode = min(max(mode, least), most)
    likely = math.exp(
        _log_choose(good, mode) + _log_choose(bad, taken - mode) - _log_choose(good + bad, taken)
    )  # fmt: skip
    above, below, up, down = mode, mode, likely, likely
    luck -= likely
    while luck >= 0 and (above < most or below > least):
        if above < most:
            up *= (good - above) * (taken - above) / ((above + 1) * (bad - taken + above + 1))
            above += 1
            luck -= up
            if luck < 0:
                return above
        if below > least:
            down *= below * (bad - taken + below) / ((good - below + 1) * (taken - below + 1))
            below -= 1
            luck -= down
            if luck < 0:
                return below
    return mode  # also where rounding left a last bit of luck


@numba.njit(cache=True)
def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1.0) - math.lgamma(k + 1.0) - math.lgamma(n - k + 1.0)
