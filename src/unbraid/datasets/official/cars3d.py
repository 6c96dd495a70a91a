"""3D Cars, the official archive."""

import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from unbraid.base.optional import require
from unbraid.base.suggest import error_line
from unbraid.base.types import UInt8Array
from unbraid.data import FactorSpace
from unbraid.datasets.containers import bundle, resized, walk_tar_gz
from unbraid.datasets.image_store import SLAB, Content
from unbraid.datasets.official_files import OfficialFile, official_opener

VERSION = 1
SPACE = FactorSpace(
    names=("elevation", "azimuth", "object"),
    sizes=(4, 24, 183),
    kinds=("ordinal", "cyclic", "categorical"),
    values=(tuple(map(float, range(4))), tuple(15.0 * k for k in range(24)), tuple(map(float, range(183)))),
)
FILES = (
    OfficialFile(
        "nips2015-analogy-data.tar.gz",
        "http://www.scottreed.info/files/nips2015-analogy-data.tar.gz",
        md5="4e866a7919c1beedf53964e6f7a23686",
        downloads=True,
        folder="cars",
    ),
)
_WANTED = re.compile(r"(^|/)(car_\d+_mesh\.mat|list\.txt)$")


def read(path: Path, space: FactorSpace = SPACE) -> Content:
    """The content of the archive or of the folder that was unpacked from it."""
    return Content(space, (64, 64, 3), _slabs(path, space))


def _slabs(path: Path, space: FactorSpace) -> Iterator[UInt8Array]:
    # Each file is one object, but objects vary fastest in the grid: all 0.2 GB are gathered before the first goes out.
    n_elevations, n_azimuths, n_objects = space.sizes
    cars: dict[str, UInt8Array] = {}
    order: list[str] = []
    for name, data in _files(path):
        stem = PurePosixPath(name).name
        if stem == "list.txt":
            if "cars/" in f"{path.as_posix()}/{name}":
                order = [PurePosixPath(line).name.removesuffix(".mat") for line in data.decode("ascii").split()]
        else:
            cars[stem.removesuffix(".mat")] = _views(name, data, n_elevations, n_azimuths)
    if not order:
        raise ValueError(f"{path}: there is no cars/list.txt, which gives the order of the objects")
    absent = [name for name in order if name not in cars]
    if absent:
        raise ValueError(f"{path}: cars/list.txt names {absent[0]}.mat, which is not there")
    if len(order) != n_objects:
        raise ValueError(f"{path}: cars/list.txt names {len(order)} objects where {n_objects} were expected")
    images = np.stack([cars[name] for name in order], axis=2).reshape(-1, 64, 64, 3)
    for start in range(0, len(images), SLAB):
        yield images[start : start + SLAB]


def _files(path: Path) -> Iterator[tuple[str, bytes]]:
    if not path.is_dir():
        yield from walk_tar_gz(path, _WANTED)
        return
    with bundle(path) as folder:
        for name in filter(_WANTED.search, sorted(folder.names)):
            yield name, folder.read(name)


def _views(name: str, data: bytes, n_elevations: int, n_azimuths: int) -> UInt8Array:
    """(elevation, azimuth, 64, 64, 3) of one object from its (128, 128, 3, azimuth, elevation)."""
    from scipy.io import loadmat

    try:
        content = loadmat(BytesIO(data), variable_names=["im"])
    except Exception as error:  # whatever the bytes of a damaged file lead SciPy to
        raise ValueError(f"{name} is not a readable MATLAB file ({error_line(error)})") from error
    if "im" not in content:
        raise ValueError(f"{name} has no array 'im'")
    views: Any = content["im"]
    if views.shape != (128, 128, 3, n_azimuths, n_elevations) or views.dtype != np.uint8:
        raise ValueError(
            f"{name}: 'im' is {views.dtype} {views.shape} where uint8 "
            f"{(128, 128, 3, n_azimuths, n_elevations)} was expected"
        )
    images = require("PIL.Image", "data", "scaling images")
    flat = np.ascontiguousarray(views.transpose(4, 3, 0, 1, 2)).reshape(-1, 128, 128, 3)
    small = np.stack([resized(images.fromarray(view), (64, 64)) for view in flat])
    return small.reshape(n_elevations, n_azimuths, 64, 64, 3)


open_cars3d = official_opener(
    "cars3d", FILES, read, VERSION, {"size": 64, "resampling": "lanczos", "object_order": "list.txt"}
)
