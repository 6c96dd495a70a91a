"""Tables of results read, and several of them as one: nothing lost, nothing mixed, whatever their order."""

import csv
import json
import math
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, TypeAlias

from unbraid._utils.arguments import list_of
from unbraid._utils.counted import counted
from unbraid._utils.natural_order import natural
from unbraid._utils.suggest import suggestion
from unbraid.analysis.columns import BASELINE, N_ROWS, in_words
from unbraid.metrics import METRICS
from unbraid.metrics._shared.arguments import find_metric
from unbraid.storage.files import check_file
from unbraid.storage.json_records import MOST
from unbraid.storage.tables import read_parquet
from unbraid.types import DataFrame

__all__ = ["is_table", "merge_tables", "read_table", "without_columns"]

Row: TypeAlias = dict[str, Any]  # cells that are not missing, by column

NEEDED = ("run", "family", "setting", "seed", "state", "content")
TEXTS = (
    "run", "family", "setting", "state", "reason", "label", "dataset", "dataset_options", "content", "hold_out",
    "device", "precision", "unbraid", "commit", "torch", "numpy", "processor", "accelerator", "computed_with",
    "ranked_by", "above_baselines",
)  # fmt: skip
FIRST = (
    *TEXTS[:3], "seed", *TEXTS[3:9], "steps", "batch_size", *TEXTS[9:12], "training_version", *TEXTS[12:], "seconds",
    N_ROWS,
)  # fmt: skip
# What may differ where one run was trained twice: it says where and when, and decides no number.
PROVENANCE = (
    "seconds", "unbraid", "commit", "torch", "numpy", "processor", "accelerator", "dataset", "dataset_options",
    "device",
)  # fmt: skip
ABOVE, YES, NO = "above_baselines", "yes", "no: "  # of a run: all baselines, or not, by which metrics
OF_IMAGES = ("dataset", "dataset_options")
TOLD = ("reason", "label")  # in words, of which any will do
COUNTS = ("seed", "steps", "batch_size", "training_version", N_ROWS)
NAMES = ("run", "family")  # that every row has
DECIDED = "computed_with"
LONGEST = 80  # letters of a cell that an error shows
STATES = ("finished", "diverged", "failed", "waiting")  # of one run in two tables, the first counts
ENDED = ("seconds", "unbraid", N_ROWS)  # of these a run has one once it was trained or scored


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
        fault = _unnamed if column in NAMES else _undecodable if column == DECIDED else _uncounted
        for number, cell in enumerate(frame[column].tolist(), start=first):
            if (_there(cell) or column in NAMES) and (expected := fault(cell)):
                got = f"got {str(cell)[:LONGEST]!r}" if _there(cell) else "it is empty"
                raise ValueError(f"{where}: row {number}: {column} must be {expected}; {got}")


def _unnamed(cell: Any) -> str:
    return "" if _there(cell) and str(cell).strip() else "a name"


def _uncounted(cell: Any) -> str:
    try:
        number = cell if isinstance(cell, int) else float(cell)  # a large one is exact as an int alone
        whole = not isinstance(cell, bool) and number == int(number) and 0 <= number <= MOST
    except (TypeError, ValueError, OverflowError):
        whole = False
    return "" if whole else "a whole number, 0 or more"


def _undecodable(cell: Any) -> str:
    try:
        known = isinstance(json.loads(cell), dict)
    except (TypeError, ValueError, RecursionError):
        known = False
    return "" if known else "a JSON object, by metric"


def _read_csv(path: Path) -> dict[str, list[Any]]:
    """Columns of numbers, where every cell is one or empty, and of text; None where a cell is empty."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            names, *rows = [*csv.reader(file, strict=True)] or [[]]
    except (ValueError, OSError, csv.Error) as error:
        raise ValueError(f"{path}: not a readable .csv file ({error})") from None
    for number, row in enumerate(rows, start=2):
        if len(row) != len(names):
            raise ValueError(f"{path}: row {number} has {counted(len(row), 'cell')}; the first has {len(names)}")
    return {name: _cells(name, [row[place] or None for row in rows]) for place, name in enumerate(names)}


def _cells(name: str, cells: list[str | None]) -> list[Any]:
    try:
        return cells if name in TEXTS else [None if cell is None else float(cell) for cell in cells]
    except ValueError:
        return list(cells)


def merge_tables(tables: Mapping[str, DataFrame], *, prefer_first: bool = False) -> DataFrame:
    """The rows of several tables of results, each run once.

    What one table lacks of a run is taken from another, and what none has is missing. Rows and columns have an order of
    their own, so that tables may be merged in any order, all at once or one by one.

    A column that holds numbers in one table and text in another, as a CSV file of other rows has it, holds numbers
    where all its cells read as such, and else text.

    Args:
        tables: by a name for errors, such as that of the file.
        prefer_first: of a run whose numbers differ, take the row of the table that comes first; of a run that is
            finished in one of them, that of this one.

    Raises:
        ValueError: two tables have different numbers of one run, or decided them otherwise; or a cell holds what none
            does.
    """
    import pandas

    merged: dict[str, tuple[str, Row]] = {}
    for table, frame in tables.items():
        _check_cells(frame, table)
    for table, row in _of_one_kind([(table, row) for table, frame in tables.items() for row in _rows(frame)]):
        name = str(row["run"])
        if name not in merged:
            merged[name] = table, row
        else:
            other, kept = merged[name]
            where = f"run {name} of {other} and {table}"
            merged[name] = f"{other}, {table}", _joined(kept, row, where, prefer_first)
    rows = sorted((row for _, row in merged.values()), key=_place)
    columns = sorted({name for row in rows for name in row} | (set(FIRST) - {"label"}), key=_column)
    return pandas.DataFrame(rows, columns=columns)


def without_columns(tables: Mapping[str, DataFrame], names: str | Sequence[str]) -> dict[str, DataFrame]:
    """The tables without columns, or all those of a metric, "mig" for "mig.score" and the others; "udr" likewise.

    Raises:
        ValueError: none of them has such a column.
    """
    left = dict(tables)
    for name in list_of("names", names, single=True):
        known = dict.fromkeys(column for frame in tables.values() for column in frame.columns)
        if not any(_belongs(column, name) for column in known):
            raise ValueError(f"--without {name}: no such column; {suggestion(name, known)}")
        left = {table: _without(frame, name) for table, frame in left.items()}
    return left


def _belongs(column: str, name: str) -> bool:
    beside = column.removeprefix(BASELINE)
    return column == name or beside.startswith(f"{name}.") or (name, column) == ("udr", "ranked_by")


def _without(frame: DataFrame, name: str) -> DataFrame:
    frame = frame.drop(columns=[column for column in frame.columns if _belongs(column, name)])
    if "computed_with" in frame.columns:
        frame = frame.assign(computed_with=[_undecided(each, name) for each in frame["computed_with"]])
    return frame


def _undecided(text: Any, metric: str) -> Any:
    if not isinstance(text, str):
        return None
    return json.dumps({name: each for name, each in json.loads(text).items() if name != metric}, sort_keys=True)


def _rows(frame: DataFrame) -> list[Row]:
    """Its rows without what is missing; numbers as Python's, in the same type whatever stands beside them."""
    rows = frame.to_dict("records")
    return [{str(name): _plain(name, value) for name, value in row.items() if _there(value)} for row in rows]


def _there(value: Any) -> bool:
    return value is not None and value == value


def _plain(name: str, value: Any) -> Any:
    if name in COUNTS:
        return int(value if not isinstance(value, str) or value.isdecimal() else float(value))
    return value if isinstance(value, bool | str) or not hasattr(value, "__float__") else float(value)


def _of_one_kind(rows: Sequence[tuple[str, Row]]) -> Sequence[tuple[str, Row]]:
    """The rows, in which no column has numbers or booleans beside text."""
    cells: dict[str, list[str | float | bool]] = {}
    for _, row in rows:
        for name, cell in row.items():
            if name not in TEXTS and isinstance(cell, str | float | bool):
                cells.setdefault(name, []).append(cell)
    for name, own in cells.items():
        if len({type(cell) for cell in own}) > 1:
            whole = all(_number(cell) is not None for cell in own)
            for _, row in rows:
                if name in row:
                    row[name] = _number(row[name]) if whole else in_words(row[name])
    return rows


def _number(cell: Any) -> float | None:
    try:
        return None if math.isnan(number := float(cell)) else number
    except (TypeError, ValueError):
        return None


def _joined(one: Row, other: Row, where: str, prefer_first: bool) -> Row:
    """Two rows of one run as one."""
    states = [STATES.index(row["state"]) if row.get("state") in STATES else len(STATES) for row in (one, other)]
    first = one if states[0] <= states[1] else other
    if states[0] != states[1]:  # one that waits for a metric, or failed by one, may hold others
        told = {name: first.get(name) for name in ("state", "reason")}
        one, other = (
            {name: value for name, value in (row | told).items() if value is not None} for row in (one, other)
        )
    texts = {name: min(row[name] for row in (one, other) if name in row) for name in TOLD if name in one | other}
    ended = [any(name in row for name in ENDED) for row in (one, other)]
    if ended[0] != ended[1]:  # of a run that is still to be trained the rest is but planned
        return (one if ended[0] else other) | texts
    if not ended[0] and "precision" in one and "precision" in other:  # left open, it is settled where it is trained
        one, other = ({**row, "precision": min(one["precision"], other["precision"])} for row in (one, other))
    try:
        decided = _decided(one, other)
    except ValueError as error:
        if prefer_first:
            return first
        raise ValueError(f"{where}: {error}") from None
    differing = [
        name
        for name in one.keys() & other.keys()
        if name not in {*PROVENANCE, *TOLD, ABOVE, "computed_with"} and one[name] != other[name]
    ]
    if differing:
        if prefer_first:
            return first
        name = min(differing, key=_column)
        raise ValueError(
            f"{where}: {name} is {one[name]!r} in the first and {other[name]!r} in the second"
            f"{_advice(name)}, or say which counts: --prefer-first takes the first"
        )
    origin = min((tuple(row.get(name) for name in PROVENANCE) for row in (one, other)), key=repr)
    made = {name: value for name, value in zip(PROVENANCE, origin, strict=True) if value is not None}
    images = {name: value for row in (other, one) for name, value in row.items() if name in OF_IMAGES}
    both = {name: value for name, value in {**one, **other}.items() if name not in PROVENANCE}
    joined = {**both, **decided, **images, **made, **_above(one, other)}
    return {name: value for name, value in joined.items() if value is not None} | texts


def _above(one: Row, other: Row) -> Row:
    """`above_baselines` of both: "no" with the metrics of either by which a baseline is as good."""
    told = [str(row[ABOVE]) for row in (one, other) if ABOVE in row]
    lost = dict.fromkeys(name for text in told if text != YES for name in text.removeprefix(NO).split(", "))
    return {ABOVE: NO + ", ".join(lost) if lost else YES} if told else {}


def _advice(name: str) -> str:
    if name in ("ranked_by", "udr.score", "udr.informative"):
        return ", as its models were ranked among others; leave udr out of both (--without udr)"
    return ", as on other hardware or in another model of that name; leave it out of one of them"


def _decided(one: Row, other: Row) -> Row:
    """`computed_with` of both.

    Raises:
        ValueError: a metric was computed by other rules in one of them.
    """
    held = [json.loads(row["computed_with"]) for row in (one, other) if "computed_with" in row]
    for name in set(held[0]) & set(held[1]) if len(held) == 2 else ():
        if held[0][name] != held[1][name]:
            raise ValueError(f"{name} was computed otherwise: {held[0][name]} and {held[1][name]}")
    both: dict[str, Any] = reduce(lambda found, each: found | each, held, {})
    return {"computed_with": json.dumps(both, sort_keys=True, ensure_ascii=False)} if held else {}


def _place(row: Row) -> tuple[Any, ...]:
    """Where a row stands in the table."""
    seed = row.get("seed")
    return (
        str(row.get("dataset", "")), str(row.get("content", "")), str(row["family"]), natural(str(row["setting"])),
        float(seed) if seed is not None else math.inf, str(row["run"]),
    )  # fmt: skip


def _column(name: str) -> tuple[Any, ...]:
    """Where a column stands."""
    if name in FIRST:
        return 0, FIRST.index(name), ()
    head, dot, value = name.rpartition(".")
    groups: Sequence[str] = ("hyper", "train")
    first = groups.index(head) if head in groups else len(groups)
    known, kind = find_metric(head), head.partition("(")[0]
    place = list(METRICS).index(kind) if known is not None else len(METRICS)
    headline = known is not None and known.headline == value
    return 1 + bool(dot), first, (place, head, not headline, value)
