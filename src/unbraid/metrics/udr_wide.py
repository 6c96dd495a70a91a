"""UDR of codes that are thousands wide: by correlation, and for each code the few that are most like it."""

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Literal, get_args

import numpy as np

from unbraid.base.arguments import check_choice, check_whole
from unbraid.base.arrays import as_array, finite_sparse, is_sparse, n_stored
from unbraid.base.memory import check_memory
from unbraid.base.types import FloatArray
from unbraid.data.row_index import refuse_other_order
from unbraid.metrics._shared.inputs import check_matrix
from unbraid.metrics.udr import UDR, compared, note_on_models

Correlation = Literal["pearson", "spearman"]
DENSE = 0.2  # share of values that are not 0 above which full arrays are quicker
# Copies of the codes of one model while full ones are ranked or others scaled, and of correlations with another's.
RANKED, SCALED, RELATED = 6, 2, 6
STORED = 12  # bytes of a value that a sparse matrix stores


def wide_udr(
    codes: Sequence[Any],
    *,
    correlation: Correlation = "spearman",
    top: int = 10,
    groups: Sequence[Hashable] | None = None,
    at_once: int = 512,
    progress: Callable[[int, int], None] | None = None,
) -> UDR:
    """Rank models of thousands of codes by how well their codes match those of other models, one to one.

    As `udr` by correlation, where of each code the `top` most correlated codes of the other model alone enter the sums:
    of 16 384 codes the small correlations of all others would outweigh the one that counts.

    Args:
        codes: one (n_samples, n_codes) matrix per model, of the same samples in the same order: sparse ones of SciPy or
            torch, of which stored values alone are held, or any array.
        correlation: "spearman" of ranks, equals sharing theirs, or "pearson".
        top: how many candidates each code has, 1 or more; with as many as there are codes this is `udr`. With 1 a
            score is the mean of the largest correlation of each code.
        groups: models are compared within their group alone; see `udr`.
        at_once: codes of one model that are compared with all of another at a time, 1 to 4096.
        progress: called as progress(done, total), in pairs.

    Returns:
        UDR. `scores` from 0 to 1, higher is better. Constant codes count as uninformative, and are left out.

    Raises:
        ValueError: fewer than two models, or in some group; codes that are no matrices of the same samples, or not
            finite; an argument out of range; it needs more memory than is free.

    Reference:
        Duan et al. 2020, "Unsupervised Model Selection for Variational Disentangled Representation Learning", eq. 2-3,
        UDR-S. Candidates are ours.

    Example:
        >>> latents = np.random.default_rng(0).standard_normal((500, 3))
        >>> wide_udr([latents, -latents[:, ::-1]], top=1).scores.round(3).tolist()
        [1.0, 1.0]
    """
    check_whole("top", top, 1)
    check_whole("at_once", at_once, 1, 4096)
    check_choice("correlation", correlation, get_args(Correlation))
    mask, notes = compared(len(codes), groups)
    refuse_other_order(**{f"codes[{place}]": each for place, each in enumerate(codes)})
    check_memory(_needed(codes, correlation, at_once), "give fewer rows or models")
    models = [_Held(each, place, correlation) for place, each in enumerate(codes)]
    for place, each in enumerate(models):
        if each.n_rows != models[0].n_rows:
            rows = models[0].n_rows
            raise ValueError(
                f"codes must have the same samples; codes[0] has {rows} rows, codes[{place}] {each.n_rows}"
            )
    pairs, least = np.full(mask.shape, np.nan), np.full(mask.shape, np.nan)
    todo = np.argwhere(np.triu(mask))
    for done, (one, other) in enumerate(todo):
        if progress is not None:
            progress(done, len(todo))
        agreed = _agreement(models[one], models[other], top, at_once)
        (pairs[one, other], least[one, other]) = (pairs[other, one], least[other, one]) = agreed
    informative = np.array([each.n_codes for each in models])
    notes += note_on_models("constant codes alone, and so a score of 0", np.flatnonzero(informative == 0).tolist())
    notes += (f"by the {top} most correlated codes of each",)
    scores = np.array([np.median(row[partners]) for row, partners in zip(pairs, mask, strict=True)])
    absent, sound = np.full(pairs.shape, np.nan), np.ones(pairs.shape, dtype=bool)
    return UDR(scores, pairs, informative, absent, absent, sound, notes, least=least)


def _needed(codes: Sequence[Any], correlation: Correlation, at_once: int) -> float:
    """Bytes of all codes, of those of one model that are being prepared, and of correlations."""
    code_bytes, prepared = zip(*(_bytes_of(each, correlation) for each in codes), strict=True)
    widest = max(each.shape[-1] if len(getattr(each, "shape", ())) == 2 else 0 for each in codes)
    return sum(code_bytes) + max(prepared) + 8 * RELATED * at_once * widest


def _bytes_of(codes: Any, correlation: Correlation) -> tuple[float, float]:
    """In which codes of a model are held, and which they take besides while they are prepared."""
    n_numbers = math.prod(getattr(codes, "shape", ()))
    if is_sparse(codes) and n_stored(codes) <= DENSE * n_numbers:
        stored = STORED * n_stored(codes)
        return stored, SCALED * stored
    return 8 * n_numbers, 8 * n_numbers * (RANKED if correlation == "spearman" else SCALED)


class _Held:
    """Codes that vary, as values or ranks, with their means and spreads."""

    def __init__(self, codes: Any, place: int, correlation: Correlation) -> None:
        try:
            if is_sparse(codes):
                matrix = finite_sparse(codes).tocsc().astype(float)
            else:
                matrix = check_matrix(as_array(codes), "codes", "n_codes")
        except ValueError as error:
            raise ValueError(str(error).replace("codes", f"codes[{place}]", 1)) from None
        self.n_rows = matrix.shape[0]
        if self.n_rows < 2:
            raise ValueError(f"codes[{place}] must have at least two rows (samples); got {self.n_rows}")
        if not isinstance(matrix, np.ndarray):
            matrix.sum_duplicates()
            matrix.eliminate_zeros()
            if matrix.nnz > DENSE * np.prod(matrix.shape):
                matrix = matrix.toarray()
        offset = np.zeros(matrix.shape[1])
        if correlation == "spearman":
            matrix = _ranks(matrix) if isinstance(matrix, np.ndarray) else _sparse_ranks(matrix)
        elif isinstance(matrix, np.ndarray):
            offset = matrix.mean(axis=0)
            matrix = matrix - offset  # of codes far from 0 the squares would leave nothing of their spread
        else:
            stored = np.diff(matrix.indptr)
            full = stored == self.n_rows  # others have zeros, which are as far from the rest as 0 is
            if full.any():
                offset[full] = np.asarray(matrix[:, full].mean(axis=0)).ravel()
                matrix.data -= np.repeat(offset, stored)
        mean = np.asarray(matrix.mean(axis=0)).ravel()
        squares = np.asarray((matrix * matrix).mean(axis=0)).ravel()
        deviation = np.sqrt(np.maximum(squares - mean**2, 0.0))
        alive = np.flatnonzero(deviation > 1e-9 * np.sqrt(squares + offset**2))
        self.n_codes = len(alive)
        matrix = matrix[:, alive]
        self.values = matrix if isinstance(matrix, np.ndarray) else matrix.tocsc()
        self.mean, self.deviation = mean[alive], deviation[alive]

    def correlations(self, other: "_Held", columns: slice) -> FloatArray:
        """(n_columns, n_codes of the other) absolute correlations of these columns."""
        products = self.values[:, columns].T @ other.values
        products = products if isinstance(products, np.ndarray) else products.toarray()
        centred = products / self.n_rows - np.outer(self.mean[columns], other.mean)
        return np.minimum(np.abs(centred / np.outer(self.deviation[columns], other.deviation)), 1.0)


def _ranks(matrix: FloatArray) -> FloatArray:
    from scipy.stats import rankdata

    ranks = rankdata(matrix, axis=0) / len(matrix)
    return ranks - ranks.mean(axis=0)


def _sparse_ranks(matrix: Any) -> Any:
    """Ranks less that which all zeros share, as shares of the rows: of zeros 0, so that they need not be stored."""
    from scipy.stats import rankdata

    n_rows, ranks = matrix.shape[0], np.empty(matrix.nnz)
    for start, stop in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        own = matrix.data[start:stop]
        n_zeros = n_rows - len(own)
        of_zeros = (own < 0).sum() + (n_zeros + 1) / 2
        ranks[start:stop] = (rankdata(own) + np.where(own > 0, n_zeros, 0) - of_zeros) / n_rows
    ranked = matrix.copy()
    ranked.data = ranks
    return ranked


def _agreement(one: _Held, other: _Held, top: int, at_once: int) -> tuple[float, float]:
    """Eq. 2, of the largest `top` entries of each row and of each column; and the least similarity to a match."""
    if not one.n_codes or not other.n_codes:
        return 0.0, 0.0
    total, least, best = 0.0, 1.0, np.empty((0, other.n_codes))
    for start in range(0, one.n_codes, at_once):
        relations = one.correlations(other, slice(start, min(start + at_once, one.n_codes)))
        total += _strength(_largest(relations.T, top)).sum()
        least = min(least, float(relations.max(axis=1).min()))
        best = _largest(np.concatenate([best, relations]), top)
    agreement = float(total + _strength(best).sum()) / (one.n_codes + other.n_codes)
    return agreement, min(least, float(best.max(axis=0).min()))


def _largest(relations: FloatArray, top: int) -> FloatArray:
    """(top, n_columns) largest entries of each column."""
    return relations if len(relations) <= top else np.partition(relations, -top, axis=0)[-top:]


def _strength(relations: FloatArray) -> FloatArray:
    """(n_columns,) largest entry, squared, over the sum; 0 of a column of zeros."""
    sums = relations.sum(axis=0)
    return relations.max(axis=0) ** 2 / np.where(sums > 0, sums, 1.0)
