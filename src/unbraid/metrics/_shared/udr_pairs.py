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
from typing import NamedTuple, TypeAlias

import numpy as np

from unbraid.base.threads import n_cores, shared_out
from unbraid.base.types import BoolArray, FloatArray, IntArray
from unbraid.metrics._shared.compiled import kernel
from unbraid.metrics._solvers.group_lasso import cross_validated, separate

TARGETS_AT_ONCE = 128  # models that are predicted by one block of others, or an eighth of few: progress is of blocks
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
    """Bytes needed to compare models of these widths: all columns, and either one model being prepared, in `prepared`
    copies of its columns, or the blocks that are compared at the time.

    Blocks of targets count three times where columns lie on the disk: read, joined, and in use since before.
    """
    column, widest = 8 * n_rows, sorted(widths, reverse=True)
    in_all = column * sum(widths)
    targets, sources = sum(widest[:TARGETS_AT_ONCE]), sum(widest[:OTHERS_AT_ONCE])
    times = 1 if in_all <= IN_MEMORY else 3
    blocks = math.ceil(len(widths) / TARGETS_AT_ONCE) * math.ceil(len(widths) / OTHERS_AT_ONCE)
    products = 8 * sources * (n_folds * (targets + widest[0]) + targets)
    under_way = min(blocks, n_cores() + 2) * (column * sources + products)
    in_memory = in_all if in_all <= IN_MEMORY else 0
    return in_memory + max(prepared * column * widest[0], times * column * targets + under_way)


class Columns:
    """The standardised columns of all models, one model after the other: rows of a table in memory or on the disk."""

    def __init__(self, n_rows: int, edges: IntArray) -> None:
        self.edges, shape = edges, (int(edges[-1]), n_rows)
        self._table: FloatArray
        if 8 * math.prod(shape) <= IN_MEMORY:
            self._table = np.empty(shape)
        else:
            with TemporaryFile() as file:  # whose content lives for as long as the table does
                self._table = np.memmap(file, dtype=np.float64, shape=shape)

    def put(self, model: int, columns: FloatArray) -> None:
        """Keep (n_rows, n_columns) of a model."""
        self._table[self.edges[model] : self.edges[model + 1]] = columns.T

    def take(self, models: IntArray) -> FloatArray:
        """(n_columns, n_rows) of these models."""
        return np.concatenate([self._table[self.edges[model] : self.edges[model + 1]] for model in models])


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
    mask: BoolArray,
    comparison: Comparison,
    pairs: Pairs,
    *,
    keep: BoolArray | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Compare the pairs of `mask` that `pairs` lacks, and fill them in.

    Args:
        columns: of all models, in the order of the rows of `comparison.folds`.
        mask: (n_models, n_models) which pairs.
        comparison: how they are compared.
        pairs: filled in place; pairs that are known already stay as they are.
        keep: (n_models, n_models) of which pairs R is kept; None: of none.
        progress: called as progress(done, total), in pairs, after each block; `pairs` may be saved then.
    """
    needed = mask & np.isnan(pairs.values)
    if keep is not None:
        missing = mask & keep
        for pair in pairs.matrices:
            missing[pair] = False
        needed |= missing
    total, done, symmetric = int(needed.sum()), 0, comparison.kind == SPEARMAN
    todo = np.triu(needed | needed.T) if symmetric else needed

    with closing(shared_out(_compare, _blocks(columns, todo, comparison))) as results:
        for (targets, sources, *_), part in results:
            block, mirror = np.ix_(targets.models, sources.models), np.ix_(sources.models, targets.models)
            new = todo[block] & needed[block]
            mirrored = (todo[block] & needed[mirror].T).T if symmetric else np.zeros(new.T.shape, dtype=bool)
            for name in ("values", "penalties", "largest", "converged"):
                whole, own = getattr(pairs, name), getattr(part, name)
                whole[block] = np.where(new, own, whole[block])
                whole[mirror] = np.where(mirrored, own.T, whole[mirror])
            nothing = np.zeros(new.shape, dtype=bool)
            new_kept = nothing if keep is None else new & keep[block]
            mirrored_kept = nothing if keep is None else (mirrored & keep[mirror]).T
            for target, other in np.argwhere(new_kept | mirrored_kept):
                rows = slice(sources.edges[other], sources.edges[other + 1])
                matrix = part.relations[rows, targets.edges[target] : targets.edges[target + 1]].T.astype(np.float32)
                one, two = int(targets.models[target]), int(sources.models[other])
                if new_kept[target, other]:
                    pairs.matrices[one, two] = matrix
                if mirrored_kept[target, other]:
                    pairs.matrices[two, one] = matrix.T
            done += int(new.sum() + mirrored.sum())
            if progress is not None:
                progress(done, total)


_Task: TypeAlias = tuple[_Block, _Block, BoolArray, Comparison]


def _blocks(columns: Columns, todo: BoolArray, comparison: Comparison) -> Iterator[_Task]:
    """Targets and others that have pairs to compare, and which."""
    at_once = min(TARGETS_AT_ONCE, math.ceil(len(todo) / 8))
    for begin in range(0, len(todo), at_once):
        rows = todo[begin : begin + at_once]
        needed = np.flatnonzero(rows.any(axis=0))
        if not len(needed):
            continue
        targets = _block(columns, begin + np.flatnonzero(rows.any(axis=1)), comparison)
        for first in range(0, len(needed), OTHERS_AT_ONCE):
            sources = _block(columns, needed[first : first + OTHERS_AT_ONCE], comparison)
            yield targets, sources, todo[np.ix_(targets.models, sources.models)], comparison


def _block(columns: Columns, models: IntArray, comparison: Comparison) -> _Block:
    chosen = columns.take(models)
    edges = np.cumsum([0, *np.diff(columns.edges)[models]])
    return _Block(models, chosen, edges, np.stack([part.sum(axis=1) for part in comparison.parts(chosen)]))


def _compare(task: _Task, stopped: threading.Event) -> _Found:
    targets, sources, todo, comparison = task
    cross = np.stack(
        [x @ y.T for x, y in zip(comparison.parts(sources.columns), comparison.parts(targets.columns), strict=True)]
    )
    grams = np.zeros((*cross.shape[:2], int(np.diff(sources.edges).max())))
    for low, high in pairwise(sources.edges):
        for fold, part in enumerate(comparison.parts(sources.columns[low:high])):
            grams[fold, low:high, : high - low] = part @ part.T
    values, penalties, largest = (np.full(todo.shape, np.nan) for _ in range(3))
    converged, relations = np.ones(todo.shape, dtype=bool), np.zeros(cross.shape[1:])
    counts = np.diff(comparison.folds).astype(float)
    squares = np.stack([np.einsum("cr,cr->c", part, part) for part in comparison.parts(targets.columns)])
    for target, (low, high) in enumerate(pairwise(targets.edges)):
        if stopped.is_set():
            break
        if comparison.kind != VALIDATED:
            by_one_weight(
                cross[0], grams[0], low, high, sources.edges, todo[target], counts[0], comparison.kind == SPEARMAN,
                comparison.alpha, converged[target], relations,
            )  # fmt: skip
            if comparison.kind == FIXED and high > low:
                penalties[target, np.diff(sources.edges) > 0] = comparison.alpha
        for other in np.flatnonzero(todo[target]):
            start, stop = sources.edges[other], sources.edges[other + 1]
            if comparison.kind == VALIDATED and stop > start and high > low:
                weights, penalties[target, other], converged[target, other] = cross_validated(
                    grams[:, start:stop, : stop - start].copy(),
                    cross[:, start:stop, low:high].copy(),
                    squares[:, low:high].sum(axis=1),
                    sources.sums[:, start:stop].copy(),
                    targets.sums[:, low:high].copy(),
                    counts,
                )
                relations[start:stop, low:high] = np.abs(weights)
        summarised(relations, low, high, sources.edges, todo[target], comparison.paper, values[target], largest[target])
    return _Found(values, penalties, largest, converged, relations)


@kernel(_nrt=True, error_model="python")
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


@kernel(_nrt=True, error_model="python")
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


@kernel(_nrt=True, error_model="python")
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
