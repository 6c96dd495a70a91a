"""Images as addresses that hold them, so that a page needs no other file."""

import base64
import io

import numpy as np

from unbraid.base.arrays import side_by_side
from unbraid.base.types import FloatArray, UInt8Array

GAP = 2  # pixels between the tiles of a sheet


def image_address(image: FloatArray | UInt8Array) -> str:
    """One image (height, width, channels), bytes or 0 .. 1, as a data address."""
    return _address(_bytes(image), colour=image.shape[-1] >= 3)


def sheet_address(tiles: FloatArray) -> str:
    """(n_rows, n_columns, height, width, channels), 0 .. 1, as one picture with transparent gaps."""
    return _address(_sheet(tiles), colour=tiles.shape[-1] >= 3)


def _sheet(tiles: FloatArray) -> UInt8Array:
    opaque = np.full((*tiles.shape[:-1], 1), 255, dtype=np.uint8)
    return side_by_side(np.concatenate([_bytes(tiles), opaque], axis=-1), GAP)


def _bytes(image: FloatArray | UInt8Array) -> UInt8Array:
    """(..., height, width, 3): the first three channels, or the first one as grey."""
    values = image[..., :3] if image.shape[-1] >= 3 else np.repeat(image[..., :1], 3, axis=-1)
    return np.asarray(values if values.dtype == np.uint8 else np.clip(values, 0, 1) * 255 + 0.5, dtype=np.uint8)


def _address(pixels: UInt8Array, *, colour: bool) -> str:
    from PIL import Image

    buffer = io.BytesIO()
    # Drawn and grey images pack well as they are; photographs take ten times less with a little loss.
    Image.fromarray(pixels).save(buffer, "WEBP", lossless=not colour, quality=90, method=4, exact=True)
    return f"data:image/webp;base64,{base64.b64encode(buffer.getvalue()).decode()}"
