"""Blocks of columns, of codes and of factors: what the metrics of blocks share."""

from collections.abc import Sequence

import numpy as np

from unbraid.base.types import ArrayLike, FloatArray, IntArray, Kind
from unbraid.metrics._shared.inputs import Columns, Inputs, check_blocks, check_inputs
from unbraid.metrics._shared.regression import as_blocks, explained, least_squares


def inputs_and_blocks(
    codes: ArrayLike,
    factors: ArrayLike,
    kinds: Sequence[Kind] | None,
    seed: int,
    groups: ArrayLike | None,
    code_blocks: Columns,
    factor_blocks: Columns,
) -> tuple[Inputs, list[list[int]], list[list[int]]]:
    """What was given, checked: codes and factors, and the columns of each block of codes and of factors."""
    inputs = check_inputs(codes, factors, kinds, seed, groups=groups)
    own = check_blocks("code_blocks", code_blocks, inputs.n_codes, "codes")
    return inputs, own, check_blocks("factor_blocks", factor_blocks, inputs.n_factors, "factors")


def targets_of(
    inputs: Inputs, blocks: list[list[int]], sizes: Sequence[int] | None
) -> tuple[FloatArray, list[list[int]]]:
    """Factors as columns, and the columns of each block of factors; `sizes` as for `as_blocks`."""
    read = as_blocks(inputs, sizes)
    return read.columns, [np.flatnonzero(np.isin(read.owner, block)).tolist() for block in blocks]


def r2_of_pair(
    x: FloatArray, inputs: list[int], y: FloatArray, targets: list[int], fit: IntArray, judged: IntArray
) -> float:
    """Of one block from another: all errors over all variances."""
    known, true = x[:, inputs], y[:, targets]
    predicted = least_squares(known[fit], true[fit], known[judged])
    return float(explained(predicted, true[judged], np.zeros(len(targets), dtype=int))[0])
