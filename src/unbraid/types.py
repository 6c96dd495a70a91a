"""Array and table types, the words for kinds of factors, and how progress is told."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from pandas import DataFrame
else:
    DataFrame = Any  # pandas is an extra, and takes long to load

ArrayLike: TypeAlias = npt.ArrayLike
BoolArray: TypeAlias = npt.NDArray[np.bool_]
FloatArray: TypeAlias = npt.NDArray[np.floating[Any]]
IntArray: TypeAlias = npt.NDArray[np.integer[Any]]
UInt8Array: TypeAlias = npt.NDArray[np.uint8]

Kind: TypeAlias = Literal["categorical", "ordinal", "continuous", "cyclic"]
KINDS: tuple[Kind, ...] = get_args(Kind)

Progress: TypeAlias = Callable[[str, int, int], None]  # what is done now, done, all
