"""Vector instructions of compiled functions: as wide as the processor has them, on numbers that lie in line."""

from typing import Any

import numpy as np

from unbraid.base.types import FloatArray
from unbraid.metrics._shared.compiled import declarations

LINE = 16  # numbers of float32 in a line of the cache


def widest_vectors() -> None:
    """Called in a compiled function: its loops use the widest vectors that the processor has.

    On many processors with AVX-512 the compiler keeps to half of that, which costs half of the speed where all is
    products of matrices.
    """


def _declare() -> None:
    from numba import types
    from numba.extending import lower_builtin, type_callable

    def attributed(context: Any, builder: Any, *_: Any) -> Any:
        # llvmlite's own `add` knows a fixed list, which lacks this attribute of LLVM.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    type_callable(widest_vectors)(lambda _: lambda: types.void)
    lower_builtin(widest_vectors)(attributed)


declarations.append(_declare)


def aligned(rows: int, columns: int) -> FloatArray:
    """(rows, columns) float32, not set, from the start of a line of the cache on: no vector lies in two lines."""
    numbers = np.empty(rows * columns + LINE, dtype=np.float32)
    first = -(numbers.ctypes.data // 4) % LINE
    return numbers[first : first + rows * columns].reshape(rows, columns)
