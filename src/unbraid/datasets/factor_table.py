"""Columns of factors as the user has them: text or numbers, from a file or from memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unbraid.base.columns import Series, as_series, days_since_first
from unbraid.base.types import FloatArray, IntArray, Kind
from unbraid.data.guessing import guess_kind
from unbraid.data.space import Values
from unbraid.files.tables import (
    WITH_POINTS,
    csv_columns,
    numbers_of,
    numbers_with_commas,
    read_parquet,
    unnamed_columns,
)

LONGEST = 80  # letters of a value that a message quotes
FILE_COLUMN = "file"


@dataclass(frozen=True, eq=False)
class Column:
    """One factor, or the names of the pictures."""

    table: str  # where it comes from, for messages
    name: str
    series: Series  # as `as_series` gives it, text as numbers where all of it are
    lines: Sequence[int] | None = None  # of the rows of a .csv file; those of other tables are counted from 0

    def __len__(self) -> int:
        return len(self.series)

    def at(self, row: int, with_column: bool = True) -> str:
        """Where a cell stands, in the words of its table."""
        place = f"row {row}" if self.lines is None else f"line {self.lines[row]}"
        return f"{self.table}: {place}" + (f", column {self.name!r}" if with_column else "")

    @property
    def ordered(self) -> bool:
        """Whether these are categories that have an order."""
        return self.series.dtype == "category" and bool(self.series.cat.ordered)

    def kind(self, chosen: Kind | None) -> Kind:
        """The kind that was chosen, or the one that the cells suggest."""
        if chosen is not None:
            return chosen
        if self.ordered:
            return "ordinal"
        if self.series.dtype in ("category", "boolean", object):
            return "categorical"
        if self.series.dtype.kind in "mM":
            return "continuous"
        numbers = self.series.to_numpy()
        return guess_kind(numbers) if (numbers == np.rint(numbers)).all() else "continuous"

    def levels(self, chosen: Kind | None) -> tuple[IntArray, Values, FloatArray]:
        """Level of each row, what each level stands for, and the numbers (or the levels, where there are none).

        Raises:
            ValueError: a cell is empty, or no number where the others are.
        """
        if (empty := self.series.isna()).any():
            words = "" if self.lines is None else " (NA, NaN, None and NULL count as empty)"
            raise ValueError(f"{self.at(int(np.argmax(empty)))} is empty{words}")
        if self.series.dtype == "category" and chosen != "continuous" and (self.ordered or chosen in _CLASSES):
            return self._categories(chosen)
        cells = self._cells(chosen)
        present, levels = np.unique(cells, return_inverse=True)
        levels = levels.reshape(-1).astype(np.int64)
        return levels, tuple(present.tolist()), cells if cells.dtype.kind == "f" else levels.astype(np.float64)

    def _categories(self, chosen: Kind | None) -> tuple[IntArray, Values, FloatArray]:
        """`levels` in the order of the categories; one that no row has is a level of a circle alone, a step of it."""
        series = self.series if self.ordered else self.series.cat.reorder_categories(sorted(self.series.cat.categories))
        codes = series.cat.codes.to_numpy().astype(np.int64)
        places = np.arange(len(series.cat.categories)) if chosen == "cyclic" else np.unique(codes)
        levels = np.searchsorted(places, codes)
        names = [series.cat.categories[place] for place in places.tolist()]
        numbers = all(isinstance(name, int | float | np.number) for name in names)
        return levels, tuple(float(name) if numbers else str(name) for name in names), levels.astype(np.float64)

    def _cells(self, chosen: Kind | None) -> Any:
        """(n_rows,) numbers, dates as days since the first; or text."""
        series = as_series(self.series.tolist(), self.table) if self.series.dtype == "category" else self.series
        if series.dtype.kind in "mM":
            return series.astype(str).to_numpy(dtype=str) if chosen == "categorical" else days_since_first(series)
        if series.dtype != object:
            return series.to_numpy(dtype=float)
        text = [row for row, cell in enumerate(series) if numbers_of([cell]) is None]
        if chosen not in _CLASSES or (chosen is None and len(text) < len(series)):
            hint = "" if chosen else ", as other cells are; if the column holds names, its kind is 'categorical'"
            raise ValueError(f"{self.at(text[0])} is {_quoted(str(series.iloc[text[0]]))}, which is no number{hint}")
        if chosen is None and (cell := numbers_with_commas(series)) is not None:
            raise ValueError(f"{self.at(list(series).index(cell))} is {cell!r}; {WITH_POINTS}")
        return series.to_numpy(dtype=str)


_CLASSES = (None, "categorical")


def _quoted(text: str) -> str:
    """A text as Python writes it; of a long one the beginning, with both its quotes."""
    return repr(text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…")


def read_table(path: Path, file_column: str = FILE_COLUMN) -> list[Column]:
    """The columns of a .csv or .parquet file, but for an index that pandas wrote.

    Cells of a .csv file are separated by commas, semicolons or tabs, numbers by spaces as well; its first line holds
    names, unless all of it are numbers. Those of `file_column` are text.

    Raises:
        ValueError: it is neither, or has rows of different lengths, no rows, or columns of one name.
        FileNotFoundError: it is not there.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    if path.suffix.lower() == ".parquet":
        table = read_parquet(path)
        left_out = unnamed_columns(table.column_names)
        columns = {name: table[name] for name in table.column_names if name not in left_out}
        return table_columns(columns, str(path), file_column)
    if path.suffix.lower() != ".csv":
        raise ValueError(f"{path}: a table of factors is a .csv or .parquet file")
    cells, lines = csv_columns(path)
    return table_columns(cells, str(path), file_column, lines)


def table_columns(
    table: Mapping[str, Any], where: str, file_column: str = FILE_COLUMN, lines: Sequence[int] | None = None
) -> list[Column]:
    """The columns of a mapping from name to cells.

    Raises:
        ValueError: a column is not one cell per row, they differ in length, or their names are not their own.
    """
    columns = [Column(where, name, _series(table[name], where, name, file_column), lines) for name in table]
    lengths = {column.name: len(column) for column in columns}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"{where}: columns must be of one length; got {lengths}")
    if "" in lengths:
        raise ValueError(f"{where}: each column must have a name; got {list(lengths)}")
    if not any(lengths.values()):
        raise ValueError(f"{where}: there are no rows")
    return columns


def _series(content: Any, where: str, name: str, file_column: str) -> Series:
    if name == file_column:
        content = [None if cell is None else str(cell) for cell in content]
    series = as_series(content, f"{where}: column {name!r}")
    if series.dtype != object or name == file_column or (values := numbers_of(series)) is None:
        return series
    return as_series(values, f"{where}: column {name!r}")
