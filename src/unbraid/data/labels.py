"""Labels as people have them: text, categories, booleans, dates, angles of any period, missing ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from unbraid.base.arguments import check_entries, check_number, check_same_rows, list_of
from unbraid.base.arrays import as_array
from unbraid.base.columns import EXACT, as_series, days_since_first, with_dates
from unbraid.base.counted import counted
from unbraid.base.rounding import MOST_ROUNDED, rounded_by
from unbraid.base.suggest import suggestion
from unbraid.base.types import KIND_WORDS, KINDS, BoolArray, FloatArray, IntArray, Kind
from unbraid.data.guessing import (
    NUMBERS_ROWS,
    describe_guess,
    guess_kind,
    note_on_guesses,
    note_on_no_factors,
    refuse_many_levels,
    why_no_factor,
)
from unbraid.files.tables import WITH_POINTS, numbers_with_commas

TURN = 2 * np.pi
MOST_STEPS = 64  # of a circle: angles that lie on this many even steps, or fewer, are levels
SAME_ANGLE = 1e-12  # of the circle
ON_A_STEP = 1e-5  # of a step: single precision leaves half of it of 2 pi on 64 steps
SHOWN_LEVELS = 6


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels as factors: numbers, and what the numbers stand for."""

    factors: FloatArray  # (n_used, n_factors)
    used: BoolArray  # (n_rows,) rows that lack no label
    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    sizes: tuple[int, ...] | None  # where a factor goes around in steps
    levels: tuple[tuple[str, ...], ...]  # names of levels of each factor; none where numbers speak for themselves
    notes: tuple[str, ...]
    periods: tuple[float, ...] = ()  # of factors that are angles in radians, in the unit of the labels, 0 of others
    groups: IntArray | None = None  # (n_used,) 0, 1, ...


class _Column(NamedTuple):
    values: FloatArray  # (n_rows,), whatever where there is none
    missing: BoolArray
    kind: Kind | None  # that the values themselves say
    levels: tuple[str, ...] = ()
    ordered: bool = True  # the levels have an order that somebody gave them
    contents: str = "numbers"
    declared: tuple[str, ...] = ()  # ordered categories, those that no row has among them
    places: tuple[int, ...] = ()  # of levels among these


def _is_table(labels: Any) -> bool:
    """Whether these are columns by name."""
    return isinstance(labels, Mapping) or hasattr(labels, "columns") or hasattr(labels, "column_names")


def read_labels(
    labels: Any,
    *,
    names: Sequence[str] | None = None,
    kinds: Mapping[str, Kind] | Sequence[Kind] | None = None,
    period: Mapping[str, float] | None = None,
    missing: Any = None,
    columns: Sequence[str] | None = None,
    sizes: Sequence[int] | None = None,
    unwanted: str | Sequence[str] = (),
    groups: Any = None,
    shape: tuple[int, ...] | None = None,
) -> Labels:
    """Turn labels into factors.

    Args:
        labels, names, kinds, period, missing, columns, unwanted, groups: as for `Representation.of`; names of columns
            of any type are their text.
        sizes: as for `Representation.of`; where they are given, no note says how many steps a circle is read to have.
        shape: (n_rows, n_codes) of the codes that these label.

    Returns:
        Labels; rows that lack any of their labels are left out, and `notes` say how many and why.

    Raises:
        ValueError: an unknown name or kind; a period that is none; text among numbers; no row has all labels; no column
            is a factor; a factor has too many levels.
    """
    series, table = columns_of(labels, names), _is_table(labels)
    if isinstance(groups, str):
        if groups not in series:
            raise ValueError(f"groups={groups!r} names no column of labels; {suggestion(groups, series)}")
        groups, table = series.pop(groups), True
    chosen = list(series) if columns is None else list(map(str, list_of("columns", columns, single=True)))
    if not chosen:
        raise ValueError("columns is empty; name at least one column of the labels")
    for name in chosen:
        if name not in series:
            raise ValueError(f"labels have no column {name!r}; {suggestion(name, series)}")
    known_kinds = _by_name(kinds, chosen, "kinds")
    periods = _by_name(period, chosen, "period")
    absent = missing if isinstance(missing, Mapping) else dict.fromkeys(chosen, missing)
    absent = _by_name(absent, chosen, "missing")
    read = {name: _read(name, series[name], absent.get(name)) for name in chosen}
    reasons: dict[str, str] = {}
    if columns is None and sizes is None and table:
        reasons = {
            name: reason
            for name, column in read.items()
            if name not in {*known_kinds, *periods, *list_of("unwanted", unwanted, single=True)}
            and numbers_with_commas(column.levels) is None
            and (reason := why_no_factor(name, column.values[~column.missing], text=bool(column.levels)))
        }
        chosen = [name for name in chosen if name not in reasons]
        if not chosen:
            raise ValueError(f"labels have no factors; {note_on_no_factors(reasons)}")
        read = {name: read[name] for name in chosen}
    lengths = {name: len(column.values) for name, column in read.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"columns of labels must have one length; got {_listed(lengths)}")
    used = _used(read)
    if shape is not None:
        check_same_rows(shape, (len(used), len(read)))
    for name, column in read.items() if kinds is None and columns is None and not table else ():
        if why_no_factor("", column.values[used], text=bool(column.levels)) == NUMBERS_ROWS:
            raise ValueError(f"factors column {name} {NUMBERS_ROWS}: leave it out, or give its kind (kinds=)")
    _refuse_constant(read, used)
    radians = not (table or isinstance(kinds, Mapping))  # of a matrix with the kinds of its columns, as they stand
    factors = [_factor(name, read[name], used, known_kinds.get(name), periods.get(name), radians) for name in chosen]
    guesses = [
        factor.guess
        for name, factor in zip(chosen, factors, strict=True)
        if name not in known_kinds and name not in periods
    ]
    notes = [*_note_on_rows(read, used), *(note for factor in factors for note in factor.notes)]
    notes += [note_on_no_factors(reasons)] if reasons else []
    notes += [] if sizes is not None else [factor.circle for factor in factors if factor.circle]
    if guesses:
        notes.append(note_on_guesses(guesses))
    around = any(factor.steps for factor in factors)
    return Labels(
        factors=np.stack([factor.values for factor in factors], axis=1),
        used=used,
        names=tuple(chosen),
        kinds=tuple(factor.kind for factor in factors),
        sizes=tuple(factor.size for factor in factors) if around else None,
        levels=tuple(factor.levels for factor in factors),
        notes=tuple(notes),
        periods=tuple(factor.period for factor in factors) if any(factor.period for factor in factors) else (),
        groups=None if groups is None else check_groups(groups, len(used), used)[used],
    )


def check_groups(groups: Any, n_samples: int, used: BoolArray | None = None) -> IntArray:
    """(n_samples,) numbers 0, 1, ... without gaps in place of labels of any sort; numbers that are so already, as such.

    Rows that are not `used` (default: all are) may lack a label.

    Raises:
        ValueError: they are not one label per row; the message names the first row that has none.
    """
    labels = as_array(groups)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.shape != (n_samples,):
        raise ValueError(f"groups must be one label per row, ({n_samples},); got shape {labels.shape}")
    if labels.dtype.kind in "SUTO":
        import pandas as pd

        # Of a list NumPy writes what is missing as text.
        cells = pd.Series(list(groups) if isinstance(groups, list | tuple) else labels.astype(object), dtype=object)
        labels = np.array([str(cell) for cell in cells], dtype=object)
        absent = cells.isna().to_numpy() | (np.char.strip(labels.astype(str)) == "")
    elif labels.dtype.kind in "biufMm":
        absent = labels != labels  # NaN, and no date
    else:
        raise ValueError(f"groups must be numbers or text; got dtype {labels.dtype}")
    if used is not None:
        absent = absent & used
    if absent.any():
        raise ValueError(f"groups must have a label in every row; row {int(np.argmax(absent))} has none")
    known = labels.dtype == np.int64 and labels.min(initial=0) >= 0 and labels.max(initial=0) < n_samples
    if known and np.bincount(labels).all():
        return labels
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


class _Factor(NamedTuple):
    values: FloatArray  # (n_used,)
    kind: Kind
    levels: tuple[str, ...]
    steps: int  # around the circle; 0 for what does not go around in steps
    guess: str
    notes: tuple[str, ...] = ()
    period: float = 0.0  # of values that have become radians, in the unit of the labels
    circle: str = ""  # note on the steps around, where they may be another number

    @property
    def size(self) -> int:
        """Number of levels; 0 of real values."""
        if self.kind == "continuous" or (self.kind == "cyclic" and not self.steps):
            return 0
        return self.steps or len(self.levels) or len(np.unique(self.values))


def _factor(name: str, column: _Column, used: BoolArray, known: Any, period: Any, radians: bool) -> _Factor:
    values = column.values[used]
    whole = bool((values == np.rint(values)).all())
    kind = known or column.kind or ("cyclic" if period is not None else guess_kind(values))
    if kind not in KINDS:
        raise ValueError(f"kinds[{name!r}] is {kind!r}; {suggestion(str(kind), KINDS, words=KIND_WORDS)}")
    if period is not None and kind != "cyclic":
        raise ValueError(f"{name!r} has a period and is {kind}; only numbers of kind cyclic have one")
    if known is None and column.contents == "text" and (comma := numbers_with_commas(column.levels)) is not None:
        raise ValueError(f"labels column {name!r} holds {comma!r}; {WITH_POINTS}")
    if kind in ("categorical", "ordinal"):
        refuse_many_levels(name, kind, len(np.unique(values)), text=bool(column.levels))
    if column.levels:
        if kind == "continuous" or (kind != "categorical" and not column.ordered):
            raise ValueError(
                f"labels column {name!r} holds {column.contents} and cannot be {kind}; give numbers, or an ordered "
                "pandas Categorical"
            )
        if kind == "cyclic" and column.declared:  # a level that no row has is a step of the circle, too
            values = np.array(column.places, dtype=float)[values.astype(int)]
            return _Factor(
                values, kind, column.declared, len(column.declared), _describe_levels(name, kind, column.declared)
            )
        steps = len(column.levels) if kind == "cyclic" else 0
        return _Factor(values, kind, column.levels, steps, _describe_levels(name, kind, column.levels))
    if kind == "cyclic" and (period is not None or not whole):
        return _Factor(values, kind, (), 0, "") if radians and period is None else _angles(name, values, period)
    notes: tuple[str, ...] = ()
    if known is None and whole and values.min() == -1 and (np.abs(values) != 1).any():
        rows = counted((values == -1).sum(), "row")
        notes = (f"{name} is -1 in {rows}, counted as a level; missing=-1 leaves such rows out",)
    steps = int(values.max()) + 1 if kind == "cyclic" else 0
    circle = _note_on_steps(name, values, steps) if kind == "cyclic" else ""
    return _Factor(values, kind, (), steps, describe_guess(name, kind, values), notes, circle=circle)


def _refuse_constant(read: Mapping[str, _Column], used: BoolArray) -> None:
    values = {name: column.values[used] for name, column in read.items()}
    if constant := [repr(name) for name, column in values.items() if (column == column[0]).all()]:
        are = "is" if len(constant) == 1 else "are"
        raise ValueError(
            f"labels: {', '.join(constant)} {are} constant over the {used.sum()} rows in use: nothing can be measured "
            "against what is constant; leave it out"
        )


def _note_on_steps(name: str, values: FloatArray, steps: int) -> str:
    """What is said where whole numbers hardly count the steps from 0, as months and degrees do not; else nothing."""
    present = np.unique(values)
    if present[0] == 0 and 2 * len(present) >= steps:
        return ""
    levels = f"levels {present[0]:.0f} to {present[-1]:.0f}"
    if present[0] < 0:
        return f"{name}: cyclic with {levels}, which do not count steps from 0; say its period"
    return f"{name}: cyclic with {levels}, read as {steps} steps around; say its period if that is not so"


def _angles(name: str, values: FloatArray, period: Any) -> _Factor:
    """Levels where the angles lie on a few even steps, else radians from 0 to 2 pi."""
    if period is None and np.abs(values).max() > TURN * (1 + 1e-9) + rounded_by(values):
        raise ValueError(
            f"{name!r} is cyclic with real values of {values.min():g} to {values.max():g}, which are no radians "
            f"(-6.28 to 6.28); say its period, as in period={{{name!r}: 360}}"
        )
    length = TURN if period is None else check_number(f"period[{name!r}]", period, above=0)
    turns = np.mod(values / length, 1.0)
    if np.ptp(np.mod(turns - turns[0] + 0.5, 1.0)) < SAME_ANGLE:
        raise ValueError(
            f"labels column {name!r} is one angle of period {length:g} over the {len(values)} rows in use: nothing can "
            "be measured against it; leave it out"
        )
    if steps := _steps_around(values, length):
        levels = tuple(f"{step * length / steps:.6g}" for step in range(steps))
        guess = f"{name} cyclic ({steps} steps of {length / steps:g})"
        return _Factor(np.rint(turns * steps) % steps, "cyclic", levels, steps, guess)
    note = f"{name}: angles of period {length:g}, as radians"
    radians = np.minimum(turns * TURN, np.nextafter(TURN, 0))
    return _Factor(radians, "cyclic", (), 0, f"{name} cyclic", (note,), float(length))


def _steps_around(values: FloatArray, length: float) -> int:
    """The fewest even steps of a circle on which all angles lie; 0 where there is none.

    Rounded angles must be as near to a step as their digits allow, and every step must have one.
    """
    distinct = np.unique(values)
    turns, rounding = np.mod(distinct / length, 1.0), rounded_by(distinct) * (1 + ON_A_STEP)  # a half itself, too
    off = {}
    for steps in range(2, MOST_STEPS + 1):
        places = turns * steps
        off[steps] = float(np.abs(places - np.rint(places)).max())
        if off[steps] < ON_A_STEP:
            return steps
    for steps in off:
        most = rounding * steps / length
        if off[steps] <= most <= MOST_ROUNDED and len(np.unique(np.rint(turns * steps) % steps)) == steps:
            return steps
    return 0


def _describe_levels(name: str, kind: Kind, levels: Sequence[str]) -> str:
    shown = ", ".join(levels[:SHOWN_LEVELS]) + (", ..." if len(levels) > SHOWN_LEVELS else "")
    return f"{name} {kind} ({shown})"


def _used(read: Mapping[str, _Column]) -> BoolArray:
    for name, column in read.items():
        if column.missing.all():
            raise ValueError(f"labels column {name!r} is missing in every row; leave it out")
    used = ~np.any([column.missing for column in read.values()], axis=0)
    if not used.any():
        counts = {name: int(column.missing.sum()) for name, column in read.items() if column.missing.any()}
        raise ValueError(f"no row has all labels (missing: {_listed(counts)} of {len(used)}); choose fewer columns")
    return used


def _note_on_rows(read: Mapping[str, _Column], used: BoolArray) -> list[str]:
    if used.all():
        return []
    counts = {name: int(column.missing.sum()) for name, column in read.items() if column.missing.any()}
    scored = f"{int(used.sum()):,} of {len(used):,} rows are scored, those that lack no label"
    return [f"{scored} (missing: {_listed(counts)})"]


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


def _by_name(entries: Any, names: Sequence[str], what: str) -> dict[str, Any]:
    """Entries by name or in order, by name."""
    if entries is None:
        return {}
    if not isinstance(entries, Mapping):
        check_entries(what, entries, len(names))
        return dict(zip(names, entries, strict=True))
    by_name = {str(name): value for name, value in entries.items()}
    for name in by_name:
        if name not in names:
            raise ValueError(f"{what} names {name!r}, which is no factor; {suggestion(name, names)}")
    return by_name


def columns_of(labels: Any, names: Sequence[str] | None) -> dict[str, Any]:
    """Name and content of each column."""
    if isinstance(labels, Mapping):
        pairs = [(str(name), labels[name]) for name in labels]
    elif _is_table(labels):
        heads = getattr(labels, "column_names", None) or labels.columns  # a pyarrow table has both
        if len(set(heads)) < len(list(heads)):
            raise ValueError(f"two columns of labels have one name: {', '.join(map(str, heads))}")
        pairs = [(str(name), labels[name]) for name in heads]
    else:
        one = str(getattr(labels, "name", None) or "factor_0")
        series = len(getattr(labels, "shape", ())) == 1
        array = labels if series else _matrix(labels)
        fields = getattr(getattr(array, "dtype", None), "names", None)  # of a structured array
        if fields and len(array.shape) == 1:
            pairs = [(field, array[field]) for field in fields]
        elif series or array.ndim == 1:
            pairs = [(one, array)]
        else:
            pairs = [(f"factor_{k}", column) for k, column in enumerate(array.T)]
    if names is not None:
        check_entries("names", list_of("names", names), len(pairs))
        pairs = [(str(name), content) for name, (_, content) in zip(names, pairs, strict=True)]
    if not pairs:
        raise ValueError("labels have no columns")
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError(f"names must differ from each other; got {[name for name, _ in pairs]}")
    return dict(pairs)


def _matrix(labels: Any) -> Any:
    array = labels if isinstance(labels, np.ma.MaskedArray) else as_array(labels)
    # A list of text and numbers would become text throughout.
    array = np.array(labels, dtype=object) if array.dtype.kind in "US" and isinstance(labels, list) else array
    if array.ndim not in (1, 2):
        raise ValueError(f"factors must be a matrix (n_samples, n_factors); got shape {array.shape}")
    return array


def _read(name: str, content: Any, absent: Any) -> _Column:
    if absent is None and type(content) is np.ndarray and content.dtype.kind in "iuf":
        values = content.astype(np.float64)
        if (np.abs(values) < EXACT).all():  # numbers in every row, for which pandas need not be loaded
            return _Column(values, np.zeros(len(values), dtype=bool), None)
    if not isinstance(absent, list | tuple | set | frozenset | np.ndarray):
        absent = [] if absent is None else [absent]
    series = as_series(content, f"labels column {name!r}", absent)
    contents = "text" if series.dtype == object else "categories"
    series = with_dates(series)
    missing = series.isna().to_numpy()
    if series.dtype.kind in "mM":
        return _Column(np.nan_to_num(days_since_first(series)), missing, "continuous", contents="dates")
    if series.dtype == "boolean":
        values = series.to_numpy(dtype=float, na_value=0.0)
        return _Column(values, missing, "categorical", ("False", "True"), contents="booleans")
    if series.dtype.kind == "f":
        return _Column(np.where(missing, 0.0, series), missing, None)
    categories = (series if series.dtype == "category" else series.astype("category")).cat
    ordered, names, codes = bool(categories.ordered), list(map(str, categories.categories)), categories.codes.to_numpy()
    present = np.unique(codes[~missing])
    places = np.where(missing, 0, np.searchsorted(present, codes))
    return _Column(
        places.astype(float), missing, "ordinal" if ordered else "categorical", tuple(names[code] for code in present),
        ordered, contents, declared=tuple(names) if ordered else (), places=tuple(present.tolist()),
    )  # fmt: skip


def rows_with_labels(factors: FloatArray, names: Sequence[str]) -> tuple[BoolArray, list[str]]:
    """(n_rows,) which rows of (n_rows, n_factors) numbers hold no NaN, and the note that counts the others.

    Raises:
        ValueError: none do; the message names the factor that is NaN throughout, if there is one.
    """
    columns = zip(names, factors.T, strict=True)
    read = {name: _Column(column, np.isnan(column), None) for name, column in columns}
    used = _used(read)
    return used, _note_on_rows(read, used)
