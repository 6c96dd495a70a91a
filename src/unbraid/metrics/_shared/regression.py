"""Factors as what a regression predicts, and least squares with an intercept."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from unbraid.base.types import FloatArray, IntArray
from unbraid.metrics._shared.chance import unreadable
from unbraid.metrics._shared.cyclic import cyclic_sizes
from unbraid.metrics._shared.inputs import Inputs, mean_and_scale, note_on, standardised
from unbraid.metrics._shared.sharing import shared


@dataclass(frozen=True, eq=False)
class Blocks:
    """Factors as real columns, each factor by one or more of them."""

    columns: FloatArray  # (n_samples, n_columns)
    owner: IntArray  # (n_columns,) the factor that each column belongs to, ascending

    @property
    def single(self) -> tuple[bool, ...]:
        """Whether a factor is one column, so that its correlation has a sign."""
        return tuple(np.bincount(self.owner) == 1)


@shared
def as_blocks(inputs: Inputs, sizes: Sequence[int] | None = None) -> Blocks:
    """An ordered factor as itself, a cyclic one as cosine and sine, a categorical one as an indicator of each level.

    Args:
        inputs: codes and factors.
        sizes: (n_factors,) levels around the circle of each factor that goes around in steps; those of others count
            for nothing, of angles among them, which are radians.

    Raises:
        ValueError: `sizes` does not fit the levels of a cyclic factor.
    """
    turns = dict(zip(inputs.steps, cyclic_sizes(inputs, inputs.steps, sizes), strict=True))
    blocks = []
    for factor, kind in enumerate(inputs.kinds):
        values = inputs.factors[:, factor]
        if kind == "cyclic":
            angle = 2 * np.pi * values / turns[factor] if factor in turns else values
            blocks.append(np.column_stack([np.cos(angle), np.sin(angle)]))
        elif kind == "categorical":
            blocks.append((values[:, None] == np.unique(values)).astype(float))
        else:
            blocks.append(standardised(values[:, None]))
    owner = np.repeat(np.arange(inputs.n_factors), [block.shape[1] for block in blocks])
    return Blocks(np.concatenate(blocks, axis=1), owner)


def notes_on_blocks(inputs: Inputs, among: Collection[int] | None = None) -> tuple[str, ...]:
    """How factors are read that are not one column; of all, or those named."""
    how = {"cyclic": "cosine and sine", "categorical": "indicators of the levels"}
    factors = range(inputs.n_factors) if among is None else sorted(among)
    return tuple(
        note
        for kind, columns in how.items()
        for note in note_on([k for k in factors if inputs.kinds[k] == kind], f"{columns} are predicted together", kind)
    )


def notes_on_parts(blocks: Blocks, splits: list[tuple[IntArray, IntArray]]) -> tuple[str, ...]:
    """Factors that are constant on a part of the rows."""
    spread = np.stack([by_block(np.ptp(blocks.columns[rows], axis=0), blocks.owner) for rows in splits[0]])
    return tuple(
        unreadable(f"factor {factor} is constant on a part of the rows")
        for factor in np.flatnonzero((spread == 0.0).any(axis=0))
    )


def by_block(columns: FloatArray, owner: IntArray) -> FloatArray:
    """(..., n_factors) sums over the columns of each factor, of (..., n_columns)."""
    return np.add.reduceat(columns, np.searchsorted(owner, np.arange(owner[-1] + 1)), axis=-1)


def least_squares(inputs: FloatArray, targets: FloatArray, at: FloatArray) -> FloatArray:
    """What a line with an intercept, fitted to inputs (n, d) and targets (n, q), predicts at others: (m, q).

    Of several lines that fit as well, the one of least weights on standardised inputs.
    """
    mean, scale = mean_and_scale(inputs)
    centre = targets.mean(axis=0)
    weights, *_ = np.linalg.lstsq((inputs - mean) / scale, targets - centre, rcond=None)
    return centre + (at - mean) / scale @ weights


def explained(predicted: FloatArray, true: FloatArray, owner: IntArray) -> FloatArray:
    """(n_factors,) R^2 of each factor, 1 - errors / variances, each summed over its columns; 0 where it is constant."""
    missed = by_block(((true - predicted) ** 2).sum(axis=0), owner)
    varied = by_block(((true - true.mean(axis=0)) ** 2).sum(axis=0), owner)
    known = varied > 1e-24 * len(true)
    return np.where(known, 1.0 - missed / np.where(known, varied, 1.0), 0.0)
