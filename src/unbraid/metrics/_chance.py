"""What codes that know nothing of the factors are expected to score, and the note for where a score cannot tell.

A statement of chance is a function of the checked input. It reads the number of rows and codes, and codes and factors
each for themselves, never which code belongs to which level. The first line of its docstring is what the documentation
prints. Where noise is expected to stray further from it than the tolerance of the table, the result says so:
a note made by `unreadable`.
"""

import inspect
from collections.abc import Callable

from unbraid.metrics._inputs import Inputs

Chance = Callable[[Inputs], float]
UNREADABLE = "cannot be read"


def nought(inputs: Inputs) -> float:
    """About 0."""
    return 0.0


def one(inputs: Inputs) -> float:
    """About 1."""
    return 1.0


def unreadable(why: str) -> str:
    """The note of a score that noise could have as well: too few rows, or a definition that leaves no choice."""
    return f"{UNREADABLE} at this size: {why}"


def chance_in_words(chance: Chance | None) -> str:
    """What the documentation says that noise scores."""
    if chance is None:
        return "depends on codes and factors"
    line = (inspect.getdoc(chance) or "").splitlines()[0].removesuffix(".")
    return line[0].lower() + line[1:]
