"""Array and table types, the words for kinds of factors, and how progress is told."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from pandas import DataFrame
else:
    DataFrame = Any  # pandas takes long to load

ArrayLike: TypeAlias = npt.ArrayLike
BoolArray: TypeAlias = npt.NDArray[np.bool_]
FloatArray: TypeAlias = npt.NDArray[np.floating[Any]]
IntArray: TypeAlias = npt.NDArray[np.integer[Any]]
UInt8Array: TypeAlias = npt.NDArray[np.uint8]

Kind: TypeAlias = Literal["categorical", "ordinal", "continuous", "cyclic"]
KINDS: tuple[Kind, ...] = get_args(Kind)
# What others call them; for hints, as what is meant by "discrete" or "angle" is for the user to say.
KIND_WORDS: Mapping[str, tuple[Kind, ...]] = MappingProxyType(
    {
        **dict.fromkeys(
            ("nominal", "discrete", "class", "classes", "label", "category", "binary", "bool", "boolean", "text"),
            ("categorical",),
        ),
        **dict.fromkeys(("rank", "ranked", "ordered", "ordinary", "integer", "int", "count", "levels"), ("ordinal",)),
        **dict.fromkeys(("numeric", "numerical", "number", "real", "float", "interval", "ratio"), ("continuous",)),
        **dict.fromkeys(("circular", "angle", "angular", "periodic", "rotation", "phase", "degrees"), ("cyclic",)),
    }
)

# Rows of the codes against those of the factors: each by itself; whole groups, in which the order of rows stays; or all
# by the same distance.
Moved: TypeAlias = Literal["rows", "groups", "shift"]

Progress: TypeAlias = Callable[[str, int, int], None]  # what is done now, done, all
