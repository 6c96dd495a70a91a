"""Columns and matrices from files that know nothing of factors: .npy, .npz, .csv, .parquet, .safetensors.

Nothing is unpickled, and what a file declares is compared with its length before memory is taken for it.
"""

import csv
import importlib
import json
import lzma
import re
import tokenize
import zipfile
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from unbraid.base.arrays import telling
from unbraid.base.columns import EXACT
from unbraid.base.counted import counted
from unbraid.base.suggest import one_line
from unbraid.base.types import DataFrame
from unbraid.files.checksum import BLANK, KEY, add_checksum, check_file
from unbraid.files.whole_files import check_unpacked

TABLES = (".npy", ".npz", ".csv", ".parquet", ".safetensors")
CELL = 8  # bytes of a number in memory
COPIED_INDEX = re.compile(r"Unnamed: 0(\.\d+)*")
WITH_POINTS = "write numbers with a point and no comma; if these are names, give the kind 'categorical'"
WITH_COMMA = re.compile(r"\s*[+-]?(\d+(,\d*)?|,\d+)(e[+-]?\d+)?\s*", re.IGNORECASE)
# In a .csv file, as pandas, R and databases write it; in other spellings these are words, such as the level none.
NO_VALUE = {"", "NA", "N/A", "NaN", "nan", "None", "NULL", "null"}


def index_columns(names: Sequence[str]) -> list[str]:
    """Those that hold an index without a name, level by level, as pandas writes it or has read and written it again."""
    columns: list[str] = []
    for level in range(len(names)):
        spellings = ("",) * (level == 0) + (f"Unnamed: {level}", f"__index_level_{level}__")
        if not (present := [name for name in spellings if name in names]):
            break
        columns.append(present[0])
    return columns


def unnamed_columns(names: Sequence[str]) -> list[str]:
    """Those, and copies of an index that pandas has read as a column and written beside a new one."""
    levels = index_columns(names)
    return [*levels, *(name for name in names if name not in levels and COPIED_INDEX.fullmatch(name))]


def numbers_with_commas(cells: Iterable[str]) -> str | None:
    """The first cell that has a comma, where all cells are numbers in which one stands for the point, or could."""
    first = None
    for cell in cells:
        if not WITH_COMMA.fullmatch(cell):
            return None
        first = cell if first is None and "," in cell else first
    return first


def numbers_of(cells: Iterable[str | None]) -> Any:
    """(n,) text as numbers, NaN for None; whole numbers as such where floats may take two for one. None if one is text.

    So is 1_2, which Python takes for 12.
    """
    cells = list(cells)
    if any("_" in cell for cell in cells if cell is not None):
        return None
    try:
        numbers = np.array([np.nan if cell is None else float(cell) for cell in cells])
    except ValueError:
        return None
    if not (np.abs(numbers) >= EXACT).any():
        return numbers
    try:
        whole = [None if cell is None else int(cell) for cell in cells]
    except ValueError:
        return numbers
    fits = all(number is not None and abs(number) < 2**63 for number in whole)
    return np.array(whole, dtype=np.int64 if fits else object)


def read_columns(path: str | Path, *, needed: Collection[str] | None = None, index: bool = False) -> dict[str, Any]:
    """The columns of a table of labels by name; columns of a matrix are factor_0, factor_1, ...

    Args:
        path: of the table.
        needed: names of the columns that are used, default all; pickled arrays of other names in a .npz file are left
            out.
        index: whether to keep the index that pandas writes, under the names of `unnamed_columns`.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is not what its name says; the message names it.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    suffix = path.suffix.lower()
    if suffix == ".csv":
        return read_csv(path, index=index)
    if suffix == ".parquet":
        table = read_parquet(path)
        left_out = () if index else unnamed_columns(table.column_names)
        return {name: table[name].to_pandas() for name in table.column_names if name not in left_out}
    if suffix not in TABLES:
        raise ValueError(f"{path}: a table of labels ends in {', '.join(TABLES)}")
    if suffix == ".npz":
        arrays = read_npz(path, _columns_in(path), needed=needed)
    else:
        arrays = {"": read_npy(path)} if suffix == ".npy" else read_tensors(path)[0]
    columns: dict[str, Any] = {}
    for name, array in arrays.items():
        if array.dtype.names is not None:  # a structured array
            columns |= {field: array[field] for field in array.dtype.names}
        elif array.ndim == 2:
            own = f"{name}_" if name and name != "factors" else "factor_"
            columns |= {f"{own}{k}": column for k, column in enumerate(array.T)}
        elif array.ndim == 1:
            columns[name or "factor_0"] = array
    return columns


def read_npy(path: Path) -> Any:
    """The array of a .npy file."""
    try:
        with path.open("rb") as file:
            return _array(file, path.stat().st_size)
    except DAMAGED as error:
        raise ValueError(f"{path}: not a readable .npy file ({one_line(error)})") from error


def map_npy(path: Path) -> Any:
    """The array of a .npy file as it lies on the disk: what is looked at is read."""
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except DAMAGED as error:
        raise ValueError(f"{path}: not a readable .npy file ({one_line(error)})") from error


# What NumPy raises where a .npy file is damaged, and zipfile where an archive is.
DAMAGED = (
    ValueError, EOFError, OSError, MemoryError, SyntaxError, TypeError, OverflowError, RecursionError,
    tokenize.TokenError,
)  # fmt: skip
# What zipfile leaves to the libraries that unpack: deflate, LZMA, and from Python 3.14 on Zstandard.
PACKED = [zlib.error, lzma.LZMAError]
with suppress(ImportError):
    PACKED.append(importlib.import_module("compression.zstd").ZstdError)
UNREADABLE = (*DAMAGED, KeyError, RuntimeError, NotImplementedError, zipfile.BadZipFile, *PACKED)


class Pickled(ValueError):
    """An array holds objects of Python, which only running what the file says would bring back."""


def read_npz(path: Path, only: Any = None, *, needed: Collection[str] | None = None, times: int = 50) -> dict[str, Any]:
    """The arrays of a .npz file by name; with `only`, those of these names, and others, maybe pickled, stay closed.

    With `needed`, all arrays but pickled ones of other names. `times` is as for `check_unpacked`.
    """
    try:
        check_file(path)
        with zipfile.ZipFile(path) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            names = [name for name in members if only is None or name in only]
            check_unpacked(path, sum(members[name].file_size for name in names), times=times)
            arrays = {}
            for name in names:
                with archive.open(members[name]) as member:
                    try:
                        arrays[name] = _array(member, members[name].file_size)
                    except ValueError as error:
                        if isinstance(error, Pickled) and needed is not None and name not in needed:
                            continue
                        raise ValueError(f"array {name!r}: {error}") from error
                    if member.read(1):  # also makes zipfile compare its checksum
                        raise ValueError(f"array {name!r} is longer than its header says")
            return arrays
    except UNREADABLE as error:
        reason = "it is no zip archive" if isinstance(error, zipfile.BadZipFile) else one_line(error)
        if not zipfile.is_zipfile(path):
            reason = "it is no zip archive; pickled objects are never loaded"
        raise ValueError(f"{path}: not a readable .npz file ({reason})") from error


def read_sparse(path: Path) -> Any:
    """The matrix of a .npz file as scipy.sparse.save_npz writes it; None where the file holds something else.

    Raises:
        ValueError: its parts make no sparse matrix.
    """
    if (
        path.suffix.lower() != ".npz"
        or not zipfile.is_zipfile(path)
        or not {"format", "data", "shape"} <= {*names_in(path)}
    ):
        return None
    from scipy import sparse  # a tenth of a second to import

    read_npz(path)  # compares what the file declares with its length
    try:
        matrix = sparse.load_npz(path)
        if matrix.format in ("csr", "csc", "bsr"):
            matrix.check_format(full_check=True)
    except (ValueError, KeyError, TypeError, IndexError, OverflowError, NotImplementedError) as error:
        raise ValueError(f"{path}: not a readable sparse matrix ({one_line(error)})") from error
    return matrix if matrix.format in ("csr", "csc") else matrix.tocoo()


def names_in(path: Path) -> list[str]:
    """What a .npz file holds."""
    try:
        with zipfile.ZipFile(path) as archive:
            return [name.removesuffix(".npy") for name in archive.namelist()]
    except UNREADABLE as error:
        raise ValueError(f"{path}: not a readable .npz file ({one_line(error)})") from error


def _columns_in(path: Path) -> list[str] | None:
    """The arrays of a .npz file that may be columns of labels: not images, nor a single object such as metadata."""
    names = []
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.namelist():
                with archive.open(member) as file, suppress(ValueError):
                    names += [member.removesuffix(".npy")] if len(_header(file)[0]) in (1, 2) else []
    except UNREADABLE:
        return None  # all, of which `read_npz` says what is wrong
    return names


def _header(file: Any) -> tuple[Any, Any]:
    """Shape and type of an array."""
    version = np.lib.format.read_magic(file)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    try:
        shape, _, dtype = read_header(file)
    except (SyntaxError, TypeError, tokenize.TokenError) as error:
        raise ValueError(f"its header cannot be read: {error}") from error
    return shape, dtype


def _array(file: Any, length: int) -> Any:
    """One array, once its header is seen to declare as much as there is."""
    shape, dtype = _header(file)
    if dtype.hasobject:
        raise Pickled("it holds pickled objects, which are never loaded; save text by .astype(str)")
    if any(isinstance(size, bool) or size < 0 for size in shape):
        raise ValueError(f"its header declares the shape {shape}")
    if prod(shape) * dtype.itemsize > length:
        raise ValueError(f"its header declares {shape} of {dtype}, more than the {length:,} bytes there are")
    file.seek(0)
    return np.lib.format.read_array(file, allow_pickle=False)


def read_tensors(path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """The arrays of a .safetensors file by name, bfloat16 as float32, and its metadata."""
    from safetensors import SafetensorError, safe_open

    try:
        check_file(path)
        with safe_open(path, framework="numpy") as file:
            names, metadata = list(file.keys()), dict(file.metadata() or {})
            of_brain = [name for name in names if file.get_slice(name).get_dtype() == "BF16"]
            arrays = {name: file.get_tensor(name) for name in names if name not in of_brain}
        if of_brain:
            with path.open("rb") as raw:
                arrays |= {name: _bfloat16(raw, name) for name in of_brain}
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: not a readable .safetensors file ({one_line(error)})") from error
    return arrays, metadata


def _bfloat16(file: BinaryIO, name: str) -> Any:
    file.seek(0)
    length = int.from_bytes(file.read(8), "little")
    entry = json.loads(file.read(length))[name]
    begin, end = entry["data_offsets"]
    file.seek(8 + length + begin)
    halves = np.frombuffer(file.read(end - begin), dtype="<u2").astype(np.uint32)
    return (halves << 16).view(np.float32).reshape(entry["shape"])


def read_parquet(path: Path) -> Any:
    """The pyarrow table of a .parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    place = path.absolute()  # pyarrow would take the relative folder runs:1 for an address
    try:
        check_file(path)
        described = pq.ParquetFile(place).metadata
        # What pages of repeated values declare is their packed size; in memory every cell takes its own place.
        check_unpacked(path, CELL * described.num_rows * described.num_columns)
        # `pq.read_table` takes 1.8 GB for 20 000 columns of two rows, and columns from the names of folders.
        table = pq.ParquetFile(place).read()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ValueError(f"{path}: not a readable .parquet file ({one_line(error)})") from error
    _check_own_names(path, table.column_names)
    return table


def _check_own_names(path: Path, names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise ValueError(f"{path}: two columns have one name: {', '.join(names)}")


def write_parquet(frame: DataFrame, path: Path) -> None:
    """Write a pandas DataFrame without its index as .parquet, with a checksum.

    A column of which some cells are numbers and others text, as of a setting that families spell differently, is text.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    frame = frame.copy(deep=False)
    for name in [name for name in frame.columns if frame[name].dtype == object]:
        try:
            pa.array(frame[name], from_pandas=True)
        except pa.ArrowException:
            frame[name] = frame[name].map(str, na_action="ignore")
    table = pa.Table.from_pandas(frame, preserve_index=False)
    with path.open("wb") as file:  # of a path in the relative folder runs:1 pyarrow would make an address
        pq.write_table(table.replace_schema_metadata({**(table.schema.metadata or {}), KEY: BLANK}), file)
    add_checksum(path)


def read_csv(path: Path, *, index: bool = False) -> dict[str, Any]:
    """The columns of a .csv file: numbers where every cell is one or empty, else text with None; as `csv_columns`."""
    cells, _ = csv_columns(path, index=index)
    numbers = {name: numbers_of(column) for name, column in cells.items()}
    return {
        name: np.array(column, dtype=object) if numbers[name] is None else numbers[name]
        for name, column in cells.items()
    }


def csv_columns(
    path: Path, *, index: bool = False, no_value: Collection[str] = NO_VALUE
) -> tuple[dict[str, list[str | None]], list[int]]:
    """The cells of a .csv file by column, None where there is no value, and the line of each row.

    The first line holds names, unless all of it are numbers. Columns are separated by commas, semicolons or tabs, those
    of a table of numbers by spaces as well. A first column without a name is the index that pandas writes, which is
    left out unless `index` asks for it; so are those next to it, as levels of the index. Rows are refused unless all
    are of one length, which pandas fills up in silence.

    Raises:
        ValueError: it is no such file, has no rows, or one of another length.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = next((line for line in file if line.strip()), "")
            file.seek(0)
            reader = csv.reader(file, strict=True, delimiter=delimiter_of(first))
            numbered = _by_spaces([(reader.line_num, line) for line in reader if line])
    except (UnicodeDecodeError, csv.Error, OSError) as error:
        raise ValueError(f"{path}: not a readable .csv file in UTF-8 ({error})") from error
    if not numbered:
        raise ValueError(f"{path}: the file is empty")
    lines, rows = zip(*numbered, strict=True)
    headed = numbers_of(rows[0]) is None or _counts(rows)
    names = [cell.strip() for cell in rows[0]] if headed else [f"factor_{k}" for k in range(len(rows[0]))]
    lines, rows = list(lines[headed:]), rows[headed:]
    levels = len(list(takewhile(lambda name: not name, names)))
    if levels < len(names):
        names = [name or f"Unnamed: {k}" if 0 < k < levels else name for k, name in enumerate(names)]
    _check_own_names(path, names)
    if not rows:
        raise ValueError(f"{path}: there are no rows below the names of the columns")
    for line, row in zip(lines, rows, strict=True):
        if len(row) != len(names):
            raise ValueError(f"{path}: line {line} has {counted(len(row), 'cell')}; the first has {len(names)}")
    unnamed = unnamed_columns(names)
    left_out = unnamed if not index and names[0] in unnamed and len(unnamed) < len(names) else ()
    cells = zip(*rows, strict=True)
    return {
        name: [None if (text := cell.strip()) in no_value else text for cell in column]
        for name, column in zip(names, cells, strict=True)
        if name not in left_out
    }, lines


def _by_spaces(numbered: list[tuple[int, list[str]]]) -> list[tuple[int, list[str]]]:
    """Lines of one cell each, cut at spaces, where that makes a table of numbers, as numpy.savetxt writes it.

    Text in one cell may have spaces in it: without numbers in every line below the first all stays as it is.
    """
    if any(len(cells) != 1 for _, cells in numbered):
        return numbered
    cut = [(number, cells[0].split()) for number, cells in numbered]
    below = [cell for _, cells in cut[1:] for cell in cells]
    widths = {len(cells) for _, cells in cut}
    table = len(widths) == 1 and widths != {1} and below and numbers_of(below) is not None
    return cut if table else numbered


def delimiter_of(line: str) -> str:
    """Comma, semicolon or tab: by which a line has most cells, whatever stands in quotes.

    A comma within numbers between the others is that of decimals, which are refused later.
    """
    cells = {mark: next(csv.reader([line], delimiter=mark), []) for mark in ";\t,"}
    for mark in ";\t":
        if len(cells[mark]) > 1 and all(map(WITH_COMMA.fullmatch, cells[mark])):
            return mark
    return max(",;\t", key=lambda mark: len(cells[mark]))


def _counts(rows: Sequence[list[str]]) -> bool:
    """Whether the first line numbers the columns, as pandas does where none has a name; whole numbers may be data."""
    in_order = rows[0] == [str(k) for k in range(len(rows[0]))]
    return in_order and any(not cell.strip().removeprefix("-").isdigit() for row in rows[1:] for cell in row)


def split_columns(columns: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    """Codes, and what else there is, of a table: code_0, ...; factor_<name>; groups; or, without such, codes alone.

    Raises:
        ValueError: a column of codes holds text, or factors stand beside codes of other names.
    """
    ours = any(name.removeprefix("code_").isdigit() and name.startswith("code_") for name in names)
    factors = [] if ours else [name for name in names if name.startswith("factor_")]
    if 0 < len(factors) < len(names):
        raise ValueError(f"column {factors[0]!r} is a factor: call those of codes code_0, code_1, ...")
    arrays: dict[str, Any] = {}
    for array, prefix in (("codes", "code_"), ("log_variances", "log_variance_"), ("prior_kl", "prior_kl_")):
        own = (
            [name for name in names if name.startswith(prefix) and name.removeprefix(prefix).isdigit()] if ours else []
        )
        own.sort(key=lambda name, prefix=prefix: int(name.removeprefix(prefix)))
        own = names if not ours and array == "codes" else own
        for name in own:
            if columns[name].dtype.kind == "O" and (cell := numbers_with_commas(map(str, columns[name]))) is not None:
                raise ValueError(f"column {name!r} holds {cell!r}; write numbers with a point and no comma")
            if columns[name].dtype.kind not in "biuf":
                advice = "labels go into a file of their own, or beside columns code_0, code_1, ..."
                what = "text" if columns[name].dtype.kind in "OUS" else str(columns[name].dtype)
                key = f"unbraid score --key {name} names rows by it"
                raise ValueError(f"column {name!r} is no code: it holds {what}; {advice}; {key}")
        if own:
            arrays[array] = np.stack([columns[name] for name in own], axis=1)
    if not ours:
        arrays["code_names"] = telling(names)
    if ours and "groups" in names:
        arrays["groups"] = columns["groups"]
    labels = {name.removeprefix("factor_"): columns[name] for name in names if ours and name.startswith("factor_")}
    # Of booleans in a matrix nobody would see that they are classes.
    if labels and all(column.dtype.kind in "iuf" and np.isfinite(column).all() for column in labels.values()):
        arrays |= {"factors": np.stack(list(labels.values()), axis=1), "factor_names": list(labels)}
    elif labels:
        arrays["labels"] = labels
    return arrays
