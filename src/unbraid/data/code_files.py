"""Files of codes: their arrays, as they are read and written."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from unbraid.base.arrays import as_array, is_wide, too_large
from unbraid.base.suggest import suggestion
from unbraid.files.checksum import BLANK, KEY, add_checksum
from unbraid.files.tables import (
    index_columns,
    map_npy,
    names_in,
    read_csv,
    read_npy,
    read_npz,
    read_parquet,
    read_sparse,
    read_tensors,
    split_columns,
    unnamed_columns,
)

Arrays = Mapping[str, Any]
SUFFIXES = (".npz", ".safetensors", ".parquet")
READABLE = (*SUFFIXES, ".npy", ".csv")  # the last two hold codes that are measured, and are never written
POSTERIOR = {"log_variances": "log_variance_", "prior_kl": "prior_kl_"}  # arrays shaped as codes, and their columns
MEANS, LOG_VARIANCES = ("mu", "mean", "means", "z"), ("logvar", "log_var", "logvars")  # in files of other programs
STORED = (
    "codes",
    "factors",
    *POSTERIOR,
    "groups",
    "factor_names",
    "factor_kinds",
    "factor_sizes",
    "factor_levels",
    "factor_periods",
    "code_names",
    "notes",
)  # in a file


def read_arrays(path: Path) -> Arrays:
    """What a file of codes holds, by name; `labels` are columns as people have them.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is none that can be read; the message names it.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    read = _READERS.get(path.suffix.lower())
    if read is None:
        cells = "; unbraid score --codes reads an .h5ad file" if path.suffix.lower() == ".h5ad" else ""
        raise ValueError(f"{path}: a file of codes ends in {', '.join(READABLE)}{cells}")
    try:
        return read(path)
    except ValueError as error:
        if str(path) in str(error):
            raise
        raise ValueError(f"{path}: {error}") from error


def has_factors(path: Path) -> bool:
    """Whether there are factors in a file of codes."""
    if path.suffix.lower() == ".npy":
        return False
    arrays = read_arrays(path)
    return "labels" in arrays or np.size(arrays.get("factors", ())) > 0


def row_names(columns: dict[str, Any], key: str | None) -> Any:
    """Take out of columns what names the rows: the column `key`, without one the index that pandas wrote; or None."""
    named = columns.pop(key, None) if key is not None else None
    levels = [columns[name] for name in index_columns(list(columns))]
    for name in unnamed_columns(list(columns)):
        del columns[name]
    if key is not None:
        return named
    return list(zip(*levels, strict=True)) if len(levels) > 1 else next(iter(levels), None)


def read_wide(path: Path) -> Any:
    """The codes of a file, where they are read by columns: sparse, or in a .npy file that is too large; else None."""
    if not path.is_file():
        return None
    full = path.suffix.lower() == ".npy" and too_large(path.stat().st_size)  # a number takes a byte at least
    codes = map_npy(path) if full else read_sparse(path)
    return codes if codes is not None and is_wide(codes) else None


def _read_npz(path: Path) -> Arrays:
    if (codes := read_sparse(path)) is not None:
        return {"codes": codes}
    arrays = read_npz(path, STORED)  # other members may be pickled (dSprites' metadata is); they are left closed
    stored = names_in(path)
    if "codes" not in arrays and len(stored) == 1 and stored[0] not in STORED:  # numpy.savez(path, codes)
        arrays["codes"] = read_npz(path)[stored[0]]
    if "codes" not in arrays:
        means, spreads = ([name for name in names if name in stored] for names in (MEANS, LOG_VARIANCES))
        if len(means) != 1 or len(spreads) > 1:
            near, available = suggestion("codes", stored), f"found {', '.join(stored) or 'nothing'}"
            how = "numpy.savez(path, codes=mu, log_variances=logvar, factors=...) names its arrays"
            raise ValueError(f"{path}: no array 'codes'; {near if near.startswith('did') else available}; {how}")
        own = read_npz(path, [*means, *spreads])
        arrays |= {"codes": own[means[0]], **({"log_variances": own[spreads[0]]} if spreads else {})}
        note = f"codes are its array {means[0]}" + (f", log-variances its {spreads[0]}" if spreads else "")
        arrays["notes"] = np.array([*entries_of(arrays, "notes", "U"), note])
    return arrays


def _read_safetensors(path: Path) -> Arrays:
    arrays, metadata = read_tensors(path)
    described = _object(metadata.get("unbraid", "{}"), path)
    if "codes" not in arrays and len(arrays) == 1 and not set(arrays) & set(STORED):
        arrays = {"codes": next(iter(arrays.values()))}
    return arrays | described


def _object(text: str | bytes, path: Path) -> dict[str, Any]:
    """What our metadata in a file say."""
    try:
        described = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not a readable {path.suffix} file ({error})") from error
    if not isinstance(described, dict):
        raise ValueError(f"{path}: not a readable {path.suffix} file (its metadata is no object)")
    return described


def _read_csv(path: Path) -> Arrays:
    columns = read_csv(path)
    return split_columns(columns, list(columns))


def _read_parquet(path: Path) -> Arrays:
    table = read_parquet(path)
    index = unnamed_columns(table.column_names)
    columns = [name for name in table.column_names if name not in index]
    arrays = split_columns({name: _plain(table[name]) for name in columns}, columns)
    if "labels" in arrays:  # as a table of labels has them: categories in their order, dates
        arrays["labels"] = {name: table[f"factor_{name}"].to_pandas() for name in arrays["labels"]}
    described = _object((table.schema.metadata or {}).get(b"unbraid", b"{}"), path)
    labels = [np.asarray(column) for column in arrays.get("labels", {}).values()]
    if labels and "factor_kinds" in described and all(column.dtype.kind in "biuf" for column in labels):
        # Written here: numbers, of which some are NaN or all are booleans, and whose kinds are known.
        arrays["factors"] = np.stack(labels, axis=1)
        del arrays["labels"]
    if described.get("factor_names") == []:
        arrays["factors"] = np.empty((len(table), 0))
    return described | arrays


def _plain(column: Any) -> Any:
    values = as_array(column)
    return values if values.dtype.kind in "biufO" else values.astype(object)


_LISTED = {"U": "names", "iu": "whole numbers", "fiu": "numbers"}


def entries_of(arrays: Arrays, name: str, dtypes: str) -> tuple[Any, ...]:
    """What a file lists under a name; nothing where it lists none."""
    try:
        entries = np.asarray(() if arrays.get(name) is None else arrays[name])
    except ValueError:  # lists of unequal lengths
        entries = np.empty((0, 0))
    if entries.ndim != 1 or (entries.size and entries.dtype.kind not in dtypes):
        raise ValueError(f"{name} must be a list of {_LISTED[dtypes]}")
    return tuple(entries.tolist())


def level_names(text: Any) -> tuple[tuple[str, ...], ...]:
    """The names of the levels of each factor, which a file has as JSON; none where it has none."""
    if text is None:
        return ()
    try:
        levels = json.loads(str(text))
    except RecursionError:
        raise ValueError("factor_levels is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"factor_levels must be a list of lists of names in JSON ({error})") from None
    if not isinstance(levels, list) or not all(isinstance(levels_of_factor, list) for levels_of_factor in levels):
        raise ValueError("factor_levels must be a list of lists of names")
    return tuple(tuple(map(str, levels_of_factor)) for levels_of_factor in levels)


def write_arrays(arrays: Arrays, described: Arrays, path: Path, suffix: str) -> None:
    """Write a file of codes with its checksum; `suffix`, one of SUFFIXES, decides the format."""
    _WRITERS[suffix]({name: _portable(array) for name, array in arrays.items()}, described, path)
    add_checksum(path)


def _metadata(described: Arrays) -> dict[str, str]:
    # One key, for the order of several is not always the same, and equal content is to make equal files.
    return {"unbraid": json.dumps({**described, KEY: BLANK})}


def _portable(matrix: Any) -> Any:
    """In the order of bytes of this machine, and no longer floats than other programs read."""
    kind = np.dtype(np.float64) if matrix.dtype.kind == "f" and matrix.dtype.itemsize > 8 else matrix.dtype
    return np.ascontiguousarray(matrix, dtype=kind.newbyteorder("="))


def _write_npz(arrays: Arrays, described: Arrays, path: Path) -> None:
    with path.open("wb") as file:
        lists = {name: np.array(values) for name, values in described.items()}
        np.savez_compressed(file, allow_pickle=False, **arrays, **lists)


def _write_safetensors(arrays: Arrays, described: Arrays, path: Path) -> None:
    from safetensors.numpy import save

    # Written by Python, so that a full disk is an OSError.
    path.write_bytes(save(dict(arrays), _metadata(described)))


def _write_parquet(arrays: Arrays, described: Arrays, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {f"code_{i}": column for i, column in enumerate(arrays["codes"].T)}
    names = described["factor_names"]
    columns |= {f"factor_{name}": column for name, column in zip(names, arrays["factors"].T, strict=True)}
    for name, prefix in POSTERIOR.items():
        if name in arrays:
            columns |= {f"{prefix}{i}": column for i, column in enumerate(arrays[name].T)}
    columns |= {"groups": arrays["groups"]} if "groups" in arrays else {}
    with path.open("wb") as file:  # pyarrow would take the relative folder runs:1 for an address
        pq.write_table(pa.table(columns).replace_schema_metadata(_metadata(described)), file)


_READERS: Mapping[str, Callable[[Path], Arrays]] = {
    ".npz": _read_npz,
    ".npy": lambda path: {"codes": read_npy(path)},
    ".csv": _read_csv,
    ".safetensors": _read_safetensors,
    ".parquet": _read_parquet,
}
_WRITERS: Mapping[str, Callable[[Arrays, Arrays, Path], None]] = {
    ".npz": _write_npz,
    ".safetensors": _write_safetensors,
    ".parquet": _write_parquet,
}
