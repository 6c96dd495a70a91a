"""The user's own images with a table of their factors."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from unbraid._files import below
from unbraid.datasets._containers import decoded, npz_names, readable
from unbraid.datasets._factor_table import Column, matrix_columns, read_table, table_columns
from unbraid.datasets._store import StoredImages
from unbraid.datasets.base import FactorDataset, ImageShape, check_index
from unbraid.factors import FactorSpace, FactorTable, Space
from unbraid.types import KINDS, ArrayLike, IntArray, Kind, UInt8Array

FILE_COLUMN = "file"
TABLES = ("factors.csv", "factors.parquet")
Kinds = Mapping[str, Kind] | Sequence[Kind] | None


def from_array(
    images: ArrayLike | str | Path,
    factors: ArrayLike | Mapping[str, Sequence[Any]] | str | Path,
    *,
    names: Sequence[str] | None = None,
    kinds: Kinds = None,
    grid: bool | None = None,
) -> FactorDataset:
    """A dataset of images in one array, image i having the factors of row i.

    Args:
        images: (n, height, width, channels) or (n, height, width), uint8 or bool; or an .npy file of them, which is
            read where it lies.
        factors: a .csv or .parquet file, a mapping from name to column (a data frame is one), or a matrix
            (n, n_factors). Numbers or text; a column's levels are its distinct values in order.
        names: of the columns of a matrix; default factor_0, factor_1, ...
        kinds: "categorical", "ordinal", "continuous" or "cyclic", by name or for all in order. By default text is
            categorical, whole numbers are ordinal, and other numbers continuous.
        grid: True asks that there be one image of each combination, in any order; False treats the images as samples
            even so. By default a complete grid is taken for one: images are then counted in C order of the factors.

    Raises:
        ValueError: shapes disagree, a cell is empty or not finite, or there is no grid; names row and column.
        FileNotFoundError: a file is not there.

    Example:
        >>> from unbraid.datasets import from_array
        >>> pictures = np.zeros((4, 8, 8), dtype=np.uint8)
        >>> dataset = from_array(pictures, {"shape": ["disc", "box", "disc", "box"], "size": [2, 2, 1, 1]})
        >>> dataset.space.names, dataset.space.sizes, dataset.space.values
        (('shape', 'size'), (2, 2), (('box', 'disc'), (1.0, 2.0)))
    """
    source: Rows = MappedRows(Path(images)) if isinstance(images, str | Path) else ArrayRows(_checked(images, "images"))
    columns = _columns(factors, names)
    return _dataset(source, columns, kinds, grid)


def from_folder(
    folder: str | Path,
    table: str | Path | Mapping[str, Sequence[Any]],
    *,
    file_column: str = FILE_COLUMN,
    kinds: Kinds = None,
    grid: bool | None = None,
) -> FactorDataset:
    """A dataset of picture files, decoded when asked for.

    Args:
        folder: of the pictures, all of one size.
        table: a .csv or .parquet file, or a mapping from name to column, with one row per picture.
        file_column: the column with the path of each picture inside the folder, / between its parts; the others are
            factors.
        kinds: as in `from_array`.
        grid: as in `from_array`.

    Raises:
        ValueError: as in `from_array`, a file is no picture, or a path is hidden or leads out of the folder.
        FileNotFoundError: the folder, the table or a picture is not there.
    """
    folder = Path(folder).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no such folder")
    columns = _columns(table, None)
    chosen = [column for column in columns if column.name == file_column]
    if not chosen:
        there = ", ".join(column.name for column in columns)
        raise ValueError(
            f"{columns[0].table}: no column {file_column!r} with the names of the pictures; it has {there}"
        )
    files = [str(cell) for cell in chosen[0].cells]
    for row, name in enumerate(files):
        try:
            path = below(folder, name)
        except ValueError as error:
            raise ValueError(f"{chosen[0].at(row)}: {error}") from None
        if not path.is_file():
            raise FileNotFoundError(f"{chosen[0].at(row)}: there is no {name!r} in {folder}")
    factors = [column for column in columns if column.name != file_column]
    return _dataset(PictureRows(folder, tuple(files)), factors, kinds, grid)


def is_path(name: str, names: Iterable[str]) -> bool:
    """Whether `name` is to be opened by its path, being none of `names`."""
    return name not in names and (name.endswith(".npz") or "/" in name or os.sep in name or Path(name).is_dir())


def open_path(path: str | Path, *, kinds: Kinds = None, grid: bool | None = None) -> FactorDataset:
    """A dataset by its path: what `unbraid data render --out` wrote, or the user's own.

    A folder holds factors.csv or factors.parquet and either images.npy or the pictures that its column "file" names;
    an .npz file holds `images` and `factors`, and may hold `factor_names` and `factor_kinds`.

    Args:
        path: of the folder or file.
        kinds: as in `from_array`.
        grid: as in `from_array`.

    Raises:
        ValueError: the content is not such.
        FileNotFoundError: it is not there.
    """
    path = Path(path).expanduser()
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file or folder")
    if path.is_file():
        return _open_npz(path, kinds, grid)
    if (path / "meta.json").exists():
        if kinds is not None or grid is not None:
            raise ValueError(f"{path}: its meta.json gives the factors; kinds and grid cannot be chosen")
        return StoredImages(path)
    table = next((path / name for name in TABLES if (path / name).exists()), None)
    if table is None:
        raise ValueError(f"{path}: no dataset; there is neither meta.json nor {' nor '.join(TABLES)}")
    if (path / "images.npy").exists():
        return from_array(path / "images.npy", table, kinds=kinds, grid=grid)
    return from_folder(path, table, kinds=kinds, grid=grid)


def _open_npz(path: Path, kinds: Kinds, grid: bool | None) -> FactorDataset:
    if path.suffix != ".npz":
        raise ValueError(f"{path}: a dataset is a folder or an .npz file with images and factors")
    there = npz_names(path)
    for name in ("images", "factors"):
        if name not in there:
            raise ValueError(f"{path}: no array {name!r}; it holds {', '.join(there) or 'nothing'}")
    with readable(path, "an .npz file"), np.load(path, allow_pickle=False) as arrays:
        images, factors = arrays["images"], arrays["factors"]
        names = arrays["factor_names"].tolist() if "factor_names" in there else None
        if kinds is None and "factor_kinds" in there:
            kinds = arrays["factor_kinds"].tolist()
    columns = matrix_columns(factors, names, str(path))
    return _dataset(ArrayRows(_checked(images, f"{path}: images")), columns, kinds, grid)


class Rows(Protocol):
    """Images by their row in the user's table."""

    @property
    def image_shape(self) -> ImageShape: ...

    def __len__(self) -> int: ...

    def read(self, rows: IntArray) -> UInt8Array: ...


@dataclass(frozen=True, eq=False)
class ArrayRows:
    array: UInt8Array

    @property
    def image_shape(self) -> ImageShape:
        height, width, channels = self.array.shape[1:]
        return height, width, channels

    def __len__(self) -> int:
        return len(self.array)

    def read(self, rows: IntArray) -> UInt8Array:
        return self.array[rows]


class MappedRows:
    """The rows of an .npy file; a worker process maps the file anew."""

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser()
        if not self.path.is_file():
            raise FileNotFoundError(f"{self.path}: no such file")
        try:
            array = np.load(self.path, mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError, OSError) as error:
            raise ValueError(f"{self.path}: damaged or not an .npy file ({error})") from error
        self._rows = ArrayRows(_checked(np.asarray(array), f"{self.path}: images"))

    @property
    def image_shape(self) -> ImageShape:
        return self._rows.image_shape

    def __len__(self) -> int:
        return len(self._rows)

    def read(self, rows: IntArray) -> UInt8Array:
        return self._rows.read(rows)

    def __reduce__(self) -> tuple[type["MappedRows"], tuple[Path]]:
        return MappedRows, (self.path,)


class PictureRows:
    """Picture files; the first of them sets the size, and whether they are grey."""

    def __init__(self, folder: Path, files: tuple[str, ...]) -> None:
        self.folder, self.files = folder, files
        first = self._picture(0, None)
        self._mode: str = "L" if first.mode == "L" else "RGB"
        self.image_shape: ImageShape = (first.height, first.width, 1 if self._mode == "L" else 3)

    def __len__(self) -> int:
        return len(self.files)

    def read(self, rows: IntArray) -> UInt8Array:
        out = np.empty((len(rows), *self.image_shape), dtype=np.uint8)
        for place, row in enumerate(rows):
            picture = self._picture(int(row), self._mode)
            if (picture.height, picture.width) != self.image_shape[:2]:
                height, width, _ = self.image_shape
                raise ValueError(
                    f"{self.folder / self.files[row]} is {picture.width} x {picture.height} pixels where "
                    f"{width} x {height} was expected, as in {self.files[0]}"
                )
            out[place] = np.asarray(picture).reshape(self.image_shape)
        return out

    def _picture(self, row: int, mode: str | None) -> Any:
        path = self.folder / self.files[row]
        return decoded(path.read_bytes(), str(path), mode)


@dataclass(frozen=True, eq=False)
class OwnImages:
    """The user's images; `rows` says where in the table each of them stands, if not in the order of the index."""

    source: Rows
    space: Space
    rows: IntArray | None = None

    @property
    def image_shape(self) -> ImageShape:
        return self.source.image_shape

    def __len__(self) -> int:
        return len(self.space)

    def images(self, index: IntArray) -> UInt8Array:
        positions = check_index(index, len(self))
        return self.source.read(positions if self.rows is None else self.rows[positions])


def _columns(factors: Any, names: Sequence[str] | None) -> list[Column]:
    if isinstance(factors, str | Path):
        return read_table(Path(factors).expanduser())
    # A data frame answers to keys() and [] as a mapping does.
    if hasattr(factors, "keys"):
        return table_columns({str(name): list(factors[name]) for name in factors.keys()}, "factors")  # noqa: SIM118
    return matrix_columns(np.asarray(factors), names, "factors")


def _dataset(source: Rows, columns: list[Column], kinds: Kinds, grid: bool | None) -> OwnImages:
    if not columns:
        raise ValueError("there are no factors")
    if len(source) != len(columns[0].cells):
        raise ValueError(f"{columns[0].table} has {len(columns[0].cells)} rows for {len(source)} images")
    chosen = _chosen_kinds(kinds, columns)
    levels, values, numbers = zip(*(column.levels(chosen.get(column.name)) for column in columns), strict=True)
    names = tuple(column.name for column in columns)
    found: tuple[Kind, ...] = tuple(column.kind(chosen.get(column.name)) for column in columns)
    if grid is not False:
        refusal = _no_grid(columns, levels, found, chosen)
        if not refusal:
            # A number that repeats like a level is one, whatever it looks like.
            as_levels: tuple[Kind, ...] = tuple("ordinal" if kind == "continuous" else kind for kind in found)
            space = FactorSpace(names, tuple(map(len, values)), as_levels, values)
            return OwnImages(source, space, np.argsort(space.index(np.stack(levels, axis=1))))
        if grid:
            raise ValueError(f"{columns[0].table} is no grid: {refusal}")
    table = [real if kind == "continuous" else level for real, level, kind in zip(numbers, levels, found, strict=True)]
    return OwnImages(source, FactorTable(names, found, np.stack(table, axis=1)))


def _no_grid(
    columns: list[Column], levels: tuple[IntArray, ...], kinds: tuple[Kind, ...], chosen: Mapping[str, Kind]
) -> str:
    """Why the rows are no grid, or nothing if they are."""
    for column, level, kind in zip(columns, levels, kinds, strict=True):
        if kind == "continuous" and (column.name in chosen or level.max() + 1 == len(level)):
            return f"factor {column.name!r} is continuous"
    sizes = tuple(int(level.max()) + 1 for level in levels)
    combinations, first, counts = np.unique(np.stack(levels, axis=1), axis=0, return_index=True, return_counts=True)
    if counts.max() > 1:
        twice = combinations[counts.argmax()]
        rows = np.flatnonzero((np.stack(levels, axis=1) == twice).all(axis=1))
        return f"{columns[0].at(int(rows[0]), False)} and {columns[0].at(int(rows[1]), False)} have the same factors"
    if len(first) != np.prod(sizes, dtype=np.int64):
        return f"{len(first)} of {np.prod(sizes, dtype=np.int64)} combinations are there"
    return ""


def _chosen_kinds(kinds: Kinds, columns: list[Column]) -> dict[str, Kind]:
    names = [column.name for column in columns]
    if kinds is None:
        return {}
    if not isinstance(kinds, Mapping):
        if len(kinds) != len(names):
            raise ValueError(f"kinds must have one entry per factor ({', '.join(names)}); got {list(kinds)}")
        kinds = dict(zip(names, kinds, strict=True))
    for name, kind in kinds.items():
        if name not in names:
            raise ValueError(f"kinds names no factor {name!r}; there are {', '.join(names)}")
        if kind not in KINDS:
            raise ValueError(f"factor {name!r} has unknown kind {kind!r}; choose from {', '.join(KINDS)}")
    return dict(kinds)


def _checked(images: Any, name: str) -> UInt8Array:
    array = np.asarray(images)
    if array.dtype == np.bool_:
        array = array.astype(np.uint8) * np.uint8(255)
    if array.dtype != np.uint8:
        raise ValueError(
            f"{name} must be uint8, 0 to 255; got {array.dtype}. From 0 to 1: (images * 255).astype('uint8')"
        )
    if array.ndim == 3:
        array = array[..., None]
    if array.ndim != 4 or 0 in array.shape:
        raise ValueError(f"{name} must be (n, height, width, channels) or (n, height, width); got {array.shape}")
    if array.shape[3] not in {1, 3}:
        raise ValueError(f"{name} must have 1 or 3 channels, last; got shape {array.shape}")
    return array
