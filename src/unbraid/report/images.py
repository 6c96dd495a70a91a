"""Images as addresses that hold them, so that a page needs no other file."""

import base64
import io
import math
from typing import TYPE_CHECKING

import numpy as np

from unbraid.types import FloatArray, UInt8Array

if TYPE_CHECKING:
    from PIL.Image import Image

GAP = 2  # pixels between the tiles of a sheet


def image_address(image: FloatArray | UInt8Array) -> str:
    """One image (height, width, channels), bytes or 0 .. 1, as a data address."""
    return _address(_bytes(image), colour=image.shape[-1] >= 3)


def sheet_address(tiles: FloatArray) -> str:
    """(n_rows, n_columns, height, width, channels), 0 .. 1, as one picture with transparent gaps."""
    return _address(_sheet(tiles), colour=tiles.shape[-1] >= 3)


def sheet_of(images: FloatArray, scale: int = 1) -> "Image":
    """Images (n, height, width, channels), 0 .. 1, row by row in about a square, each pixel so many pixels wide.

    What is left of the last row is transparent, as the gaps are.
    """
    from PIL.Image import fromarray

    across = math.ceil(math.sqrt(len(images)))
    down = math.ceil(len(images) / across)
    tiles = np.zeros((down * across, *images.shape[1:]), dtype=images.dtype)
    tiles[: len(images)] = images
    sheet = _sheet(tiles.reshape(down, across, *images.shape[1:]).repeat(scale, 2).repeat(scale, 3))
    height, width = (size * scale + GAP for size in images.shape[1:3])
    for place in range(len(images), down * across):
        y, x = place // across * height, place % across * width
        sheet[y : y + height, x : x + width, 3] = 0
    return fromarray(sheet)


def _sheet(tiles: FloatArray) -> UInt8Array:
    rows, columns, height, width, _ = tiles.shape
    sheet = np.zeros((rows * (height + GAP) - GAP, columns * (width + GAP) - GAP, 4), dtype=np.uint8)
    for row in range(rows):
        for column in range(columns):
            y, x = row * (height + GAP), column * (width + GAP)
            sheet[y : y + height, x : x + width, :3] = _bytes(tiles[row, column])
            sheet[y : y + height, x : x + width, 3] = 255
    return sheet


def _bytes(image: FloatArray | UInt8Array) -> UInt8Array:
    """(height, width, 3): the first three channels, or the first one as grey."""
    values = image[..., :3] if image.shape[-1] >= 3 else np.repeat(image[..., :1], 3, axis=-1)
    return np.asarray(values if values.dtype == np.uint8 else np.clip(values, 0, 1) * 255 + 0.5, dtype=np.uint8)


def _address(pixels: UInt8Array, *, colour: bool) -> str:
    from PIL import Image

    buffer = io.BytesIO()
    # Drawn and grey images pack well as they are; photographs take ten times less with a little loss.
    Image.fromarray(pixels).save(buffer, "WEBP", lossless=not colour, quality=90, method=4, exact=True)
    return f"data:image/webp;base64,{base64.b64encode(buffer.getvalue()).decode()}"
