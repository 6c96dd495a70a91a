"""The teapots of Eastwood and Williams (2018), the official file. `teapot` is the set that this package draws."""

from pathlib import Path
from typing import Any

import numpy as np

from unbraid.datasets._official import OfficialFile, open_official
from unbraid.datasets._store import Content
from unbraid.datasets.base import FactorDataset, ReadingProgress
from unbraid.datasets.containers import npz_array, npz_slabs
from unbraid.factors import FactorTable
from unbraid.types import Kind, UInt8Array

VERSION = 1
N_IMAGES = 200_000
NAMES = ("azimuth", "elevation", "red", "green", "blue")
KINDS: tuple[Kind, ...] = ("continuous",) * 5
FILES = (
    OfficialFile(
        "teapots.npz",
        "https://github.com/cianeastwood/qedr (its README links to edinburgh_teapots.zip on Dropbox)",
        md5="9b58d66a382d01f4477e33520f1fa503",
        how="Download edinburgh_teapots.zip in a browser and take teapots.npz out of it",
    ),
)


def open_teapots_official(
    root: Path, *, progress: ReadingProgress | None = None, file: str | Path | None = None, verify: bool = True
) -> FactorDataset:
    """Open the official teapots: 200 000 at random angles in random colours, so no grid.

    Args:
        root: folder of all datasets.
        progress: told of bytes checked, then of images converted, the first time.
        file: where teapots.npz is, when not in `root`; read once, in slabs (whole it would take 9.8 GB).
        verify: compare the file with its known checksum before it is converted.
    """
    return open_official(
        "teapots_official",
        FILES,
        lambda _, path: read(path),
        root,
        version=VERSION,
        file=file,
        verify=verify,
        progress=progress,
    )


def read(path: Path, n_images: int = N_IMAGES) -> Content:
    """The content of the file."""
    factors = npz_array(path, "gts", (n_images, 5), "f")
    slabs = npz_slabs(path, "images", (n_images, 64, 64, 3), "iu", _narrow)
    return Content(FactorTable(NAMES, KINDS, factors.astype(np.float64)), (64, 64, 3), slabs)


def _narrow(slab: Any) -> UInt8Array:
    if slab.min(initial=0) < 0 or slab.max(initial=0) > 255:
        raise ValueError(f"pixels must be 0 to 255; found {slab.min()} to {slab.max()}")
    return slab.astype(np.uint8)
