"""Blocks of columns, of codes and of factors: what the metrics of blocks share."""

from collections.abc import Sequence

import numpy as np

from unbraid.base.types import ArrayLike, FloatArray, IntArray, Kind
from unbraid.metrics._shared.inputs import Inputs, check_inputs
from unbraid.metrics._shared.regression import as_blocks, explained, least_squares

Columns = Sequence[Sequence[int]]


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


def check_blocks(name: str, blocks: Columns, n_columns: int, axis: str) -> list[list[int]]:
    """Columns of each block, or a ValueError that says which is not there, or is named twice."""
    if not len(blocks):
        raise ValueError(f"{name} is empty; give at least one block of columns")
    checked, seen = [], set()
    for place, block in enumerate(blocks):
        columns = np.atleast_1d(np.asarray(block))
        if columns.ndim != 1 or not len(columns) or columns.dtype.kind not in "iu":
            raise ValueError(f"{name}[{place}] must be a list of columns of {axis}; got {block!r}")
        for column in columns.tolist():
            if not 0 <= column < n_columns or column in seen:
                why = "twice" if column in seen else f"and there are columns 0 to {n_columns - 1}"
                raise ValueError(f"{name}[{place}] names column {column} of {axis}, {why}")
            seen.add(column)
        checked.append(columns.tolist())
    return checked


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
