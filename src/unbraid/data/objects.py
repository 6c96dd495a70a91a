"""Whole objects: one combination of the factors that are not cyclic, in every combination of those that are."""

from math import prod

import numpy as np

from unbraid.base.arguments import check_whole, generator
from unbraid.base.types import IntArray
from unbraid.data.space import FactorSpace, Space, check_grid


def cyclic_columns(space: Space) -> list[int]:
    """Columns of the cyclic factors.

    Raises:
        ValueError: there is none.
    """
    columns = [column for column, kind in enumerate(space.kinds) if kind == "cyclic"]
    if not columns:
        raise ValueError(f"none of the factors {', '.join(space.names)} is cyclic; this needs a cyclic factor")
    return columns


def all_objects(space: FactorSpace, *, seed: int = 0) -> IntArray:
    """Levels (n_objects, n_factors) of each object in random order, cyclic factors at 0.

    Raises:
        ValueError: no factor is cyclic.
    """
    check_grid(space)
    cyclic = cyclic_columns(space)
    standing = [1 if k in cyclic else size for k, size in enumerate(space.sizes)]
    drawn = generator(seed).permutation(prod(standing))
    return np.stack(np.unravel_index(drawn, standing), axis=-1)


def turned(space: FactorSpace, objects: IntArray) -> IntArray:
    """Positions (n_objects * n_turns,) of objects in every combination of the cyclic factors, object by object.

    Args:
        space: of the dataset.
        objects: (n_objects, n_factors) levels; those of cyclic factors do not count.

    Raises:
        ValueError: no factor is cyclic.

    Example:
        >>> space = FactorSpace(("shape", "hue"), (2, 3), ("categorical", "cyclic"))
        >>> turned(space, np.array([[1, 0]])).tolist()
        [3, 4, 5]
    """
    check_grid(space)
    cyclic = cyclic_columns(space)
    turns = np.indices([space.sizes[k] for k in cyclic]).reshape(len(cyclic), -1).T
    factors = np.repeat(objects, len(turns), axis=0)
    factors[:, cyclic] = np.tile(turns, (len(objects), 1))
    return space.index(factors)


def whole_objects(space: FactorSpace, n_images: int, *, seed: int = 0) -> IntArray:
    """Positions (n,), rising, of as many whole objects as there is room for: all of them, or some that are drawn.

    Args:
        space: of the dataset.
        n_images: the room. However little it is, there are so many objects that each factor takes two levels.
        seed: same seed, same objects.

    Raises:
        ValueError: no factor is cyclic.

    Example:
        >>> space = FactorSpace(("shape", "hue"), (90, 64), ("categorical", "cyclic"))
        >>> len(whole_objects(space, 1000)) / 64
        15.0
    """
    check_whole("n_images", n_images, 0)
    objects = all_objects(space, seed=seed)
    if len(space) <= n_images:
        return np.arange(len(space))
    least = int((objects != objects[0]).argmax(axis=0).max()) + 1
    room = n_images // (len(space) // len(objects))
    return np.sort(turned(space, objects[: max(room, least)]))


def one_object(space: FactorSpace) -> IntArray:
    """Positions (n_turns,) of a single object: the last of each category, and the middle of what has an order.

    The first of some categories is often the most symmetric: a square, a cube.

    Raises:
        ValueError: no factor is cyclic.
    """
    kinds = zip(space.sizes, space.kinds, strict=True)
    levels = [size - 1 if kind == "categorical" else size // 2 for size, kind in kinds]
    return turned(space, np.array([levels]))
