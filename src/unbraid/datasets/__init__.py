"""Datasets with known factors: drawn by this package, or read from the files their authors publish."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ConfigDict, TypeAdapter, ValidationError

from unbraid.base.arguments import check_whole
from unbraid.base.suggest import suggestion
from unbraid.data.image_dataset import ArrayDataset, FactorDataset, ReadingProgress
from unbraid.datasets.dataset_table import DATASETS, Dataset, OfficialFile
from unbraid.datasets.image_file import read_picture
from unbraid.datasets.image_store import StoredImages
from unbraid.datasets.official_files import ChecksumWarning, DatasetMissing
from unbraid.datasets.own_images import from_array, from_folder, from_torch, is_path, open_path
from unbraid.datasets.shrunk import ShrunkImages
from unbraid.datasets.subset import SubsetDataset, Without, leave_out
from unbraid.files.cache_folder import cache_root

__all__ = [
    "DATASETS",
    "ArrayDataset",
    "ChecksumWarning",
    "Dataset",
    "DatasetMissing",
    "FactorDataset",
    "OfficialFile",
    "StoredImages",
    "SubsetDataset",
    "cache_root",
    "find",
    "from_array",
    "from_folder",
    "from_torch",
    "leave_out",
    "load",
    "read_picture",
]


def load(
    name: str | Path,
    root: str | Path | None = None,
    *,
    progress: ReadingProgress | None = None,
    shrink: int = 1,
    without: Without | None = None,
    **options: Any,
) -> FactorDataset:
    """Open a dataset by its name or path.

    Args:
        name: an entry of `DATASETS`; or the path of one's own: a folder, or an .npz, .npy, .csv or .parquet file, as
            `unbraid.datasets.own_images.open_path` describes. Its options are `kinds` and `grid`.
        root: folder of the caches and of official files; default UNBRAID_DATA, else the platform's cache folder.
        progress: called as progress(done, all) where that takes long: of the bytes of an official file while it is
            checked, then of images.
        shrink: 2 makes images half as high and wide, each pixel the mean of four; a table cannot be shrunk.
        without: images to leave out: a condition on the factors ("shape == 1 and scale > 3"), or what else
            `unbraid.datasets.subset.left_out` takes. What is left is no grid any more, unless whole levels are.
        **options: of this dataset; see `unbraid data info NAME`. An official one also has `file`, the path of the file
            where it is not in `root`, and `verify`; verify=False accepts a file of another size or checksum.

    Raises:
        ValueError: no such dataset, no such option of it, or nothing is left of it.
        FileNotFoundError: there is nothing at the path.
        DatasetMissing: it needs a file that is not there; the message says which, and where to get it.
    """
    check_whole("shrink", shrink, 1)
    # Numbers of NumPy go into JSON files as those of Python.
    options = {option: value.item() if isinstance(value, np.generic) else value for option, value in options.items()}
    dataset = _open(name, root, progress, options)
    dataset = dataset if shrink == 1 else ShrunkImages(dataset, shrink)
    return dataset if without is None else leave_out(dataset, without)


def _open(
    name: str | Path, root: str | Path | None, progress: ReadingProgress | None, options: dict[str, Any]
) -> FactorDataset:
    if isinstance(name, Path) or is_path(name, DATASETS):
        _check_options(name, open_path, options)
        return open_path(name, **options)
    row = find(name)
    _check_options(name, row.open, options)
    return row.open(cache_root(root), progress=progress, **options)


def _check_options(name: str | Path, opener: Callable[..., FactorDataset], options: Mapping[str, Any]) -> None:
    """Raises ValueError for an option that the dataset does not have, or a value of another type than it asks for.

    Numbers are left to the dataset, which knows their range.
    """
    parameters = inspect.signature(opener, eval_str=True).parameters
    known = set(parameters) - {"root", "path", "progress"}
    for option, value in options.items():
        if option not in known:
            available = ", ".join([*sorted(known), "shrink", "without"])
            raise ValueError(f"dataset {str(name)!r} has no option {option!r}; it has {available}")
        kind = parameters[option].annotation
        if kind in (int, float):
            continue
        try:
            TypeAdapter(kind, config=ConfigDict(strict=True)).validate_python(value)
        except ValidationError as error:
            reason = error.errors()[0]["msg"]
            raise ValueError(
                f"dataset {str(name)!r}: {option}: {reason[0].lower()}{reason[1:]}; got {value!r}"
            ) from None


def find(name: str) -> Dataset:
    """The row of a dataset.

    Raises:
        ValueError: no such dataset; the message offers the nearest name.
    """
    if name not in DATASETS:
        none = f"{name!r}: there is no such file or folder, and no dataset of that name"
        raise ValueError(f"{none}; {suggestion(name, DATASETS, few='`unbraid data list` lists them')}")
    return DATASETS[name]
