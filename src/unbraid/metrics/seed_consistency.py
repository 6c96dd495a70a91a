"""Seed consistency: whether dictionaries of several trainings hold the same rows (PW-MCC)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.optimize import linear_sum_assignment

from unbraid._arguments import check_whole, generator
from unbraid._shown import Shown
from unbraid.metrics._inputs import check_matrix, in_unit
from unbraid.types import ArrayLike, FloatArray

MOST_ROWS = 8192  # of a dictionary: all cosines are held, and the best assignment takes their cube


@dataclass(frozen=True, eq=False, repr=False)
class SeedConsistency(Shown):
    score: float  # mean over pairs of dictionaries
    chance: float  # of random rows of these shapes
    per_pair: FloatArray  # (n_dictionaries, n_dictionaries), 1 on the diagonal


def seed_consistency(dictionaries: Sequence[ArrayLike], *, seed: int = 0, draws: int = 1) -> SeedConsistency:
    """Mean absolute cosine of the rows of two dictionaries, matched one to one as well as can be, over all pairs.

    On codes instead of dictionaries, `mcc` of one model's codes as the other's factors says the same.

    Args:
        dictionaries: two or more of (n_rows, n_dimensions), at most 8192 rows each; rows are scaled to length 1. Of
            unequal numbers of rows the smaller counts.
        seed: of the random dictionaries.
        draws: of random dictionaries for each pair of shapes; 0 for no `chance`, which is then 0.

    Returns:
        SeedConsistency. `score` in [0, 1], higher is better. Read it beside `chance`: the more rows to choose from and
        the fewer dimensions, the better random rows match (.56 for 64 rows of 16, .40 for 1024 of 64). A row of zeros
        matches nothing. Invariant to order, sign and scale of rows.

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
    rng = generator(seed)
    if len(dictionaries) < 2:
        raise ValueError(f"dictionaries must be at least two; got {len(dictionaries)}")
    rows = [_unit(check_matrix(each, f"dictionaries[{i}]", "n_dimensions")) for i, each in enumerate(dictionaries)]
    for place, each in enumerate(rows):
        if each.shape[1] != rows[0].shape[1]:
            raise ValueError(
                f"dictionaries[{place}] has {each.shape[1]} dimensions, dictionaries[0] has {rows[0].shape[1]}"
            )
        if not 0 < len(each) <= MOST_ROWS:
            raise ValueError(
                f"dictionaries[{place}] must have 1 to {MOST_ROWS} rows (all cosines have to fit in memory); "
                f"got {len(each)}"
            )
    per_pair, by_shape, chances = np.eye(len(rows)), {}, []
    for one, other in combinations(range(len(rows)), 2):
        per_pair[one, other] = per_pair[other, one] = _matched(rows[one], rows[other])
        shapes = tuple(sorted((rows[one].shape, rows[other].shape)))
        if shapes not in by_shape:
            drawn = [_matched(*(_unit(rng.standard_normal(shape)) for shape in shapes)) for _ in range(draws)]
            by_shape[shapes] = float(np.mean(drawn)) if draws else 0.0
        chances.append(by_shape[shapes])
    pairs = np.triu_indices(len(rows), 1)
    return SeedConsistency(float(per_pair[pairs].mean()), float(np.mean(chances)), per_pair)


def _unit(rows: FloatArray) -> FloatArray:
    rows = in_unit(rows.T).T
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)


def _matched(one: FloatArray, other: FloatArray) -> float:
    cosines = np.abs(one @ other.T)
    return float(np.clip(cosines[linear_sum_assignment(cosines, maximize=True)].mean(), 0.0, 1.0))
