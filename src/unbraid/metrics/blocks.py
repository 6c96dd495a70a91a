"""R^2 and MCC of blocks: a factor, or a code, that is a vector."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unbraid._utils.repr import Shown
from unbraid.metrics._shared.alignment import align
from unbraid.metrics._shared.inputs import Inputs, NotDefined, check_inputs, split_rows, standardised
from unbraid.metrics._shared.metric import Metric
from unbraid.metrics._shared.regression import as_blocks, explained, least_squares, notes_on_blocks
from unbraid.types import ArrayLike, FloatArray, IntArray, Kind

Columns = Sequence[Sequence[int]]


@dataclass(frozen=True, eq=False, repr=False)
class BlockR2(Shown):
    score: float  # mean R^2 of factor blocks from their own code blocks
    leakage: float  # mean R^2 of factor blocks from other code blocks, each cut off at 0
    matrix: FloatArray  # (n_code_blocks, n_factor_blocks) factors from codes
    backward: FloatArray  # (n_code_blocks, n_factor_blocks) codes from factors
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class BlockMCC(Shown):
    score: float
    per_block: FloatArray  # (n_factor_blocks,)
    alignment: IntArray  # (n_factor_blocks,) code block matched with each by all rows, -1 without one
    notes: tuple[str, ...] = ()


def block_r2(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    code_blocks: Columns,
    factor_blocks: Columns,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    groups: ArrayLike | None = None,
) -> BlockR2:
    """How well each block of factors is predicted by its own block of codes, and by the others.

    Least squares with an intercept, fitted to one half of the rows and judged on the other, both ways.

    Args:
        codes: (n_samples, n_codes) real.
        factors: (n_samples, n_factors) levels or real values; cyclic ones are read as cosine and sine, categorical ones
            as indicators of their levels.
        code_blocks: columns of codes in each block, such as [[0, 1], [2]].
        factor_blocks: columns of factors in each; block i of the codes should hold block i of the factors.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: draws the halves.
        groups: (n_samples,) of which trial, animal, video or session each row is, where rows of one hang together: no
            two parts then have rows of one group.

    Returns:
        BlockR2. `score` at most 1, higher is better; `leakage` from 0, lower is better. Blind to rotation within
        blocks.

    Raises:
        NotDefined: the blocks are not as many.
        ValueError: a block is empty or names a column that is not there, or twice; what `r2` refuses.

    Reference:
        von Kügelgen et al. 2021, "Self-Supervised Learning with Data Augmentations Provably Isolates Content from
        Style", experiments.

    Example:
        >>> z = np.random.default_rng(0).standard_normal((400, 3))
        >>> round(block_r2(z @ [[1, 1, 0], [1, -1, 0], [0, 0, 2]], z,
        ...     code_blocks=[[0, 1], [2]], factor_blocks=[[0, 1], [2]]).score, 6)
        1.0
    """
    inputs, own, theirs = _checked(codes, factors, kinds, seed, groups, code_blocks, factor_blocks)
    if len(own) != len(theirs):
        raise NotDefined(f"code_blocks and factor_blocks must be equally many; got {len(own)} and {len(theirs)}")
    halves = split_rows(inputs.n_samples, (0.5, 0.5), seed, inputs.groups)
    v, columns = _targets(inputs, theirs)
    z = standardised(inputs.codes)
    ways = [halves, halves[::-1]]
    matrix = np.mean([[[_r2(z, i, v, k, *way) for k in columns] for i in own] for way in ways], axis=0)
    backward = np.mean([[[_r2(v, k, z, i, *way) for k in columns] for i in own] for way in ways], axis=0)
    others = ~np.eye(len(own), dtype=bool)
    leaks = np.maximum(matrix[others], 0.0)
    return BlockR2(
        float(np.diag(matrix).mean()),
        float(leaks.mean()) if len(leaks) else 0.0,
        matrix,
        backward,
        notes_on_blocks(inputs, sum(theirs, [])),
    )


def block_mcc(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    code_blocks: Columns,
    factor_blocks: Columns,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    groups: ArrayLike | None = None,
) -> BlockMCC:
    """Mean root of R^2 of each block of factors from a block of codes of its own.

    Blocks are matched one to one on one half of the rows, and judged on the other; both ways. Of blocks of one column
    each this is `mcc` without signs.

    Args:
        codes, factors, kinds, seed, groups: as for `block_r2`.
        code_blocks: columns of codes in each block.
        factor_blocks: columns of factors in each block; those without a block of codes count 0.

    Returns:
        BlockMCC. `score` in [0, 1], higher is better. Blind to rotation within blocks.

    Raises:
        ValueError: as for `block_r2`, but blocks need not be equally many.

    Reference:
        Khemakhem et al. 2020 (ICE-BeeM), of blocks.

    Example:
        >>> z = np.random.default_rng(0).standard_normal((400, 3))
        >>> round(block_mcc(z[:, ::-1], z, code_blocks=[[0], [1, 2]], factor_blocks=[[0, 1], [2]]).score, 6)
        1.0
    """
    inputs, own, theirs = _checked(codes, factors, kinds, seed, groups, code_blocks, factor_blocks)
    halves = split_rows(inputs.n_samples, (0.5, 0.5), seed, inputs.groups)
    v, columns = _targets(inputs, theirs)
    z, rows = standardised(inputs.codes), np.arange(inputs.n_samples)

    def worth(fit: IntArray, judged: IntArray) -> FloatArray:
        squared = np.array([[_r2(z, i, v, k, fit, judged) for k in columns] for i in own])
        return np.sqrt(np.maximum(squared, 0.0))

    per_block = np.zeros(len(theirs))
    for known, judged in (halves, halves[::-1]):
        matched, elsewhere = align(worth(known, known)), worth(known, judged)
        found = np.flatnonzero(matched >= 0)
        per_block[found] += elsewhere[matched[found], found] / 2
    alignment = align(worth(rows, rows))
    lost = int((alignment < 0).sum())
    notes = (f"{len(own)} blocks of codes for {len(theirs)} of factors: {lost} have none, and count 0",) if lost else ()
    return BlockMCC(float(per_block.mean()), per_block, alignment, (*notes_on_blocks(inputs, sum(theirs, [])), *notes))


def _checked(
    codes: ArrayLike,
    factors: ArrayLike,
    kinds: Sequence[Kind] | None,
    seed: int,
    groups: ArrayLike | None,
    code_blocks: Columns,
    factor_blocks: Columns,
) -> tuple[Inputs, list[list[int]], list[list[int]]]:
    inputs = check_inputs(codes, factors, kinds, seed, groups=groups)
    own = check_blocks("code_blocks", code_blocks, inputs.n_codes, "codes")
    return inputs, own, check_blocks("factor_blocks", factor_blocks, inputs.n_factors, "factors")


def check_blocks(name: str, blocks: Columns, n_columns: int, of: str) -> list[list[int]]:
    """Columns of each block, or a ValueError that says which is not there, or is named twice."""
    if len(blocks) > n_columns:
        raise ValueError(f"{name} has {len(blocks)} blocks for {n_columns} {of}")
    if not len(blocks):
        raise ValueError(f"{name} is empty; give at least one block of columns")
    found, seen = [], set()
    for place, block in enumerate(blocks):
        columns = np.atleast_1d(np.asarray(block))
        if columns.ndim != 1 or not len(columns) or columns.dtype.kind not in "iu":
            raise ValueError(f"{name}[{place}] must be a list of columns of {of}; got {block!r}")
        for column in columns.tolist():
            if not 0 <= column < n_columns or column in seen:
                why = "twice" if column in seen else f"and there are columns 0 to {n_columns - 1}"
                raise ValueError(f"{name}[{place}] names column {column} of {of}, {why}")
            seen.add(column)
        found.append(columns.tolist())
    return found


def _targets(inputs: Inputs, blocks: list[list[int]]) -> tuple[FloatArray, list[list[int]]]:
    """Factors as columns, and the columns of each block of factors."""
    read = as_blocks(inputs)
    return read.columns, [np.flatnonzero(np.isin(read.owner, block)).tolist() for block in blocks]


def _r2(x: FloatArray, inputs: list[int], y: FloatArray, targets: list[int], fit: IntArray, judged: IntArray) -> float:
    """Of one block from another: all errors over all variances."""
    known, true = x[:, inputs], y[:, targets]
    predicted = least_squares(known[fit], true[fit], known[judged])
    return float(explained(predicted, true[judged], np.zeros(len(targets), dtype=int))[0])


BLOCK_R2 = Metric(
    block_r2,
    of="blocks",
    title="R² of blocks",
    question="identified",
    headline="score",
    best=1.0,
    higher_is_better=True,
    range=(-math.inf, 1.0),
    summary="How much of the variance of each block of factors its own block of codes predicts, on other rows.",
    limitations="Blind to rotation within blocks; look at leakage for what other blocks of codes tell.",
    source="von Kügelgen et al. 2021, experiments",
    needs="needs blocks of codes and factors",
    stochastic=True,
)


BLOCK_MCC = Metric(
    block_mcc,
    of="blocks",
    title="MCC of blocks",
    question="identified",
    headline="score",
    best=1.0,
    higher_is_better=True,
    range=(0.0, 1.0),
    summary="Mean root of R² of each block of factors from a block of codes of its own, matched one to one.",
    limitations="Blind to rotation within blocks, and to all but straight lines.",
    source="Khemakhem et al. 2020 (ICE-BeeM), of blocks",
    needs="needs blocks of codes and factors",
    stochastic=True,
)
