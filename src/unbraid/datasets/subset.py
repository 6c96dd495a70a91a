"""Some of the images of a dataset: the others are kept from a model, which is later asked about them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from unbraid.datasets.base import FactorDataset, ImageShape, check_index
from unbraid.factors import FactorTable, Space, predicate, split_at_random
from unbraid.types import BoolArray, FloatArray, IntArray, UInt8Array

Without: TypeAlias = str | Mapping[str, int] | Sequence[str | Mapping[str, int]]


@dataclass(frozen=True, eq=False)
class SubsetDataset:
    """The images of a dataset at some positions, counted anew from 0; their factors fill no grid.

    Those that have one value in all of them are left out, as nothing can be measured against what does not vary.

    Args:
        dataset: any.
        positions: (n,) of the images to keep, in the order they are to have.

    Raises:
        ValueError: a position is outside the dataset.
    """

    dataset: FactorDataset
    positions: IntArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "positions", check_index(self.positions, len(self.dataset)))

    def __reduce__(self) -> tuple[Any, ...]:
        return SubsetDataset, (self.dataset, self.positions)  # the table is made again from these

    @property
    def space(self) -> FactorTable:
        return self._space

    @cached_property
    def _space(self) -> FactorTable:
        whole = self.dataset.space
        table = whole.factors(self.positions)
        kept = np.flatnonzero((table != table[:1]).any(axis=0))
        if not len(kept):
            return FactorTable(whole.names, whole.kinds, table)
        names, kinds = zip(*((whole.names[column], whole.kinds[column]) for column in kept), strict=True)
        return FactorTable(names, kinds, table[:, kept])

    @property
    def image_shape(self) -> ImageShape:
        return self.dataset.image_shape

    def __len__(self) -> int:
        return len(self.positions)

    def images(self, index: IntArray) -> UInt8Array:
        return self.dataset.images(self.positions[check_index(index, len(self))])


def leave_out(dataset: FactorDataset, without: Without) -> SubsetDataset:
    """The dataset less the images that `left_out` names.

    Example:
        >>> from unbraid.datasets import load
        >>> square = load("square", positions=8)
        >>> len(square), len(leave_out(square, "x == 0 and y < 4"))
        (64, 60)
    """
    return SubsetDataset(dataset, np.flatnonzero(~left_out(dataset.space, without)))


def left_out(space: Space, without: Without) -> BoolArray:
    """(n_images,) whether each image is left out.

    Args:
        space: of the whole dataset.
        without: a condition on the factors such as "shape == 1 and scale > 3" (levels on a grid, values elsewhere; see
            `unbraid.factors.predicate`); {"shape": 1, "scale": 2} for the images with all of these levels;
            {"random": how many, "seed": a number} for images at random, the seed being 0 where it is not given; or a
            list of such, each of them counted on the whole dataset.

    Raises:
        ValueError: something else, a condition that no image meets, or no image is left.
    """
    parts = [without] if isinstance(without, str | Mapping) else without
    if not isinstance(parts, Sequence) or not parts:
        raise _unreadable(without)
    mask = np.zeros(len(space), dtype=bool)
    for part in parts:
        mask[_positions(space, part)] = True
    if mask.all():
        raise ValueError(f"without {without!r} leaves none of {len(space)} images")
    return mask


def _positions(space: Space, part: Any) -> IntArray:
    if isinstance(part, str):
        return _meeting(space, predicate(part, space.names), part)
    if not isinstance(part, Mapping) or not part:
        raise _unreadable(part)
    if "random" in part and part.keys() <= {"random", "seed"}:
        return _random(space, part["random"], part.get("seed", 0))
    columns = [space.column(name) for name in part]
    if not all(isinstance(level, int | float | np.number) for level in part.values()):
        raise _unreadable(part)
    return _meeting(space, lambda factors: (factors[:, columns] == list(part.values())).all(axis=1), part)


def _meeting(space: Space, holds: Callable[[FloatArray], BoolArray], what: Any) -> IntArray:
    met = np.flatnonzero(holds(np.asarray(space.factors(np.arange(len(space))), dtype=np.float64)))
    if not len(met):
        raise ValueError(f"without {what!r}: there is no such image")
    return met


def _random(space: Space, count: Any, seed: Any) -> IntArray:
    whole = all(isinstance(number, int | np.integer) and not isinstance(number, bool) for number in (count, seed))
    if not whole or not 0 < count < len(space) or seed < 0:
        raise ValueError(
            f"without: random must be 1 to {len(space) - 1} images, and seed 0 or more; got {count}, {seed}"
        )
    return split_at_random(space, count / len(space), seed=seed).test


def _unreadable(what: Any) -> ValueError:
    return ValueError(
        "without must be a condition such as 'shape == 1 and scale > 3', levels such as {shape: 1, scale: 2}, "
        f"{{random: 100, seed: 0}}, or a list of such; got {what!r}"
    )
