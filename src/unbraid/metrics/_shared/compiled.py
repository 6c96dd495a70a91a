"""What functions compiled by numba do to an interrupt, and where their counters begin.

The first call in a new installation waits until they are compiled, and much of that is for a few expressions. In a
compiled function an assignment of one array to a slice of another takes 2 seconds (it may raise an error, whose message
is compiled as well), `max`, `sum`, `bincount` or `sort` of an array half a second each, a loop over numbers 0.02: so
these functions are loops, and what NumPy does as fast around them is left to NumPy.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import numpy as np

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
