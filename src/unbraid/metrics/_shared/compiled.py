"""What functions compiled by numba do to an interrupt."""

from collections.abc import Iterator
from contextlib import contextmanager


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
