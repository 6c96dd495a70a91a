"""Codes of a file or of a run, with labels that lie in another table."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from unbraid.base.arrays import as_full, in_columns
from unbraid.base.suggest import suggestion
from unbraid.data import POSTERIOR, Representation
from unbraid.data.guessing import note_on_guesses
from unbraid.data.h5ad import H5AD, read_h5ad
from unbraid.data.labels import read_labels
from unbraid.data.representation import load_codes, read_table, row_names
from unbraid.data.row_index import counts, note_on_order, order_of, rows_in_order
from unbraid.files.tables import names_in, read_columns, read_sparse
from unbraid.runs.folder import read_codes
from unbraid.runs.foreign_models import is_run, label_file, require_codes

NO_KEY = "{}: sparse codes have no column that names their rows; leave --key out to match rows by position"
NO_LABELS = "{}: it holds codes alone; --labels FILE gives them factors"
DECIMALS = 9  # to which radians become the label that they were: 37, not 37.00000000000001


@dataclass(frozen=True)
class Labels:
    """Which labels codes are scored against, and what is known of them; by default the factors of their own file."""

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
    def about(self) -> dict[str, Any]:
        """What `Representation.of` is told of the labels."""
        about = {"kinds": self.kinds, "period": self.period, "missing": self.missing}
        return {name: value for name, value in about.items() if value is not None}

    @property
    def own(self) -> bool:
        """Whether the factors are those of the codes' own file, as it describes them."""
        return self.table is None and not self.about

    @property
    def needed(self) -> list[str] | None:
        """The columns whose labels no row may lack; None: all."""
        return None if self.columns is None else list(dict.fromkeys([*self.columns, *self.taken.values()]))

    @property
    def taken(self) -> dict[str, str]:
        """Columns that are no factors, by what they are."""
        named = {"weights": self.weights, "groups": self.groups}
        return {option: column for option, column in named.items() if column is not None}


def read_labelled(path: Path, labels: Labels) -> tuple[Representation, tuple[str, ...]]:
    """Codes with the factors asked for, and the names of these where they are not all.

    Raises:
        FileNotFoundError: there is no such file or folder.
        ValueError: a damaged file, labels that do not fit the codes, or no such column.
    """
    path, labels, beside_codes = located(path, labels)
    cells = path.suffix.lower() == H5AD
    _check_options(path, labels, cells)
    if labels.table is None and not cells:
        return _own(path, labels)
    held, columns, notes = _read(path, labels)
    _check_no_codes(labels, columns)
    notes = (*beside_codes, *notes)
    about = labels.about
    beside: dict[str, Any] = {} if held.groups is None else {"groups": held.groups}
    for option, column in labels.taken.items():
        if column not in columns:
            known = suggestion(column, columns)
            raise ValueError(f"{labels.table or path}: no column {column!r} for --{option}; {known}")
        beside[option] = columns.pop(column)
        about["kinds"] = {name: kind for name, kind in about.get("kinds", {}).items() if name != column}
    if labels.taken and not columns:
        raise ValueError(f"{labels.table or path}: no column is left to score against, beside {_listed(labels)}")
    posterior = {name: getattr(held, name) for name in POSTERIOR}
    try:
        made = Representation.of(
            held.codes, columns, columns=labels.columns, unwanted=labels.unwanted, code_names=held.code_names,
            code_blocks=held.code_blocks, **beside, **about, **posterior,
        )  # fmt: skip
    except ValueError as error:
        raise ValueError(f"{labels.table or path}: {error}") from error
    return replace(made, notes=(*notes, *made.notes)), tuple(labels.columns or ())


def _listed(labels: Labels) -> str:
    return " and ".join(f"--{option} {column}" for option, column in labels.taken.items())


def _own(path: Path, labels: Labels) -> tuple[Representation, tuple[str, ...]]:
    """The factors of the codes' own file: as it describes them, but for those that the options say something of."""
    kinds, period = labels.kinds or {}, labels.period or {}
    held, every = _with_factors(path, labels)
    if labels.about and not every:
        raise ValueError(NO_LABELS.format(path))
    for option, named in (("kinds", kinds), ("period", period)):
        for name in named:
            if name not in every:
                raise ValueError(f"{path}: {option} names {name!r}, which is no factor; {suggestion(name, every)}")
    for option, column in labels.taken.items():
        if column not in held.names:
            raise ValueError(f"{path}: no column {column!r} for --{option}; {suggestion(column, every)}")
        held = _without(held, option, column, path)
    for name in labels.columns or ():
        if name not in every:
            raise ValueError(f"{path}: no factor {name!r}; {suggestion(name, every)}")
    names = held.names if labels.columns is None else tuple(labels.columns)
    held = held.keep_factors(names)
    try:
        if names and (labels.missing is not None or (labels.about and np.isnan(held.factors.astype(float)).any())):
            held = _with_all_labels(held, labels.missing)
        for name in names:
            if name in kinds or name in period:
                held = _retold(held, name, kinds.get(name), period.get(name))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return held, () if names == every else names


def _with_all_labels(held: Representation, missing: Sequence[float | str] | None) -> Representation:
    """The rows that lack no label, and a note on how many these are."""
    levels = held.levels or ((),) * len(held.names)
    kinds: dict[str, Any] = {
        name: "categorical" if own else "continuous" for name, own in zip(held.names, levels, strict=True)
    }
    read = read_labels({name: _as_labels(held, name) for name in held.names}, kinds=kinds, missing=missing)
    if read.used.all():
        return held
    return replace(held.keep_rows(np.flatnonzero(read.used)), notes=(*held.notes, *read.notes))


def _retold(held: Representation, name: str, kind: Any, period: float | None) -> Representation:
    """With one factor of another kind, or of numbers that go around."""
    column = held.names.index(name)
    levels = held.levels[column] if held.levels else ()
    before = held.kinds[column]
    angle = before == "cyclic" and bool((held.factors[:, column].astype(float) % 1).any())
    if period is not None and angle:
        raise ValueError(f"the file holds {name!r} as an angle, in radians; leave its period out")
    if period is not None and levels:
        raise ValueError(
            f"the file holds {name!r} as levels with names ({', '.join(levels[:2])}, ...), which have no period"
        )
    notes = _but_of(held.notes, name, before)
    if period is None and kind == before:
        return replace(held, notes=notes)
    numbers = held.factors[:, column] if levels else _as_labels(held, name)
    kinds = {} if kind is None else {name: kind}
    read = read_labels({name: numbers}, kinds=kinds, period=None if period is None else {name: period})
    (found,) = read.kinds
    # Other kinds have as many levels as before, by the same names; real values have none.
    size, known = (read.sizes or (0,))[0], (held.sizes or (0,) * len(held.names))[column]
    if period is None:
        size = 0 if found == "continuous" else known or size
        levels = () if found == "continuous" else levels
    else:
        levels = read.levels[0]
    factors = held.factors.astype(float)
    factors[:, column] = read.factors[:, 0]
    sizes = _with(held.sizes or (0,) * len(held.names), column, size)
    notes = [note for note in notes if not (angle and note.startswith(f"{name}: angles of period "))]
    periods = _with(held.periods or (0.0,) * len(held.names), column, (read.periods or (0.0,))[0])
    return replace(
        held, factors=factors, kinds=_with(held.kinds, column, found), sizes=sizes if any(sizes) else held.sizes,
        levels=_with(held.levels or ((),) * len(held.names), column, levels),
        periods=periods if any(periods) else (), notes=(*notes, *read.notes),
    )  # fmt: skip


def _but_of(notes: Sequence[str], name: str, kind: str) -> tuple[str, ...]:
    """The notes of a file without what they guess of a factor whose kind somebody has said now."""
    before, after = note_on_guesses(["\n"]).split("\n")
    entry = re.compile(rf"(^|, ){re.escape(name)} {kind}( \([^()]*\))?(?=, |$)")
    kept: list[str] = []
    for note in notes:
        if not (note.startswith(before) and note.endswith(after)):
            kept.append(note)
        elif others := entry.sub("", note[len(before) : -len(after)]).removeprefix(", "):
            kept.append(f"{before}{others}{after}")
    return tuple(kept)


def _with(entries: Sequence[Any], place: int, entry: Any) -> tuple[Any, ...]:
    return (*entries[:place], entry, *entries[place + 1 :])


def _as_labels(held: Representation, name: str) -> Any:
    """A factor of a file as labels: by the names of its levels, and angles in the unit that they had."""
    column = held.names.index(name)
    numbers = held.factors[:, column].astype(float)
    if held.levels and held.levels[column]:
        names = dict(enumerate(held.levels[column]))
        texts = [None if each != each else names.get(each, f"{each:g}") for each in numbers.tolist()]
        return np.array(texts, dtype=object)
    if held.periods and held.periods[column]:
        return np.round(held.in_label_units()[:, column], DECIMALS)
    return numbers


def located(path: Path, labels: Labels) -> tuple[Path, Labels, tuple[str, ...]]:
    """The file of codes in the folder of a model of another framework, and the labels beside it; others as they are.

    Labels that are named, or stand in the file of codes, come before those beside it. A note says which were taken.

    Raises:
        FileNotFoundError: no file in the folder is called as codes are.
        ValueError: several are.
    """
    if not path.is_dir() or is_run(path):
        return path, labels, ()
    codes = require_codes(path, labels.codes)
    labels = replace(labels, codes=None)
    table = None if labels.table is not None or _has_factors(codes) else label_file(path, codes)
    if table is None:
        return codes, labels, ()
    where = "beside the codes" if table.parent in (path, codes.parent) else "in the folder above"
    return codes, replace(labels, table=table), (f"labels are those of {table.name} {where}",)


def _has_factors(codes: Path) -> bool:
    suffix = codes.suffix.lower()
    if suffix == ".npz":
        return "factors" in names_in(codes)
    return suffix != ".npy" and bool(read_codes(codes).names)


def read_label_columns(path: Path, labels: Labels) -> dict[str, Any]:
    """The columns of labels asked for, beside sparse codes that are read by columns themselves."""
    if labels.key is not None:
        raise ValueError(NO_KEY.format(path))
    if labels.table is None:
        raise ValueError(NO_LABELS.format(path))
    columns = dict(read_columns(labels.table, asked=labels.needed))
    _check_no_codes(labels, columns)
    for name in labels.columns or ():
        if name not in columns:
            raise ValueError(f"{labels.table}: no column {name!r}; {suggestion(name, columns)}")
    return {name: columns[name] for name in labels.columns} if labels.columns else columns


def _check_options(path: Path, labels: Labels, cells: bool) -> None:
    if labels.codes is not None and not cells:
        raise ValueError(f"{path}: --codes names an embedding of a {H5AD} file; this file holds one matrix of codes")
    if labels.key is not None and labels.table is None:
        raise ValueError("--key matches the rows of --labels to those of the codes; give --labels, too")
    for option, column in labels.taken.items():
        if column in (labels.columns or ()):
            told = "leave it out of --factors and --unwanted"
            raise ValueError(f"--{option} {column} makes this column no factor: {told}")


def _full(path: Path, labels: Labels) -> Representation | None:
    """Sparse codes as a full array, where that is asked for; None of other files."""
    sparse = read_sparse(path) if labels.dense and path.is_file() else None
    return None if sparse is None else Representation(as_full(sparse))


def _with_factors(path: Path, labels: Labels) -> tuple[Representation, tuple[str, ...]]:
    """The codes and factors of a file or of a run, and the names of all factors that it has.

    A row stays if it lacks a label of factors alone that nobody asked for; runs have no such rows.
    """
    held = _full(path, labels)
    if held is None and path.is_file():
        return load_codes(path, labels.needed)
    held = read_codes(path) if held is None else held
    return held, held.names


def _check_no_codes(labels: Labels, columns: Collection[str]) -> None:
    """Raises ValueError for a file of codes, whose codes would be taken for factors."""
    if labels.columns is None and (found := {"codes_0", "code_0"} & set(columns)):
        kind = "array 'codes'" if "codes_0" in found else "column 'code_0'"
        raise ValueError(
            f"{labels.table}: it holds codes ({kind}), and a table of labels holds factors alone; --factors names the "
            "columns to use"
        )


def _read(path: Path, labels: Labels) -> tuple[Representation, dict[str, Any], tuple[str, ...]]:
    """Codes, the columns of labels in the order of their rows, and notes on the codes and on how rows were matched."""
    if labels.table is None or path.suffix.lower() == H5AD:
        return _of_cells(path, labels)
    if (held := _full(path, labels)) is None:
        return _matched(path, labels.table, labels)
    if labels.key is not None:
        raise ValueError(NO_KEY.format(path))
    return held, dict(read_columns(labels.table, asked=labels.needed)), ()


def _of_cells(path: Path, labels: Labels) -> tuple[Representation, dict[str, Any], tuple[str, ...]]:
    """An embedding of a .h5ad file, whose rows go by the names of its `obs`, with the columns of that."""
    key, codes, obs = read_h5ad(path, labels.codes)
    codes, blocks = in_columns(codes) if codes.ndim == 3 else (codes, None)
    note = f"codes are {key} of its obsm"
    try:
        held = Representation(as_full(codes) if labels.dense else codes, code_blocks=blocks)
    except ValueError as error:
        raise ValueError(f"{path}: obsm {key!r}: {error}") from error
    if labels.table is not None:
        held, columns, notes = _matched(path, labels.table, labels, (held, obs.index))
        return held, columns, (note, *notes)
    if labels.columns is None:
        raise ValueError(f"{path}: name the columns of obs to score against (--factors); {suggestion('', obs)}")
    for name in labels.columns:
        if name not in obs:
            raise ValueError(f"{path}: obs has no column {name!r}; {suggestion(name, obs)}")
    return held, {name: obs[name] for name in obs}, (note,)


def _matched(
    path: Path, table: Path, labels: Labels, cells: tuple[Representation, Any] | None = None
) -> tuple[Representation, dict[str, Any], tuple[str, ...]]:
    """Codes, and the columns of labels in the order of their rows; notes where rows were matched, or could not be.

    Without a key by the index that pandas wrote to both tables, if it did. `cells` are the codes of a .h5ad file, and
    what it calls their rows.
    """
    key = labels.key
    asked = None if labels.needed is None else [*labels.needed, key or ""]
    columns = dict(read_columns(table, asked=asked, index=True))
    names = row_names(columns, key)
    lacking = f"no column {key!r} to match rows by; both tables (.csv, .parquet) need one"
    if key is not None and names is None:
        raise ValueError(f"{table}: {lacking}")
    if names is None and cells is not None:
        raise ValueError(f"{table}: --key COLUMN says which column holds the obs_names of {path}")
    tabular = path.suffix.lower() in (".csv", ".parquet")
    held, rows = cells or (read_table(path, key) if tabular else (_without_factors(path), None))
    if rows is not None and names is not None:
        order = order_of(str(path), rows, str(table), names, key or "index")
        notes = () if order is None else (note_on_order(str(path), str(table), order, key or "index"),)
        return held, columns if order is None else rows_in_order(columns, order), notes
    if key is not None:
        raise ValueError(f"{path}: {lacking}")
    left = [file for file, found in ((table, names), (path, rows)) if found is not None and not counts(found)]
    said = "a column without a name was left out; --key COLUMN matches rows by a column of both tables"
    return held, columns, tuple(f"{file}: {said}" for file in left)


def _without_factors(path: Path) -> Representation:
    """The codes of a file or of a run; of no row that lacks a label in the file is one missing."""
    return load_codes(path, ())[0] if path.is_file() else read_codes(path)


def _without(held: Representation, option: str, column: str, path: Path) -> Representation:
    """One factor taken for the weights or the groups of rows."""
    others = [name for name in held.names if name != column]
    try:
        return replace(held.keep_factors(others), **{option: held.factors[:, held.names.index(column)]})
    except ValueError as error:
        raise ValueError(f"{path}: --{option} {column}: {error}") from error
