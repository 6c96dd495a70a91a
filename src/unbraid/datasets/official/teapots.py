"""The teapots of Eastwood and Williams (2018), the official file. `teapot` is the set that this package draws."""

from pathlib import Path
from typing import Any

import numpy as np

from unbraid.base.types import UInt8Array
from unbraid.data import FactorTable
from unbraid.datasets.containers import NPZ, npz_slabs
from unbraid.datasets.image_store import Content
from unbraid.datasets.official_files import OfficialFile, official_opener
from unbraid.datasets.teapot import KINDS, NAMES

VERSION = 1
N_IMAGES = 200_000
FILES = (
    OfficialFile(
        "teapots.npz",
        "https://github.com/cianeastwood/qedr (its README links to edinburgh_teapots.zip on Dropbox)",
        md5="9b58d66a382d01f4477e33520f1fa503",
        how="Download edinburgh_teapots.zip in a browser and take teapots.npz out of it",
    ),
)


def read(path: Path, n_images: int = N_IMAGES) -> Content:
    """The content of the file, in slabs: whole it would take 9.8 GB."""
    factors = NPZ.whole(path, "gts", (n_images, 5), "f")
    slabs = npz_slabs(path, "images", (n_images, 64, 64, 3), "iu", _narrow)
    return Content(FactorTable(NAMES, KINDS, factors.astype(np.float64)), (64, 64, 3), slabs)


def _narrow(slab: Any) -> UInt8Array:
    if slab.min(initial=0) < 0 or slab.max(initial=0) > 255:
        raise ValueError(f"pixels must be 0 to 255; found {slab.min()} to {slab.max()}")
    return slab.astype(np.uint8)


open_teapots_official = official_opener("teapots_official", FILES, read, VERSION)
