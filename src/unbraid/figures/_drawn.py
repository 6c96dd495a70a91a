"""A figure and the numbers that it shows."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from matplotlib.figure import Figure

from unbraid.plots.theme import Theme, save_figure
from unbraid.storage.files import atomic_write

Column: TypeAlias = Sequence[Any] | np.ndarray


@dataclass(frozen=True, eq=False)
class Drawn:
    """What a figure shows, as a picture and as columns of equal length."""

    figure: Figure
    data: Mapping[str, Column]
    caption: str = ""  # what is left out
    width: float | None = None  # mm

    def save(self, path: str | Path, *, theme: Theme = "light") -> None:
        """Write the figure as .pdf, .svg or .png, as wide as it was drawn for; see `unbraid.plots.save_figure`."""
        save_figure(self.figure, path, theme=theme, width=self.width)

    def csv(self) -> str:
        """The columns as comma-separated text with a header; numbers to the last digit."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.data)
        writer.writerows(zip(*map(_plain, self.data.values()), strict=True))
        return text.getvalue()

    def save_data(self, path: str | Path) -> None:
        """Write `csv()` to a file, whole or not at all.

        Raises:
            ValueError: the name does not end in .csv.
            FileNotFoundError: the folder does not exist.
        """
        path = Path(path)
        if path.suffix != ".csv":
            raise ValueError(f"{path}: the data of a figure is saved as .csv")
        with atomic_write(path) as temporary:
            temporary.write_text(self.csv(), encoding="utf-8")


def long_form(rows: Iterable[Sequence[Any]], *names: str) -> dict[str, list[Any]]:
    """Columns of these names from rows."""
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return {name: list(column) for name, column in zip(names, columns, strict=True)}


def _plain(column: Column) -> list[Any]:
    """Python's own numbers, whose text is the shortest that reads back the same; nothing for a number that is none."""
    values = (
        column.tolist() if isinstance(column, np.ndarray) else [getattr(v, "item", lambda v=v: v)() for v in column]
    )
    return ["" if isinstance(value, float) and value != value else value for value in values]
