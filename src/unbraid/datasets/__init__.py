"""Datasets with known factors: drawn by this package, or read from the files their authors publish."""

import inspect
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from unbraid.datasets._official import ChecksumWarning, DatasetMissing
from unbraid.datasets._store import StoredImages, cache_root
from unbraid.datasets._table import DATASETS, Dataset, OfficialFile
from unbraid.datasets.base import ArrayDataset, FactorDataset, Progress
from unbraid.datasets.own import from_array, from_folder, is_path, open_path

__all__ = [
    "DATASETS",
    "ArrayDataset",
    "ChecksumWarning",
    "Dataset",
    "DatasetMissing",
    "FactorDataset",
    "OfficialFile",
    "StoredImages",
    "cache_root",
    "find",
    "from_array",
    "from_folder",
    "load",
]


def load(
    name: str, root: str | Path | None = None, *, progress: Progress | None = None, **options: Any
) -> FactorDataset:
    """Open a dataset by its name or path.

    Args:
        name: an entry of `DATASETS`; or the path of a folder or .npz file of one's own images, whose layout
            `unbraid.datasets.own.open_path` describes and whose options are `kinds` and `grid`.
        root: folder of the caches and of official files; default UNBRAID_DATA, else the platform's cache folder.
        progress: called as progress(images done, images in all) where something has to be built.
        **options: of this dataset; see `unbraid data info NAME`.

    Raises:
        ValueError: no such dataset, or no such option of it.
        DatasetMissing: it needs a file that is not there; the message says which, and where to get it.
    """
    if is_path(name, DATASETS):
        _check_options(name, open_path, options)
        return open_path(name, **options)
    row = find(name)
    _check_options(name, row.open, options)
    return row.open(cache_root(root), progress=progress, **options)


def _check_options(name: str, opener: Callable[..., FactorDataset], options: Iterable[str]) -> None:
    known = set(inspect.signature(opener).parameters) - {"root", "path", "progress"}
    for option in options:
        if option not in known:
            raise ValueError(f"dataset {name!r} has no option {option!r}; it has {', '.join(sorted(known)) or 'none'}")


def find(name: str) -> Dataset:
    """The row of a dataset.

    Raises:
        ValueError: no such dataset; the message offers the nearest name.
    """
    if name not in DATASETS:
        near = get_close_matches(name, DATASETS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(DATASETS)}"
        raise ValueError(f"unknown dataset {name!r}; {hint}")
    return DATASETS[name]
