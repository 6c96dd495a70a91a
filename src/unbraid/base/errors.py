"""The base of every exception that this package defines.

A wrong argument is a ValueError or TypeError, a file that is not there an OSError, as everywhere in Python. Where a
caller may want to tell one of them apart, it has a class of its own, and that class is an UnbraidError as well.
"""

__all__ = ["ModelsFailed", "UnbraidError"]


class UnbraidError(Exception):
    """Base of the exceptions that this package defines; each is a ValueError or an OSError too."""


class ModelsFailed(UnbraidError, ValueError):
    """Models that could not be used: a line for each, or one where `every` model failed for the same reason."""

    def __init__(self, failed: dict[str, str], *, every: bool) -> None:
        self.every = every
        self.lines = [reason if path in reason else f"{path}: {reason}" for path, reason in failed.items()]
        if every and len({reason.replace(path, "") for path, reason in failed.items()}) == 1 < len(failed):
            self.lines = [f"{self.lines[0]} (and {len(failed) - 1} more alike)"]
        super().__init__("; ".join(self.lines))
