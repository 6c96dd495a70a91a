"""Numbers that callers give, checked before compiled code sees them or memory is taken for them.

Each check raises ValueError in one line that names the argument, what was expected and what came.
"""

import reprlib
import sys
from collections.abc import Collection, Iterable, Sequence
from math import prod
from typing import Any

import numpy as np

LONGEST_NAME = 1000  # letters
MOST_BINS = 10_000  # a table of codes x bins x levels is held at once
MOST_NUMBERS = 100_000_000  # held at once of what is drawn: 800 MB


def check_whole(name: str, value: Any, least: int, most: int | None = None, *, why: str = "") -> int:
    """The value as an int from `least` to `most`; `why` says what the upper limit is for."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or int(value) < least or (most is not None and int(value) > most):
        limits = f"{least} or more" if most is None else f"{least} to {most}{why and f' ({why})'}"
        raise ValueError(f"{name} must be a whole number, {limits}; got {_shown(value)}")
    return int(value)


def check_number(
    name: str,
    value: Any,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
) -> float:
    """The value as a finite float within the limits."""
    value = value.item() if isinstance(value, np.generic) else value  # limits may lie outside a small type
    real = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if (
        not real
        or not abs(value) <= sys.float_info.max
        or (least is not None and value < least)
        or (above is not None and value <= above)
        or (most is not None and value > most)
        or (below is not None and value >= below)
    ):
        limits = (("at least", least), ("above", above), ("at most", most), ("below", below))
        expected = " and ".join(f"{word} {limit:g}" for word, limit in limits if limit is not None)
        raise ValueError(f"{name} must be a finite number{expected and f', {expected}'}; got {_shown(value)}")
    return float(value)


def check_choice(name: str, value: Any, choices: Collection[str]) -> None:
    """One of these words."""
    if not isinstance(value, str) or value not in choices:
        *first, last = map(repr, choices)
        raise ValueError(f"{name} must be {', '.join(first)} or {last}; got {_shown(value)}")


def check_entries(name: str, values: Any, n_factors: int) -> None:
    """One value for each factor, in a row; of whatever kind."""
    row = isinstance(values, Sequence | np.ndarray) and not isinstance(values, str | bytes) and np.ndim(values[:0]) == 1
    if not row or len(values) != n_factors:
        raise ValueError(f"{name} must have one entry per factor ({n_factors}); got {_shown(values)}")


def check_same_rows(codes: tuple[int, ...], factors: tuple[int, ...]) -> None:
    """Raises ValueError where the shapes of codes and factors, two axes each, differ in their rows."""
    if codes[0] == factors[0]:
        return
    hint = " Factors are (n_samples, n_factors): transpose?" if codes[0] in factors else ""
    hint = hint or (" Codes are (n_samples, n_codes): transpose?" if factors[0] in codes else "")
    raise ValueError(f"codes and factors must have the same number of rows; got {codes} and {factors}.{hint}")


def check_bins(name: str, bins: Any, least: int = 1) -> int:
    """How many bins each column is cut into."""
    return check_whole(name, bins, least, MOST_BINS, why="a count for every bin and level has to fit in memory")


def check_draws(apiece: int = 1, least: int = 1, /, **counts: Any) -> None:
    """Counts, each of at least `least`, whose product is drawn at once, `apiece` numbers for each."""
    product = prod(check_whole(name, count, least) for name, count in counts.items())
    if product * apiece > MOST_NUMBERS:
        raise ValueError(
            f"{' * '.join(counts)} must be at most {MOST_NUMBERS // apiece} (all draws have to fit in memory); "
            f"got {' * '.join(map(str, counts.values()))}"
        )


def generator(seed: Any) -> np.random.Generator:
    """NumPy's default generator; None is refused, since the same call is to give the same draws."""
    return np.random.default_rng(check_whole("seed", seed, 0))


def _shown(value: Any) -> str:
    return " ".join(reprlib.repr(value).split())


def list_of(argument: str, names: Any, *, single: bool = False) -> tuple[Any, ...]:
    """Names in a list, or one of them by itself where `single`; elsewhere its letters would be taken for names.

    Raises:
        ValueError: text that may not stand by itself, or no list.
    """
    if single and isinstance(names, str):
        return (names,)
    if isinstance(names, str | bytes) or not isinstance(names, Iterable):
        raise ValueError(f"{argument} must be {'a name or ' if single else ''}a list of names; got {_shown(names)}")
    return tuple(names)


def check_names(argument: str, names: Sequence[Any]) -> None:
    """Raises ValueError for a name that is too long to be drawn or printed."""
    for place, name in enumerate(names):
        if isinstance(name, str) and len(name) > LONGEST_NAME:
            raise ValueError(f"{argument}[{place}] has {len(name):,} letters; names have at most {LONGEST_NAME:,}")
