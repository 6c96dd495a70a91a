"""Labels as people have them: text, categories, booleans, dates, angles of any period, missing ones."""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from unbraid._utils.arguments import check_entries, check_number, list_of
from unbraid._utils.arrays import as_array, categories_of, refuse_lazy
from unbraid._utils.counted import counted
from unbraid._utils.dates import DATES, SPANS, moment
from unbraid._utils.rounding import MOST_ROUNDED, rounded_by
from unbraid._utils.suggest import suggestion
from unbraid.factors.guessing import (
    describe_guess,
    guess_kind,
    note_on_guesses,
    note_on_no_factors,
    refuse_many_levels,
    why_no_factor,
)
from unbraid.storage.tables import EXACT, WITH_POINTS, numbers_with_commas
from unbraid.types import KIND_WORDS, KINDS, BoolArray, FloatArray, IntArray, Kind

TURN = 2 * np.pi
MOST_STEPS = 64  # of a circle: angles that lie on this many even steps, or fewer, are levels
SAME_ANGLE = 1e-12  # of the circle
ON_A_STEP = 1e-5  # of a step: single precision leaves half of it of 2 pi on 64 steps
SHOWN_LEVELS = 6
_NO_VALUE = {"NAType", "NaTType", "MaskedConstant"}  # of pandas and NumPy, which cannot be compared


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


class _Column(NamedTuple):
    values: FloatArray  # (n_rows,), whatever where there is none
    missing: BoolArray
    kind: Kind | None  # that the values themselves say
    levels: tuple[str, ...] = ()
    ordered: bool = True  # the levels have an order that somebody gave them
    said: str = "numbers"
    declared: tuple[str, ...] = ()  # ordered categories, those that no row has among them
    places: tuple[int, ...] = ()  # of levels among these


class _NoLabel(NamedTuple):
    """Values that stand for no label, by what they are compared with."""

    texts: frozenset[str]
    numbers: frozenset[float]
    booleans: frozenset[bool]
    dates: tuple[Any, ...]
    spans: tuple[Any, ...]  # of time


def is_plain(labels: Any) -> bool:
    """Whether these are finite numbers in a matrix, with nothing to be found out about them."""
    refuse_lazy(labels)
    if _is_table(labels):
        return False
    if hasattr(labels, "to_numpy") and len(getattr(labels, "shape", ())) == 1:  # one column of a frame, by its name
        return False
    try:
        array = as_array(labels)
    except ValueError:
        return False
    if array.ndim == 1:  # of one factor
        return False
    return array.dtype.kind in "iuc" or (array.dtype.kind == "f" and not np.isnan(array).any())


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
) -> Labels:
    """Turn labels into factors.

    Args:
        labels, names, kinds, period, missing, columns, unwanted: as for `Representation.of`; names of columns of any
            type are their text.
        sizes: as for `Representation.of`; where they are given, no note says how many steps a circle is read to have.

    Returns:
        Labels; rows that lack any of their labels are left out, and `notes` say how many and why.

    Raises:
        ValueError: an unknown name or kind; a period that is none; text among numbers; no row has all labels; no column
            is a factor; a factor has too many levels.
    """
    series = columns_of(labels, names)
    chosen = list(series) if columns is None else list(map(str, list_of("columns", columns, single=True)))
    if not chosen:
        raise ValueError("columns is empty; name at least one column of the labels")
    for name in chosen:
        if name not in series:
            raise ValueError(f"labels have no column {name!r}; {suggestion(name, series)}")
    told = _by_name(kinds, chosen, "kinds")
    periods = _by_name(period, chosen, "period")
    absent = missing if isinstance(missing, Mapping) else dict.fromkeys(chosen, missing)
    absent = _by_name(absent, chosen, "missing")
    read = {name: _read(name, series[name], _no_label(absent.get(name))) for name in chosen}
    reasons: dict[str, str] = {}
    if columns is None and sizes is None and _is_table(labels):
        reasons = {
            name: reason
            for name, column in read.items()
            if name not in {*told, *periods, *list_of("unwanted", unwanted, single=True)}
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
    _refuse_constant(read, used)
    found = [_factor(name, read[name], used, told.get(name), periods.get(name)) for name in chosen]
    guesses = [each.said for name, each in zip(chosen, found, strict=True) if name not in told and name not in periods]
    notes = [*_note_on_rows(read, used), *(note for each in found for note in each.notes)]
    notes += [note_on_no_factors(reasons)] if reasons else []
    notes += [] if sizes is not None else [each.circle for each in found if each.circle]
    if guesses:
        notes.append(note_on_guesses(guesses))
    around = any(each.steps for each in found)
    return Labels(
        factors=np.stack([each.values for each in found], axis=1),
        used=used,
        names=tuple(chosen),
        kinds=tuple(each.kind for each in found),
        sizes=tuple(each.size for each in found) if around else None,
        levels=tuple(each.levels for each in found),
        notes=tuple(notes),
        periods=tuple(each.period for each in found) if any(each.period for each in found) else (),
    )


def check_groups(groups: Any, n_samples: int, used: BoolArray | None = None) -> IntArray:
    """(n_samples,) numbers 0, 1, ... without gaps in place of labels of any sort; numbers that are so already, as such.

    Rows that are not `used` (default: all are) may lack a label.

    Raises:
        ValueError: they are not one label per row; the message names the first row that has none.
    """
    labels = as_array(groups)
    # Of a list NumPy writes what is missing as text. To look at each label takes long, at the types of all does not.
    if labels.dtype.kind == "U" and isinstance(groups, list | tuple) and set(map(type, groups)) != {str}:
        labels = np.array(groups, dtype=object)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.dtype.kind == "T":  # text of any length
        labels = labels.astype(object)
    if labels.shape != (n_samples,):
        raise ValueError(f"groups must be one label per row, ({n_samples},); got shape {labels.shape}")
    if labels.dtype.kind not in "biufUSOMm":
        raise ValueError(f"groups must be numbers or text; got dtype {labels.dtype}")
    if labels.dtype.kind == "O":
        absent = np.array([_is_missing(each) or not str(each).strip() for each in labels], dtype=bool)
        labels = np.array([str(each) for each in labels], dtype=object)
    elif labels.dtype.kind == "U":
        absent = np.char.strip(labels) == ""
    else:
        absent = labels != labels  # NaN, and no date
    if used is not None:
        absent &= used
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
    said: str
    notes: tuple[str, ...] = ()
    period: float = 0.0  # of values that have become radians, in the unit of the labels
    circle: str = ""  # note on the steps around, where they may be another number

    @property
    def size(self) -> int:
        """Number of levels; 0 of real values."""
        if self.kind == "continuous" or self.period:
            return 0
        return self.steps or len(self.levels) or len(np.unique(self.values))


def _factor(name: str, column: _Column, used: BoolArray, told: Any, period: Any) -> _Factor:
    values = column.values[used]
    whole = bool((values == np.rint(values)).all())
    kind = told or column.kind or ("cyclic" if period is not None else guess_kind(values))
    if kind not in KINDS:
        raise ValueError(f"kinds[{name!r}] is {kind!r}; {suggestion(str(kind), KINDS, words=KIND_WORDS)}")
    if period is not None and kind != "cyclic":
        raise ValueError(f"{name!r} has a period and is {kind}; only numbers of kind cyclic have one")
    if told is None and column.said == "text" and (comma := numbers_with_commas(column.levels)) is not None:
        raise ValueError(f"labels column {name!r} holds {comma!r}; {WITH_POINTS}")
    if kind in ("categorical", "ordinal"):
        refuse_many_levels(name, kind, len(np.unique(values)), text=bool(column.levels))
    if column.levels:
        if kind == "continuous" or (kind != "categorical" and not column.ordered):
            raise ValueError(
                f"labels column {name!r} holds {column.said} and cannot be {kind}; give numbers, or an ordered "
                "pandas Categorical"
            )
        if kind == "cyclic" and column.declared:  # a level that no row has is a step of the circle, too
            values = np.array(column.places, dtype=float)[values.astype(int)]
            return _Factor(values, kind, column.declared, len(column.declared), _told(name, kind, column.declared))
        steps = len(column.levels) if kind == "cyclic" else 0
        return _Factor(values, kind, column.levels, steps, _told(name, kind, column.levels))
    if kind == "cyclic" and (period is not None or not whole):
        return _angles(name, values, period)
    notes: tuple[str, ...] = ()
    if told is None and whole and values.min() == -1 and (np.abs(values) != 1).any():
        rows = counted((values == -1).sum(), "row")
        notes = (f"{name} is -1 in {rows}, counted as a level; missing=-1 leaves such rows out",)
    steps = int(values.max()) + 1 if kind == "cyclic" else 0
    circle = _note_on_steps(name, values, steps) if kind == "cyclic" else ""
    return _Factor(values, kind, (), steps, describe_guess(name, kind, values), notes, circle=circle)


def _refuse_constant(read: Mapping[str, _Column], used: BoolArray) -> None:
    values = {name: column.values[used] for name, column in read.items()}
    constant = [repr(name) for name, own in values.items() if (own == own[0]).all()]
    if constant:
        columns, are, them = ("column", "is", "it") if len(constant) == 1 else ("columns", "are", "them")
        raise ValueError(
            f"labels {columns} {', '.join(constant)} {are} constant over the {used.sum()} rows in use: nothing can be "
            f"measured against {them}; leave {them} out"
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
        said = f"{name} cyclic ({steps} steps of {length / steps:g})"
        return _Factor(np.rint(turns * steps) % steps, "cyclic", levels, steps, said)
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


def _told(name: str, kind: Kind, levels: Sequence[str]) -> str:
    shown = ", ".join(levels[:SHOWN_LEVELS]) + (", ..." if len(levels) > SHOWN_LEVELS else "")
    return f"{name} {kind} ({shown})"


def _used(read: Mapping[str, _Column]) -> BoolArray:
    if not len(next(iter(read.values())).missing):
        raise ValueError("labels have no rows")
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
    kept = f"{int(used.sum()):,} of {len(used):,} rows are scored, those that lack no label"
    return [f"{kept} (missing: {_listed(counts)})"]


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


def _by_name(given: Any, names: Sequence[str], what: str) -> dict[str, Any]:
    """What is given by name or in order, by name."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        check_entries(what, given, len(names))
        return dict(zip(names, given, strict=True))
    by_name = {str(name): value for name, value in given.items()}
    for name in by_name:
        if name not in names:
            raise ValueError(f"{what} names {name!r}, which is no factor; {suggestion(name, names)}")
    return by_name


def columns_of(labels: Any, names: Sequence[str] | None) -> dict[str, Any]:
    """Name and content of each column."""
    refuse_lazy(labels)
    if isinstance(labels, Mapping):
        pairs = [(str(name), labels[name]) for name in labels]
    elif _is_table(labels):
        called = getattr(labels, "column_names", None) or labels.columns  # a pyarrow table has both
        if len(set(called)) < len(list(called)):
            raise ValueError(f"two columns of labels have one name: {', '.join(map(str, called))}")
        pairs = [(str(name), labels[name]) for name in called]
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
    try:
        array = labels if isinstance(labels, np.ma.MaskedArray) else as_array(labels)
        # A list of text and numbers would become text throughout.
        array = np.array(labels, dtype=object) if array.dtype.kind in "US" and isinstance(labels, list) else array
    except ValueError as error:
        raise ValueError(f"factors must be a matrix (n_samples, n_factors) or columns by name ({error})") from None
    if array.ndim not in (1, 2):
        raise ValueError(f"factors must be a matrix (n_samples, n_factors); got shape {array.shape}")
    return array


def _read(name: str, content: Any, absent: _NoLabel) -> _Column:
    categories = categories_of(content)
    if categories is not None:
        return _named(*categories, absent)
    try:
        array = as_array(_unmasked(content) if isinstance(content, np.ma.MaskedArray) else content)
    except ValueError as error:
        raise ValueError(f"labels column {name!r}: {error}") from None
    if array.ndim == 2 and 1 in array.shape[1:]:
        array = array[:, 0]
    if array.ndim != 1 or array.dtype.kind in "cV":
        found = f"{array.dtype} {array.shape}"
        raise ValueError(f"labels column {name!r} must be one number, text or date per row; got {found}")
    if array.dtype.kind in "SUT":  # which a list of text and numbers becomes, too
        array = np.array(content, dtype=object) if isinstance(content, list | tuple) else array.astype(object)
    if array.dtype.kind == "O":
        return _of_objects(name, _decoded(name, array), absent)
    if array.dtype.kind == "b":
        missing = np.array([_is_any_of(each, absent) for each in (False, True)])[array.astype(int)]
        return _Column(array.astype(float), missing, "categorical", ("False", "True"), said="booleans")
    if array.dtype.kind in "mM":
        return _of_dates(array, absent)
    values = array.astype(float)
    if array.dtype.kind in "iu":
        _refuse_rounded(name, array, values, np.arange(len(array)))
    missing = np.isnan(values) | np.isin(values, list(absent.numbers))
    infinite = np.isinf(values) & ~missing
    if infinite.any():
        row = int(np.argmax(infinite))
        raise ValueError(f"labels column {name!r}, row {row} is {values[row]}; expected finite numbers")
    return _Column(np.where(missing, 0.0, values), missing, None)


def _refuse_rounded(name: str, whole: Any, values: FloatArray, rows: IntArray) -> None:
    """Raises ValueError where whole numbers that differ are one float; the first too large is named."""
    large = np.abs(values) >= EXACT
    if large.any() and len(np.unique(values)) < len(np.unique(whole)):
        first = int(np.argmax(large))
        raise ValueError(
            f"labels column {name!r}, row {rows[first]} is {whole[first]}: above 2^53 whole numbers cannot be told "
            "apart; give its levels as text, or number them from 0"
        )


def _unmasked(content: Any) -> Any:
    """The array below a mask, with NaN, NaT or None where it is masked."""
    array, mask = np.asarray(content), np.ma.getmaskarray(content)
    if array.dtype.kind in "iuf":
        return np.where(mask, np.nan, array.astype(float))
    if array.dtype.kind in "mM":
        return np.where(mask, np.array("NaT", dtype=array.dtype), array)
    array = array.astype(object)
    array[mask] = None
    return array


def _decoded(name: str, array: Any) -> Any:
    """The same objects with text in place of bytes, which HDF5 files hold.

    Raises:
        ValueError: they are not in UTF-8; the message names the row.
    """
    coded = [row for row, each in enumerate(array) if isinstance(each, bytes)]
    array = array.copy() if coded else array
    for row in coded:
        try:
            array[row] = array[row].decode()
        except UnicodeDecodeError:
            found = f"labels column {name!r}, row {row} is {array[row]!r}"
            raise ValueError(f"{found}, which is no text in UTF-8; decode the column first") from None
    return array


def _named(codes: Any, categories: list[Any], ordered: bool, absent: _NoLabel) -> _Column:
    names = [_as_text(each) for each in categories]
    gone = [_is_any_of(each, absent) or name in absent.texts for each, name in zip(categories, names, strict=True)]
    missing = (codes < 0) | np.isin(codes, np.flatnonzero(gone))
    present = np.unique(codes[~missing])
    levels = tuple(names[code] for code in present)
    places = np.searchsorted(present, np.where(missing, present[:1].sum(), codes)) if len(present) else codes
    kept = np.flatnonzero(~np.array(gone, dtype=bool))  # what stands for no label is no step of a circle
    return _Column(
        places.astype(float), missing, "ordinal" if ordered else "categorical", levels, ordered, "categories",
        declared=tuple(names[code] for code in kept) if ordered else (),
        places=tuple(np.searchsorted(kept, present).tolist()),
    )  # fmt: skip


def _of_objects(name: str, array: Any, absent: _NoLabel) -> _Column:
    missing = np.array([_is_missing(each) for each in array], dtype=bool)
    missing |= np.array(
        [not m and _is_any_of(each, absent) for each, m in zip(array, missing, strict=True)], dtype=bool
    )
    rows = np.flatnonzero(~missing)
    sorts = np.array([_sort(each) for each in array[rows]])
    if len(set(sorts.tolist())) > 1:
        other = rows[int(np.argmax(sorts != sorts[0]))]
        raise ValueError(
            f"labels column {name!r} mixes {sorts[0]} ({array[rows[0]]!r}, row {rows[0]}) and "
            f"{sorts[sorts != sorts[0]][0]} ({array[other]!r}, row {other}); give one or the other"
        )
    sort = sorts[0] if len(sorts) else "numbers"
    if sort == "text":
        levels = sorted({_as_text(each) for each in array[rows]})
        if len(days := _dates_in(levels)) == len(levels) and all("-" in level for level in levels):
            dates = dict(zip(levels, map(moment, days), strict=True))
            gaps = [
                np.datetime64("NaT") if gone else dates[_as_text(each)]
                for each, gone in zip(array, missing, strict=True)
            ]
            return _of_dates(np.array(gaps, dtype="datetime64[us]"), _no_label(None))
        places = {level: place for place, level in enumerate(levels)}
        values = [0 if gone else places[_as_text(each)] for each, gone in zip(array, missing, strict=True)]
        return _Column(np.array(values, dtype=float), missing, "categorical", tuple(levels), False, "text")
    if sort == "dates":
        moments = [np.datetime64("NaT") if gone else moment(each) for each, gone in zip(array, missing, strict=True)]
        return _of_dates(np.array(moments, dtype="datetime64[us]"), _no_label(None))
    if sort == "spans of time":
        spans = [np.timedelta64("NaT") if gone else each for each, gone in zip(array, missing, strict=True)]
        return _of_dates(np.array(spans, dtype="timedelta64[us]"), _no_label(None))
    if sort == "booleans":
        values = [not gone and bool(each) for each, gone in zip(array, missing, strict=True)]
        return _Column(np.array(values, dtype=float), missing, "categorical", ("False", "True"), said="booleans")
    if sort != "numbers":
        raise ValueError(f"labels column {name!r} holds {sort}, as in row {rows[0]}; expected numbers, text or dates")
    numbers = np.full(len(array), np.nan)
    for row in rows:
        try:
            numbers[row] = float(array[row])
        except OverflowError:  # a whole number of more than 308 digits
            raise ValueError(
                f"labels column {name!r}, row {row} is a whole number that no float holds; give its levels as text, or "
                "number them from 0"
            ) from None
    if all(isinstance(each, int | np.integer) for each in array[rows]):
        _refuse_rounded(name, array[rows], numbers[rows], rows)
    return _read(name, numbers, _no_label(None))


def _of_dates(array: Any, absent: _NoLabel) -> _Column:
    """Days since the first."""
    dates = array.dtype.kind == "M"
    unit = array.astype("datetime64[us]" if dates else "timedelta64[us]")
    told = [moment(_on_the_clock(each)) for each in absent.dates] if dates else [*absent.spans]
    missing = np.isnat(array) | np.isin(unit, np.array(told, dtype=unit.dtype))
    first = unit[~missing].min() if not missing.all() else unit[0]
    days = (unit - first) / np.timedelta64(1, "D")
    return _Column(np.where(missing, 0.0, days), missing, "continuous", said="dates")


def _on_the_clock(value: Any) -> Any:
    """A date without its time zone."""
    return value if getattr(value, "tzinfo", None) is None else value.replace(tzinfo=None)


def _is_moment(value: Any, other: Any) -> bool:
    """Whether they are one moment; where only one of them has a time zone, whether clocks show the same."""
    if (getattr(value, "tzinfo", None) is None) != (getattr(other, "tzinfo", None) is None):
        value, other = _on_the_clock(value), _on_the_clock(other)
    return bool(moment(value) == moment(other))


def _as_text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _sort(value: Any) -> str:
    if isinstance(value, str | bytes | np.str_):
        return "text"
    if isinstance(value, bool | np.bool_):
        return "booleans"
    if isinstance(value, int | float | np.integer | np.floating) or type(value).__name__ in ("Decimal", "Fraction"):
        return "numbers"
    if isinstance(value, DATES):
        return "dates"
    if isinstance(value, SPANS):
        return "spans of time"
    return type(value).__name__


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in _NO_VALUE:
        return True
    if hasattr(value, "is_nan"):  # a Decimal, of which the signalling NaN cannot be compared
        return bool(value.is_nan())
    return isinstance(value, float | np.floating | np.datetime64 | np.timedelta64) and bool(value != value)


def _is_any_of(value: Any, absent: _NoLabel) -> bool:
    sort = _sort(value)
    if sort == "numbers":
        return bool(absent.numbers) and float(value) in absent.numbers
    if sort == "booleans":  # by name as well, as commands give it
        return bool(value) in absent.booleans or str(bool(value)) in absent.texts
    if sort == "dates":
        return any(_is_moment(value, each) for each in absent.dates)
    if sort == "spans of time":
        return any(value == each for each in absent.spans)
    return sort == "text" and _as_text(value) in absent.texts


def _no_label(absent: Any) -> _NoLabel:
    several = [absent] if not isinstance(absent, list | tuple | set | frozenset | np.ndarray) else list(absent)
    sorts = [(_sort(each), each) for each in several if not _is_missing(each)]
    texts = frozenset(_as_text(each) for sort, each in sorts if sort == "text")
    return _NoLabel(
        texts=texts,
        numbers=frozenset(float(each) for sort, each in sorts if sort == "numbers"),
        booleans=frozenset(bool(each) for sort, each in sorts if sort == "booleans"),
        dates=(*(each for sort, each in sorts if sort == "dates"), *_dates_in(texts)),
        spans=tuple(each for sort, each in sorts if sort == "spans of time"),
    )


def _dates_in(texts: Iterable[str]) -> list[datetime.datetime]:
    """Those that are dates, as commands give them: 1900-01-01."""
    found = []
    for text in texts:
        with suppress(ValueError):
            found.append(datetime.datetime.fromisoformat(text))
    return found


def rows_with_labels(factors: FloatArray, names: Sequence[str]) -> tuple[BoolArray, list[str]]:
    """(n_rows,) which rows of (n_rows, n_factors) numbers hold no NaN, and the note that counts the others.

    Raises:
        ValueError: none do; the message names the factor that is NaN throughout, if there is one.
    """
    columns = zip(names, factors.T, strict=True)
    read = {name: _Column(column, np.isnan(column), None) for name, column in columns}
    used = _used(read)
    return used, _note_on_rows(read, used)
