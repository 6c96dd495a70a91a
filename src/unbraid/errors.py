"""The base of every exception that this package defines.

A wrong argument is a ValueError or TypeError, a file that is not there an OSError, as everywhere in Python. Where a
caller may want to tell one of them apart, it has a class of its own, and that class is an UnbraidError as well.
"""

__all__ = ["UnbraidError"]


class UnbraidError(Exception):
    """Base of the exceptions that this package defines; each is a ValueError or an OSError too."""
