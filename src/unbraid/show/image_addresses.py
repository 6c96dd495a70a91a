"""Images as addresses that hold them, so that a page needs no other file."""

import base64
import colorsys
import io
from typing import Any

import numpy as np

from unbraid.base.arrays import side_by_side
from unbraid.base.types import FloatArray, UInt8Array

GAP = 2  # pixels between the tiles of a sheet


def mixture(channels: int) -> FloatArray:
    """(channels, 3): the share of each channel in red, green and blue; each of these sums to 1, so that all are white.

    One channel is grey, three are red, green and blue. Of any other number each has a hue of its own.
    """
    if channels == 1:
        return np.ones((1, 3))
    if channels == 3:
        return np.eye(3)
    hues = np.array([colorsys.hsv_to_rgb(channel / channels, 1, 1) for channel in range(channels)])
    return hues / hues.sum(0)


def in_colours(images: Any) -> Any:
    """Images (..., channels) as red, green and blue; bytes stay bytes, and one channel stays one."""
    channels = images.shape[-1]
    if channels in (1, 3):
        return images
    mixed = images @ mixture(channels)
    return (mixed + 0.5).astype(np.uint8) if images.dtype == np.uint8 else mixed


def image_address(image: FloatArray | UInt8Array) -> str:
    """One image (height, width, channels), bytes or 0 .. 1, as a data address."""
    return _address(_bytes(image), colour=image.shape[-1] > 1)


def sheet_address(tiles: FloatArray) -> str:
    """(n_rows, n_columns, height, width, channels), 0 .. 1, as one picture with transparent gaps."""
    return _address(_sheet(tiles), colour=tiles.shape[-1] > 1)


def _sheet(tiles: FloatArray) -> UInt8Array:
    opaque = np.full((*tiles.shape[:-1], 1), 255, dtype=np.uint8)
    return side_by_side(np.concatenate([_bytes(tiles), opaque], axis=-1), GAP)


def _bytes(image: FloatArray | UInt8Array) -> UInt8Array:
    """(..., height, width, 3), as `in_colours`."""
    shown = in_colours(image)
    values = np.repeat(shown, 3, axis=-1) if shown.shape[-1] == 1 else shown
    return np.asarray(values if values.dtype == np.uint8 else np.clip(values, 0, 1) * 255 + 0.5, dtype=np.uint8)


def _address(pixels: UInt8Array, *, colour: bool) -> str:
    from PIL import Image

    buffer = io.BytesIO()
    # Drawn and grey images pack well as they are; photographs take ten times less with a little loss.
    Image.fromarray(pixels).save(buffer, "WEBP", lossless=not colour, quality=90, method=4, exact=True)
    return f"data:image/webp;base64,{base64.b64encode(buffer.getvalue()).decode()}"
