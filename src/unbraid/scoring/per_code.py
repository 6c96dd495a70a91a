"""A table with a row for each code: its best factor, how much it tells of it, and whether that could be luck."""

from typing import Any

import numpy as np

from unbraid.base.arguments import check_whole
from unbraid.base.arrays import CELLS
from unbraid.base.types import DataFrame, FloatArray, IntArray, Progress
from unbraid.data import Representation
from unbraid.metrics._shared.bins import bin_codes
from unbraid.metrics._shared.independence import association_p, expected_information
from unbraid.metrics._shared.information import factor_entropy, mutual_information
from unbraid.metrics._shared.inputs import Levels, as_levels, check_inputs
from unbraid.metrics.wide import Columns
from unbraid.scoring.null import Shuffle, shuffle_of

BINS = 20  # of codes, as for `mig`
AT_ONCE = 128  # columns in memory, of few rows


def per_code(
    representation: Representation,
    *,
    codes: Any = None,
    null: int | str = 999,
    seed: int = 0,
    progress: Progress | None = None,
) -> DataFrame:
    """What each code tells of the factors: a table for populations of cells or of sparse features.

    A code's share of a factor is their mutual information I, of the code in 20 bins of equal width, above what it is on
    average by chance, as a part of what there is: (I - mean) / (H(factor) - mean). The best factor has the largest
    share. `p` is that of the code and any factor, so that it needs no correction for the number of factors; `q`
    corrects it for the number of codes (Benjamini & Hochberg 1995).

    Single rows are exchangeable: the mean is over all orders of the rows, and p that of a test of independence of each
    factor, the smallest of all factors after Šidák. A code that is 0 in most rows is tested for whether it is 0 at each
    level, by Fisher's exact test (mid-p). Others are tested in ten bins of equal mass by the chi-square statistic,
    whose null distribution is a gamma distribution with the exact mean and variance over all orders of the rows.

    Groups of rows are moved whole, and time series are shifted (`null`). Then the mean is over these moves, of a series
    over its middle half, and p compares the largest share with those of the moved rows; where it is above all of them,
    with those of all codes, each less its mean and over its standard deviation.

    Args:
        representation: codes with factors. Its groups, if it has any, are moved whole.
        codes: (n_samples, n_codes) to describe in place of its own, dense or sparse; they are read by columns.
        null: how often groups are moved, or "shift" for time series, as for `unbraid.score`.
        seed: of the moves.
        progress: called as progress("per code", done, total).

    Returns:
        DataFrame with a row for each code: code; deviation, its standard deviation; factor, the best one, "" for a
        constant code; information in nats, plug-in; share, at most 1 and about 0 by luck; second, the next factor, and
        second_share; p and q.

    Raises:
        ValueError: there are no rows or no factors, or `null` is 0 or moves nothing.

    Reference:
        Correction for chance as the adjusted mutual information of Vinh, Epps & Bailey 2010. Variance of the chi-square
        statistic: Haldane 1940, "The mean and variance of χ², when used as a test of homogeneity, when expectations are
        small".
    """
    import pandas

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
    one = np.zeros((len(representation), 1))
    levels = as_levels(check_inputs(one, representation.factors, representation.kinds))
    at_once = min(AT_ONCE, max(2, CELLS // len(representation)))
    columns = Columns(representation.codes if codes is None else codes, at_once)
    deviations, information, shares, p_values, moved_tops = [], [], [], [], []
    for part, values, _ in columns:
        if progress is not None:
            progress("per code", part.start, columns.n_codes)
        binned = bin_codes(values, BINS, "width")
        whole = mutual_information(binned, levels)
        if shuffle.moved == "rows":
            part_shares = _above_chance(whole, expected_information(binned, levels), factor_entropy(levels))
            p_values.append(association_p(values, levels))
        else:
            part_shares, tops = _beside_moves(binned, levels, shuffle, representation.groups, seed)
            moved_tops.append(tops)
        deviations.append(values.std(axis=0))
        information.append(whole)
        shares.append(part_shares)
    every_share = np.concatenate(shares)
    p = np.concatenate(p_values) if p_values else _p_of_moves(every_share.max(axis=1), np.hstack(moved_tops))
    names = representation.code_labels() if codes is None else [f"code {code}" for code in range(columns.n_codes)]
    described = {"code": names, "deviation": np.concatenate(deviations)}
    return pandas.DataFrame(described | _table(representation.names, np.concatenate(information), every_share, p))


def _above_chance(information: FloatArray, mean: FloatArray, entropies: FloatArray) -> FloatArray:
    """Information as a part of what there is, both above chance; 0 where chance leaves no room."""
    room = entropies - mean
    return (information - mean) * np.where(room > 1e-9 * entropies, 1 / np.where(room > 0, room, 1.0), 0.0)


def _beside_moves(
    binned: IntArray, levels: Levels, shuffle: Shuffle, groups: IntArray | None, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Shares (n_codes, n_factors), and the largest share of each code (times, n_codes) in moved rows."""
    tables, scored = [], levels
    for number in range(shuffle.times):
        stay, rows = shuffle.rows(groups, len(binned), seed, number)
        scored = levels if stay is None else Levels(levels.levels[stay], levels.sizes, levels.notes, None)
        if not number:
            tables.append(mutual_information(binned if stay is None else binned[stay], scored))
        tables.append(mutual_information(binned[rows], scored))
    # The rows as they are count as one of the moves, as in p: so all are treated alike.
    information = np.array(tables)
    shares = _above_chance(information, information.mean(axis=0), factor_entropy(scored))
    return shares[0], shares[1:].max(axis=2)


def _p_of_moves(tops: FloatArray, moved: FloatArray) -> FloatArray:
    """(n_codes,) p of the largest shares (n_codes,) beside those of moved rows (times, n_codes)."""
    n_times, n_codes = moved.shape
    as_good = (moved >= tops - 1e-12).sum(axis=0)
    mean, spread = moved.mean(axis=0), np.maximum(moved.std(axis=0), 1e-12)
    pool = np.sort(((moved - mean) / spread).ravel())
    above = len(pool) - np.searchsorted(pool, (tops - mean) / spread - 1e-9)
    pooled = (1 + above) / (1 + len(pool))
    return np.where(as_good > 0, (1 + as_good) / (1 + n_times), np.minimum(pooled, 1 / (1 + n_times)))


def _table(factor_names: tuple[str, ...], information: FloatArray, shares: FloatArray, p: FloatArray) -> dict[str, Any]:
    """The columns on the best two factors of each code."""
    from scipy.stats import false_discovery_control

    names, codes = np.array(factor_names, dtype=object), np.arange(len(shares))
    best, several = shares.argmax(axis=1), len(names) > 1
    live = information[codes, best] > 0
    remaining = shares.copy()
    remaining[codes, best] = -np.inf
    second = remaining.argmax(axis=1)
    p = np.where(live, p, 1.0)
    return {
        "factor": np.where(live, names[best], ""),
        "information": information[codes, best],
        "share": np.where(live, shares[codes, best], 0.0),
        "second": np.where(live & several, names[second], ""),
        "second_share": np.where(live, shares[codes, second], 0.0) if several else 0.0,
        "p": p,
        "q": false_discovery_control(p),
    }
