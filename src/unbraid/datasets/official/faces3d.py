"""3D Faces, the official file, which its licence keeps its authors from handing on."""

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unbraid.base.optional import require
from unbraid.base.types import UInt8Array
from unbraid.data import FactorSpace
from unbraid.datasets.image_store import SLAB, Content
from unbraid.datasets.official_files import OfficialFile, official_opener

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


def read(path: Path, space: FactorSpace = SPACE) -> Content:
    """The content of the file: one uint8 tensor (*sizes, 64, 64)."""
    return Content(space, (64, 64, 1), _slabs(path, space))


def _slabs(path: Path, space: FactorSpace) -> Iterator[UInt8Array]:
    torch: Any = require("torch", "train", "reading .pth files")
    try:
        tensor = torch.load(path, map_location="cpu", weights_only=True)  # runs no code of the file's
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError, AttributeError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ValueError(f"{path}: damaged, or holds more than tensors ({reason})") from error
    shape = (*space.sizes, 64, 64)
    if not isinstance(tensor, torch.Tensor) or tensor.dtype != torch.uint8 or tuple(tensor.shape) != shape:
        content = f"{tensor.dtype} {tuple(tensor.shape)}" if isinstance(tensor, torch.Tensor) else type(tensor).__name__
        raise ValueError(f"{path}: it holds {content} where a uint8 tensor {shape} was expected")
    images = tensor.numpy().reshape(len(space), 64, 64, 1)
    for start in range(0, len(images), SLAB):
        yield images[start : start + SLAB]


open_faces3d = official_opener("faces3d", FILES, read, VERSION)
