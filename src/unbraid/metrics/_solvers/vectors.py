"""Vector instructions of compiled functions: as wide as the processor has them, on numbers that lie in line."""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.extending import intrinsic

from unbraid.base.types import FloatArray

LINE = 16  # numbers of float32 in a line of the cache


def _widest_vectors(_: Any) -> Any:
    def attributed(context: Any, builder: Any, *_: Any) -> Any:
        # llvmlite's own `add` knows a fixed list, which lacks this attribute of LLVM.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return numba.types.void(), attributed


# Called in a compiled function: its loops use the widest vectors that the processor has. On many processors with
# AVX-512 the compiler keeps to half of that, which costs half of the speed where all is products of matrices.
widest_vectors: Callable[..., None] = intrinsic(_widest_vectors)


def aligned(rows: int, columns: int) -> FloatArray:
    """(rows, columns) float32, not set, from the start of a line of the cache on: no vector lies in two lines."""
    numbers = np.empty(rows * columns + LINE, dtype=np.float32)
    first = -(numbers.ctypes.data // 4) % LINE
    return numbers[first : first + rows * columns].reshape(rows, columns)
