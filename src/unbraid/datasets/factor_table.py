"""Columns of factors as the user has them: text or numbers, from a file or from memory."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unbraid._utils.arguments import list_of
from unbraid._utils.arrays import as_array, categories_of
from unbraid._utils.dates import DATES, SPANS, days_since_first
from unbraid._utils.suggest import one_line
from unbraid.factors.guessing import guess_kind
from unbraid.factors.space import Values
from unbraid.storage.tables import (
    NO_VALUE,
    WITH_POINTS,
    as_number,
    csv_rows,
    numbers_with_commas,
    read_parquet,
    unnamed_columns,
)
from unbraid.types import FloatArray, IntArray, Kind

LARGEST, DIGITS = 2**53, 15  # whole numbers beyond are not told from their neighbours; of so many digits none is
LONGEST = 80  # letters of a value that a message quotes
TOO_LARGE = "a whole number beyond 2^53, which is not told from the next; its kind may be 'categorical'"


@dataclass(frozen=True, eq=False)
class Column:
    """One factor, or the names of the pictures."""

    table: str  # where it comes from, for messages
    name: str
    cells: Sequence[Any]
    lines: Sequence[int] | None = None  # of the rows of a .csv file; those of other tables are counted from 0
    ordered: Sequence[Any] = ()  # its categories, those that no row has among them, where they have an order
    classes: bool = False  # they have none, and stay classes if they are numbers, as labels that are scored

    def at(self, row: int, with_column: bool = True) -> str:
        """Where a cell stands, in the words of its table."""
        place = f"row {row}" if self.lines is None else f"line {self.lines[row]}"
        return f"{self.table}: {place}" + (f", column {self.name!r}" if with_column else "")

    def has_word_for_none(self, row: int) -> bool:
        """Whether a cell of a .csv file is a word that stands for no value, such as NA."""
        return self.lines is not None and self.cells[row] in NO_VALUE

    def kind(self, chosen: Kind | None) -> Kind:
        """The kind that was chosen, or the one that the cells suggest."""
        if chosen is not None:
            return chosen
        if self.ordered or self.classes:
            return "ordinal" if self.ordered else "categorical"
        numbers = self._numbers(None)
        if numbers is None or all(isinstance(cell, bool | np.bool_) for cell in self.cells):
            return "categorical"
        timed = isinstance(self.cells[0], DATES + SPANS)
        whole = (numbers == np.rint(numbers)).all()
        return "continuous" if timed or not whole else guess_kind(numbers)

    def levels(self, chosen: Kind | None) -> tuple[IntArray, Values, FloatArray]:
        """Level of each row, what each level stands for, and the numbers (or the levels, where there are none).

        Raises:
            ValueError: a cell is empty, not finite, or no number where the others are.
        """
        if self.ordered and chosen != "continuous":
            return self._categories(chosen)
        numbers = self._numbers("categorical" if chosen is None and self.classes else chosen)
        cells = np.array(list(map(_text, self.cells))) if numbers is None else numbers
        present, levels = np.unique(cells, return_inverse=True)
        levels = levels.reshape(-1).astype(np.int64)
        return levels, tuple(present.tolist()), levels.astype(np.float64) if numbers is None else numbers

    def _categories(self, chosen: Kind | None) -> tuple[IntArray, Values, FloatArray]:
        """`levels` in the order of the categories; one that no row has is a level of a circle alone, a step of it."""
        places = {category: place for place, category in enumerate(self.ordered)}
        for row, cell in enumerate(self.cells):
            if cell not in places:
                raise ValueError(f"{self.at(row)} is empty")
        of_rows = np.array([places[cell] for cell in self.cells], dtype=np.int64)
        kept = np.arange(len(self.ordered)) if chosen == "cyclic" else np.unique(of_rows)
        levels = np.searchsorted(kept, of_rows)
        named = [self.ordered[place] for place in kept.tolist()]
        numbers = all(isinstance(each, int | float | np.number) for each in named)
        return levels, tuple(float(each) if numbers else _text(each) for each in named), levels.astype(np.float64)

    def _numbers(self, chosen: Kind | None) -> FloatArray | None:
        """The cells as numbers, dates as days since the first; or nothing if they are text."""
        for row, cell in enumerate(self.cells):
            if _is_empty(cell):
                raise ValueError(f"{self.at(row)} is empty")
        if chosen != "categorical" and (days := days_since_first(self.cells)) is not None:
            return days
        numbers, text = np.empty(len(self.cells)), []
        for row, cell in enumerate(self.cells):
            if isinstance(cell, complex | np.complexfloating):
                raise ValueError(f"{self.at(row)} is {cell}; a factor holds real numbers or text")
            if _is_too_large(cell):
                if chosen != "categorical":
                    raise ValueError(f"{self.at(row)} is {one_line(cell, 80)}, {TOO_LARGE}")
                text.append(row)
                continue
            try:
                numbers[row] = as_number(cell) if isinstance(cell, str) else float(cell)
            except (TypeError, ValueError):
                if chosen is None and self.has_word_for_none(row):
                    none = "which stands for no value; if it is a name, the kind of its column is 'categorical'"
                    raise ValueError(f"{self.at(row)} is {cell!r}, {none}") from None
                if isinstance(cell, bytes) and not _is_utf8(cell):
                    raise ValueError(f"{self.at(row)} is {one_line(repr(cell), 80)}, no text in UTF-8") from None
                text.append(row)
            else:
                if not np.isfinite(numbers[row]):
                    raise ValueError(f"{self.at(row)} is {one_line(cell, 80)}, which is no finite number")
        if not text:
            return numbers
        if chosen not in {None, "categorical"} or (chosen is None and len(text) < len(self.cells)):
            hint = "" if chosen else ", as other cells are; if the column holds names, its kind is 'categorical'"
            cell = self.cells[text[0]]
            raise ValueError(f"{self.at(text[0])} is {_quoted(cell)}, which is no number{hint}")
        if chosen is None and (cell := numbers_with_commas(map(_text, self.cells))) is not None:
            raise ValueError(f"{self.at(list(self.cells).index(cell))} is {cell!r}; {WITH_POINTS}")
        return None


def _quoted(value: Any) -> str:
    """A value as Python writes it; of a long text the beginning, with both its quotes."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, str) and len(value) > LONGEST:
        return repr(f"{value[: LONGEST - 1]}…")
    return one_line(repr(value), LONGEST)


def _text(cell: Any) -> str:
    return cell.decode() if isinstance(cell, bytes) else str(cell)


def _is_utf8(cell: bytes) -> bool:
    try:
        cell.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_empty(cell: Any) -> bool:
    """Whether a cell holds nothing: None, blank text, or what pandas and NumPy have for it. NaN is told apart."""
    if isinstance(cell, np.datetime64 | np.timedelta64):
        return bool(np.isnat(cell))
    blank = isinstance(cell, str) and not cell.strip()
    return cell is None or blank or type(cell).__name__ in ("NAType", "NaTType", "MaskedConstant")


def _is_too_large(cell: Any) -> bool:
    """Whether a cell is a whole number, given with all its digits, that floats do not tell from the next."""
    if isinstance(cell, str):
        digits = cell.strip().lstrip("+-")
        return len(digits) > DIGITS and digits.isdecimal() and float(digits) > LARGEST
    return isinstance(cell, int | np.integer) and not isinstance(cell, SPANS) and abs(int(cell)) > LARGEST


def read_table(path: Path) -> list[Column]:
    """The columns of a .csv or .parquet file, but for an index that pandas wrote.

    Cells of a .csv file are separated by commas, semicolons or tabs, numbers by spaces as well; its first line holds
    names, unless all of it are numbers.

    Raises:
        ValueError: it is neither, or has rows of different lengths, no rows, or columns of one name.
        FileNotFoundError: it is not there.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    if path.suffix.lower() == ".parquet":
        table = read_parquet(path)
        _check_names(table.column_names, table.num_rows, str(path))
        left_out = unnamed_columns(table.column_names)
        return table_columns({name: table[name] for name in table.column_names if name not in left_out}, str(path))
    if path.suffix.lower() != ".csv":
        raise ValueError(f"{path}: a table of factors is a .csv or .parquet file")
    names, rows = csv_rows(path)
    unnamed = unnamed_columns(names)
    index = unnamed if names and names[0] in unnamed else []
    _check_names([name for name in names if name not in index], len(rows), str(path))
    lines = [line for line, _ in rows]
    return [
        Column(str(path), name, [row[k].strip() for _, row in rows], lines)
        for k, name in enumerate(names)
        if name not in index
    ]


def table_columns(table: Mapping[str, Sequence[Any]], where: str) -> list[Column]:
    """The columns of a mapping from name to cells.

    Raises:
        ValueError: a column is not one cell per row, they differ in length, or their names are not their own.
    """
    categories = {name: found for name, each in table.items() if (found := categories_of(each))}
    ordered = {name: each for name, (_, each, in_order) in categories.items() if in_order}
    table = {name: _cells(column, f"{where}: column {name!r}") for name, column in table.items()}
    lengths = {name: len(cells) for name, cells in table.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"{where}: columns must be of one length; got {lengths}")
    _check_names(list(table), next(iter(lengths.values()), 0), where)
    return [
        Column(where, name, cells, None, ordered.get(name, ()), name in categories and name not in ordered)
        for name, cells in table.items()
    ]


def _cells(column: Any, what: str) -> list[Any]:
    if hasattr(column, "detach"):
        column = as_array(column)  # of a tensor, on any device
    elif hasattr(column, "to_pylist"):
        column = column.to_pylist()  # of pyarrow, whose cells are objects of its own
    if isinstance(column, str | bytes) or not hasattr(column, "__iter__") or getattr(column, "ndim", 1) == 0:
        raise ValueError(f"{what} must be one cell per row; got {_quoted(column)}")
    cells = list(column)
    for row, cell in enumerate(cells):
        if isinstance(cell, list | tuple | Mapping | Set) or getattr(cell, "ndim", 0):
            raise ValueError(f"{what} must be one cell per row; row {row} is {one_line(repr(cell), 80)}")
    return cells


def matrix_columns(matrix: Any, names: Sequence[str] | None, where: str) -> list[Column]:
    """The columns of an array (n, n_factors), or of a structured one."""
    if matrix.dtype.names is not None and names is None:
        return table_columns({name: matrix[name] for name in matrix.dtype.names}, where)
    if matrix.ndim != 2:
        raise ValueError(f"{where} must be (n, n_factors); got shape {matrix.shape}")
    if names is None:
        names = [f"factor_{k}" for k in range(matrix.shape[1])]
    names = list_of("names", names)
    if len(names) != matrix.shape[1]:
        raise ValueError(f"names must have one entry per factor ({matrix.shape[1]}); got {list(names)}")
    _check_names(list(names), len(matrix), where)
    return [Column(where, str(name), column) for name, column in zip(names, matrix.T, strict=True)]


def _check_names(names: list[str], n_rows: int, where: str) -> None:
    if not names or "" in names or len(set(names)) < len(names):
        raise ValueError(f"{where}: columns must have names, each its own; got {names}")
    if n_rows == 0:
        raise ValueError(f"{where}: there are no rows")
