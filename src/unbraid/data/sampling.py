"""Which images to draw: at random, with some factors fixed or correlated, or a few to label."""

from collections.abc import Mapping, Sequence

import numpy as np

from unbraid.base.arguments import check_draws, check_number, check_whole, generator, list_of
from unbraid.base.types import ArrayLike, FloatArray, IntArray
from unbraid.data.space import FactorSpace, FactorTable, Space


def sample(
    space: Space,
    n: int,
    *,
    fixed: Mapping[str, int] | None = None,
    weights: Mapping[tuple[str, ...], ArrayLike] | None = None,
    seed: int = 0,
) -> IntArray:
    """Positions (n,) of images drawn with replacement, every combination alike unless told otherwise.

    Args:
        space: of the dataset.
        n: how many.
        fixed: factors that keep one level.
        weights: from names of factors to the joint weight of their levels, one axis per name; any positive scale.
            The other factors stay independent and uniform. Grids alone.
        seed: same seed, same positions.

    Raises:
        ValueError: an unknown name, a level out of range, weights of another shape or that cannot be drawn from, a
            factor named twice, or nothing has the fixed levels.

    Example:
        >>> space = FactorSpace(("shape", "hue"), (2, 3), ("categorical", "cyclic"))
        >>> space.factors(sample(space, 4, fixed={"hue": 1}))[:, 1].tolist()
        [1, 1, 1, 1]
    """
    check_draws(len(space.names), 0, n=n)
    rng = generator(seed)
    fixed, weights = dict(fixed or {}), dict(weights or {})
    for name, level in fixed.items():
        column = space.column(name)
        if isinstance(space, FactorSpace):
            check_whole(f"level of factor {name!r}", level, 0, space.sizes[column] - 1)
    named = [*fixed, *(name for names in weights for name in names)]
    if len(set(named)) < len(named):
        raise ValueError(f"each factor may be fixed or weighted once; got {named}")
    if isinstance(space, FactorTable):
        if weights:
            raise ValueError("weights need a grid of factors; these samples have their own")
        levels = [space.table[:, space.column(name)] == level for name, level in fixed.items()]
        rows = np.flatnonzero(np.logical_and.reduce([np.ones(len(space), dtype=bool), *levels]))
        if not len(rows):
            raise ValueError(f"no sample has {fixed}")
        return rows[rng.integers(len(rows), size=n)]
    levels = rng.integers(space.sizes, size=(n, len(space.sizes)))
    for name, level in fixed.items():
        levels[:, space.column(name)] = level
    for names, weight in weights.items():
        columns = [space.column(name) for name in names]
        joint = _check_weight(weight, names, tuple(space.sizes[column] for column in columns))
        cells = rng.choice(joint.size, size=n, p=joint.ravel())
        levels[:, columns] = np.stack(np.unravel_index(cells, joint.shape), axis=1)
    return space.index(levels)


def correlation(n_rows: int, n_columns: int, width: float) -> FloatArray:
    """(n_rows, n_columns) joint weight of two factors that rise together, for `sample(weights=...)`.

    Proportional to exp(-(a - b)^2 / (2 width^2)), with a and b the levels scaled to 0 .. 1: 0.1 ties them closely
    and 10 hardly at all. The form is that of Träuble et al. 2021, "On Disentangled Representations Learned from
    Correlated Data", section 3.

    Raises:
        ValueError: the width is not above 0.
    """
    check_draws(n_rows=n_rows, n_columns=n_columns)
    check_number("width", width, above=0)
    distance = np.linspace(0, 1, n_rows)[:, None] - np.linspace(0, 1, n_columns)
    weight = np.exp(-((distance / float(width)) ** 2) / 2)
    return weight / weight.sum()


def few_labels(space: Space, n: int, *, by: Sequence[str] = (), seed: int = 0) -> IntArray:
    """Positions (n,) of different images to label, spread evenly over the levels of some factors.

    Every combination of levels of the factors in `by` gets the same number, give or take one; a combination that
    has too few images gives all it has and the others make up for it.

    Args:
        space: of the dataset.
        n: how many.
        by: factors to be even in; none for a plain random draw.
        seed: same seed, same positions.

    Raises:
        ValueError: an unknown or continuous factor, or fewer images than asked for.

    Example:
        >>> space = FactorSpace(("shape", "hue"), (2, 8), ("categorical", "cyclic"))
        >>> np.bincount(space.factors(few_labels(space, 6, by=["shape"]))[:, 0]).tolist()
        [3, 3]
    """
    check_whole("n", n, 0, len(space), why="no image is labelled twice")
    columns = [space.column(name) for name in list_of("by", by)]
    for name, column in zip(by, columns, strict=True):
        if space.kinds[column] == "continuous" and isinstance(space, FactorTable):
            raise ValueError(f"factor {name!r} is continuous: it has no levels to be even in")
    shuffled = generator(seed).permutation(len(space))
    if not by:
        return shuffled[:n]
    cells = np.unique(space.factors(shuffled)[:, columns], axis=0, return_inverse=True)[1].ravel()
    # The first of every cell come first, in random order; then the second of every cell, and so on.
    return shuffled[np.argsort(rank_within(cells), kind="stable")[:n]]


def rank_within(groups: IntArray) -> IntArray:
    """(n,) how many earlier entries belong to the same group."""
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    ranks = np.empty(len(groups), dtype=np.int64)
    ranks[order] = np.arange(len(groups)) - np.repeat(starts, np.diff(starts, append=len(groups)))
    return ranks


def _check_weight(weight: ArrayLike, names: tuple[str, ...], sizes: tuple[int, ...]) -> FloatArray:
    joint = np.asarray(weight, dtype=np.float64)
    if joint.shape != sizes:
        raise ValueError(f"weights of {names} must have shape {sizes}; got {joint.shape}")
    if not (np.isfinite(joint).all() and (joint >= 0).all() and joint.sum() > 0):
        raise ValueError(f"weights of {names} must be finite, not negative, and not all 0")
    return joint / joint.sum()
