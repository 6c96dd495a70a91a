"""What the supervised families share: checks of factors, and optimizer steps that take turns."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from unbraid.data import FactorSpace, FactorTable, Space, cyclic_columns
from unbraid.families.family import Context


def some_factors(space: Space) -> tuple[str, ...]:
    """Names of the factors.

    Raises:
        ValueError: there are none.
    """
    if not space.names:
        raise ValueError("its images have no factors, and it needs supervision by factors")
    return space.names


def grid_of(space: Space) -> FactorSpace:
    """The space, or the complete grid that a table of factors is.

    Raises:
        ValueError: every image has factors of its own, or none.
    """
    some_factors(space)
    grid = space.complete if isinstance(space, FactorTable) else space
    if grid is None:
        raise ValueError("its images are no full grid of factors, so that images cannot be paired by their factors")
    return grid


def cyclic_of(space: Space) -> tuple[str, ...]:
    """Names of the cyclic factors of a full grid.

    Raises:
        ValueError: no full grid, or no factor is cyclic.
    """
    grid = grid_of(space)
    return tuple(grid.names[column] for column in cyclic_columns(grid))


def named_factors(space: Space, text: str) -> tuple[str, ...]:
    """Names of the factors that `text` selects, each with two levels at least.

    Args:
        space: of the dataset.
        text: names with + between them; "categorical" for all of that kind, "all" for all that have levels.

    Raises:
        ValueError: an unknown name, a name given twice, a factor without levels, or nothing is left.
    """
    levels = dict(zip(some_factors(space), space.sizes, strict=True))
    if text in ("all", "categorical"):
        kinds = dict(zip(space.names, space.kinds, strict=True))
        names = tuple(name for name in levels if levels[name] > 1 and text in ("all", kinds[name]))
        if not names:
            property_ = "has levels" if text == "all" else "is categorical"
            raise ValueError(f"none of its factors {', '.join(levels)} {property_}")
        return names
    names = tuple(name.strip() for name in text.split("+"))
    if len(set(names)) < len(names):
        raise ValueError(f"factors must differ from each other; got {text}")
    for name in names:
        if levels[space.names[space.column(name)]] < 2:
            raise ValueError(f"factor {name!r} has no two levels to tell apart")
    return names


@contextmanager
def by_hyperparameters(**names: str) -> Iterator[None]:
    """ValueErrors of a function that draws images name the hyperparameter for an argument, as in n="pairs"."""
    try:
        yield
    except ValueError as error:
        argument, must, condition = str(error).replace(", where not None,", "").partition(" must ")
        if not must:
            raise
        argument = re.sub(r"\w+", lambda word: names.get(word[0], word[0]), argument)
        raise ValueError(f"{argument}{must}{condition}") from None


Lengths = Callable[[Context], tuple[int, ...]]


def alternating(lengths: Lengths, index: int) -> Callable[[int, Context], int | None]:
    """`OptimizerStep.turn` of steps that take turns, one pass each.

    Args:
        lengths: moves of each pass of a round, in order; 0 leaves one out.
        index: of this optimizer step's pass in the round.
    """

    def turn(step: int, context: Context) -> int | None:
        passes = lengths(context)
        before, length = sum(passes[:index]), passes[index]
        round_, within = divmod(step, sum(passes))
        return round_ * length + within - before if before <= within < before + length else None

    return turn
