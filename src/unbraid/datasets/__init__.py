"""Datasets with known factors: drawn by this package, or read from the files their authors publish."""

import inspect
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from unbraid.datasets._store import StoredImages, cache_root
from unbraid.datasets._table import DATASETS, Dataset, OfficialFile
from unbraid.datasets.base import ArrayDataset, FactorDataset, Progress

__all__ = [
    "DATASETS",
    "ArrayDataset",
    "Dataset",
    "FactorDataset",
    "OfficialFile",
    "StoredImages",
    "cache_root",
    "find",
    "load",
]


def load(
    name: str, root: str | Path | None = None, *, progress: Progress | None = None, **options: Any
) -> FactorDataset:
    """Open a dataset by its name.

    Args:
        name: an entry of `DATASETS`.
        root: folder of the caches and of official files; default UNBRAID_DATA, else the platform's cache folder.
        progress: called as progress(images done, images in all) where something has to be built.
        **options: of this dataset; see `unbraid data info NAME`.

    Raises:
        ValueError: no such dataset, or no such option of it.
        FileNotFoundError: it needs a file that is not there; the message says which, and where to get it.
    """
    row = find(name)
    known = set(inspect.signature(row.open).parameters) - {"root"}
    for option in options:
        if option not in known:
            choices = ", ".join(sorted(known - {"progress"})) or "none"
            raise ValueError(f"dataset {name!r} has no option {option!r}; it has {choices}")
    return row.open(cache_root(root), progress=progress, **options)


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
