"""COIL-100, the official archive: a hundred objects on a turntable."""

import re
from collections.abc import Iterator
from pathlib import Path

from unbraid.base.types import UInt8Array
from unbraid.data import FactorSpace
from unbraid.datasets.containers import bundle, decoded, file_of_each, resized, stacked
from unbraid.datasets.image_store import Content
from unbraid.datasets.official_files import OfficialFile, official_opener

VERSION = 1
SPACE = FactorSpace(
    names=("object", "rotation"),
    sizes=(100, 72),
    kinds=("categorical", "cyclic"),
    values=(tuple(float(k) for k in range(1, 101)), tuple(5.0 * k for k in range(72))),
)
FILES = (
    OfficialFile(
        "coil-100.zip",
        "http://www.cs.columbia.edu/CAVE/databases/SLAM_coil-20_coil-100/coil-100/coil-100.zip",
        size=130_688_843,
        sha256="fcb4b8b01c0778f416d8d7a09f45082c4f7075cc74743dcddd5c44307bd4afe7",
        downloads=True,
        folder="coil-100",
    ),
)
_NAME = re.compile(r"(?:^|/)obj(\d+)__(\d+)\.png$")


def read(path: Path, space: FactorSpace = SPACE) -> Content:
    """The content of the archive or of its folder; its two scripts are passed over."""
    return Content(space, (64, 64, 3), stacked(_images(path, space)))


def _images(path: Path, space: FactorSpace) -> Iterator[UInt8Array]:
    with bundle(path) as files:
        by_pose = file_of_each(path, files.names, _pose)
        n_objects, n_views = space.sizes
        for number in range(n_objects):
            for view in range(n_views):
                angle = view * 360 // n_views
                if (number, angle) not in by_pose:
                    raise ValueError(f"{path}: there is no obj{number + 1}__{angle}.png")
                name = by_pose[number, angle]
                yield resized(decoded(files.read(name), name), (64, 64))


def _pose(name: str) -> tuple[int, int] | None:
    match = _NAME.search(name)
    return (int(match[1]) - 1, int(match[2])) if match else None


open_coil100 = official_opener("coil100", FILES, read, VERSION, {"size": 64, "resampling": "lanczos"})
