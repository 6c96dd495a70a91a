"""3D Faces, the official file, which its licence keeps its authors from handing on."""

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unbraid._utils.optional import require
from unbraid.datasets._official import OfficialFile, open_official
from unbraid.datasets._store import SLAB, Content
from unbraid.datasets.base import FactorDataset, ReadingProgress
from unbraid.factors import FactorSpace
from unbraid.types import UInt8Array

VERSION = 1
SPACE = FactorSpace(
    names=("identity", "azimuth", "elevation", "lighting"),
    sizes=(50, 21, 11, 11),
    kinds=("categorical", "ordinal", "ordinal", "ordinal"),
)
FILES = (
    OfficialFile(
        "basel_face_renders.pth",
        "https://faces.dmi.unibas.ch/bfm/ (the face model; the renders are not distributed)",
        how="Its licence forbids handing it on: ask its authors, or render the Basel Face Model yourself",
    ),
)


def open_faces3d(
    root: Path, *, progress: ReadingProgress | None = None, file: str | Path | None = None, verify: bool = True
) -> FactorDataset:
    """Open the official 3D Faces, grey, 64 x 64.

    Args:
        root: folder of all datasets.
        progress: told of bytes checked, then of images converted, the first time.
        file: where basel_face_renders.pth is, when not in `root`; read once, and no code in it is run.
        verify: nothing is known of this file to compare it with; its checksum is recorded.
    """
    return open_official(
        "faces3d",
        FILES,
        lambda _, path: read(path),
        root,
        version=VERSION,
        file=file,
        verify=verify,
        progress=progress,
    )


def read(path: Path, space: FactorSpace = SPACE) -> Content:
    """The content of the file: one uint8 tensor (*sizes, 64, 64)."""
    return Content(space, (64, 64, 1), _slabs(path, space))


def _slabs(path: Path, space: FactorSpace) -> Iterator[UInt8Array]:
    torch: Any = require("torch", "train", "reading .pth files")
    try:
        tensor = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError, AttributeError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ValueError(f"{path}: damaged, or holds more than tensors ({reason})") from error
    shape = (*space.sizes, 64, 64)
    if not isinstance(tensor, torch.Tensor) or tensor.dtype != torch.uint8 or tuple(tensor.shape) != shape:
        found = f"{tensor.dtype} {tuple(tensor.shape)}" if isinstance(tensor, torch.Tensor) else type(tensor).__name__
        raise ValueError(f"{path}: it holds {found} where a uint8 tensor {shape} was expected")
    images = tensor.numpy().reshape(len(space), 64, 64, 1)
    for start in range(0, len(images), SLAB):
        yield images[start : start + SLAB]
