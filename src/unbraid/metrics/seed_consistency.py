"""Seed consistency: whether dictionaries of several trainings hold the same rows (PW-MCC)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from unbraid.base.arguments import check_whole, generator
from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, FloatArray, IntArray
from unbraid.metrics._shared.inputs import check_matrix

EXACT_ROWS = 8192  # of the larger dictionary, up to which all cosines are held and every assignment is open
CANDIDATES = 32
MOST_ROWS = 131_072
AT_ONCE = 256  # rows compared with all of the other dictionary at a time


@dataclass(frozen=True, eq=False, repr=False)
class SeedConsistency(Shown):
    score: float  # mean over pairs of dictionaries
    chance: float  # of random rows of these shapes
    per_pair: FloatArray  # (n_dictionaries, n_dictionaries), 1 on the diagonal
    notes: tuple[str, ...] = ()


def seed_consistency(
    dictionaries: Sequence[ArrayLike], *, seed: int = 0, draws: int = 1, top: int | None = None
) -> SeedConsistency:
    """Mean absolute cosine of the rows of two dictionaries, matched one to one as well as can be, over all pairs.

    On codes instead of dictionaries, `mcc` of one model's codes as the other's factors says the same.

    Args:
        dictionaries: two or more of (n_rows, n_dimensions), at most 131 072 rows each; rows are scaled to length 1. Of
            unequal numbers of rows the smaller counts.
        seed: of the random dictionaries.
        draws: of random dictionaries for each pair of shapes; 0 for no `chance`, which is then 0.
        top: match each row with one of the so many rows of the other that are most like it, or that it is most like;
            rows that find none of these are matched among each other. None: all rows are candidates up to 8192, and
            32 above. What is found so is at most the best; a note says how far it can be off.

    Returns:
        SeedConsistency. `score` in [0, 1], higher is better. Read it beside `chance`: the more rows to choose from and
        the fewer dimensions, the better random rows match (.56 for 64 rows of 16, .40 for 1024 of 64). A row of zeros
        matches nothing. Invariant to order, sign and scale of rows. Two dictionaries of 16 384 rows of 512 take 25 s of
        one core and 1 GB, of 8192 rows with all assignments 6 s and 1.4 GB; `chance` takes as long again.

    Raises:
        ValueError: fewer than two dictionaries, other dimensions, values not finite, or too many rows.

    Reference:
        Song et al. 2025, "Mechanistic Interpretability Should Prioritize Feature Consistency in SAEs",
        arXiv 2505.20254.

    Example:
        >>> round(seed_consistency([[[1, 0], [0, 1]], [[1, 0], [1, 1]]]).score, 6)
        0.853553
    """
    check_whole("draws", draws, 0, 1000, why="each takes as long as a comparison")
    if top is not None:
        check_whole("top", top, 1)
    rng = generator(seed)
    if len(dictionaries) < 2:
        raise ValueError(f"dictionaries must hold at least two; got {len(dictionaries)}")
    rows = [unit_rows(check_matrix(each, f"dictionaries[{i}]", "n_dimensions")) for i, each in enumerate(dictionaries)]
    for place, each in enumerate(rows):
        if each.shape[1] != rows[0].shape[1]:
            raise ValueError(
                f"dictionaries[{place}] has {each.shape[1]} dimensions, dictionaries[0] has {rows[0].shape[1]}"
            )
        if not 0 < len(each) <= MOST_ROWS:
            raise ValueError(f"dictionaries[{place}] must have 1 to {MOST_ROWS} rows; got {len(each)}")
    if top is None and max(map(len, rows)) > EXACT_ROWS:
        top = CANDIDATES
    per_pair, by_shape, chances, off = np.eye(len(rows)), {}, [], 0.0
    for one, other in combinations(range(len(rows)), 2):
        pair = sorted((rows[one], rows[other]), key=len)
        score, most = _matched(pair[0], pair[1], top)
        per_pair[one, other] = per_pair[other, one] = score
        off = max(off, most - score)
        shapes = tuple(each.shape for each in pair)
        if shapes not in by_shape:
            random = ([unit_rows(rng.standard_normal(shape)) for shape in shapes] for _ in range(draws))
            scores = [_matched(small, large, top)[0] for small, large in random]
            by_shape[shapes] = float(np.mean(scores)) if draws else 0.0
        chances.append(by_shape[shapes])
    pairs = np.triu_indices(len(rows), 1)
    notes = (f"by {top} candidates of each row: the best match is at most {off:.4f} above",) if top else ()
    return SeedConsistency(float(per_pair[pairs].mean()), float(np.mean(chances)), per_pair, notes)


def unit_rows(rows: FloatArray) -> FloatArray:
    """Each row at length 1; one of zeros stays."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)


def _matched(one: FloatArray, other: FloatArray, top: int | None) -> tuple[float, float]:
    """The score of at most as many rows as the other has, and the most that any match could have."""
    from scipy.optimize import linear_sum_assignment  # a fifth of a second to import
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    if top is None:
        cosines = np.abs(one @ other.T)
        score = float(np.clip(cosines[linear_sum_assignment(cosines, maximize=True)].mean(), 0.0, 1.0))
        return score, score
    rows, columns, cosines = _candidates(one, other, min(top, len(one)))
    best = np.zeros(len(one))
    np.maximum.at(best, rows, cosines)
    # Each row may stay alone, at a cosine of 0: the matching needs a partner for all. Weights of 0 would be no edges.
    # Older SciPy takes no wider places than 32 bits.
    alone = np.arange(len(one))
    places = (np.r_[rows, alone].astype(np.int32), np.r_[columns, len(other) + alone].astype(np.int32))
    table = (np.r_[1.0 + cosines, np.ones(len(one))], places)
    width = len(other) + len(one)
    own, partner = min_weight_full_bipartite_matching(coo_array(table, (len(one), width)).tocsr(), maximize=True)
    lonely, free = own[partner >= len(other)], np.setdiff1d(np.arange(len(other)), partner)
    paired = partner < len(other)
    total = float(np.abs(np.einsum("nd,nd->n", one[own[paired]], other[partner[paired]])).sum())
    left = np.abs(one[lonely] @ other[free].T)
    total += float(left[linear_sum_assignment(left, maximize=True)].sum())
    return float(np.clip(total / len(one), 0.0, 1.0)), float(np.clip(best.mean(), 0.0, 1.0))


def _candidates(one: FloatArray, other: FloatArray, top: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Rows, rows of the other and cosines of the `top` most alike of each row of either, each pair once."""

    def nearest(rows: FloatArray, candidates: FloatArray) -> IntArray:
        """(n_rows * top,) of each row, one after the other."""
        parts = (np.abs(rows[start : start + AT_ONCE] @ candidates.T) for start in range(0, len(rows), AT_ONCE))
        return np.concatenate([np.argpartition(part, -top, axis=1)[:, -top:] for part in parts]).ravel()

    own, theirs = (np.repeat(np.arange(len(each)), top) for each in (one, other))
    places = np.unique(np.append(own * len(other) + nearest(one, other), nearest(other, one) * len(other) + theirs))
    rows, columns = np.divmod(places, len(other))
    cosines = np.empty(len(rows))
    for start in range(0, len(rows), AT_ONCE**2):  # of all at once the rows would be copied many times over
        part = slice(start, start + AT_ONCE**2)
        cosines[part] = np.abs(np.einsum("nd,nd->n", one[rows[part]], other[columns[part]]))
    return rows, columns, cosines
