"""A picture file as a model sees it: upright, without transparency, its middle square at the model's size."""

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unbraid.base.optional import require
from unbraid.base.types import UInt8Array
from unbraid.datasets.containers import MOST_OF_16_BITS, flattened, resized

# What turns a picture upright, by the orientation in its EXIF data. Pillow's own function also writes these data anew,
# and fails where a camera or an editor has left odd ones.
ORIENTATION = 0x0112
TURNS = {
    2: "FLIP_LEFT_RIGHT", 3: "ROTATE_180", 4: "FLIP_TOP_BOTTOM", 5: "TRANSPOSE", 6: "ROTATE_270", 7: "TRANSVERSE",
    8: "ROTATE_90",
}  # fmt: skip


def read_picture(path: str | Path, shape: Sequence[int], *, white: int = MOST_OF_16_BITS) -> UInt8Array:
    """A picture file as a model of images of this shape sees it, read as `fit` reads the pictures of a folder.

    Args:
        path: of the file, of any size.
        shape: of the model's images, (size, size, channels).
        white: of a file of 16 bits, the value that was white in the training images.

    Returns:
        (1, size, size, channels), to be encoded.

    Raises:
        ValueError: it is no file, or has pixels that are floats or of more than 16 bits.
        OSError: it cannot be read as a picture.
    """
    size, _, channels = shape
    seen = square(open_picture(Path(path), white), size)
    return np.stack([seen if channels > 1 else brightness(seen)])  # Pillow's own memory cannot be written to


def brightness(image: UInt8Array) -> UInt8Array:
    """(height, width, 1) of an image (height, width, 3)."""
    return np.asarray(require("PIL.Image", "data", "reading images").fromarray(image).convert("L"))[..., None]


def square_of(image: UInt8Array, size: int) -> UInt8Array:
    """The middle square of an image (height, width, channels), resized; grey ones get three channels."""
    draw = require("PIL.Image", "data", "resizing images").fromarray
    if image.shape[-1] == 3:
        return square(draw(image), size)
    channels = [square(draw(channel), size) for channel in np.moveaxis(image, -1, 0)]
    return channels[0] if len(channels) == 1 else np.stack([channel[..., 0] for channel in channels], axis=-1)


def square(image: Any, size: int) -> UInt8Array:
    """(size, size, 3) of a Pillow image: its middle square, resized."""
    side = min(image.size)
    left, top = (image.width - side) // 2, (image.height - side) // 2
    return resized(image.convert("RGB").crop((left, top, left + side, top + side)), (size, size))


def open_picture(path: Path, white: int = MOST_OF_16_BITS) -> Any:
    """The first frame of a picture file, upright, 8 bits deep; of 16 bits, `white` is the value of white."""
    if not path.is_file():  # to open a pipe would wait for ever
        raise ValueError("it is a link to no file" if path.is_symlink() else "it is no file")
    images = require("PIL.Image", "data", "reading image files")
    with images.open(path) as image:
        if image.format == "TIFF":
            _turn(image)  # is kept: Pillow 10 closes a file of several frames when it reads the pixels
        image.load()
        turn = _turn(image)
        return flattened(image if turn is None else image.transpose(images.Transpose[turn]), "RGB", white)


def _turn(image: Any) -> str | None:
    """What its EXIF data say to do; where they cannot be read viewers, too, show a picture as it is."""
    try:
        return TURNS.get(image.getexif().get(ORIENTATION))
    except unreadable():
        return None


def unreadable() -> tuple[type[Exception], ...]:
    """What Pillow raises of files that it cannot read."""
    bomb = require("PIL.Image", "data", "reading image files").DecompressionBombError
    return OSError, EOFError, SyntaxError, ValueError, TypeError, LookupError, ArithmeticError, struct.error, bomb
