"""MCC of blocks: a factor, or a code, that is a vector."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unbraid.base.counted import counted
from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, FloatArray, IntArray, Kind
from unbraid.metrics._shared.alignment import align
from unbraid.metrics._shared.column_blocks import inputs_and_blocks, r2_of_pair, targets_of
from unbraid.metrics._shared.inputs import Columns, split_rows, standardised
from unbraid.metrics._shared.metric import Metric
from unbraid.metrics._shared.regression import notes_on_blocks


@dataclass(frozen=True, eq=False, repr=False)
class BlockMCC(Shown):
    score: float
    per_block: FloatArray  # (n_factor_blocks,)
    alignment: IntArray  # (n_factor_blocks,) code block matched with each by all rows, -1 without one
    notes: tuple[str, ...] = ()


def block_mcc(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    code_blocks: Columns,
    factor_blocks: Columns,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    groups: ArrayLike | None = None,
    sizes: Sequence[int] | None = None,
) -> BlockMCC:
    """Mean root of R^2 of each block of factors from a block of codes of its own.

    Blocks are matched one to one on one half of the rows, and judged on the other; both ways. Of blocks of one column
    each this is `mcc` without signs. Elsewhere it is called `mcc(code_blocks=, factor_blocks=)`.

    Args:
        codes, factors, kinds, seed, groups, sizes: as for `block_r2`.
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
    inputs, own, theirs = inputs_and_blocks(codes, factors, kinds, seed, groups, code_blocks, factor_blocks)
    halves = split_rows(inputs.n_samples, (0.5, 0.5), seed, inputs.groups)
    v, columns = targets_of(inputs, theirs, sizes)
    z, rows = standardised(inputs.codes), np.arange(inputs.n_samples)

    def worth(fit: IntArray, judged: IntArray) -> FloatArray:
        squared = np.array([[r2_of_pair(z, i, v, k, fit, judged) for k in columns] for i in own])
        return np.sqrt(np.maximum(squared, 0.0))

    per_block = np.zeros(len(theirs))
    for known, judged in (halves, halves[::-1]):
        matched, elsewhere = align(worth(known, known)), worth(known, judged)
        with_code = np.flatnonzero(matched >= 0)
        per_block[with_code] += elsewhere[matched[with_code], with_code] / 2
    alignment = align(worth(rows, rows))
    n_unmatched = int((alignment < 0).sum())
    few = f"{counted(len(own), 'block')} of codes for {len(theirs)} of factors: {n_unmatched} without one, counted as 0"
    notes = (few,) if n_unmatched else ()
    return BlockMCC(float(per_block.mean()), per_block, alignment, (*notes_on_blocks(inputs, sum(theirs, [])), *notes))


METRIC = Metric(
    block_mcc,
    of="blocks",
    title="MCC of blocks",
    question="identified",
    summary="Mean root of R² of each block of factors from a block of codes of its own, matched one to one.",
    limitations="Blind to rotation within blocks, and to nonlinear relations.",
    source="Khemakhem et al. 2020 (ICE-BeeM), of blocks",
    needs="needs blocks of codes and factors",
    stochastic=True,
    version=2,
)
