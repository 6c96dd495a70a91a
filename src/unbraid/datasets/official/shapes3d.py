"""3D Shapes, the official file."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from unbraid.datasets._official import OfficialFile, check_levels, open_official
from unbraid.datasets._store import Content
from unbraid.datasets.base import FactorDataset, ReadingProgress
from unbraid.datasets.containers import hdf5_array, hdf5_names, hdf5_slabs, npz_array, npz_names, npz_slabs
from unbraid.factors import FactorSpace
from unbraid.types import FloatArray, IntArray, UInt8Array

VERSION = 1
_HUES = tuple(k / 10 for k in range(10))
SPACE = FactorSpace(
    names=("floor_hue", "wall_hue", "object_hue", "scale", "shape", "orientation"),
    sizes=(10, 10, 10, 8, 4, 15),
    kinds=("cyclic", "cyclic", "cyclic", "ordinal", "categorical", "ordinal"),
    values=(
        _HUES,
        _HUES,
        _HUES,
        tuple(np.linspace(0.75, 1.25, 8).tolist()),
        ("cube", "cylinder", "sphere", "capsule"),
        tuple(np.linspace(-30, 30, 15).tolist()),
    ),
)
FILES = (
    OfficialFile(
        "3dshapes.h5",
        "https://storage.googleapis.com/3d-shapes/3dshapes.h5",
        size=267_573_662,
        sha256="0a0f6ed98baff276a50f3a081a7434d788da63cb135a98189b2a5b5769be1785",
        downloads=True,
    ),
    OfficialFile(
        "look-at-object-room_floor-hueXwall-hueXobj-hueXobj-sizeXobj-shapeXview-azi.npz",
        "no public address",
    ),
)


def open_shapes3d(
    root: Path, *, progress: ReadingProgress | None = None, file: str | Path | None = None, verify: bool = True
) -> FactorDataset:
    """Open the official 3D Shapes.

    Args:
        root: folder of all datasets.
        progress: told of bytes checked, then of images converted, the first time.
        file: where 3dshapes.h5 (or the .npz of the same images) is, when not in `root`; read once.
        verify: compare the file with its known size and checksum before it is converted.
    """
    return open_official("shapes3d", FILES, read, root, version=VERSION, file=file, verify=verify, progress=progress)


def read(form: OfficialFile, path: Path, space: FactorSpace = SPACE) -> Content:
    """The content of the file; the labels in it must be those of the grid."""
    npz = form.name.endswith(".npz")
    n_images, n_factors = len(space), len(space.sizes)
    # The .npz has one axis per factor where the .h5 has one for the image.
    grid, lead = (space.sizes, n_factors) if npz else ((n_images,), 1)
    if "labels" in (npz_names(path) if npz else hdf5_names(path)):
        labels = (npz_array if npz else hdf5_array)(path, "labels", (*grid, n_factors), "f")
        check_levels(path, ranks(labels.reshape(n_images, n_factors)), space)
    slabs: Callable[..., Iterator[UInt8Array]] = npz_slabs if npz else hdf5_slabs
    extra = {"lead": lead} if npz else {}
    return Content(space, (64, 64, 3), slabs(path, "images", (*grid, 64, 64, 3), "u", **extra))


def ranks(values: FloatArray) -> IntArray:
    """(n, n_columns) rank of each value among the distinct ones of its column."""
    return np.stack([np.unique(column, return_inverse=True)[1] for column in values.T], axis=1)
