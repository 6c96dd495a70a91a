"""What functions compiled by numba do to an interrupt, and where their counters begin.

The first call in a new installation waits until they are compiled, and much of that is for a few expressions. In a
compiled function an assignment of one array to a slice of another takes 2 seconds (it may raise an error, whose message
is compiled as well), `max`, `sum`, `bincount` or `sort` of an array half a second each, a loop over numbers 0.02: so
these functions are loops, and what NumPy does as fast around them is left to NumPy.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.extending import register_jitable

Function = TypeVar("Function", bound=Callable[..., Any])

# A plain 0 is a constant: numba would compile each function that takes it once for that, and again for other numbers.
START = cast("int", np.int64(0))


@contextmanager
def interruptible() -> Iterator[None]:
    """Around calls of compiled functions: a Ctrl-C during one arrives as a SystemError, which looks like a fault.

    Raises:
        KeyboardInterrupt: in its place.
    """
    try:
        yield
    except SystemError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise


def kernel(**options: Any) -> Callable[[Function], Function]:
    """Compile a function that Python calls, once in an installation.

    No references are counted in it: what it is handed stays, and it makes no array.
    """
    options |= {"cache": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, "_nrt": False}
    return cast(Callable[[Function], Function], numba.njit(**options))


def helper(**options: Any) -> Callable[[Function], Function]:
    """Compile a function that kernels call: once by itself, and once more with each of them."""
    return register_jitable(no_cfunc_wrapper=True, **options)
