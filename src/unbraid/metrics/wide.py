"""Scores of codes that are thousands wide, dense or sparse, a few columns in memory at a time."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from unbraid.base.arguments import check_whole
from unbraid.base.arrays import as_array, finite_sparse, is_sparse
from unbraid.base.counted import counted
from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, BoolArray, FloatArray, IntArray, Kind
from unbraid.data.row_index import refuse_other_order
from unbraid.metrics._shared.alignment import align, gaps
from unbraid.metrics._shared.bins import bin_codes
from unbraid.metrics._shared.information import factor_entropy, mutual_information
from unbraid.metrics._shared.inputs import (
    Inputs,
    Levels,
    NotDefined,
    as_levels,
    check_inputs,
    check_matrix,
    mean_and_scale,
    split_rows,
    standardised,
)
from unbraid.metrics._shared.regression import as_blocks
from unbraid.metrics._shared.train_test_split import TRAIN_FRACTION
from unbraid.metrics.dci import dci_from_importance
from unbraid.metrics.mcc import MCC, by_shares, in_shares, mcc
from unbraid.metrics.med import MED
from unbraid.metrics.mig import MIG
from unbraid.metrics.modularity import Modularity, modularity_of
from unbraid.metrics.sap import SAP
from unbraid.metrics.snc import SNC, snc

BINS = 20
WINDOW = 4096  # columns of a sparse matrix by rows that are held by columns too
AS_GOOD = 1e-12  # difference of worth that counts as none, as where codes are matched
RUNNERS_UP = 2  # best codes of each factor that are looked at beside its match, which may be as good


@dataclass(frozen=True, eq=False, repr=False)
class WideScores(Shown):
    mig: float
    modularity: float
    med: float
    snc: float
    mcc: float
    sap: float | None  # over ordered factors; None without any
    mutual_information: FloatArray  # (n_codes, n_factors), nats
    leading: IntArray  # columns that snc and mcc were asked about: matches, and the best of each factor
    # What each metric returns, by its name; of codes, `leading` alone. Without sap where a factor is categorical.
    results: Mapping[str, Any] = field(default_factory=dict)
    codes: FloatArray = field(default_factory=lambda: np.empty((0, 0)))  # (n_samples, n_leading)
    notes: tuple[str, ...] = ()


def wide_scores(
    codes: Any,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    sizes: Sequence[int] | None = None,
    at_once: int = 128,
) -> WideScores:
    """Score thousands of codes by the metrics that each code enters alone, with `at_once` columns in memory.

    The numbers are those of `mig`, `modularity`, `med`, `snc`, `mcc` and `sap` at their defaults: a matching that is
    best among all codes is best among any of them that hold it, so that snc and mcc are asked about these alone.

    Args:
        codes: (n_samples, n_codes) real: a SciPy or torch sparse matrix, of which only stored values are held, or any
            array.
        factors: (n_samples, n_factors) levels; continuous factors are cut into 20 bins of equal width.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: draws the rows to match and those to judge.
        sizes: number of levels of each factor, around which cyclic ones wrap; as for `mcc`, which alone reads it.
        at_once: columns held as full arrays, 1 to 4096; some hundred bytes a row and column.

    Returns:
        WideScores. Time and the table of information grow with n_samples * n_codes * n_factors, of sparse codes with
        the values that are stored. `sap` leaves out categorical factors, of which each code would need a support vector
        machine.

    Raises:
        ValueError: what every metric refuses, or `at_once` out of range.

    Example:
        >>> grid = np.tile(FactorSpace(("a", "b"), (4, 3), ("ordinal", "ordinal")).grid(), (20, 1))
        >>> round(wide_scores(grid, grid).mig, 12)
        1.0
    """
    check_whole("at_once", at_once, 1, 4096, why="so many columns are held as full arrays")
    refuse_other_order(codes=codes, factors=factors)
    statistics = one_pass(Columns(codes, at_once), factors, kinds=kinds, seed=seed, sizes=sizes)
    results = {name: result(statistics) for name, result in WIDE.items() if name != "sap"}
    per_line = gaps(statistics.squared)
    left_out = statistics.inputs.n_factors - len(per_line)
    without_sap = (f"sap leaves out {counted(left_out, 'categorical factor')}",) if left_out else ()
    if not left_out:
        results["sap"] = _sap(statistics)
    return WideScores(
        **{name: each.score for name, each in results.items() if name != "sap"},
        sap=float(per_line.mean()) if len(per_line) else None,
        mutual_information=statistics.information,
        leading=statistics.leading,
        results=MappingProxyType(results),
        codes=statistics.codes,
        notes=(*statistics.levels.notes, *without_sap),
    )


@dataclass(frozen=True, eq=False)
class OnePass:
    """What one pass over all columns found, from which each of the metrics is computed."""

    inputs: Inputs  # the factors; its codes stand for none
    levels: Levels
    information: FloatArray  # (n_codes, n_factors), nats
    squared: FloatArray  # (n_codes, n_ordered) squared correlations with the factors that are not categorical
    leading: IntArray
    codes: FloatArray  # (n_samples, n_leading)
    seed: int
    sizes: Sequence[int] | None


def one_pass(
    parts: "Columns", factors: ArrayLike, *, kinds: Sequence[Kind] | None, seed: int, sizes: Sequence[int] | None
) -> OnePass:
    """As for `wide_scores`, what its metrics share."""
    inputs = check_inputs(np.zeros((parts.n_samples, 1)), factors, kinds, seed)
    levels, n_codes, k = as_levels(inputs), parts.n_codes, inputs.n_factors
    blocks, halves = as_blocks(inputs, sizes), split_rows(parts.n_samples, (0.5, 0.5), seed)
    train = split_rows(parts.n_samples, (TRAIN_FRACTION, 1 - TRAIN_FRACTION), seed)[0]
    known = Levels(levels.levels[train], levels.sizes, ())
    ordered = np.flatnonzero([kind != "categorical" for kind in inputs.kinds])
    lines = standardised(inputs.factors)[:, ordered]
    targets = [in_shares(blocks.columns[rows], blocks) for rows in halves]
    information, learnt = np.zeros((n_codes, k)), np.zeros((n_codes, k))
    matched, squared = np.zeros((2, n_codes, k)), np.zeros((n_codes, len(ordered)))
    for columns, values, stored in parts:
        information[columns] = mutual_information(bin_codes(values, BINS, "width"), levels)
        learnt[columns] = mutual_information(bin_codes(values[train], BINS, "width"), known)
        for half, (rows, target) in enumerate(zip(halves, targets, strict=True)):
            shares = _mean_products(values[rows], stored, target, rows)
            matched[half, columns] = np.abs(by_shares(shares, blocks))
        squared[columns] = np.clip(_mean_products(values, stored, lines), -1, 1) ** 2
    leading = np.unique(np.concatenate([_leading(worth, parts) for worth in (learnt, *matched)]))
    return OnePass(inputs, levels, information, squared, leading, parts.full(leading), seed, sizes)


def _leading(worth: FloatArray, parts: "Columns") -> IntArray:
    """Of (n_codes, n_factors) the codes that a matching may take, wherever they stand: those as good are among them.

    What the columns hold then decides between these, in `snc` and `mcc` themselves.
    """
    best = np.concatenate([align(worth)[None], np.argsort(-worth, axis=0)[:RUNNERS_UP]])
    candidates = np.zeros(len(worth), dtype=bool)
    for factor, codes in enumerate(best.T):
        own = worth[codes[codes >= 0], factor]
        for level in np.unique(own[own > AS_GOOD]):
            candidates |= np.abs(worth[:, factor] - level) <= AS_GOOD
    candidates[best[best >= 0]] = True
    return parts.but_for_copies(np.flatnonzero(candidates), worth.shape[1])


def _mig(statistics: OnePass) -> MIG:
    levels, entropies = statistics.levels, factor_entropy(statistics.levels)
    own = mutual_information(bin_codes(levels.levels.astype(float), BINS, "width"), levels)
    per_factor, ceiling = (np.minimum(gaps(each) / entropies, 1.0) for each in (statistics.information, own))
    information = statistics.information[statistics.leading]
    return MIG(float(per_factor.mean()), float(ceiling.mean()), per_factor, information, entropies, levels.notes)


def _med(statistics: OnePass) -> MED:
    scores, leading = dci_from_importance(statistics.information), statistics.leading
    return MED(
        scores.disentanglement, scores.completeness, statistics.information[leading], scores.per_code[leading],
        scores.per_factor, scores.code_weights[leading], (*statistics.levels.notes, *scores.notes),
    )  # fmt: skip


def _sap(statistics: OnePass) -> SAP:
    if "categorical" in statistics.inputs.kinds:
        raise NotDefined("it trains a support vector machine per code for categorical factors, too many here")
    per_factor, note = gaps(statistics.squared), "squared correlation of every factor"
    return SAP(float(per_factor.mean()), per_factor, statistics.squared[statistics.leading], (note,))


def _snc(statistics: OnePass) -> SNC:
    return snc(statistics.codes, statistics.inputs.factors, kinds=statistics.inputs.kinds, seed=statistics.seed)


def _modularity(statistics: OnePass) -> Modularity:
    whole, leading = modularity_of(statistics.information), statistics.leading
    return replace(
        whole, per_code=whole.per_code[leading], weights=whole.weights[leading],
        mutual_information=statistics.information[leading], notes=(*statistics.levels.notes, *whole.notes),
    )  # fmt: skip


def _mcc(statistics: OnePass) -> MCC:
    return mcc(
        statistics.codes,
        statistics.inputs.factors,
        kinds=statistics.inputs.kinds,
        seed=statistics.seed,
        sizes=statistics.sizes,
    )


# Metrics that read codes by columns, each from what one pass over these found; of codes they hold those that lead.
WIDE: Mapping[str, Callable[[OnePass], Any]] = MappingProxyType(
    {"mig": _mig, "med": _med, "sap": _sap, "snc": _snc, "modularity": _modularity, "mcc": _mcc}
)


def _mean_products(
    values: FloatArray, stored: Any, targets: FloatArray, rows: IntArray | slice = slice(None)
) -> FloatArray:
    """(n_columns, n_targets) mean over rows of standardised codes times targets.

    Args:
        values: (n_rows, n_columns) of these rows.
        stored: the same columns of all rows as a sparse matrix, of which the values stored are enough; or None.
        targets: (n_rows, n_targets) of mean 0.
        rows: which of the rows of `stored` these are.
    """
    if stored is None:
        return np.einsum("nd,nk->dk", standardised(values), targets) / len(values)
    own = np.zeros((stored.shape[0], targets.shape[1]))
    own[rows] = targets
    mean, scale = mean_and_scale(values)
    return (stored.T @ own - mean[:, None] * targets.sum(axis=0)) / scale[:, None] / len(values)


class Columns:
    """Codes, some columns at a time as full arrays of finite numbers, and as they are stored where that is sparse.

    A sparse matrix by rows is read in windows of columns, since all of it by columns would take its memory again.
    """

    def __init__(self, codes: Any, at_once: int, rows: BoolArray | None = None) -> None:
        """Of these codes, or of the `rows` (n_rows,) of a sparse matrix that are marked."""
        self.sparse = is_sparse(codes)
        self.codes: Any = finite_sparse(codes, rows) if self.sparse else as_array(codes)
        if rows is not None and not rows.all():
            self.codes = self.codes.tocsr()[np.flatnonzero(rows)]
        if self.codes.ndim != 2 or self.codes.dtype.kind not in "biuf":
            raise ValueError(
                f"codes must be a matrix of real numbers; got shape {self.codes.shape} of {self.codes.dtype}"
            )
        self.n_samples, self.n_codes = self.codes.shape
        if self.n_samples < 2 or self.n_codes < 1:
            raise ValueError(f"codes must have two rows and a column at least; got shape {self.codes.shape}")
        self._at_once = at_once

    def __iter__(self) -> Iterator[tuple[slice, FloatArray, Any]]:
        for start in range(0, self.n_codes, WINDOW):
            window: Any = self.codes[:, start : start + WINDOW]
            window = window.tocsc() if self.sparse else window
            for first in range(0, window.shape[1], self._at_once):
                part = window[:, first : first + self._at_once]
                columns = slice(start + first, start + first + part.shape[1])
                yield columns, self._checked(part, columns.start), part.astype(float) if self.sparse else None

    def full(self, columns: IntArray) -> FloatArray:
        """These columns."""
        return self._checked(self.codes[:, columns], 0)

    def but_for_copies(self, columns: IntArray, most: int) -> IntArray:
        """These columns, of those that hold the same the first `most`."""
        often: Counter[bytes] = Counter()
        unique = []
        for first in range(0, len(columns), self._at_once):
            some = columns[first : first + self._at_once]
            for column, values in zip(some.tolist(), self.full(some).T, strict=True):
                content = hashlib.sha256(values.tobytes()).digest()
                often[content] += 1
                unique += [column] if often[content] <= most else []
        return np.array(unique, dtype=np.int64)

    def _checked(self, part: Any, first: int) -> FloatArray:
        if self.sparse:  # which is seen to be finite, and may be as wide as it likes
            return np.ascontiguousarray(part.toarray(), dtype=np.float64)
        finite = np.isfinite(part)
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            raise ValueError(f"codes must be finite; row {row}, column {first + column} is {part[row, column]}")
        return check_matrix(part, "codes", "n_codes")
