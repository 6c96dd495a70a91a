"""UDR_ij of all pairs of models: block by block on all cores, of this machine or of a cluster, from columns that need
not fit into memory.
"""

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from tempfile import TemporaryFile
from typing import IO, NamedTuple, TypeAlias

import numba
import numpy as np

from unbraid.base.threads import n_cores, shared_out
from unbraid.base.types import BoolArray, FloatArray, IntArray
from unbraid.metrics._solvers.group_lasso import cross_validated, separate

TARGETS_AT_ONCE = 128  # models that are predicted by one block of others
OTHERS_AT_ONCE = 32
IN_MEMORY = 2**29  # bytes of columns; more of them lie in a temporary file

SPEARMAN, FIXED, VALIDATED = range(3)


@dataclass(frozen=True, eq=False)
class Pairs:
    """What is known of each pair (i, j), i the targets and j the predictors; NaN in `values` where nothing is."""

    values: FloatArray  # (n_models, n_models) UDR_ij
    penalties: FloatArray  # (n_models, n_models) of each lasso
    largest: FloatArray  # (n_models, n_models) largest entry of R
    converged: BoolArray  # (n_models, n_models) True also where there was no lasso
    matrices: dict[tuple[int, int], FloatArray] = field(default_factory=dict)  # R, float32, of those that are kept

    @classmethod
    def unknown(cls, n_models: int) -> "Pairs":
        values, penalties, largest = (np.full((n_models, n_models), np.nan) for _ in range(3))
        return cls(values, penalties, largest, np.ones((n_models, n_models), dtype=bool))


def bytes_of_pairs(n_rows: int, widths: Sequence[int], n_folds: int, prepared: int) -> float:
    """That it takes to compare models of so many columns each: what is kept, beside which one model is prepared, in so
    many copies of its columns, or blocks are under way.

    Blocks of targets are held three times where columns lie on the disk: read, joined, and in use since before.
    """
    column, widest = 8 * n_rows, sorted(widths, reverse=True)
    kept = column * sum(widths)
    targets, others = sum(widest[:TARGETS_AT_ONCE]), sum(widest[:OTHERS_AT_ONCE])
    times = 1 if kept <= IN_MEMORY else 3
    blocks = math.ceil(len(widths) / TARGETS_AT_ONCE) * math.ceil(len(widths) / OTHERS_AT_ONCE)
    products = 8 * others * (n_folds * (targets + widest[0]) + targets)
    under_way = min(blocks, n_cores() + 2) * (column * others + products)
    held = kept if kept <= IN_MEMORY else 0
    return held + max(prepared * column * widest[0], times * column * targets + under_way)


class Columns:
    """The standardised columns of all models, one model after the other, each column of one run of memory or disk."""

    def __init__(self, n_rows: int, edges: IntArray) -> None:
        self.edges, self._n_rows, self._lock = edges, n_rows, threading.Lock()
        shape = int(edges[-1]), n_rows
        self._file: IO[bytes] | None = TemporaryFile() if shape[0] * n_rows * 8 > IN_MEMORY else None  # noqa: SIM115
        self._held: FloatArray = np.empty(shape if self._file is None else (0, n_rows))

    def put(self, model: int, columns: FloatArray) -> None:
        """Keep (n_rows, n_columns) of a model; models are put in their order."""
        if self._file is not None:
            self._file.write(np.ascontiguousarray(columns.T, dtype=float).tobytes())
        else:
            self._held[self.edges[model] : self.edges[model + 1]] = columns.T

    def take(self, models: IntArray) -> FloatArray:
        """(n_columns, n_rows) of these models."""
        return np.concatenate([self._of(int(self.edges[model]), int(self.edges[model + 1])) for model in models])

    def _of(self, first: int, last: int) -> FloatArray:
        if self._file is None:
            return self._held[first:last]
        with self._lock:
            self._file.seek(first * self._n_rows * 8)
            return np.frombuffer(self._file.read((last - first) * self._n_rows * 8)).reshape(-1, self._n_rows)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


@dataclass(frozen=True)
class Comparison:
    """How two models are compared."""

    kind: int  # SPEARMAN, FIXED or VALIDATED
    alpha: float  # of FIXED
    paper: bool  # eq. 2 as the paper has it
    folds: IntArray  # (n_folds + 1,) first row of each, and the number of rows

    def parts(self, columns: FloatArray) -> list[FloatArray]:
        """The rows of each fold, of (n_columns, n_rows)."""
        return [columns[:, start:stop] for start, stop in pairwise(self.folds)]


class _Found(NamedTuple):
    """Of each target (rows) and each other."""

    values: FloatArray
    penalties: FloatArray
    largest: FloatArray
    converged: BoolArray
    relations: FloatArray  # (columns of others, columns of targets) R of all pairs, transposed


class _Block(NamedTuple):
    """Columns of some models, one after the other, and their sums over the rows of each fold."""

    models: IntArray
    columns: FloatArray  # (n_columns, n_rows)
    edges: IntArray  # (n_models + 1,)
    sums: FloatArray  # (n_folds, n_columns)


def compare_pairs(
    columns: Columns,
    wanted: BoolArray,
    how: Comparison,
    found: Pairs,
    *,
    keep: BoolArray | None = None,
    told: Callable[[int, int], None] | None = None,
) -> None:
    """Find what is wanted and not yet known of `found`, in place.

    Args:
        columns: of all models, in the order of the rows of `how.folds`.
        wanted: (n_models, n_models) which pairs.
        how: they are compared.
        found: what is known of pairs already stays as it is.
        keep: (n_models, n_models) of which pairs R is kept; None: of none.
        told: called as told(done, total), in pairs, whenever a block is done; `found` may be saved then.
    """
    asked = wanted & np.isnan(found.values)
    if keep is not None:
        missing = wanted & keep
        for pair in found.matrices:
            missing[pair] = False
        asked |= missing
    total, done, symmetric = int(asked.sum()), 0, how.kind == SPEARMAN
    todo = np.triu(asked | asked.T) if symmetric else asked

    with closing(shared_out(_compare, _blocks(columns, todo, how))) as results:
        for (targets, others, *_), part in results:
            here, back = np.ix_(targets.models, others.models), np.ix_(others.models, targets.models)
            new = todo[here] & asked[here]
            mirrored = (todo[here] & asked[back].T).T if symmetric else np.zeros(new.T.shape, dtype=bool)
            for name in ("values", "penalties", "largest", "converged"):
                whole, own = getattr(found, name), getattr(part, name)
                whole[here] = np.where(new, own, whole[here])
                whole[back] = np.where(mirrored, own.T, whole[back])
            nothing = np.zeros(new.shape, dtype=bool)
            new_kept = nothing if keep is None else new & keep[here]
            mirrored_kept = nothing if keep is None else (mirrored & keep[back]).T
            for target, other in np.argwhere(new_kept | mirrored_kept):
                rows = slice(others.edges[other], others.edges[other + 1])
                matrix = part.relations[rows, targets.edges[target] : targets.edges[target + 1]].T.astype(np.float32)
                one, two = int(targets.models[target]), int(others.models[other])
                if new_kept[target, other]:
                    found.matrices[one, two] = matrix
                if mirrored_kept[target, other]:
                    found.matrices[two, one] = matrix.T
            done += int(new.sum() + mirrored.sum())
            if told is not None:
                told(done, total)


_Task: TypeAlias = tuple[_Block, _Block, BoolArray, Comparison]


def _blocks(columns: Columns, todo: BoolArray, how: Comparison) -> Iterator[_Task]:
    """Targets and others that have pairs to compare, and which."""
    for begin in range(0, len(todo), TARGETS_AT_ONCE):
        rows = todo[begin : begin + TARGETS_AT_ONCE]
        needed = np.flatnonzero(rows.any(axis=0))
        if not len(needed):
            continue
        targets = _block(columns, begin + np.flatnonzero(rows.any(axis=1)), how)
        for first in range(0, len(needed), OTHERS_AT_ONCE):
            others = _block(columns, needed[first : first + OTHERS_AT_ONCE], how)
            yield targets, others, todo[np.ix_(targets.models, others.models)], how


def _block(columns: Columns, models: IntArray, how: Comparison) -> _Block:
    taken = columns.take(models)
    edges = np.cumsum([0, *np.diff(columns.edges)[models]])
    return _Block(models, taken, edges, np.stack([part.sum(axis=1) for part in how.parts(taken)]))


def _compare(task: _Task, stopped: threading.Event) -> _Found:
    targets, others, todo, how = task
    cross = np.stack([x @ y.T for x, y in zip(how.parts(others.columns), how.parts(targets.columns), strict=True)])
    grams = np.zeros((*cross.shape[:2], int(np.diff(others.edges).max())))
    for low, high in pairwise(others.edges):
        for fold, part in enumerate(how.parts(others.columns[low:high])):
            grams[fold, low:high, : high - low] = part @ part.T
    values, penalties, largest = (np.full(todo.shape, np.nan) for _ in range(3))
    converged, relations = np.ones(todo.shape, dtype=bool), np.zeros(cross.shape[1:])
    counts = np.diff(how.folds).astype(float)
    squares = np.stack([np.einsum("cr,cr->c", part, part) for part in how.parts(targets.columns)])
    for target, (low, high) in enumerate(pairwise(targets.edges)):
        if stopped.is_set():
            break
        if how.kind != VALIDATED:
            by_one_weight(
                cross[0], grams[0], low, high, others.edges, todo[target], counts[0], how.kind == SPEARMAN, how.alpha,
                converged[target], relations,
            )  # fmt: skip
            if how.kind == FIXED and high > low:
                penalties[target, np.diff(others.edges) > 0] = how.alpha
        for other in np.flatnonzero(todo[target]):
            start, stop = others.edges[other], others.edges[other + 1]
            if how.kind == VALIDATED and stop > start and high > low:
                weights, penalties[target, other], converged[target, other] = cross_validated(
                    grams[:, start:stop, : stop - start].copy(),
                    cross[:, start:stop, low:high].copy(),
                    squares[:, low:high].sum(axis=1),
                    others.sums[:, start:stop].copy(),
                    targets.sums[:, low:high].copy(),
                    counts,
                )
                relations[start:stop, low:high] = np.abs(weights)
        summarised(relations, low, high, others.edges, todo[target], how.paper, values[target], largest[target])
    return _Found(values, penalties, largest, converged, relations)


@numba.njit(cache=True, nogil=True)
def by_one_weight(
    cross: FloatArray,
    grams: FloatArray,
    low: int,
    high: int,
    edges: IntArray,
    todo: BoolArray,
    n_rows: float,
    spearman: bool,
    alpha: float,
    converged: BoolArray,
    relations: FloatArray,
) -> None:
    """R of one target, its columns from `low` to `high`, and the others: correlations, or lassos of this penalty."""
    for other in range(len(todo)):
        start, stop = edges[other], edges[other + 1]
        if not todo[other] or start == stop or low == high:
            continue
        own = cross[start:stop, low:high] / n_rows
        if not spearman:
            own, converged[other] = separate(grams[start:stop, : stop - start] / n_rows, own, alpha)
        relations[start:stop, low:high] = np.abs(own)


@numba.njit(cache=True, nogil=True)
def summarised(
    relations: FloatArray,
    low: int,
    high: int,
    edges: IntArray,
    todo: BoolArray,
    paper: bool,
    values: FloatArray,
    largest: FloatArray,
) -> None:
    """Eq. 2 and the largest entry of each R of one target; 0 where one of the models has no columns."""
    for other in range(len(todo)):
        if todo[other]:
            start, stop = edges[other], edges[other + 1]
            empty = start == stop or low == high
            values[other] = 0.0 if empty else agreement(relations[start:stop, low:high].T, paper)
            largest[other] = 0.0 if empty else relations[start:stop, low:high].max()


@numba.njit(cache=True, nogil=True)
def agreement(similarity: FloatArray, paper: bool) -> float:
    """Eq. 2 of a non-negative matrix between informative latents; with `paper` false, the mean of the two means."""
    n_rows, n_columns = similarity.shape
    by_row, by_column = 0.0, 0.0
    for row in range(n_rows):
        total = similarity[row].sum()
        if total > 0.0:
            by_row += similarity[row].max() ** 2 / total
    for column in range(n_columns):
        total = similarity[:, column].sum()
        if total > 0.0:
            by_column += similarity[:, column].max() ** 2 / total
    if paper:
        return (by_row + by_column) / (n_rows + n_columns)
    return (by_row / n_rows + by_column / n_columns) / 2
