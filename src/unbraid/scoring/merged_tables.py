"""Tables of results read, and several of them as one."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unbraid.base.types import DataFrame
from unbraid.files.json_records import MOST
from unbraid.files.tables import csv_columns, numbers_of, read_parquet
from unbraid.files.whole_files import check_file
from unbraid.scoring.result_columns import DIAGNOSIS, N_ROWS, in_words

__all__ = ["is_table", "merge_tables", "read_table"]

TABLE = "table"  # of merged tables, where a row comes from
NEEDED = ("run", "family", "setting", "seed", "state", "content")
TEXTS = (
    "run", "family", "setting", "state", "reason", "label", "dataset", "dataset_options", "content", "hold_out",
    "device", "precision", "unbraid", "commit", "torch", "numpy", "processor", "accelerator", "computed_with",
    "ranked_by", "above_baselines", DIAGNOSIS, TABLE,
)  # fmt: skip
COUNTS = ("seed", "steps", "batch_size", "training_version", N_ROWS)
NAMES = ("run", "family")  # that every row has
DECIDED = "computed_with"
LONGEST = 80  # letters of a cell that an error shows


def is_table(path: str | Path) -> bool:
    """Whether a path names such a file, and not the folder of a study."""
    return Path(path).suffix.lower() in (".csv", ".parquet") and not Path(path).is_dir()


def read_table(path: str | Path, needed: Sequence[str] = NEEDED) -> DataFrame:
    """The table of results in a .csv or .parquet file, as `unbraid export` writes it, with all columns needed.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no table of a study, or a cell holds what none does; the line names file and row.
    """
    import pandas

    path = Path(path)
    check_file(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        frame = read_parquet(path).to_pandas()
    elif suffix == ".csv":
        frame = pandas.DataFrame(_read_csv(path))
    else:
        raise ValueError(f"{path}: a table of results ends in .csv or .parquet")
    lacking = [name for name in needed if name not in frame.columns]
    if lacking:
        why = f"it has no column {lacking[0]!r}; unbraid export writes one"
        raise ValueError(f"{path}: not the table of a study ({why})")
    frame["setting"] = frame["setting"].fillna("")
    _check_cells(frame, str(path), first=2 if suffix == ".csv" else 1)
    return frame


def _check_cells(frame: DataFrame, where: str, first: int = 1) -> None:
    """Raises ValueError where a cell holds what none of a study does, with its row; the first row is called `first`."""
    for column in (name for name in (*NAMES, *COUNTS, DECIDED) if name in frame.columns):
        for number, cell in enumerate(frame[column].tolist(), start=first):
            if (_is_present(cell) or column in NAMES) and (expected := _expected(column, cell)):
                got = f"got {str(cell)[:LONGEST]!r}" if _is_present(cell) else "it is empty"
                raise ValueError(f"{where}: row {number}: {column} must be {expected}; {got}")


def _expected(column: str, cell: Any) -> str:
    """What a cell must be that is not; nothing of others."""
    if column in NAMES:
        return "" if _is_present(cell) and str(cell).strip() else "a name"
    try:
        if column == DECIDED:
            return "" if isinstance(json.loads(cell), dict) else "a JSON object, by metric"
        number = cell if isinstance(cell, int) else float(cell)  # a large one is exact as an int alone
        sound = not isinstance(cell, bool) and number == int(number) and 0 <= number <= MOST
    except (TypeError, ValueError, OverflowError, RecursionError):
        sound = False
    return "" if sound else "a JSON object, by metric" if column == DECIDED else "a whole number, 0 or more"


def _read_csv(path: Path) -> dict[str, Any]:
    """Columns of numbers, where every cell is one or empty, and of text; None where a cell is empty."""
    cells, _ = csv_columns(path, no_value={""})
    numbers = {name: None if name in TEXTS else numbers_of(column) for name, column in cells.items()}
    return {name: column if numbers[name] is None else numbers[name] for name, column in cells.items()}


def merge_tables(tables: Mapping[str, DataFrame]) -> DataFrame:
    """The rows of several tables of results below each other, with a column `table` that says where each comes from.

    A column that holds numbers in one table and text or truth values in another holds text.

    Args:
        tables: by name, such as that of the file.

    Raises:
        ValueError: a run is there twice, which would count as two trainings; or a cell holds what none does.
    """
    import pandas

    for table, frame in tables.items():
        _check_cells(frame, table)
    merged = pandas.concat([frame.assign(**{TABLE: name}) for name, frame in tables.items()], ignore_index=True)
    homes: dict[str, str] = {}
    for run, table in zip(map(str, merged["run"]), merged[TABLE], strict=True):
        if run in homes:
            raise ValueError(f"run {run} is in {homes[run]} and in {table}; leave it out of one of them")
        homes[run] = table
    for name in merged.columns:
        cells = merged[name].tolist()
        if len({_kind(cell) for cell in cells if _is_present(cell)}) > 1:
            merged[name] = [in_words(cell) if _is_present(cell) else None for cell in cells]
        elif name in COUNTS and all(map(_is_present, cells)):
            merged[name] = [int(cell) for cell in cells]
    merged.insert(0, TABLE, merged.pop(TABLE))
    return merged


def _kind(cell: Any) -> str:
    return "text" if isinstance(cell, str) else "truth" if isinstance(cell, bool | np.bool_) else "number"


def _is_present(value: Any) -> bool:
    return value is not None and value == value
