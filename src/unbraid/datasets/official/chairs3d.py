"""3D Chairs, the official archive: 1393 models of chairs seen from two heights all around."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unbraid.base.arguments import check_choice
from unbraid.base.types import UInt8Array
from unbraid.data import FactorSpace
from unbraid.data.image_dataset import FactorDataset, ReadingProgress
from unbraid.datasets.containers import Bundle, bundle, centre_crop, decoded, file_of_each, resized, stacked
from unbraid.datasets.image_store import Content
from unbraid.datasets.official_files import OfficialFile, open_official

VERSION = 1
CROP = 400  # pixels of the 600 that the chair fills
SPACE = FactorSpace(
    names=("object", "elevation", "azimuth"),
    sizes=(1393, 2, 31),
    kinds=("categorical", "ordinal", "cyclic"),
    values=(tuple(map(float, range(1393))), (20.0, 30.0), tuple(k * 360 / 31 for k in range(31))),
)
FILES = (
    OfficialFile(
        "rendered_chairs.tar",
        "https://www.di.ens.fr/willow/research/seeing3Dchairs/data/rendered_chairs.tar",
        downloads=True,
        folder="rendered_chairs",
    ),
)
_NAME = re.compile(r"(?:^|/)([^/]+)/renders/image_\d+_p(\d+)_t(\d+)_r\d+\.png$")


def open_chairs3d(
    root: Path,
    *,
    progress: ReadingProgress | None = None,
    file: str | Path | None = None,
    verify: bool = True,
    preprocessing: str = "crop",
) -> FactorDataset:
    """Open the official 3D Chairs, grey, 64 x 64.

    Objects are in the order of their folders' names. Published work gives the 62 views of an object one number: it is
    31 * elevation + azimuth, and the order of the images is the same.

    Args:
        root: folder of all datasets.
        progress: told of bytes checked, then of images converted, the first time.
        file: where the .tar, or the folder unpacked from it, is, when not in `root`; read once.
        verify: nothing is known of this file to compare it with; its checksum is recorded.
        preprocessing: "crop" takes the middle 400 x 400 pixels before scaling, "resize" the whole image.
    """
    check_choice("preprocessing", preprocessing, ("crop", "resize"))
    return open_official(
        "chairs3d",
        FILES,
        lambda path: read(path, preprocessing),
        root,
        version=VERSION,
        file=file,
        verify=verify,
        progress=progress,
        preprocessing={"method": preprocessing, "size": 64, "resampling": "lanczos", "colour": "grey"},
        cache_options={"preprocessing": preprocessing} if preprocessing != "crop" else None,
    )


def read(path: Path, preprocessing: str = "crop", space: FactorSpace = SPACE) -> Content:
    """The content of the archive or of its folder."""
    return Content(space, (64, 64, 1), stacked(_images(path, preprocessing, space)))


def _images(path: Path, preprocessing: str, space: FactorSpace) -> Iterator[UInt8Array]:
    n_objects, n_elevations, n_azimuths = space.sizes
    with bundle(path) as files:
        objects: dict[str, dict[tuple[int, int], str]] = {}
        for (folder, *pose), name in file_of_each(path, files.names, _view_of).items():
            objects.setdefault(folder, {})[pose[0], pose[1]] = name
        if len(objects) != n_objects:
            raise ValueError(f"{path}: there are {len(objects)} chairs where {n_objects} were expected")
        for folder, views in sorted(objects.items()):
            elevations, azimuths = (sorted({pose[axis] for pose in views}) for axis in (0, 1))
            if (len(elevations), len(azimuths), len(views)) != (n_elevations, n_azimuths, n_elevations * n_azimuths):
                raise ValueError(
                    f"{path}: chair {folder} has {len(views)} views, {len(elevations)} elevations and {len(azimuths)} "
                    f"azimuths, where {n_elevations} x {n_azimuths} were expected"
                )
            for pose in sorted(views):
                yield resized(_view(files, views[pose], preprocessing), (64, 64))


def _view_of(name: str) -> tuple[str, int, int] | None:
    """Folder, elevation and azimuth."""
    match = _NAME.search(name)
    return (match[1], int(match[2]), int(match[3])) if match else None


def _view(files: Bundle, name: str, preprocessing: str) -> Any:
    image = decoded(files.read(name), name, "L")
    return centre_crop(image, CROP, name) if preprocessing == "crop" else image
