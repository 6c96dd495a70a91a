"""A table with a row for each code: its best factor, how much it tells of it, and whether that could be luck."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from unbraid._utils.arguments import check_whole
from unbraid._utils.optional import require
from unbraid.confidence.null import shuffle_of
from unbraid.metrics._shared.bins import bin_codes
from unbraid.metrics._shared.information import factor_entropy, mutual_information
from unbraid.metrics._shared.inputs import Levels, as_levels, check_inputs
from unbraid.representation import Representation
from unbraid.types import DataFrame, FloatArray, IntArray, Progress

BINS = 20  # of codes, as for `mig`
CODES_AT_ONCE = 256  # whose information of all shuffles is in memory
ORDERS_AT_ONCE = 20  # of the rows, for which codes are read once


def per_code(
    representation: Representation,
    *,
    null: int | str = 999,
    seed: int = 0,
    progress: Progress | None = None,
) -> DataFrame:
    """What each code tells of the factors: a table for populations of cells or of sparse features.

    A code's share of a factor is their mutual information I, of the code in 20 bins of equal width, above the mean of
    moved rows, as a part of what there is: (I - mean) / (H(factor) - mean); of a time series that is shifted, of the
    middle half of its rows. The best factor has the largest share. The p-value compares this largest share with that of
    the same code beside moved rows, so that it needs no correction for the number of factors; `q` corrects it for the
    number of codes (Benjamini & Hochberg 1995).

    Args:
        representation: codes with factors. Its groups, if it has any, are moved whole.
        null: how often rows are moved, or "shift" for time series, as for `unbraid.score`. No p-value is below
            1 / (null + 1), and with many codes q needs small ones: give more for more codes.
        seed: same seed, same table.
        progress: called as progress("per code", done, total).

    Returns:
        DataFrame with a row for each code: code; deviation, its standard deviation; factor, the best one, "" for a
        constant code; information in nats, plug-in; share, at most 1 and about 0 by luck; second, the next factor, and
        second_share; p and q.

    Raises:
        ImportError: pandas is not installed.
        ValueError: there are no rows or no factors, or `null` is 0 or moves nothing.

    Reference:
        Correction for chance as the adjusted mutual information of Vinh, Epps & Bailey 2010, with the mean over moved
        rows in place of the expected value.
    """
    pandas = require("pandas", "table", "per_code")
    check_whole("seed", seed, 0)
    if not len(representation):
        raise ValueError("this card holds no codes: load it with the representation that was scored")
    if not representation.names:
        raise ValueError("these codes have no factors to compare with: give labels")
    if representation.weights is not None:
        raise ValueError("per_code does not support weighted rows")
    shuffle, _ = shuffle_of(null, representation)
    if shuffle is None:
        raise ValueError("null must be at least 1: p-values come from moved rows")
    levels = as_levels(check_inputs(representation.codes, representation.factors, representation.kinds))
    n_samples, n_codes, done = len(representation), representation.codes.shape[1], 0
    fixed, _ = shuffle.rows(representation.groups, n_samples, seed, 0)
    entropies = factor_entropy(levels if fixed is None else _at(levels, fixed))
    parts = [slice(start, start + CODES_AT_ONCE) for start in range(0, n_codes, CODES_AT_ONCE)]
    found: list[FloatArray] = []
    for part in parts:
        binned = bin_codes(np.asarray(representation.codes[:, part], dtype=float), BINS, "width")
        whole = mutual_information(binned, levels)
        compared = whole if fixed is None else mutual_information(binned[fixed], _at(levels, fixed))
        moved = np.empty((shuffle.times, *whole.shape))
        for start in range(0, shuffle.times, ORDERS_AT_ONCE):
            if progress is not None:
                progress("per code", done, shuffle.times * len(parts))
            which = range(start, min(start + ORDERS_AT_ONCE, shuffle.times))
            orders = [shuffle.rows(representation.groups, n_samples, seed, number) for number in which]
            moved[start : which.stop] = _moved(binned, levels, orders, turned=shuffle.moved == "rows")
            done += len(which)
        found.append(_judged(whole, compared, moved, entropies))
    return _table(pandas, representation, np.concatenate(found))


def _moved(
    binned: IntArray, levels: Levels, orders: Sequence[tuple[IntArray | None, IntArray]], *, turned: bool
) -> FloatArray:
    """(n_orders, n_codes, n_factors) information of codes in these orders; `turned` if all are of all rows."""
    if not turned:
        return np.array(
            [mutual_information(binned[rows], levels if kept is None else _at(levels, kept)) for kept, rows in orders]
        )
    # The rows of the levels the other way, so that those of the codes stay: what is known of them serves all orders.
    columns = np.empty((len(orders), len(levels.sizes), len(binned)), dtype=levels.levels.dtype)
    for own, (_, rows) in zip(columns, orders, strict=True):
        own[:, rows] = levels.levels.T
    together = Levels(columns.reshape(-1, len(binned)).T, levels.sizes * len(orders), levels.notes, None)
    return mutual_information(binned, together).reshape(-1, *columns.shape[:2]).swapaxes(0, 1)


def _at(levels: Levels, rows: IntArray) -> Levels:
    return Levels(levels.levels[rows], levels.sizes, levels.notes, None)


def _judged(whole: FloatArray, compared: FloatArray, moved: FloatArray, entropies: FloatArray) -> FloatArray:
    """(n_codes, 3 + n_factors): best factor, its information, p, and the share of every factor.

    `compared` (n_codes, n_factors) is of the rows that `moved` (times, n_codes, n_factors) has moved.
    """
    # The rows as they are count as one of the orders, as in p: so all orders are treated alike.
    mean = (compared + moved.sum(axis=0)) / (1 + len(moved))
    room = entropies - mean
    scale = np.where(room > 1e-9 * entropies, 1 / np.where(room > 0, room, 1.0), 0.0)
    shares, by_luck = (compared - mean) * scale, (moved - mean) * scale
    best = shares.argmax(axis=1)
    top, codes = shares.max(axis=1), np.arange(len(shares))
    as_good = (by_luck.max(axis=2) >= top - 1e-12).sum(axis=0)
    p = (1 + as_good) / (1 + len(moved))
    return np.column_stack([best, whole[codes, best], p, shares])


def _table(pandas: Any, representation: Representation, judged: FloatArray) -> DataFrame:
    from scipy.stats import false_discovery_control

    best, information, p, shares = judged[:, 0].astype(int), judged[:, 1], judged[:, 2], judged[:, 3:]
    deviation = np.array([column.std(dtype=float) for column in representation.codes.T])
    names, codes = np.array(representation.names, dtype=object), np.arange(len(judged))
    live = information > 0
    others = shares.copy()
    others[codes, best] = -np.inf
    second, several = others.argmax(axis=1), len(names) > 1
    columns: dict[str, Any] = {
        "code": representation.code_labels(),
        "deviation": deviation,
        "factor": np.where(live, names[best], ""),
        "information": information,
        "share": np.where(live, shares[codes, best], 0.0),
        "second": np.where(live & several, names[second], ""),
        "second_share": np.where(live, shares[codes, second], 0.0) if several else 0.0,
        "p": np.where(live, p, 1.0),
    }
    return pandas.DataFrame({**columns, "q": false_discovery_control(columns["p"])})
