"""Codes of a file or of a run, with labels from another table."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from unbraid.base.arrays import as_full, in_columns
from unbraid.base.suggest import suggestion
from unbraid.data import POSTERIOR, Representation
from unbraid.data.code_files import has_factors, row_names
from unbraid.data.guessing import note_on_guesses
from unbraid.data.h5ad import H5AD, read_h5ad
from unbraid.data.labels import read_labels
from unbraid.data.representation import load_codes, read_table
from unbraid.data.row_index import counts, note_on_order, order_of, rows_in_order
from unbraid.files.tables import read_columns
from unbraid.runs.folder import read_codes
from unbraid.runs.foreign_models import code_path, label_file

NO_KEY = "{}: sparse codes have no column that names their rows; leave --key out to match rows by position"
NO_LABELS = "{}: it holds codes alone; --labels FILE gives them factors"
DECIMALS = 9  # when radians are turned back into labels: 37, not 37.00000000000001


@dataclass(frozen=True)
class Labels:
    """Labels to score codes against, and their properties; by default the factors in the file of codes."""

    table: Path | None = None
    key: str | None = None  # column by which the rows of both tables are matched
    codes: str | None = None  # which embedding of a .h5ad file, or which file in the folder of a model
    columns: Sequence[str] | None = None  # factors to score against; default all
    kinds: Mapping[str, str] | None = None
    period: Mapping[str, float] | None = None
    missing: Sequence[float | str] | None = None
    weights: str | None = None  # column
    groups: str | None = None  # column
    unwanted: Sequence[str] = ()
    dense: bool = False  # whether sparse codes are made full

    @property
    def label_options(self) -> dict[str, Any]:
        """Options of `Representation.of` that describe the labels."""
        options = {"kinds": self.kinds, "period": self.period, "missing": self.missing}
        return {name: value for name, value in options.items() if value is not None}

    @property
    def in_codes_file(self) -> bool:
        """Whether the factors are those in the file of codes, as it describes them."""
        return self.table is None and not self.label_options

    @property
    def needed(self) -> list[str] | None:
        """The columns whose labels no row may lack; None: all."""
        return None if self.columns is None else list(dict.fromkeys([*self.columns, *self.row_columns.values()]))

    @property
    def row_columns(self) -> dict[str, str]:
        """Columns that are weights or groups of rows, by option."""
        named = {"weights": self.weights, "groups": self.groups}
        return {option: column for option, column in named.items() if column is not None}


def read_labelled(path: Path, labels: Labels) -> tuple[Representation, tuple[str, ...]]:
    """Codes with the chosen factors, and the names of these unless they are all.

    Raises:
        FileNotFoundError: there is no such file or folder.
        ValueError: a damaged file, labels that do not fit the codes, or no such column.
    """
    return read_located(*located(path, labels))


def read_located(path: Path, labels: Labels, beside_codes: tuple[str, ...]) -> tuple[Representation, tuple[str, ...]]:
    """As `read_labelled`, of what `located` returns."""
    cells = path.suffix.lower() == H5AD
    _check_options(path, labels, cells)
    if labels.table is None and not cells:
        return _own_factors(path, labels)
    representation, columns, notes = _of_cells(path, labels) if cells else _matched(path, labels)
    options = _taken_out(columns, labels, path)
    if representation.groups is not None:
        options = {"groups": representation.groups, **options}
    posterior = {name: getattr(representation, name) for name in POSTERIOR}
    try:
        made = Representation.of(
            representation.codes, columns, columns=labels.columns, unwanted=labels.unwanted,
            code_names=representation.code_names, code_blocks=representation.code_blocks,
            **options, **posterior,
        )  # fmt: skip
    except ValueError as error:
        raise ValueError(f"{labels.table or path}: {error}") from error
    return replace(made, notes=(*beside_codes, *notes, *made.notes)), tuple(labels.columns or ())


def _taken_out(columns: dict[str, Any], labels: Labels, path: Path) -> dict[str, Any]:
    """What describes the columns of a table, with those that are weights and groups of rows, which are taken out."""
    table = labels.table or path
    if labels.columns is None and (code_names := {"codes_0", "code_0"} & set(columns)):
        kind = "array 'codes'" if "codes_0" in code_names else "column 'code_0'"
        raise ValueError(
            f"{table}: it holds codes ({kind}), and a table of labels holds factors alone; --factors names the "
            "columns to use"
        )
    options = labels.label_options
    for option, column in labels.row_columns.items():
        if column not in columns:
            raise ValueError(f"{table}: no column {column!r} for --{option}; {suggestion(column, columns)}")
        options[option] = columns.pop(column)
        options["kinds"] = {name: kind for name, kind in options.get("kinds", {}).items() if name != column}
    if labels.row_columns and not columns:
        listed = " and ".join(f"--{option} {column}" for option, column in labels.row_columns.items())
        raise ValueError(f"{table}: no column is left to score against, beside {listed}")
    return options


def _own_factors(path: Path, labels: Labels) -> tuple[Representation, tuple[str, ...]]:
    """The factors in the file of codes, as it describes them unless options say otherwise."""
    kinds, period = labels.kinds or {}, labels.period or {}
    representation, every = _codes(path, labels.needed)
    if labels.label_options and not every:
        raise ValueError(NO_LABELS.format(path))
    for option, named in (("kinds", kinds), ("period", period)):
        for name in named:
            if name not in every:
                raise ValueError(f"{path}: {option} names {name!r}, which is no factor; {suggestion(name, every)}")
    for option, column in labels.row_columns.items():
        if column not in representation.names:
            raise ValueError(f"{path}: no column {column!r} for --{option}; {suggestion(column, every)}")
        representation = _without(representation, option, column, path)
    for name in labels.columns or ():
        if name not in every:
            raise ValueError(f"{path}: no factor {name!r}; {suggestion(name, every)}")
    names = representation.names if labels.columns is None else tuple(labels.columns)
    representation = representation.keep_factors(names)
    try:
        if names and (
            labels.missing is not None
            or (labels.label_options and np.isnan(representation.factors.astype(float)).any())
        ):
            representation = _with_all_labels(representation, labels.missing)
        for name in names:
            if name in kinds or name in period:
                representation = _retold(representation, name, kinds.get(name), period.get(name))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return representation, () if names == every else names


def _with_all_labels(representation: Representation, missing: Sequence[float | str] | None) -> Representation:
    """The rows without missing labels, with a note on how many they are."""
    levels = representation.levels or ((),) * len(representation.names)
    kinds: dict[str, Any] = {
        name: "categorical" if own else "continuous" for name, own in zip(representation.names, levels, strict=True)
    }
    read = read_labels(
        {name: _as_labels(representation, name) for name in representation.names}, kinds=kinds, missing=missing
    )
    if read.used.all():
        return representation
    return replace(representation.keep_rows(np.flatnonzero(read.used)), notes=(*representation.notes, *read.notes))


def _retold(representation: Representation, name: str, kind: Any, period: float | None) -> Representation:
    """The representation with another kind or a period for one factor."""
    column = representation.names.index(name)
    levels = representation.levels[column] if representation.levels else ()
    before = representation.kinds[column]
    angle = before == "cyclic" and bool((representation.factors[:, column].astype(float) % 1).any())
    if period is not None and angle:
        raise ValueError(f"the file holds {name!r} as an angle, in radians; leave its period out")
    if period is not None and levels:
        raise ValueError(
            f"the file holds {name!r} as levels with names ({', '.join(levels[:2])}, ...), which have no period"
        )
    notes = _but_of(representation.notes, name, before)
    if period is None and kind == before:
        return replace(representation, notes=notes)
    numbers = representation.factors[:, column] if levels else _as_labels(representation, name)
    kinds = {} if kind is None else {name: kind}
    read = read_labels({name: numbers}, kinds=kinds, period=None if period is None else {name: period})
    (new_kind,) = read.kinds
    # Other kinds keep the number and names of levels; continuous factors have none.
    size, known = (read.sizes or (0,))[0], (representation.sizes or (0,) * len(representation.names))[column]
    if period is None:
        size = 0 if new_kind == "continuous" else known or size
        levels = () if new_kind == "continuous" else levels
    else:
        levels = read.levels[0]
    factors = representation.factors.astype(float)
    factors[:, column] = read.factors[:, 0]
    sizes = _with(representation.sizes or (0,) * len(representation.names), column, size)
    notes = [note for note in notes if not (angle and note.startswith(f"{name}: angles of period "))]
    periods = _with(representation.periods or (0.0,) * len(representation.names), column, (read.periods or (0.0,))[0])
    return replace(
        representation, factors=factors, kinds=_with(representation.kinds, column, new_kind),
        sizes=sizes if any(sizes) else representation.sizes,
        levels=_with(representation.levels or ((),) * len(representation.names), column, levels),
        periods=periods if any(periods) else (), notes=(*notes, *read.notes),
    )  # fmt: skip


def _but_of(notes: Sequence[str], name: str, kind: str) -> tuple[str, ...]:
    """The notes of a file, without the guess for a factor whose kind is given now."""
    before, after = note_on_guesses(["\n"]).split("\n")
    entry = re.compile(rf"(^|, ){re.escape(name)} {kind}( \([^()]*\))?(?=, |$)")
    remaining: list[str] = []
    for note in notes:
        if not (note.startswith(before) and note.endswith(after)):
            remaining.append(note)
        elif rest := entry.sub("", note[len(before) : -len(after)]).removeprefix(", "):
            remaining.append(f"{before}{rest}{after}")
    return tuple(remaining)


def _with(entries: Sequence[Any], place: int, entry: Any) -> tuple[Any, ...]:
    return (*entries[:place], entry, *entries[place + 1 :])


def _as_labels(representation: Representation, name: str) -> Any:
    """A factor of a file as labels: names of levels, and angles in their original unit."""
    column = representation.names.index(name)
    numbers = representation.factors[:, column].astype(float)
    if representation.levels and representation.levels[column]:
        names = dict(enumerate(representation.levels[column]))
        texts = [None if number != number else names.get(number, f"{number:g}") for number in numbers.tolist()]
        return np.array(texts, dtype=object)
    if representation.periods and representation.periods[column]:
        return np.round(representation.in_label_units()[:, column], DECIMALS)
    return numbers


def located(path: Path, labels: Labels) -> tuple[Path, Labels, tuple[str, ...]]:
    """The files of codes and labels in the folder of another framework's model; other paths are returned unchanged.

    Labels that are given, or in the file of codes, take precedence over those beside it. A note names the file used.

    Raises:
        FileNotFoundError: no file in the folder has a usual name for codes.
        ValueError: several have.
    """
    codes = code_path(path, labels.codes)
    if codes == path:
        return path, labels, ()
    labels = replace(labels, codes=None)
    table = None if labels.table is not None or has_factors(codes) else label_file(path, codes)
    if table is None:
        return codes, labels, ()
    where = "beside the codes" if table.parent in (path, codes.parent) else "in the folder above"
    return codes, replace(labels, table=table), (f"labels are those of {table.name} {where}",)


def read_label_columns(path: Path, labels: Labels) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """The chosen columns of labels, for sparse codes that are read by columns, and what describes them."""
    if labels.key is not None:
        raise ValueError(NO_KEY.format(path))
    _check_options(path, labels, cells=False)
    if labels.table is None:
        if labels.columns or labels.row_columns or labels.label_options:
            raise ValueError(NO_LABELS.format(path))
        return None, {}
    columns = dict(read_columns(labels.table, needed=labels.needed))
    options = _taken_out(columns, labels, path)
    for name in labels.columns or ():
        if name not in columns:
            raise ValueError(f"{labels.table}: no column {name!r}; {suggestion(name, columns)}")
    return {name: columns[name] for name in labels.columns} if labels.columns else columns, options


def _check_options(path: Path, labels: Labels, cells: bool) -> None:
    if labels.codes is not None and not cells:
        raise ValueError(f"{path}: --codes names an embedding of a {H5AD} file; this file holds one matrix of codes")
    if labels.key is not None and labels.table is None:
        raise ValueError("--key matches the rows of --labels to those of the codes; give --labels, too")
    for option, column in labels.row_columns.items():
        if column in (labels.columns or ()):
            advice = "leave it out of --factors and --unwanted"
            raise ValueError(f"--{option} {column} makes this column no factor: {advice}")


def _codes(path: Path, factors: Sequence[str] | None) -> tuple[Representation, tuple[str, ...]]:
    """The codes of a file or of a run, with these factors or all, and the names of all factors that it has.

    Rows that lack labels only of factors that are not used are kept; runs have no missing labels.
    """
    if not path.is_file():
        representation = read_codes(path)
        return representation, representation.names
    return load_codes(path, factors)


def _of_cells(path: Path, labels: Labels) -> tuple[Representation, dict[str, Any], tuple[str, ...]]:
    """An embedding of a .h5ad file, with the columns of its `obs`."""
    key, codes, obs = read_h5ad(path, labels.codes)
    codes, blocks = in_columns(codes) if codes.ndim == 3 else (codes, None)
    note = f"codes are {key} of its obsm"
    try:
        representation = Representation(as_full(codes) if labels.dense else codes, code_blocks=blocks)
    except ValueError as error:
        raise ValueError(f"{path}: obsm {key!r}: {error}") from error
    if labels.table is not None:
        representation, columns, notes = _matched(path, labels, (representation, obs.index))
        return representation, columns, (note, *notes)
    if labels.columns is None:
        raise ValueError(f"{path}: name the columns of obs to score against (--factors); {suggestion('', obs)}")
    for name in labels.columns:
        if name not in obs:
            raise ValueError(f"{path}: obs has no column {name!r}; {suggestion(name, obs)}")
    return representation, {name: obs[name] for name in obs}, (note,)


def _matched(
    path: Path, labels: Labels, cells: tuple[Representation, Any] | None = None
) -> tuple[Representation, dict[str, Any], tuple[str, ...]]:
    """Codes, and the columns of labels in the order of their rows; notes where rows were matched, or could not be.

    Without a key, rows are matched by the index that pandas wrote to both tables, if any. `cells` are the codes of a
    .h5ad file and the names of its rows.
    """
    key, table = labels.key, labels.table
    assert table is not None
    needed = None if labels.needed is None else [*labels.needed, key or ""]
    columns = dict(read_columns(table, needed=needed, index=True))
    names = row_names(columns, key)
    lacking = f"no column {key!r} to match rows by; both tables (.csv, .parquet) need one"
    if key is not None and names is None:
        raise ValueError(f"{table}: {lacking}")
    if names is None and cells is not None:
        raise ValueError(f"{table}: --key COLUMN says which column holds the obs_names of {path}")
    tabular = path.suffix.lower() in (".csv", ".parquet")
    representation, rows = cells or (read_table(path, key) if tabular else (_codes(path, ())[0], None))
    if rows is not None and names is not None:
        order = order_of(str(path), rows, str(table), names, key or "index")
        notes = () if order is None else (note_on_order(str(path), str(table), order, key or "index"),)
        return representation, columns if order is None else rows_in_order(columns, order), notes
    if key is not None:
        raise ValueError(f"{path}: {lacking}")
    left = [
        file for file, row_index in ((table, names), (path, rows)) if row_index is not None and not counts(row_index)
    ]
    message = "a column without a name was left out; --key COLUMN matches rows by a column of both tables"
    return representation, columns, tuple(f"{file}: {message}" for file in left)


def _without(representation: Representation, option: str, column: str, path: Path) -> Representation:
    """The representation with one factor turned into the weights or groups of rows."""
    names = [name for name in representation.names if name != column]
    try:
        return replace(
            representation.keep_factors(names),
            **{option: representation.factors[:, representation.names.index(column)]},
        )
    except ValueError as error:
        raise ValueError(f"{path}: --{option} {column}: {error}") from error
