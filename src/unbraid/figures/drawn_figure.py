"""A figure and the numbers that it shows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from matplotlib.figure import Figure

from unbraid.files.table_formats import Table
from unbraid.show.theme import Theme, save_figure

Column: TypeAlias = Sequence[Any] | np.ndarray


@dataclass(frozen=True, eq=False)
class Drawn:
    """What a figure shows, as a picture and as columns of equal length."""

    figure: Figure
    data: Mapping[str, Column]
    caption: str = ""  # what is left out
    width: float | None = None  # mm

    def save(self, path: str | Path, *, theme: Theme = "light") -> None:
        """Write the figure as .pdf, .svg or .png, as wide as it was drawn for; see `unbraid.show.save_figure`."""
        save_figure(self.figure, path, theme=theme, width=self.width)

    @property
    def table(self) -> Table:
        """The numbers that it shows."""
        return Table(list(self.data), list(zip(*self.data.values(), strict=True)))


def long_form(rows: Iterable[Sequence[Any]], *names: str) -> dict[str, list[Any]]:
    """Columns of these names from rows."""
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return {name: list(column) for name, column in zip(names, columns, strict=True)}


def figure_of(axes: Any) -> Figure:
    """The figure that axes belong to."""
    return axes.figure
