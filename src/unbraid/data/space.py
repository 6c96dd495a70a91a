"""Ground-truth factors: a grid of every combination (FactorSpace), or a list of samples (FactorTable).

Both answer alike to `names`, `sizes`, `kinds`, `len` and `factors(index)`; only a grid can say where a
combination stands (`index`).
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from math import pi, prod
from typing import Any, TypeAlias

import numpy as np

from unbraid.base.arguments import check_names, check_whole, list_of
from unbraid.base.printable import printable
from unbraid.base.rounding import MOST_ROUNDED, rounded_by
from unbraid.base.suggest import suggestion
from unbraid.base.types import KIND_WORDS, KINDS, BoolArray, FloatArray, IntArray, Kind

Values: TypeAlias = tuple[float | str, ...]


@dataclass(frozen=True)
class FactorSpace:
    """Every combination of the factors, counted in C order: the last factor varies fastest.

    Args:
        names: one name per factor.
        sizes: number of levels of each factor, at least 1.
        kinds: "categorical", "ordinal", "continuous" or "cyclic" for each factor.
        values: what the levels of each factor stand for (0.5 for a scale, "heart" for a shape); None where the
            levels stand for themselves. Metrics read levels, never these.

    Raises:
        ValueError: the four differ in length, names repeat, a size is below 1, a kind is unknown, or a factor has
            another number of values than levels.

    Example:
        >>> space = FactorSpace(("shape", "hue"), (2, 3), ("categorical", "cyclic"))
        >>> len(space), space.factors([4]).tolist(), space.index([[1, 1]]).tolist()
        (6, [[1, 1]], [4])
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    kinds: tuple[Kind, ...]
    values: tuple[Values, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(printable(str(name)) for name in list_of("names", self.names)))
        object.__setattr__(self, "kinds", list_of("kinds", self.kinds))
        if not len(self.names) == len(self.sizes) == len(self.kinds):
            raise ValueError(
                "names, sizes and kinds must have one entry per factor; "
                f"got {len(self.names)}, {len(self.sizes)} and {len(self.kinds)}"
            )
        check_names_and_kinds(self.names, self.kinds)
        named = zip(self.names, self.sizes, strict=True)
        sizes = tuple(check_whole(f"size of factor {name!r}", size, 1) for name, size in named)
        object.__setattr__(self, "sizes", sizes)
        if prod(sizes) > sys.maxsize:
            raise ValueError(f"sizes must multiply to at most {sys.maxsize} combinations; got {self.sizes}")
        if self.values is not None:
            object.__setattr__(self, "values", _plain(self.values))
        if self.values is not None and tuple(map(len, self.values)) != self.sizes:
            raise ValueError(
                f"values must have one entry per level; sizes are {self.sizes}, got {tuple(map(len, self.values))}"
            )

    def __len__(self) -> int:
        return prod(self.sizes)

    @property
    def levels(self) -> tuple[tuple[str, ...], ...]:
        """Names of the levels of each factor, of level 0 first; none where its values are numbers."""
        return tuple(named_levels(values) for values in self.values or ())

    @property
    def turns(self) -> tuple[int, ...]:
        """Levels once around: as many as there are, less one of a cyclic factor whose last level is its first again.

        That is so where its values span a whole turn, 2 pi or 360, as those of the 40 orientations of dSprites do.
        """
        return tuple(size - self._closed(column) for column, size in enumerate(self.sizes))

    def _closed(self, column: int) -> bool:
        values = () if self.values is None else self.values[column]
        return self.kinds[column] == "cyclic" and spans_a_turn(values)

    def column(self, name: str) -> int:
        """Position of a factor among the columns.

        Raises:
            ValueError: no factor has this name.
        """
        return _column(self.names, name)

    def factors(self, index: IntArray | list[int]) -> IntArray:
        """Levels (n, n_factors) at each position (n,) of the grid."""
        return np.stack(np.unravel_index(np.asarray(index), self.sizes), axis=-1)

    def index(self, factors: IntArray | list[list[int]]) -> IntArray:
        """Position (n,) in the grid of each row of levels (n, n_factors)."""
        columns = np.moveaxis(np.asarray(factors), -1, 0)
        return np.asarray(np.ravel_multi_index(tuple(columns), self.sizes))

    def grid(self) -> IntArray:
        """All combinations, (len(self), n_factors), in the order of their index."""
        return self.factors(np.arange(len(self)))


@dataclass(frozen=True, eq=False)
class FactorTable:
    """Factors of samples that fill no grid: drawn at random, or labels of photographs.

    Args:
        names: one name per factor.
        kinds: kind of each factor, as in FactorSpace.
        table: (n_samples, n_factors), whole-numbered levels from 0, or real where the kind is "continuous".
        complete: the same images as a grid, in the same order, where they have every combination of the levels that
            are left of a larger grid; its levels are counted anew.
        levels: names of the levels of each factor, of level 0 first; none where the numbers speak for themselves.
        around: what `turns` gives of the larger set that these are of: levels of each factor, once around where it is
            cyclic; 0 where they are as many as are here.
        values: what the levels of each factor stand for, of level 0 first; none where the numbers speak for themselves.
            Metrics read levels, never these.

    Raises:
        ValueError: table holds no numbers, the shapes disagree, names repeat, a kind is unknown, a discrete factor
            holds anything but whole numbers from 0, or levels, around or values are not one per factor, or fewer than
            there are levels.

    Example:
        >>> table = FactorTable(("hue",), ("continuous",), np.array([[0.25], [0.75]]))
        >>> len(table), table.sizes, table.factors([1]).tolist()
        (2, (0,), [[0.75]])
    """

    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    table: FloatArray | IntArray
    complete: FactorSpace | None = None
    levels: tuple[tuple[str, ...], ...] = ()
    around: tuple[int, ...] = ()
    values: tuple[Values, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(printable(str(name)) for name in list_of("names", self.names)))
        object.__setattr__(self, "kinds", list_of("kinds", self.kinds))
        object.__setattr__(self, "around", tuple(map(int, self.around)))
        object.__setattr__(self, "values", _plain(self.values))
        object.__setattr__(self, "table", np.asarray(self.table))
        if self.table.dtype.kind not in "biuf":
            raise ValueError(f"table must hold numbers, levels or real values; got dtype {self.table.dtype}")
        if self.table.ndim != 2 or not len(self.names) == len(self.kinds) == self.table.shape[1]:
            raise ValueError(
                "names, kinds and the columns of table must be one per factor; "
                f"got {len(self.names)}, {len(self.kinds)} and shape {self.table.shape}"
            )
        check_names_and_kinds(self.names, self.kinds)
        if not np.isfinite(self.table).all():
            row, column = np.argwhere(~np.isfinite(self.table))[0]
            raise ValueError(f"factor {self.names[column]!r} must be finite; row {row} is {self.table[row, column]}")
        for name, column in zip(self.names, self.table.T, strict=True):
            bad = np.flatnonzero((column < 0) | (column != np.rint(column)))
            if self.kinds[self.column(name)] != "continuous" and len(bad):
                raise ValueError(
                    f"factor {name!r} must hold whole numbers from 0; row {bad[0]} is {column[bad[0]]:g}. "
                    "Real values are of kind 'continuous'"
                )
        for what, entries in (("levels", self.levels), ("around", self.around), ("values", self.values)):
            if entries and len(entries) != len(self.names):
                raise ValueError(f"{what} must have one entry per factor ({len(self.names)}); got {len(entries)}")
        for entries in (self.levels, self.values):
            for name, size, entry in zip(self.names, self.sizes if entries else (), entries, strict=False):
                if entry and len(entry) < size:
                    raise ValueError(f"factor {name!r} has {size} levels, of which only {len(entry)} are said")

    def __len__(self) -> int:
        return len(self.table)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of levels of each factor; 0 where it is continuous, and so has none."""
        discrete = [kind != "continuous" for kind in self.kinds]
        top = self.table.max(axis=0) if len(self) else np.full(len(self.names), -1)
        return tuple(int(level) + 1 if is_discrete else 0 for level, is_discrete in zip(top, discrete, strict=True))

    @property
    def turns(self) -> tuple[int, ...]:
        """Levels once around, as `FactorSpace.turns`: those of the set that these are of, where that is known."""
        known = self.around or (0,) * len(self.names)
        return tuple(turn or size for turn, size in zip(known, self.sizes, strict=True))

    def column(self, name: str) -> int:
        """Position of a factor among the columns.

        Raises:
            ValueError: no factor has this name.
        """
        return _column(self.names, name)

    def factors(self, index: IntArray | BoolArray | list[int]) -> FloatArray | IntArray:
        """Levels or values (n, n_factors) of these samples."""
        return self.table[np.asarray(index)]


Space: TypeAlias = FactorSpace | FactorTable


def check_grid(space: Space) -> None:
    """Raises ValueError for samples, which do not hold every combination of the factors."""
    if not isinstance(space, FactorSpace):
        raise ValueError("this needs a full grid of factors, a FactorSpace; these are samples, a FactorTable")


def _plain(values: Iterable[Iterable[Any]]) -> tuple[Values, ...]:
    """Numbers of NumPy as those of Python, which JSON can hold."""
    return tuple(tuple(each.item() if isinstance(each, np.generic) else each for each in one) for one in values)


def level_names(space: Space) -> tuple[tuple[str, ...], ...]:
    """What the levels of each factor are called: of a table the numbers that they stand for, too, unless 0, 1, 2, ...

    Levels of a grid that stand for numbers have no names; they are counted, as conditions on them do.
    """
    values = space.values if isinstance(space, FactorTable) else ()
    if not values:
        return space.levels
    named = space.levels or ((),) * len(space.names)
    return tuple(
        column_names or _numbers_as_names(column_values)
        for column_names, column_values in zip(named, values, strict=True)
    )


def _numbers_as_names(values: Values) -> tuple[str, ...]:
    counted = values == tuple(range(len(values)))
    return () if counted else tuple(str(value).removesuffix(".0") for value in values)


def level_text(space: Space, row: IntArray | FloatArray, columns: Iterable[int]) -> str:
    """The levels of one sample in words: `shape heart, scale 2`."""
    names = {k: space.levels[k] if space.levels else () for k in columns}
    texts = [names[k][int(row[k])] if names[k] else f"{row[k]:g}" for k in names]
    return ", ".join(f"{space.names[k]} {text}" for k, text in zip(names, texts, strict=True))


def spans_a_turn(values: Values) -> bool:
    """Whether the values go once around, 2 pi or 360, so that the last of them is the first again.

    Rounded ones, 0 to 6.283, must be evenly spaced as far as their digits tell.
    """
    if len(values) < 3 or any(isinstance(value, str) for value in values):
        return False
    numbers = np.array(values, dtype=np.float64)
    span, rounding = numbers[-1] - numbers[0], rounded_by(numbers)
    for turn in (2 * pi, 360):
        if abs(abs(span) - turn) < 1e-6 * turn:
            return True
        step = turn / (len(numbers) - 1)
        off = numbers - np.copysign(step, span) * np.arange(len(numbers))
        # The first may be rounded, too. A whole unit is more than that: 0, 90, 180, 270, 359 do not close.
        if rounding <= MOST_ROUNDED * step and np.ptp(off) < 2 * rounding * (1 - 1e-6):
            return True
    return False


def named_levels(values: Values) -> tuple[str, ...]:
    """What the levels are called, where any of them is text."""
    return tuple(printable(str(value)) for value in values) if any(isinstance(value, str) for value in values) else ()


def check_names_and_kinds(names: tuple[str, ...], kinds: tuple[Kind, ...]) -> None:
    """Raises ValueError for names of factors that are too long or not different, and for an unknown kind."""
    check_names("names", names)
    if len(set(names)) < len(names):
        raise ValueError(f"names must differ from each other; got {list(names)}")
    for name, kind in zip(names, kinds, strict=True):
        if kind not in KINDS:
            hint = suggestion(str(kind), KINDS, words=KIND_WORDS)
            raise ValueError(f"factor {name!r} has unknown kind {kind!r}; {hint}")


def _column(names: tuple[str, ...], name: str) -> int:
    if name not in names:
        raise ValueError(f"no factor {name!r}; {suggestion(name, names)}")
    return names.index(name)
