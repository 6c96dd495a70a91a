"""R^2 of blocks: a factor, or a code, that is a vector."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, FloatArray, Kind
from unbraid.metrics._shared.column_blocks import inputs_and_blocks, r2_of_pair, targets_of
from unbraid.metrics._shared.inputs import Columns, NotDefined, split_rows, standardised
from unbraid.metrics._shared.metric import Metric
from unbraid.metrics._shared.regression import notes_on_blocks


@dataclass(frozen=True, eq=False, repr=False)
class BlockR2(Shown):
    score: float  # mean R^2 of factor blocks from their own code blocks
    leakage: float  # mean R^2 of factor blocks from other code blocks, each cut off at 0
    matrix: FloatArray  # (n_code_blocks, n_factor_blocks) factors from codes
    backward: FloatArray  # (n_code_blocks, n_factor_blocks) codes from factors
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
    sizes: Sequence[int] | None = None,
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
        groups: (n_samples,) group of each row (trial, animal, video or session); no group is in two parts.
        sizes: number of levels of each factor, around which cyclic ones wrap; as for `r2`.

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
    inputs, own, theirs = inputs_and_blocks(codes, factors, kinds, seed, groups, code_blocks, factor_blocks)
    if len(own) != len(theirs):
        raise NotDefined(
            f"code_blocks and factor_blocks must have the same number of blocks; got {len(own)} and {len(theirs)}"
        )
    halves = split_rows(inputs.n_samples, (0.5, 0.5), seed, inputs.groups)
    v, columns = targets_of(inputs, theirs, sizes)
    z = standardised(inputs.codes)
    splits = [halves, halves[::-1]]
    matrix = np.mean([[[r2_of_pair(z, i, v, k, *way) for k in columns] for i in own] for way in splits], axis=0)
    backward = np.mean([[[r2_of_pair(v, k, z, i, *way) for k in columns] for i in own] for way in splits], axis=0)
    unmatched = ~np.eye(len(own), dtype=bool)
    leaks = np.maximum(matrix[unmatched], 0.0)
    return BlockR2(
        float(np.diag(matrix).mean()),
        float(leaks.mean()) if len(leaks) else 0.0,
        matrix,
        backward,
        notes_on_blocks(inputs, sum(theirs, [])),
    )


METRIC = Metric(
    block_r2,
    of="blocks",
    title="R² of blocks",
    question="identified",
    range=(-math.inf, 1.0),
    summary="How much of the variance of each block of factors its own block of codes predicts, on other rows.",
    limitations="Blind to rotation within blocks. `leakage` says what other blocks of codes predict.",
    source="von Kügelgen et al. 2021, experiments",
    needs="needs blocks of codes and factors",
    stochastic=True,
    version=2,
)
