"""The user's own images, with a table of their factors or without."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Literal

import numpy as np

from unbraid.base.suggest import one_line, suggestion
from unbraid.base.types import KIND_WORDS, KINDS, ArrayLike, IntArray, Kind, UInt8Array
from unbraid.data import FactorSpace, FactorTable, Space
from unbraid.data.image_dataset import NO_IMAGES, FactorDataset, ImageShape, check_index
from unbraid.data.labels import columns_of
from unbraid.data.space import Values, named_levels, spans_a_turn
from unbraid.datasets.containers import paths_below
from unbraid.datasets.factor_table import FILE_COLUMN, Column, read_table, table_columns
from unbraid.datasets.image_store import SLAB, StoredImages
from unbraid.datasets.own_image_rows import (
    ArrayRows,
    MappedRows,
    PictureRows,
    Rows,
    TorchRows,
    channels_last,
    checked_images,
    has_16_bits,
    iterated_rows,
)
from unbraid.datasets.space_json import space_of
from unbraid.files.checksum import check_content
from unbraid.files.tables import names_in, read_npz
from unbraid.files.whole_files import below, check_file, with_home

PICTURES_PACK = 200  # times: dSprites' own file takes 115 times its length
KNOWN = ("images", "factors", "factor_names", "factor_kinds")  # arrays of an .npz file
LIKE_DSPRITES = {"images": "imgs", "factors": "latents_classes"}  # what files in the format of dSprites call them
NAMES_OF_DSPRITES = ("color", "shape", "scale", "orientation", "position_x", "position_y")
TABLES = ("factors.csv", "factors.parquet")
LABELS = (".csv", ".parquet")  # tables of labels without images
PICTURES = {".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"}
META, STORED_KEYS = "meta.json", {"format", "image_shape"}
SPACE_FILE, SPACE_KEYS = "factors.json", {"format", "kinds"}  # beside factors.csv and pictures that were exported
EVEN = 1.2  # how much longer a step may be: values may have been rounded
Kinds = Mapping[str, Kind] | Sequence[Kind] | None


def from_array(
    images: ArrayLike | str | Path,
    factors: ArrayLike | Mapping[str, Sequence[Any]] | str | Path | None = None,
    *,
    names: Sequence[str] | None = None,
    kinds: Kinds = None,
    grid: bool | None = None,
) -> FactorDataset:
    """A dataset of images in one array, image i having the factors of row i; or of images of which none are known.

    Args:
        images: (n, height, width, channels) or (n, height, width), uint8, bool, or uint16, whose white is the largest
            number of 8, 10, 12, 14 or 16 bits, whichever hold all of its values; a torch tensor has its channels
            second, as is usual there; or an .npy file of them, which is read where it lies. Without factors also floats
            from 0 to 1, and the rows (n, n_features) of a table in floats.
        factors: a .csv or .parquet file, a mapping from name to column (a data frame is one), or a matrix
            (n, n_factors). Numbers, text or dates, which become days since the first; a column's levels are its
            distinct values in order, that of its categories where these have one, as in an ordered pandas
            Categorical. None: the images have no factors.
        names: of the columns of a matrix; default factor_0, factor_1, ...
        kinds: "categorical", "ordinal", "continuous" or "cyclic", by name or for all in order. By default text and
            booleans are categorical, whole numbers and ordered categories ordinal, other numbers and dates continuous,
            or ordinal in a complete grid.
        grid: True asks that there be one image of each combination, in any order; False treats the images as samples
            even so. By default a complete grid is taken for one: images are then counted in C order of the factors.

    Raises:
        ValueError: shapes disagree, images are 0 and 1 but not bool, a cell is empty or not finite, whole numbers
            beyond 2^53 are one float, there is no grid, or values of a cyclic factor are not evenly spaced; names row
            and column.
        FileNotFoundError: a file is not there.

    Example:
        >>> from unbraid.datasets import from_array
        >>> pictures = np.zeros((4, 8, 8), dtype=np.uint8)
        >>> dataset = from_array(pictures, {"shape": ["disc", "box", "disc", "box"], "size": [2, 2, 1, 1]})
        >>> dataset.space.names, dataset.space.sizes, dataset.space.values
        (('shape', 'size'), (2, 2), (('box', 'disc'), (1.0, 2.0)))
    """
    alone = factors is None
    if isinstance(images, str | Path):
        source, name = MappedRows(Path(images), alone), f"{images}: images"
    else:
        source, name = ArrayRows(checked_images(channels_last(images), "images", alone)), "images"
    _check_white(source.array, name)
    if alone:
        return _without_factors(source, names=names, kinds=kinds, grid=grid)
    return _dataset(source, _columns(factors, names), kinds, grid)


def images_of(images: Any) -> FactorDataset:
    """A dataset as it is; and one without factors of images in an array, a tensor, or as `from_torch` takes them.

    Raises:
        ValueError: it is none of these; or as `from_array` and `from_torch`.
    """
    if hasattr(images, "space") and hasattr(images, "images"):
        return images
    if isinstance(images, np.ndarray) or hasattr(images, "detach"):
        return from_array(images)
    in_torch = any(base.__module__.startswith("torch.utils.data") for base in type(images).__mro__)
    if in_torch or isinstance(images, Iterator):
        return from_torch(images)
    raise ValueError(
        'a dataset is its name or path, {"name": ..., options}, an array or tensor of images, a torch Dataset or '
        f"DataLoader, or an object with space and images; got {type(images).__name__}"
    )


def from_torch(dataset: Any) -> FactorDataset:
    """A dataset without factors of the images of a torch Dataset, read when they are asked for.

    Args:
        dataset: map-style; or iterable, or an iterator, which is read once into memory; or a DataLoader, for its
            dataset. Its items are images, or begin with one, (image, label); what else they hold is ignored. An image
            is a tensor (channels, height, width) or (height, width), a Pillow image, or an array with its channels
            last; uint8, or floats from 0 to 1. The images are the same every time.

    Raises:
        ValueError: an item is no such image or another than when read before, there are none or no end to them, or a
            DataLoader has a sampler or collate_fn of its own.
    """
    if any(base.__name__ == "DataLoader" for base in type(dataset).__mro__):
        dataset = _of_loader(dataset)
    return _without_factors(TorchRows(dataset) if _by_position(dataset) else iterated_rows(dataset))


def _by_position(dataset: Any) -> bool:
    iterable = any(base.__name__ == "IterableDataset" for base in type(dataset).__mro__)
    return hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__") and not iterable


def _of_loader(loader: Any) -> Any:
    """The dataset of a DataLoader, all of which is trained on, in an order drawn by the seed."""
    from torch.utils.data import BatchSampler, RandomSampler, SequentialSampler, default_collate, default_convert

    usual = loader.collate_fn in (default_collate, default_convert) and type(loader.batch_sampler) in (
        BatchSampler,
        type(None),
    )
    if _by_position(loader.dataset):
        sampler = loader.sampler
        shuffled = type(sampler) is RandomSampler and not sampler.replacement and len(sampler) == len(loader.dataset)
        usual = usual and (shuffled or type(sampler) is SequentialSampler)
    if not usual:
        raise ValueError(
            "the DataLoader has a sampler or collate_fn of its own, which would have no effect: give a dataset that "
            "holds the images to train on, such as torch.utils.data.Subset"
        )
    return loader.dataset


def from_folder(
    folder: str | Path,
    table: str | Path | Mapping[str, Sequence[Any]],
    *,
    file_column: str = FILE_COLUMN,
    kinds: Kinds = None,
    grid: bool | None = None,
    pages: Literal["first", "channels"] = "first",
) -> FactorDataset:
    """A dataset of picture files, decoded when asked for.

    Args:
        folder: of the pictures, all of one size.
        table: a .csv or .parquet file, or a mapping from name to column, with one row per picture.
        file_column: the column with the path of each picture inside the folder, / between its parts; the others are
            factors, if there are any.
        kinds: as in `from_array`.
        grid: as in `from_array`.
        pages: of files with several, such as TIFF stacks, take the first, or all of them as channels; those are grey.

    Raises:
        ValueError: as in `from_array`, a file is no picture, or a path is hidden or leads out of the folder.
        FileNotFoundError: the folder, the table or a picture is not there.
    """
    folder = with_home(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no such folder")
    pictures, factors = _pictures(folder, _columns(table, None, file_column), file_column, pages)
    return _dataset(pictures, factors, kinds, grid) if factors else _without_factors(pictures, kinds=kinds, grid=grid)


def _pictures(
    folder: Path, columns: list[Column], file_column: str, pages: str = "first"
) -> tuple[PictureRows, list[Column]]:
    """The pictures that a table names, and its other columns."""
    chosen = [column for column in columns if column.name == file_column]
    if not chosen:
        available = ", ".join(column.name for column in columns)
        raise ValueError(
            f"{columns[0].table}: no column {file_column!r} with the names of the pictures; it has {available}"
        )
    files = [str(cell) for cell in chosen[0].series]
    for row, name in enumerate(files):
        try:
            path = below(folder, name)
        except ValueError as error:
            raise ValueError(f"{chosen[0].at(row)}: {error}") from None
        if not path.is_file():
            raise FileNotFoundError(f"{chosen[0].at(row)}: there is no {name!r} in {folder}")
    return PictureRows(folder, tuple(files), pages), [column for column in columns if column.name != file_column]


def is_path(name: str, names: Iterable[str]) -> bool:
    """Whether `name` is to be opened by its path, being none of `names`."""
    return (
        bool(name)
        and name not in names
        and (name.lower().endswith((".npz", ".npy", *LABELS)) or "/" in name or os.sep in name or Path(name).exists())
    )


def open_path(
    path: str | Path, *, kinds: Kinds = None, grid: bool | None = None, pages: Literal["first", "channels"] = "first"
) -> FactorDataset:
    """A dataset by its path: what `unbraid data render --out` wrote, or the user's own.

    A folder holds factors.csv or factors.parquet and either images.npy or the pictures that its column "file" names,
    and factors.json with kinds and values where it was exported; an .npz file holds `images` and `factors`, and may
    hold `factor_names` and `factor_kinds`; or `imgs` and `latents_classes` (or `latents_values`), as that of dSprites
    does, of any size. Images without factors are a folder with images.npy or with pictures, also those of folders in
    it, in the order of their paths; an .npz file with `images` alone; or an .npy file. A .csv or .parquet file is a
    dataset of labels without images, of which codes can be scored and ranked, and nothing can be trained.

    Args:
        path: of the folder or file.
        kinds: as in `from_array`.
        grid: as in `from_array`.
        pages: of pictures in a folder, as in `from_folder`.

    Raises:
        ValueError: the content is not such.
        FileNotFoundError: it is not there.
    """
    path = with_home(path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file or folder")
    check_file(path)
    if path.is_file():
        return _open_file(path, kinds, grid)
    if is_stored(path):
        _check_unchosen(path / META, kinds, grid)
        return StoredImages(path)
    table = next((path / name for name in TABLES if (path / name).exists()), None)
    if (path / "images.npy").exists():
        return from_array(path / "images.npy", table, kinds=kinds, grid=grid)
    if table is None:
        return _without_factors(PictureRows(path, pictures_below(path), pages), kinds=kinds, grid=grid)
    if _json_keys(path / SPACE_FILE) >= SPACE_KEYS:
        _check_unchosen(path / SPACE_FILE, kinds, grid)
        return _exported_pictures(path, table)
    return from_folder(path, table, kinds=kinds, grid=grid, pages=pages)


def is_stored(folder: Path) -> bool:
    """Whether a folder is what this package stored or exported; others have files called meta.json, too."""
    keys = _json_keys(folder / META)
    # One that cannot be read is taken for a damaged one of ours, if there is what it should describe.
    return keys >= STORED_KEYS or (not keys and (folder / META).is_file() and (folder / "images.npy").exists())


def _json_keys(path: Path) -> set[str]:
    """The keys of the object in a JSON file; none where there is no such file or object."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return set()
    return set(content) if isinstance(content, dict) else set()


def _check_unchosen(path: Path, kinds: Kinds, grid: bool | None) -> None:
    if kinds is not None or grid is not None:
        raise ValueError(f"{path.parent}: its {path.name} gives the factors; kinds and grid cannot be chosen")


def _exported_pictures(folder: Path, table: Path) -> FactorDataset:
    """Pictures whose factors SPACE_FILE describes, as `unbraid data render --png` writes them."""
    described, (pictures, columns) = folder / SPACE_FILE, _pictures(folder, read_table(table), FILE_COLUMN)
    numbers = [column.levels(None)[2] for column in columns]
    try:
        content = described.read_bytes()
        check_content(content)
        matrix = np.stack(numbers, axis=1)
        space = space_of(json.loads(content), lambda: matrix)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"{described}: not readable as factors ({one_line(error)})") from error
    as_named = len(space) == len(matrix) and space.names == tuple(column.name for column in columns)
    if not as_named or not np.array_equal(space.factors(np.arange(len(space))), matrix):
        raise ValueError(
            f"{table}: its columns and rows are not those that {SPACE_FILE} describes; without that file the table is "
            "read by itself"
        )
    return OwnImages(pictures, space)


def pictures_below(folder: Path) -> tuple[str, ...]:
    """Paths of all pictures below a folder, in order; what is hidden is left out."""
    named = sorted(name for name in paths_below(folder) if Path(name).suffix.lower() in PICTURES)
    pictures = [name for name in named if not (folder / name).is_dir()]
    if not pictures:
        described = " nor ".join(("meta.json", *TABLES))
        kinds = ", ".join(sorted(PICTURES))
        raise ValueError(f"{folder}: no dataset; there is neither {described}, and no picture ({kinds}) or images.npy")
    return tuple(pictures)


def _open_file(path: Path, kinds: Kinds, grid: bool | None) -> FactorDataset:
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return from_array(path, kinds=kinds, grid=grid)
    if suffix in LABELS:
        columns = read_table(path)
        none = np.empty((len(columns[0]), *NO_IMAGES), dtype=np.uint8)  # which nobody can encode
        return _dataset(ArrayRows(none), columns, kinds, False if grid is None else grid)
    if suffix != ".npz":
        raise ValueError(
            f"{path}: a dataset is a folder, an .npz file with images and factors, an .npy file of images, or a .csv "
            "or .parquet file of labels"
        )
    members = names_in(path)
    member_names = {name: name for name in KNOWN}
    if "images" not in members and "imgs" in members:
        member_names |= LIKE_DSPRITES
        if "latents_classes" not in members and "latents_values" in members:
            member_names["factors"] = "latents_values"
    alone = members == [member_names["images"]]
    for name in () if alone else (member_names["images"], member_names["factors"]):
        if name not in members:
            raise ValueError(f"{path}: no array {name!r}; it holds {', '.join(members) or 'nothing'}")
    available = {name: member for name, member in member_names.items() if member in members}
    arrays = read_npz(path, [*available.values()], times=PICTURES_PACK)
    arrays_by_name = {name: arrays[member] for name, member in available.items()}
    if member_names["images"] == "imgs":
        arrays_by_name = _as_of_dsprites(arrays_by_name)
    images = ArrayRows(checked_images(arrays_by_name["images"], f"{path}: {member_names['images']}", alone))
    _check_white(images.array, f"{path}: {member_names['images']}")
    if alone:
        return _without_factors(images, kinds=kinds, grid=grid)
    names = _texts(path, "factor_names", arrays_by_name["factor_names"]) if "factor_names" in arrays_by_name else None
    if kinds is None and "factor_kinds" in arrays_by_name:
        kinds = _texts(path, "factor_kinds", arrays_by_name["factor_kinds"])  # pyright: ignore[reportAssignmentType]
    return _dataset(images, table_columns(columns_of(arrays_by_name["factors"], names), str(path)), kinds, grid)


def _check_white(images: UInt8Array, name: str) -> None:
    """Refuse bytes of 0 and 1 alone, which somebody means to be black and white, and which would both be black."""
    most = 0
    for start in range(0, len(images), SLAB):
        most = max(most, int(images[start : start + SLAB].max()))
        if most > 1 or (images.dtype != np.uint8 and not has_16_bits(images)):
            return
    if most == 1:
        raise ValueError(f"{name} hold 0 and 1 alone, and white is 255; as bool 1 is white: images.astype(bool)")


def _texts(path: Path, name: str, array: Any) -> list[str]:
    """One text per factor; HDF5 and others have made bytes of it."""
    if array.ndim != 1 or array.dtype.kind not in "SU":
        raise ValueError(
            f"{path}: array {name!r} must be one text per factor, (n_factors,); got {array.dtype} {array.shape}"
        )
    try:
        return (np.char.decode(array, "utf-8") if array.dtype.kind == "S" else array).tolist()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: array {name!r} is no text in UTF-8 ({error})") from error


def _as_of_dsprites(arrays: dict[str, Any]) -> dict[str, Any]:
    """Pixels of 0 and 1 as 0 and 255, and columns of factors by their names; one that never varies is no factor.

    The names stand in a pickle in such files, which is not opened: those of dSprites, where there are as many columns.
    """
    if arrays["images"].dtype.kind in "ui" and arrays["images"].max(initial=0) == 1:
        arrays["images"] = arrays["images"] * np.uint8(255)
    factors = arrays.get("factors")
    if factors is not None and factors.ndim == 2 and "factor_names" not in arrays:
        names = NAMES_OF_DSPRITES if factors.shape[1] == len(NAMES_OF_DSPRITES) else None
        # NaN differs from itself, and so is kept, to be refused by its row.
        varied = (factors != factors[:1]).any(axis=0) if len(factors) else np.ones(factors.shape[1], dtype=bool)
        arrays["factors"] = factors[:, varied]
        arrays["factor_names"] = np.array(names or [f"factor_{k}" for k in range(factors.shape[1])])[varied]
    return arrays


@dataclass(frozen=True, eq=False)
class OwnImages:
    """The user's images; `rows` says where in the table each of them stands, if not in the order of the index."""

    source: Rows
    space: Space
    rows: IntArray | None = None

    @property
    def image_shape(self) -> ImageShape:
        return self.source.image_shape

    @property
    def white(self) -> int | None:
        """The value of white in images of 16 bits; None of others."""
        return self.source.white

    def __len__(self) -> int:
        return len(self.space)

    def images(self, index: IntArray) -> UInt8Array:
        positions = check_index(index, len(self))
        images = self.source.read(positions if self.rows is None else self.rows[positions])
        if images.dtype.kind != "f":
            return images
        # torch takes no other order of bytes, and no longer floats.
        return images.astype(np.dtype(f"f{min(images.itemsize, 8)}"), copy=False)


def _columns(factors: Any, names: Sequence[str] | None, file_column: str = FILE_COLUMN) -> list[Column]:
    if not isinstance(factors, str | Path):
        return table_columns(columns_of(factors, names), "factors", file_column)
    columns = read_table(with_home(factors), file_column)
    if names is not None:
        raise ValueError(f"names is for factors in memory; {factors} names its columns")
    return columns


def _without_factors(
    source: Rows, *, names: Sequence[str] | None = None, kinds: Kinds = None, grid: bool | None = None
) -> OwnImages:
    for name, value in (("names", names), ("kinds", kinds), ("grid", grid)):
        if value is not None:
            raise ValueError(f"{name} is of factors, and these images have none")
    return OwnImages(source, FactorTable((), (), np.empty((len(source), 0))))


def _dataset(source: Rows, columns: list[Column], kinds: Kinds, grid: bool | None) -> OwnImages:
    if not columns:
        raise ValueError("there are no factors")
    if len(source) != len(columns[0]):
        raise ValueError(f"{columns[0].table} has {len(columns[0])} rows for {len(source)} images")
    chosen = _chosen_kinds(kinds, columns)
    levels, values, numbers = zip(*(column.levels(chosen.get(column.name)) for column in columns), strict=True)
    names = tuple(column.name for column in columns)
    known_kinds: tuple[Kind, ...] = tuple(column.kind(chosen.get(column.name)) for column in columns)
    around = tuple(map(_around, columns, known_kinds, values))
    if grid is not False:
        refusal = _no_grid(columns, levels, known_kinds, chosen)
        if not refusal:
            # A number that repeats like a level is one, whatever it looks like.
            as_levels: tuple[Kind, ...] = tuple("ordinal" if kind == "continuous" else kind for kind in known_kinds)
            space = FactorSpace(names, tuple(map(len, values)), as_levels, values)
            return OwnImages(source, space, np.argsort(space.index(np.stack(levels, axis=1))))
        if grid:
            raise ValueError(f"{columns[0].table} is no grid: {refusal}")
    table = [
        real if kind == "continuous" else level for real, level, kind in zip(numbers, levels, known_kinds, strict=True)
    ]
    level_values = tuple(
        () if kind == "continuous" else column_values for column_values, kind in zip(values, known_kinds, strict=True)
    )
    texts = tuple(map(named_levels, values))
    return OwnImages(
        source, FactorTable(names, known_kinds, np.stack(table, axis=1), None, texts, around, level_values)
    )


def _around(column: Column, kind: Kind, values: Values) -> int:
    """Levels once around of a cyclic factor, 0 for others.

    Raises:
        ValueError: its values are not evenly spaced, so that to count them is not to count steps around.
    """
    if kind != "cyclic":
        return 0
    steps = np.diff(np.arange(len(values)) if column.ordered else np.array(values, dtype=np.float64))
    if len(steps) and steps.max() > EVEN * steps.min():
        raise ValueError(
            f"{column.table}: column {column.name!r} is cyclic, and its values must be evenly spaced; their steps are "
            f"{steps.min():g} to {steps.max():g}. Kind 'continuous' takes any"
        )
    return len(values) - spans_a_turn(values)


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
    if len(first) != prod(sizes):
        return f"{len(first)} of {prod(sizes)} combinations are there"
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
            raise ValueError(f"kinds names no factor {name!r}; {suggestion(name, names)}")
        if kind not in KINDS:
            hint = suggestion(str(kind), KINDS, words=KIND_WORDS)
            raise ValueError(f"factor {name!r} has unknown kind {kind!r}; {hint}")
    return dict(kinds)
