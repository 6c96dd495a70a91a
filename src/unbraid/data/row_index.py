"""Rows matched by name, where both sides name theirs: by the index of pandas, or by a key column."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from unbraid.base.arrays import as_array, is_sparse
from unbraid.base.types import IntArray

if TYPE_CHECKING:
    from pandas import Index
else:
    Index = Any  # pandas takes long to load

SHOWN = 3  # names of rows in a message


def match_rows(inputs: Mapping[str, Any], key: str | None = None) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The same objects with their rows in one order, that of the first of them that names its rows.

    An index of pandas that counts the rows from 0 names none. What names no rows goes by position.

    Args:
        inputs: frames, columns, mappings from names to columns, arrays or None, by what messages call them.
        key: column that names the rows. The first two must have it, and it is taken out of all that have.

    Returns:
        The objects, and notes on those that were put into another order.

    Raises:
        ValueError: two of them name different rows, or name one row twice and differ in order; there is no such column.
    """
    notes: dict[str, None] = {}  # each once, in order
    first: tuple[str, Index] | None = None

    def match(name: str, label: str, content: Any, names: Index | None) -> Any:
        nonlocal first
        if names is None:
            return content
        if first is None:
            first = label, names
        if (order := order_of(*first, label, names, key)) is None:
            return content
        notes[note_on_order(first[0], name, order, key)] = None
        return rows_in_order(content, order)

    matched: dict[str, Any] = {}
    for place, (name, content) in enumerate(inputs.items()):
        content, names = (content, None) if key is None else _without_key(content, key)
        if key is not None and names is None and place < 2:
            raise ValueError(f"{name} must be a frame or a mapping with a column {key!r}, which names its rows")
        if isinstance(content, Mapping) and names is None and not is_sparse(content):
            matched[name] = {
                column: match(name, f"{name}[{column!r}]", cells, _index(cells)) for column, cells in content.items()
            }
        else:
            matched[name] = match(name, name, content, _index(content) if names is None else names)
    if key is None and first is not None and (counting := [name for name, each in inputs.items() if _counts(each)]):
        names = first[1]
        if names.dtype.kind in "iu" and counts(names.sort_values()):
            notes[
                f"rows were matched by position: {' and '.join(counting)} count theirs from 0, and {first[0]} has the "
                f"same numbers in another order; {first[0]}.sort_index() matches rows by number"
            ] = None
    return matched, tuple(notes)


def refuse_other_order(**inputs: Any) -> None:
    """Raises ValueError where one of the objects names the rows of another in another order, or other rows."""
    indices = {name: index for name, content in inputs.items() if (index := _index(content)) is not None}
    for name in list(indices)[1:]:
        first = next(iter(indices))
        if order_of(first, indices[first], name, indices[name]) is not None:
            raise ValueError(
                f"{first} and {name} have the same index in another order; give {name}.loc[{first}.index], or both "
                "with .reset_index(drop=True) to match rows by position. unbraid.score matches them by index"
            )


def order_of(first: str, first_names: Any, second: str, second_names: Any, key: str | None = None) -> IntArray | None:
    """Rows of `second` in the order of `first`; None where they are in it.

    Raises:
        ValueError: they name different rows, or one row twice.
    """
    one, two = _as_index(first_names), _as_index(second_names)
    if one.equals(two):
        return None
    by = "their index" if key is None else repr(key)
    by_position = "give both with .reset_index(drop=True)" if key is None else "leave the key out"
    missing, more = one[~one.isin(two)].unique(), two[~two.isin(one)].unique()
    if len(missing) or len(more):
        sides = [_missing(*side) for side in ((missing, first, second), (more, second, first)) if len(side[0])]
        common = f"{first}.index.intersection({second}.index)" if key is None else "the names that both have"
        both = f"give both with .loc[common], common = {common}" if key is None else f"keep {common}"
        raise ValueError(
            f"{first} and {second} name different rows by {by}: {' and '.join(sides)}; {both}, or {by_position} to "
            "match rows by position"
        )
    for name, index in ((first, one), (second, two)):
        if not index.is_unique:
            twice = index[index.duplicated()].tolist()[0]
            raise ValueError(
                f"{name} names the row {twice!r} twice by {by}, so that rows cannot be matched by it; {by_position} "
                "to match them by position"
            )
    return two.get_indexer(one)


def note_on_order(first: str, second: str, order: IntArray, key: str | None = None) -> str:
    """What a card says where rows were matched."""
    moved = int((order != np.arange(len(order))).sum())
    by = "their index" if key is None else repr(key)
    matched = f"rows of {second} were matched to those of {first} by {by}"
    return f"{matched}; {moved:,} of {len(order):,} stood in another order"


def rows_in_order(content: Any, order: IntArray) -> Any:
    """The same frame, column, mapping of columns or array with its rows in this order."""
    if isinstance(content, Mapping):
        return {name: rows_in_order(column, order) for name, column in content.items()}
    if hasattr(content, "iloc"):  # pandas
        return content.iloc[order]
    if hasattr(content, "column_names"):  # a pyarrow table
        return content.take(order)
    return [content[row] for row in order] if isinstance(content, list | tuple) else content[order]


def _missing(names: Index, first: str, second: str) -> str:
    shown = ", ".join(map(repr, names[:SHOWN].tolist())) + (", ..." if len(names) > SHOWN else "")
    return f"{len(names):,} of {first} {'is' if len(names) == 1 else 'are'} missing in {second} ({shown})"


def _index(content: Any) -> Any:
    """The index of a pandas object that names its rows; None where it only counts them, and of all else."""
    index = getattr(content, "index", None)
    return index if hasattr(index, "get_indexer") and not counts(index) else None


def _counts(content: Any) -> bool:
    """Whether it is a pandas object whose index counts the rows from 0."""
    index: Any = getattr(content, "index", None)
    return hasattr(index, "get_indexer") and counts(index)


def counts(names: Any) -> bool:
    """Whether rows are only counted, from 0."""
    import pandas as pd

    return _as_index(names).equals(pd.RangeIndex(len(names)))


def _without_key(content: Any, key: str) -> tuple[Any, Index | None]:
    """A frame or mapping without the column that names its rows, and these names."""
    mapping = isinstance(content, Mapping)
    columns = content if mapping else getattr(content, "column_names", None) or getattr(content, "columns", ())
    if key not in list(columns):
        index = getattr(content, "index", None)
        return content, index if getattr(index, "name", None) == key else None
    names = _as_index(as_array(content[key]))
    if mapping:
        return {name: column for name, column in content.items() if name != key}, names
    return content.drop(columns=[key]) if hasattr(content, "iloc") else content.drop([key]), names


def _as_index(names: Any) -> Index:
    import pandas as pd

    return names if isinstance(names, pd.Index) else pd.Index(names)
