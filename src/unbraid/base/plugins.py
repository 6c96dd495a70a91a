"""Rows that installed packages add to our tables, by entry points.

A package adds a metric, family, dataset, tracker or executor in its own pyproject.toml:

    [project.entry-points."unbraid.metrics"]
    my_metric = "my_package.metrics:ROW"

It is trusted because the user installed it, and is looked for once a name is asked for that is none of ours.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from unbraid.base.suggest import error_line

Row = TypeVar("Row")


class PluginWarning(UserWarning):
    """A package adds a row that cannot be used; all others can."""


class Table(Mapping[str, Row]):
    """Rows by name: ours, which it is made of and goes through, and those of installed packages, found when asked for.

    Args:
        rows: ours, by name.
        group: of the entry points, such as "unbraid.metrics".
        fits: whether an object is a row of this table.
        what: a row is, for messages.
    """

    def __init__(self, rows: Mapping[str, Row], group: str, fits: Callable[[Any], bool], what: str) -> None:
        self._rows, self._group, self._fits, self._what = dict(rows), group, fits, what

    def __getitem__(self, name: str) -> Row:
        if name in self._rows:
            return self._rows[name]
        if isinstance(name, str) and (point := _points(self._group).get(name)) is not None:
            return self._loaded(point)
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return name in self._rows or (isinstance(name, str) and name in _points(self._group))

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def package_of(self, name: str) -> str:
        """Name and version of the package that adds the row of this name; empty for ours, and for unknown names."""
        point = None if name in self._rows else _points(self._group).get(name)
        return "" if point is None else _package(point)

    def installed(self) -> dict[str, Row]:
        """The rows of installed packages, by name; a `PluginWarning` for each that cannot be used."""
        rows = {}
        for name, point in _points(self._group).items():
            if name in self._rows:
                warnings.warn(
                    f"{_package(point)} adds a {self._what} called {name!r}, which unbraid has; it is not used",
                    PluginWarning,
                    stacklevel=2,
                )
                continue
            try:
                rows[name] = self._loaded(point)
            except ValueError as error:
                warnings.warn(str(error), PluginWarning, stacklevel=2)
        return rows

    def _loaded(self, point: EntryPoint) -> Row:
        """
        Raises:
            ValueError: it cannot be loaded, or is no row of this table; the message names the package.
        """
        package = _package(point)
        try:
            row = point.load()
        except Exception as error:  # whatever a package raises while it is imported
            reason = error_line(error)
            raise ValueError(f"{self._what} {point.name!r} of {package} cannot be loaded: {reason}") from error
        if not self._fits(row):
            raise ValueError(f"{point.value} of {package} is no {self._what}: it is a {type(row).__name__}")
        return row


@cache
def _points(group: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=group)}


def _package(point: EntryPoint) -> str:
    return point.value if point.dist is None else f"{point.dist.name} {point.dist.version}"
