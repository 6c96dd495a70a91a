"""The grid of ground-truth factors: names, sizes, kinds, and the map between index and factors."""

from dataclasses import dataclass
from math import prod

import numpy as np

from unbraid.types import KINDS, IntArray, Kind


@dataclass(frozen=True)
class FactorSpace:
    """Every combination of the factors, counted in C order: the last factor varies fastest.

    Args:
        names: one name per factor.
        sizes: number of levels of each factor, at least 1.
        kinds: "categorical", "ordinal", "continuous" or "cyclic" for each factor.

    Raises:
        ValueError: the three differ in length, a size is below 1, or a kind is unknown.

    Example:
        >>> space = FactorSpace(("shape", "hue"), (2, 3), ("categorical", "cyclic"))
        >>> len(space), space.factors([4]).tolist(), space.index([[1, 1]]).tolist()
        (6, [[1, 1]], [4])
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    kinds: tuple[Kind, ...]

    def __post_init__(self) -> None:
        if not len(self.names) == len(self.sizes) == len(self.kinds):
            raise ValueError(
                "names, sizes and kinds must have one entry per factor; "
                f"got {len(self.names)}, {len(self.sizes)} and {len(self.kinds)}"
            )
        for name, size, kind in zip(self.names, self.sizes, self.kinds, strict=True):
            if size < 1:
                raise ValueError(f"factor {name!r} must have at least one level; got size {size}")
            if kind not in KINDS:
                raise ValueError(f"factor {name!r} has unknown kind {kind!r}; choose from {', '.join(KINDS)}")

    def __len__(self) -> int:
        return prod(self.sizes)

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
