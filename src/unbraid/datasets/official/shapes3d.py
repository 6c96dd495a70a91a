"""3D Shapes, the official file."""

from pathlib import Path

import numpy as np

from unbraid.base.types import FloatArray, IntArray
from unbraid.data import FactorSpace
from unbraid.datasets.containers import NPZ, arrays_of
from unbraid.datasets.image_store import Content
from unbraid.datasets.official_files import OfficialFile, check_levels, official_opener

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


def read(path: Path, space: FactorSpace = SPACE) -> Content:
    """The content of the file; the labels in it must be those of the grid."""
    arrays = arrays_of(path)
    n_factors = len(space.sizes)
    # The .npz has one axis per factor where the .h5 has one for the image.
    grid, extra = (space.sizes, {"lead": n_factors}) if arrays is NPZ else ((len(space),), {})
    if "labels" in arrays.names(path):
        labels = arrays.whole(path, "labels", (*grid, n_factors), "f")
        check_levels(path, ranks(labels.reshape(-1, n_factors)), space)
    return Content(space, (64, 64, 3), arrays.slabs(path, "images", (*grid, 64, 64, 3), "u", **extra))


def ranks(values: FloatArray) -> IntArray:
    """(n, n_columns) rank of each value among the distinct ones of its column."""
    return np.stack([np.unique(column, return_inverse=True)[1] for column in values.T], axis=1)


open_shapes3d = official_opener("shapes3d", FILES, read, VERSION)
