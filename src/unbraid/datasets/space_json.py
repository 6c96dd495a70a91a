"""Factors as part of a JSON file that lies beside images."""

from collections.abc import Callable, Mapping
from typing import Any

from unbraid.base.types import FloatArray, IntArray
from unbraid.data import FactorSpace, FactorTable, Space


def described_space(space: Space) -> dict[str, Any]:
    """All of a grid; of a table what is no number of it, with keys only for what is known."""
    grid = isinstance(space, FactorSpace)
    described: dict[str, Any] = {
        "names": list(space.names),
        "kinds": list(space.kinds),
        "sizes": list(space.sizes) if grid else None,
        "values": space.values or None,
    }
    if not grid and any(space.levels):
        described["levels"] = space.levels
    if not grid and any(space.around):
        described["around"] = space.around
    if not grid and space.complete is not None:
        described["complete"] = described_space(space.complete)
    return described


def space_of(described: Mapping[str, Any], table: Callable[[], FloatArray | IntArray]) -> Space:
    """The space that was described; `table` gives the numbers, where they are no grid.

    Raises:
        ValueError, TypeError, KeyError: it describes none.
    """
    names, kinds = tuple(described["names"]), tuple(described["kinds"])
    values = tuple(map(tuple, described["values"] or ()))
    if described["sizes"] is not None:
        return FactorSpace(names, tuple(map(int, described["sizes"])), kinds, values or None)
    complete = space_of(described["complete"], table) if "complete" in described else None
    if isinstance(complete, FactorTable):
        raise ValueError("'complete' is no grid")
    levels = tuple(map(tuple, described.get("levels", ())))
    around = tuple(map(int, described.get("around", ())))
    return FactorTable(names, kinds, table(), complete, levels, around, values)
