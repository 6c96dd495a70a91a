"""A column of a table as pandas holds it: numbers, booleans, text, categories, dates or spans of time."""

import datetime
import numbers
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unbraid.base.arrays import as_array
from unbraid.base.suggest import one_line

if TYPE_CHECKING:
    from pandas import Series
else:
    Series = Any  # pandas takes long to load

EXACT = 2**53  # up to which floats tell whole numbers apart
LONGEST = 80  # letters of a value that a message quotes
NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal")  # words of pandas.api.types.infer_dtype
DATES, SPANS = ("date", "datetime", "datetime64"), ("timedelta", "timedelta64")


def as_series(content: Any, where: str, missing: Iterable[Any] = ()) -> Series:
    """A column as a Series: floats, booleans, categories, dates (in UTC), spans of time, or else text as objects.

    Args:
        content: a list, an array, a tensor, or a column of pandas, polars or pyarrow.
        where: what errors call it, such as "labels column 'hue'".
        missing: values that stand for no value, as NaN and None do: numbers in a column of numbers, and so on; dates
            also as text, categories and booleans by their names.

    Raises:
        ValueError: it is no column; mixes types or is of another type; an infinite number; whole numbers above 2^53
            that are one float; bytes that are not UTF-8. The message names the row.
    """
    try:
        series = _series(content)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{where}: {one_line(error)}") from None
    series = _typed(series, where)
    if values := list(missing):
        matches = _matches(series, values, where)
        if series.dtype == "category":  # a level that stands for none is no level
            series = series.cat.remove_categories(series.cat.categories[matches])
        else:
            series = series.mask(matches)
    if series.dtype.kind == "M" and series.dt.tz is not None:
        series = series.dt.tz_convert("UTC").dt.tz_localize(None)
    if series.dtype.kind == "f" and (infinite := np.isinf(series.to_numpy())).any():
        row = int(np.argmax(infinite))
        raise ValueError(f"{where}, row {row} is {series[row]}; expected finite numbers")
    return series


def with_dates(series: Series) -> Series:
    """Text that is dates throughout (2024-01-31) as such; other columns as they are."""
    if series.dtype != object or not all("-" in text for text in series.dropna()):
        return series
    try:
        moments = series.dropna().map(datetime.datetime.fromisoformat)
    except ValueError:
        return series
    return as_series(moments.tolist(), "").set_axis(moments.index).reindex(series.index)


def days_since_first(times: Series) -> npt.NDArray[np.float64]:
    """Dates as days since the first of them, spans of time as days beyond the shortest; NaN where there is none."""
    exact = times.to_numpy(dtype=f"{'datetime64' if times.dtype.kind == 'M' else 'timedelta64'}[us]")
    present = exact[~np.isnat(exact)]
    return (exact - present.min()) / np.timedelta64(1, "D") if len(present) else np.full(len(exact), np.nan)


def _series(content: Any) -> Series:
    import pandas as pd

    if hasattr(content, "to_pandas"):  # of polars and pyarrow
        series, dtype = pd.Series(content.to_pandas()), type(getattr(content, "dtype", None)).__name__
        # Of polars: an Enum has an order, and categories are text in the order of its appearance.
        if dtype == "Categorical":
            return series.astype(object)
        return series.cat.as_ordered() if dtype == "Enum" else series
    if isinstance(content, pd.Series | pd.Index | pd.api.extensions.ExtensionArray):
        return pd.Series(content).reset_index(drop=True)
    if isinstance(content, list | tuple):  # as objects: with a gap, pandas would make floats of whole numbers
        return pd.Series(list(content), dtype=object)
    array = content if isinstance(content, np.ma.MaskedArray) else as_array(content)
    array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if array.ndim != 1 or array.dtype.kind in "cV":
        raise ValueError(f"expected one number, text or date per row; got {array.dtype} {array.shape}")
    return pd.Series(array.astype(object) if array.dtype.kind in "SUT" else array)


def _typed(series: Series, where: str) -> Series:
    """The series with its own type in place of objects, numbers as floats."""
    import pandas as pd

    if series.dtype == "category":
        coded = pd.api.types.infer_dtype(series.cat.categories) == "bytes"
        return (
            series.cat.rename_categories(list(_decoded(pd.Series(series.cat.categories), where))) if coded else series
        )
    if series.dtype == object or pd.api.types.is_string_dtype(series):
        series = series.astype(object).where(series.notna(), None)  # one word for none, whose type is that of no cell
        kind = pd.api.types.infer_dtype(series, skipna=True)
        if kind == "bytes":
            return _decoded(series, where)
        if kind == "string":
            return series
        if kind == "boolean":
            return series.astype("boolean")
        if kind in DATES:
            zoned = any(getattr(moment, "tzinfo", None) is not None for moment in series)
            return pd.to_datetime(series, utc=True) if zoned else pd.to_datetime(series)
        if kind in SPANS:
            return pd.to_timedelta(series)
        if kind not in (*NUMBERS, "empty"):
            raise _other_types(series, where)
        return _floats(series, where, whole=kind == "integer")
    if pd.api.types.is_bool_dtype(series):
        return series.astype("boolean")
    if pd.api.types.is_numeric_dtype(series) and series.dtype.kind != "c":
        return _floats(series, where, whole=pd.api.types.is_integer_dtype(series))
    if series.dtype.kind not in "mM":
        raise ValueError(f"{where} holds {series.dtype}; expected numbers, text or dates")
    return series


def _decoded(series: Series, where: str) -> Series:
    """Text in place of bytes, which HDF5 files hold."""
    try:
        return series.map(bytes.decode, na_action="ignore").astype(object)
    except UnicodeDecodeError as error:
        coded = bytes(error.object)
        row = list(series).index(coded)
        raise ValueError(f"{where}, row {row} is {coded!r}, which is no text in UTF-8") from None


def _floats(series: Series, where: str, *, whole: bool) -> Series:
    import pandas as pd

    cells = series.dropna()
    try:
        floats = (cells.map(float) if cells.dtype == object else cells).to_numpy(dtype=float)
    except OverflowError:
        raise ValueError(f"{where} has a whole number that no float holds; give its levels as text") from None
    if whole and (large := np.abs(floats) >= EXACT).any() and len(np.unique(floats)) < cells.nunique():
        row = cells.index[int(np.argmax(large))]
        raise ValueError(
            f"{where}, row {row} is {cells[row]}: above 2^53 whole numbers cannot be told apart; give its levels as "
            "text, or number them from 0"
        )
    return pd.Series(floats, cells.index, dtype=float).reindex(series.index)


def _other_types(series: Series, where: str) -> ValueError:
    cells = series.dropna()
    types = cells.map(lambda cell: type(cell).__name__)
    first, different = cells.index[0], cells.index[types != types.iloc[0]]
    if not len(different):
        return ValueError(f"{where} holds {types.iloc[0]}, as in row {first}; expected numbers, text or dates")
    mixed = [f"{types[row]} ({one_line(repr(cells[row]), LONGEST)}, row {row})" for row in (first, different[0])]
    return ValueError(f"{where} mixes {' and '.join(mixed)}; give one or the other")


def _matches(series: Series, values: Sequence[Any], where: str) -> npt.NDArray[np.bool_]:
    """(n_rows,) which cells are one of these values; of categories (n_categories,) which of these are."""
    import pandas as pd

    texts = [
        value.decode() if isinstance(value, bytes) else value for value in values if isinstance(value, str | bytes)
    ]
    booleans = [bool(value) for value in values if isinstance(value, bool | np.bool_)]
    if series.dtype == "category":
        names = pd.Series(list(map(str, series.cat.categories)), dtype=object)
        ranges = isinstance(series.cat.categories, pd.IntervalIndex)
        typed = names if ranges else _typed(pd.Series(series.cat.categories), where)
        return _matches(typed, values, where) | names.isin(texts).to_numpy()
    if series.dtype == "boolean":
        return series.isin([*booleans, *(text == "True" for text in texts if text in ("True", "False"))]).to_numpy()
    if series.dtype.kind == "f":
        return series.isin([float(value) for value in values if _is_number(value)]).to_numpy()
    if series.dtype.kind == "m":
        spans = [pd.Timedelta(value) for value in values if isinstance(value, datetime.timedelta | np.timedelta64)]
        return series.isin(spans).to_numpy()
    if series.dtype.kind == "M":  # by what clocks show, whatever their zone
        moments = pd.Series([value for value in values if not _is_number(value)]).map(_clock)
        return series.dt.tz_localize(None).isin(moments.dropna()).to_numpy()
    return series.isin(texts).to_numpy()


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Number) and not isinstance(value, bool | np.bool_ | np.timedelta64)


def _clock(value: Any) -> Any:
    """A date or time without its zone; no time for what is none."""
    import pandas as pd

    moment = pd.to_datetime(value, errors="coerce")
    return moment.tz_localize(None) if isinstance(moment, pd.Timestamp) else pd.NaT
