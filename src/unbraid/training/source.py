"""The images of a training: opened by name, path or array, and described for the run's config."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from unbraid.data.image_dataset import FactorDataset, ReadingProgress
from unbraid.datasets.digest import content_digest
from unbraid.datasets.recorded import of_everywhere
from unbraid.runs.run import Images

Source: TypeAlias = Images | str | Path | Mapping[str, Any]
SECONDS = 0.5  # between two reports on images that are read


def opened_dataset(dataset: Source, progress: ReadingProgress | None = None) -> tuple[FactorDataset, dict[str, Any]]:
    """The dataset, and how a config describes it.

    Args:
        dataset: its name or path, {"name": ..., **options}, a dataset, or images as `images_of` takes them.
        progress: called as progress(done, all), seldom, while it is opened and its images are hashed.

    Raises:
        ValueError: the dataset is unknown, damaged, without images, or of the wrong type.
        OSError: a file of it is missing or cannot be read.
    """
    report = seldom(progress) if progress else None
    opened, name, options = _opened(dataset, report)
    if len(opened) == 0:
        raise ValueError("the dataset has no images")
    described = {
        "name": name,
        "options": json.loads(json.dumps(of_everywhere(options), default=str)),
        "n_images": len(opened),
        "image_shape": [int(size) for size in opened.image_shape],
        "content": content_digest(opened, report),
    }
    if (white := getattr(opened, "white", None)) is not None:
        described["white"] = white
    return opened, described


def open_dataset(dataset: Source) -> FactorDataset:
    """The dataset alone, without reading its images; argument as for `opened_dataset`."""
    return _opened(dataset, None)[0]


def _opened(dataset: Source, progress: ReadingProgress | None) -> tuple[FactorDataset, str | None, dict[str, Any]]:
    from unbraid.datasets import load
    from unbraid.datasets.own_images import images_of

    name, options = None, {}
    if isinstance(dataset, str | Path):
        name = str(dataset)
    elif isinstance(dataset, Mapping):
        options = dict(dataset)
        name = options.pop("name", None)
        if not isinstance(name, str):
            raise ValueError('a dataset is its name, {"name": ..., options}, or a dataset')
        if "progress" in options:
            raise ValueError(f"dataset {name!r} has no option 'progress'")
    opened = images_of(dataset) if name is None else load(name, progress=progress, **options)
    return opened, name, options


def seldom(progress: ReadingProgress) -> ReadingProgress:
    """The same callback, called at most about twice a second."""
    last_report = time.monotonic()

    def report(done: int, total: int) -> None:
        nonlocal last_report
        if time.monotonic() - last_report > SECONDS:
            last_report = time.monotonic()
            progress(done, total)

    return report
