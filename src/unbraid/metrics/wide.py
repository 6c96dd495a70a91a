"""Scores of codes that are thousands wide, dense or sparse, a few columns in memory at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unbraid._arguments import check_whole
from unbraid._arrays import as_array
from unbraid._shown import Shown
from unbraid.metrics._alignment import align, gaps
from unbraid.metrics._bins import bin_codes
from unbraid.metrics._information import factor_entropy, mutual_information
from unbraid.metrics._inputs import Levels, as_levels, check_inputs, check_matrix, split_rows, standardised
from unbraid.metrics._regression import as_blocks
from unbraid.metrics._trial import TRAIN_FRACTION
from unbraid.metrics.dci import dci_from_importance
from unbraid.metrics.mcc import associations, mcc
from unbraid.metrics.modularity import modularity_of_information
from unbraid.metrics.snc import snc
from unbraid.types import ArrayLike, FloatArray, IntArray, Kind

BINS = 20
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
    notes: tuple[str, ...] = ()


def wide_scores(
    codes: Any, factors: ArrayLike, *, kinds: Sequence[Kind] | None = None, seed: int = 0, at_once: int = 128
) -> WideScores:
    """Score thousands of codes by the metrics that each code enters alone, with `at_once` columns in memory.

    The numbers are those of `mig`, `modularity`, `med`, `snc`, `mcc` and `sap` at their defaults: a matching that is
    best among all codes is best among any of them that hold it, so that snc and mcc are asked about these alone.

    Args:
        codes: (n_samples, n_codes) real: a SciPy sparse matrix, of which only stored values are held, or any array.
        factors: (n_samples, n_factors) levels; continuous factors are cut into 20 bins of equal width.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: draws the rows to match and those to judge.
        at_once: columns held as full arrays, 1 to 4096; some hundred bytes a row and column.

    Returns:
        WideScores. Time and the table of information grow with n_samples * n_codes * n_factors. `sap` leaves out
        categorical factors, of which each code would need a support vector machine.

    Raises:
        ValueError: shapes disagree, values not finite, a factor is constant or has one sample per value, or `at_once`
            out of range.

    Example:
        >>> grid = np.tile(FactorSpace(("a", "b"), (4, 3), ("ordinal", "ordinal")).grid(), (20, 1))
        >>> round(wide_scores(grid, grid).mig, 12)
        1.0
    """
    check_whole("at_once", at_once, 1, 4096, why="so many columns are held as full arrays")
    parts = _Columns(codes, at_once)
    inputs = check_inputs(np.zeros((parts.n_samples, 1)), factors, kinds, seed)
    levels, n_codes, k = as_levels(inputs), parts.n_codes, inputs.n_factors
    blocks, halves = as_blocks(inputs), split_rows(parts.n_samples, (0.5, 0.5), seed)
    train = split_rows(parts.n_samples, (TRAIN_FRACTION, 1 - TRAIN_FRACTION), seed)[0]
    known = Levels(levels.levels[train], levels.sizes, ())
    ordered = np.flatnonzero([kind != "categorical" for kind in inputs.kinds])
    lines = standardised(inputs.factors)[:, ordered]
    information, learnt = np.zeros((n_codes, k)), np.zeros((n_codes, k))
    matched, squared = np.zeros((2, n_codes, k)), np.zeros((n_codes, len(ordered)))
    for columns, values in parts:
        information[columns] = mutual_information(bin_codes(values, BINS, "width"), levels)
        learnt[columns] = mutual_information(bin_codes(values[train], BINS, "width"), known)
        for half, rows in enumerate(halves):
            matched[half, columns] = np.abs(associations(values[rows], blocks.columns[rows], blocks))
        squared[columns] = np.clip(np.einsum("nd,nk->dk", standardised(values), lines) / parts.n_samples, -1, 1) ** 2
    best = [
        column for worth in (learnt, *matched) for column in (align(worth), *np.argsort(-worth, axis=0)[:RUNNERS_UP])
    ]
    leading = np.setdiff1d(np.concatenate(best), [-1])
    few = parts.full(leading)
    by_snc = snc(few, inputs.factors, kinds=inputs.kinds, seed=seed)
    by_mcc = mcc(few, inputs.factors, kinds=inputs.kinds, seed=seed)
    left_out = k - len(ordered)
    return WideScores(
        mig=float((gaps(information) / factor_entropy(levels)).mean()),
        modularity=modularity_of_information(information),
        med=dci_from_importance(information).disentanglement,
        snc=by_snc.score,
        mcc=by_mcc.score,
        sap=float(gaps(squared).mean()) if len(ordered) else None,
        mutual_information=information,
        leading=leading,
        notes=(
            *levels.notes,
            *((f"sap leaves out {left_out} categorical factors",) if left_out else ()),
        ),
    )


class _Columns:
    """Codes, some columns at a time as full arrays of finite numbers."""

    def __init__(self, codes: Any, at_once: int) -> None:
        self._held = codes.tocsc() if hasattr(codes, "tocsc") else as_array(codes)
        if self._held.ndim != 2 or self._held.dtype.kind not in "biuf":
            raise ValueError(
                f"codes must be a matrix of real numbers; got shape {self._held.shape} of {self._held.dtype}"
            )
        self.n_samples, self.n_codes = self._held.shape
        if self.n_samples < 2 or self.n_codes < 1:
            raise ValueError(f"codes must have two rows and a column at least; got shape {self._held.shape}")
        self._at_once = at_once

    def __iter__(self) -> Iterator[tuple[slice, FloatArray]]:
        for start in range(0, self.n_codes, self._at_once):
            columns = slice(start, min(start + self._at_once, self.n_codes))
            yield columns, self._checked(np.arange(columns.start, columns.stop))

    def full(self, columns: IntArray) -> FloatArray:
        """These columns."""
        return self._checked(columns)

    def _checked(self, columns: IntArray) -> FloatArray:
        part = as_array(self._held[:, columns])
        finite = np.isfinite(part)
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            raise ValueError(f"codes must be finite; row {row}, column {columns[column]} is {part[row, column]}")
        return check_matrix(part, "codes", "n_codes")
