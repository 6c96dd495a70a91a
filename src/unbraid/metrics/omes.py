"""OMES: overlap and multiple encoding, by pairs of rows that differ in one factor."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from unbraid.base.arguments import check_choice, check_number
from unbraid.base.counted import counted
from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, FloatArray, IntArray, Kind
from unbraid.metrics._shared.inputs import (
    Inputs,
    NotDefined,
    as_levels,
    check_inputs,
    check_matrix,
    mean_and_deviation,
    standardised,
)
from unbraid.metrics._shared.metric import GRID, Metric

Pooling: TypeAlias = Literal["avg", "max"]
LEAST_DEVIATION = 0.05  # codes of less do not count


@dataclass(frozen=True, eq=False, repr=False)
class OMES(Shown):
    score: float
    overlap: float  # how nearly each code encodes one factor only
    multiple_encoding: float  # how nearly each factor is encoded in one code only
    per_factor: FloatArray  # (n_factors,); 0 for a factor without pairs, which does not count
    association: FloatArray  # (n_codes, n_factors) 1 - |correlation| over pairs; 0 for codes that do not count
    n_pairs: FloatArray  # (n_factors,) pairs of rows that differ in this factor alone
    notes: tuple[str, ...] = ()


def omes(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    alpha: float = 0.5,
    pooling: Pooling = "avg",
) -> OMES:
    """How nearly a change of one factor alone changes one code alone.

    The association of code i and factor k is 1 - |r|, r the correlation of the code between the rows of all pairs that
    differ in factor k only: a code that keeps its value has r = 1. `omes_from_association` says how it is summed up.

    Args:
        codes: (n_samples, n_codes) real. Those of a standard deviation below .05 do not count.
        factors: (n_samples, n_factors) levels; continuous factors are cut into 20 bins of equal width.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: unused; the score is deterministic.
        alpha: weight of overlap, 0 to 1; the rest is that of multiple encoding.
        pooling: over codes, "avg" or "max".

    Returns:
        OMES. `score` in [0, 1], higher is better. A code of mere noise has an association near 1 with every factor:
        perfect codes with idle ones beside them score .5, below redundant ones (.73). Perfect codes fall short of 1,
        the more the fewer the levels; a factor of two seems encoded nowhere. Depends on the scale of codes by what
        counts. Chance: far above 0. Not invariant to rotation of codes.

    Raises:
        NotDefined: no two rows differ in one factor alone.
        ValueError: what every metric refuses, or an option out of range.

    Reference:
        Dapueto et al. 2024, "Transferring Disentangled Representations: Bridging the Gap between Synthetic and Real
        Images". The authors' code draws pairs, and looks for idle codes on a fresh sample at each call; here all pairs
        of all rows count.

    Example:
        >>> grid = FactorSpace(("a", "b"), (4, 3), ("ordinal", "ordinal")).grid()
        >>> bool(omes(grid, grid).score > omes(grid @ [[1, 1], [1, -1]], grid).score)
        True
    """
    _check(alpha, pooling)
    inputs = check_inputs(codes, factors, kinds, seed)
    levels = as_levels(inputs)
    live = mean_and_deviation(inputs.codes)[1] >= LEAST_DEVIATION
    by_factor = [_pair_correlations(inputs, levels.levels, factor) for factor in range(inputs.n_factors)]
    n_pairs = np.array([count for _, count in by_factor])
    compared = n_pairs > 0
    if not compared.any():
        raise NotDefined("needs pairs of rows that differ in one factor only")
    association = np.stack([1.0 - np.abs(correlation) for correlation, _ in by_factor], axis=1) * live[:, None]
    per_factor = np.zeros((2, inputs.n_factors))
    per_factor[:, compared] = _parts(association[live][:, compared], pooling) if live.any() else 0.0
    overlap, multiple = per_factor[:, compared].mean(axis=1)
    excluded = [
        f"factor {factor}: no rows differ in it only; it does not count" for factor in np.flatnonzero(~compared)
    ]
    idle = int((~live).sum())
    return OMES(
        score=float(alpha * overlap + (1 - alpha) * multiple),
        overlap=float(overlap),
        multiple_encoding=float(multiple),
        per_factor=alpha * per_factor[0] + (1 - alpha) * per_factor[1],
        association=association,
        n_pairs=n_pairs,
        notes=(
            *levels.notes,
            *excluded,
            *((f"not counted: {counted(idle, 'code')} with a standard deviation below .05",) if idle else ()),
        ),
    )


def omes_from_association(association: ArrayLike, *, alpha: float = 0.5, pooling: Pooling = "avg") -> float:
    """The score of a matrix of associations S (n_codes, n_factors) in [0, 1].

    Of code i and factor k, overlap is 1 - mean_k' |[k = k'] - S_ik'|, multiple encoding 1 - mean_i' |[i = i'] - S_i'k|.
    Over codes these are pooled by "avg", sum_i S_ik^2 x / sum_i S_ik, or by "max", max_i S_ik x; then alpha of the
    first and 1 - alpha of the second, averaged over factors.

    Returns:
        In [0, 1], higher is better: 1 for the identity, 0 for zeros.

    Raises:
        ValueError: not a matrix of numbers from 0 to 1, or an option out of range.

    Example:
        >>> omes_from_association([[1, 1], [0, 0]])
        0.75
    """
    _check(alpha, pooling)
    matrix = check_matrix(association, "association", "n_factors")
    if len(matrix) == 0 or matrix.min() < 0 or matrix.max() > 1:
        raise ValueError("association must have rows, and entries from 0 to 1")
    overlap, multiple = _parts(matrix, pooling).mean(axis=1)
    return float(alpha * overlap + (1 - alpha) * multiple)


def _check(alpha: float, pooling: Pooling) -> None:
    check_number("alpha", alpha, least=0.0, most=1.0)
    check_choice("pooling", pooling, get_args(Pooling))


def _parts(association: FloatArray, pooling: Pooling) -> FloatArray:
    """(2, n_factors) overlap and multiple encoding."""
    n_codes, n_factors = association.shape
    # |1 - S| in one place in place of |S|: as S is from 0 to 1, 1 - 2 S more than the sum.
    overlap = 1.0 - (association.sum(axis=1, keepdims=True) + 1.0 - 2.0 * association) / n_factors
    multiple = 1.0 - (association.sum(axis=0) + 1.0 - 2.0 * association) / n_codes
    sums = association.sum(axis=0)
    pooled = []
    for part in (overlap, multiple):
        if pooling == "max":
            pooled.append((association * part).max(axis=0))
        else:
            pooled.append((association**2 * part).sum(axis=0) / np.where(sums > 0, sums, 1.0))
    return np.array(pooled)


def _pair_correlations(inputs: Inputs, levels: IntArray, factor: int) -> tuple[FloatArray, float]:
    """(n_codes,) correlation of each code within all pairs of rows that differ in one factor alone, and how many."""
    combination = np.unique(np.delete(levels, factor, axis=1), axis=0, return_inverse=True)[1].ravel()
    cells = np.unique(np.column_stack([combination, levels[:, factor]]), axis=0, return_inverse=True)[1].ravel()
    n_groups, n_cells = int(combination.max()) + 1, int(cells.max()) + 1
    in_group, in_cell = np.bincount(combination)[combination], np.bincount(cells)[cells]
    partners = (in_group - in_cell).astype(float)  # of each row
    total = partners.sum()  # of pairs, each in both orders
    if total == 0:
        return np.ones(inputs.n_codes), 0.0
    correlations = np.ones(inputs.n_codes)
    for code, column in enumerate(standardised(inputs.codes).T):
        centred = column - (partners @ column) / total
        by_group, by_cell = (
            np.bincount(place, weights=centred, minlength=n) for place, n in ((combination, n_groups), (cells, n_cells))
        )
        # Products over pairs of a group, less those within one level, among which each row is with itself.
        products = (by_group**2).sum() - (by_cell**2).sum()
        spread = partners @ centred**2
        correlations[code] = np.clip(products / spread, -1.0, 1.0) if spread > 1e-12 * total else 1.0
    return correlations, float(total / 2)


METRIC = Metric(
    omes,
    title="Overlap and multiple encoding score",
    question="changes",
    claims={"score": ("modularity", "compactness")},
    summary="How far a change of one factor alone changes one code alone.",
    limitations="Noise seems to encode every factor. With few levels, a rotation can beat perfect codes.",
    source="Dapueto et al. 2024",
    needs="needs pairs of rows that differ in one factor only",
    invariant_to=frozenset({"permute", "flip", "dead"}),
    aligned=False,
    standard=False,
    interval=GRID,
    cites=("dapueto2024disentangled",),
    formula=(
        r"\mathrm{OMES} = \frac{1}{K} \sum_{k} \frac{\sum_i S_{ik}^2 \, (o_{ik} + m_{ik})}{2 \sum_i S_{ik}}, \qquad "
        r"o_{ik} = 1 - \frac{1}{K} \sum_{l} \left| [k = l] - S_{il} \right|, \qquad "
        r"m_{ik} = 1 - \frac{1}{D} \sum_{j} \left| [i = j] - S_{jk} \right|",
        r"$S_{ik}$ is 1 minus the absolute correlation of code $i$ between the rows of all pairs that differ in factor "
        r"$k$ only.",
    ),
)
