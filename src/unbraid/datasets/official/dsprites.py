"""dSprites, the official file."""

from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np

from unbraid.base.types import IntArray, UInt8Array
from unbraid.data import FactorSpace
from unbraid.data.image_dataset import FactorDataset, ImageShape, ReadingProgress, check_index
from unbraid.datasets.containers import NPZ, arrays_of
from unbraid.datasets.image_store import Content, StoredImages
from unbraid.datasets.official_files import OfficialFile, check_levels, open_official
from unbraid.datasets.sprites import sprites_space

VERSION = 1
SPACE = sprites_space()  # colour, the first column of the file, is constant and left out
_STEM = "dsprites_ndarray_co1sh3sc6or40x32y32_64x64"
_ADDRESS = "https://github.com/google-deepmind/dsprites-dataset/raw/master/"
FILES = (
    OfficialFile(
        f"{_STEM}.npz",
        _ADDRESS + f"{_STEM}.npz",
        git_sha1="d98996d3f8ee1550e06b9d4ed78d0beb478910d5",
        downloads=True,
    ),
    OfficialFile(
        f"{_STEM}.hdf5",
        _ADDRESS + f"{_STEM}.hdf5",
        size=28_024_106,
        sha256="729fa22e884c9c500e1f17415d580746b4c5894fbbb780a1319bbcfa39a745bb",
        downloads=True,
    ),
)


def open_dsprites(
    root: Path,
    *,
    progress: ReadingProgress | None = None,
    file: str | Path | None = None,
    verify: bool = True,
    drop_duplicate_orientation: bool = False,
) -> FactorDataset:
    """Open the official dSprites; images have 0 and 255 where the file has 0 and 1.

    Args:
        root: folder of all datasets.
        progress: told of bytes checked, then of images converted, the first time.
        file: where the .npz or .hdf5 is, when not in `root`; read once.
        verify: compare the file with its known size and checksum before it is converted.
        drop_duplicate_orientation: leave out orientation 39, which is orientation 0 again (2 pi); 718 848 images.
    """
    whole = open_official("dsprites", FILES, read, root, version=VERSION, file=file, verify=verify, progress=progress)
    return SubGrid(whole, sprites_space(True)) if drop_duplicate_orientation else whole


def read(path: Path, space: FactorSpace = SPACE) -> Content:
    """The content of the file; the levels in it must be those of the grid."""
    arrays = arrays_of(path)
    member = "latents_classes" if arrays is NPZ else "latents/classes"
    if member in arrays.names(path):
        try:
            labels = arrays.whole(path, member, (len(space), len(space.sizes) + 1), "iu")
        except ValueError as error:
            raise ValueError(f"{error}; if the file is your own, give its path as the dataset") from error
        check_levels(path, labels[:, 1:], space)
    slabs = arrays.slabs(path, "imgs", (len(space), 64, 64), "u", _white)
    return Content(space, (64, 64, 1), slabs, binary=True)


def _white(slab: UInt8Array) -> UInt8Array:
    if slab.max(initial=0) > 1:
        raise ValueError(f"pixels must be 0 or 1; found {slab.max()}")
    return slab[..., None] * np.uint8(255)


@dataclass(frozen=True, eq=False)
class SubGrid:
    """The part of a stored grid that has the first levels of each factor."""

    whole: StoredImages
    space: FactorSpace

    @property
    def image_shape(self) -> ImageShape:
        return self.whole.image_shape

    def __len__(self) -> int:
        return len(self.space)

    def images(self, index: IntArray) -> UInt8Array:
        full = cast(FactorSpace, self.whole.space)
        return self.whole.images(full.index(self.space.factors(check_index(index, len(self)))))
