"""Some of the images of a dataset: the others are kept from a model, which is later asked about them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, TypeAlias

import numpy as np

from unbraid.base.arguments import generator
from unbraid.base.types import BoolArray, FloatArray, IntArray, Kind, UInt8Array
from unbraid.data import FactorSpace, FactorTable, Space, predicate
from unbraid.data.image_dataset import FactorDataset, ImageShape, check_index
from unbraid.data.space import Values

Without: TypeAlias = str | Mapping[str, int] | Sequence[str | Mapping[str, int]]


@dataclass(frozen=True, eq=False)
class SubsetDataset:
    """The images of a dataset at some positions, counted anew from 0.

    Their factors are those of the whole, and so fill no grid; where a grid loses whole levels only, the table of the
    factors knows the `complete` grid of the others. Factors that have one value in all images are left out, as nothing
    can be measured against what does not vary.

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
        return self._space  # found once; type checkers do not take a cached property for one

    @cached_property
    def _space(self) -> FactorTable:
        whole = self.dataset.space
        table = whole.factors(self.positions)
        complete = _grid_of_levels(whole, self.positions, table) if isinstance(whole, FactorSpace) else None
        varying = np.flatnonzero((table != table[:1]).any(axis=0))
        if not len(varying):
            return FactorTable(whole.names, whole.kinds, table, levels=whole.levels, values=_values_of_table(whole))
        names, kinds = zip(*((whole.names[column], whole.kinds[column]) for column in varying), strict=True)
        levels = tuple(whole.levels[column] for column in varying) if whole.levels else ()
        around = tuple(whole.turns[column] if whole.kinds[column] == "cyclic" else 0 for column in varying)
        values = _values_of_table(whole)
        values = tuple(values[column] for column in varying) if values else ()
        return FactorTable(names, kinds, table[:, varying], complete, levels, around, values)

    @property
    def image_shape(self) -> ImageShape:
        return self.dataset.image_shape

    def __len__(self) -> int:
        return len(self.positions)

    def images(self, index: IntArray) -> UInt8Array:
        return self.dataset.images(self.positions[check_index(index, len(self))])


def first_of(space: Space, n_images: int) -> FactorTable:
    """The factors of the first so many images."""
    table = space.factors(np.arange(n_images))
    return FactorTable(space.names, space.kinds, table, None, space.levels, space.turns, _values_of_table(space))


def _values_of_table(space: Space) -> tuple[Values, ...]:
    """Of a table; parts of a grid are asked for by level, as the grid itself."""
    return space.values if isinstance(space, FactorTable) else ()


def _grid_of_levels(whole: FactorSpace, positions: IntArray, table: FloatArray | IntArray) -> FactorSpace | None:
    """The grid that these images of a grid are, in its order; None where they are none, or a single image.

    Its levels are counted anew. A cyclic factor is ordinal there, unless what is left of it is evenly spaced around.
    """
    levels = [np.unique(column) for column in table.T]
    sizes = tuple(map(len, levels))
    if len(table) < 2 or prod(sizes) != len(table):
        return None
    places = np.unravel_index(np.arange(len(table)), sizes)
    grid = np.stack([column[place] for column, place in zip(levels, places, strict=True)], axis=1)
    if not np.array_equal(whole.index(grid), positions):
        return None
    varying = [column for column, size in enumerate(sizes) if size > 1]
    values = whole.values or tuple(tuple(map(float, range(size))) for size in whole.sizes)
    return FactorSpace(
        tuple(whole.names[column] for column in varying),
        tuple(sizes[column] for column in varying),
        tuple(_kind_of_levels(whole, column, levels[column]) for column in varying),
        tuple(tuple(values[column][level] for level in levels[column]) for column in varying),
    )


def _kind_of_levels(whole: FactorSpace, column: int, levels: IntArray) -> Kind:
    kind, turn = whole.kinds[column], whole.turns[column]
    if kind != "cyclic":
        return kind
    around = np.unique(levels % turn)
    gaps = np.diff(np.append(around, around[0] + turn))
    return "cyclic" if len(set(gaps.tolist())) == 1 else "ordinal"


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
        without: a condition on the factors such as "shape == 1 and scale > 3" (see `unbraid.data.predicate`):
            levels on a grid; elsewhere values, or levels of a factor whose levels are text, counted in the order of
            the alphabet; {"shape": 1, "scale": 2} for the images with all of these levels, counted from 0;
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
        return _meeting(_values(space), predicate(part, space.names), part)
    if not isinstance(part, Mapping) or not part:
        raise _unreadable(part)
    if "random" in part and part.keys() <= {"random", "seed"}:
        return _random(space, part["random"], part.get("seed", 0))
    if not all(isinstance(name, str) for name in part):
        raise _unreadable(part)
    columns = [space.column(name) for name in part]
    if not all(isinstance(level, int | float | np.number) for level in part.values()):
        raise _unreadable(part)
    levels = np.asarray(space.factors(np.arange(len(space))), dtype=np.float64)
    return _meeting(levels, lambda factors: (factors[:, columns] == list(part.values())).all(axis=1), part)


def _values(space: Space) -> FloatArray:
    """What conditions compare: levels of a grid; of a table values, but for levels that are text."""
    factors = np.array(space.factors(np.arange(len(space))), dtype=np.float64)
    for column, values in enumerate(_values_of_table(space)):
        if values and not any(isinstance(value, str) for value in values):
            factors[:, column] = np.array(values, dtype=np.float64)[factors[:, column].astype(np.int64)]
    return factors


def _meeting(factors: FloatArray, holds: Callable[[FloatArray], BoolArray], what: Any) -> IntArray:
    met = np.flatnonzero(holds(factors))
    if not len(met):
        raise ValueError(f"without {what!r}: there is no such image")
    return met


def _random(space: Space, count: Any, seed: Any) -> IntArray:
    whole = all(isinstance(number, int | np.integer) and not isinstance(number, bool) for number in (count, seed))
    if not whole or not 0 < count < len(space) or seed < 0:
        raise ValueError(
            f"without: random must be 1 to {len(space) - 1} images, and seed 0 or more; got {count}, {seed}"
        )
    return np.sort(generator(seed).permutation(len(space))[:count])


def _unreadable(what: Any) -> ValueError:
    return ValueError(
        "without must be a condition such as 'shape == 1 and scale > 3', levels such as {shape: 1, scale: 2}, "
        f"{{random: 100, seed: 0}}, or a list of such; got {what!r}"
    )
