"""Write a dataset, or its first images, as a folder that other programs can read."""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from unbraid.base.optional import require
from unbraid.data import Space
from unbraid.data.image_dataset import FactorDataset, ReadingProgress, check_images
from unbraid.datasets.image_store import FORMAT, SLAB, check_room, content_of, fill
from unbraid.datasets.own_images import FILE_COLUMN, SPACE_FILE
from unbraid.datasets.space_json import described_space
from unbraid.datasets.subset import first_of
from unbraid.files.checksum import checksummed_json
from unbraid.files.whole_files import atomic_folder


def export(
    dataset: FactorDataset,
    folder: Path,
    *,
    limit: int | None = None,
    pictures: bool = False,
    description: Mapping[str, Any] | None = None,
    progress: ReadingProgress | None = None,
) -> int:
    """Write images and factors; the folder appears when it is whole.

    It holds factors.csv, one row per image: levels as metrics take them, or real values. The images are in
    images.npy (n, height, width, channels) with a meta.json that keeps kinds and values, or else in
    images/000000.png and so on, named in the column "file", with a factors.json that keeps them.
    `datasets.load(folder)` opens either.

    Args:
        dataset: what to write.
        folder: must not exist yet.
        limit: only the first so many images.
        pictures: as .png files.
        description: what the images are, for meta.json.
        progress: called as progress(images done, images in all).

    Returns:
        How many images were written.

    Raises:
        ValueError: the folder exists, limit is below 1, there are no images or such in floats, or a factor of pictures
            is called "file".
        OSError: the disk is full or the folder cannot be written; nothing is left behind.
    """
    if folder.exists():
        raise ValueError(f"{folder} exists already; name another folder, or delete it first")
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be at least 1; got {limit}")
    check_images(dataset)
    if pictures and FILE_COLUMN in dataset.space.names:
        raise ValueError(
            f"a factor is called {FILE_COLUMN!r}, as the column of factors.csv that names the pictures; rename it, or "
            "write no .png files"
        )
    if (kind := dataset.images(np.arange(1)).dtype) != np.uint8:
        raise ValueError(f"images are written as uint8, 0 to 255; these are {kind}")
    n_images = len(dataset) if limit is None else min(limit, len(dataset))
    folder.parent.mkdir(parents=True, exist_ok=True)
    stored = None if pictures else content_of(dataset, limit=n_images, description=description)
    if stored is not None:
        check_room(folder, stored)
    with atomic_folder(folder) as temporary:
        if stored is not None:
            fill(temporary, stored, progress)
        else:
            _write_pictures(dataset, temporary, n_images, progress)
            _write_space(dataset.space, temporary / SPACE_FILE, n_images)
        _write_factors(dataset, temporary / "factors.csv", n_images, pictures)
    return n_images


def _write_pictures(dataset: FactorDataset, folder: Path, n_images: int, progress: ReadingProgress | None) -> None:
    images = require("PIL.Image", "data", "writing .png files")
    (folder / "images").mkdir()
    for start in range(0, n_images, SLAB):
        slab = dataset.images(np.arange(start, min(start + SLAB, n_images)))
        for row, image in enumerate(slab, start=start):
            images.fromarray(image.squeeze(-1) if image.shape[-1] == 1 else image).save(folder / _picture_name(row))
        if progress is not None:
            progress(start + len(slab), n_images)


def _write_space(space: Space, path: Path, n_images: int) -> None:
    """What factors.csv does not tell: kinds, values, and how many levels there are."""
    if space.names:
        written_space = space if n_images == len(space) else first_of(space, n_images)
        path.write_bytes(checksummed_json({"format": FORMAT, **described_space(written_space)}))


def _write_factors(dataset: FactorDataset, path: Path, n_images: int, pictures: bool) -> None:
    with path.open("w", newline="", encoding="utf-8") as out:
        rows = csv.writer(out)
        rows.writerow([*([FILE_COLUMN] if pictures else []), *dataset.space.names])
        for start in range(0, n_images, SLAB):
            factors = dataset.space.factors(np.arange(start, min(start + SLAB, n_images))).tolist()
            for row, levels in enumerate(factors, start=start):
                rows.writerow([*([_picture_name(row)] if pictures else []), *levels])


def _picture_name(row: int) -> str:
    return f"images/{row:06d}.png"
