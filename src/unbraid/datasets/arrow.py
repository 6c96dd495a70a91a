"""An arrow that turns in the plane of the picture and runs through the circle of hues."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numba
import numpy as np

from unbraid.base.arguments import check_whole
from unbraid.base.types import BoolArray, FloatArray, IntArray, UInt8Array
from unbraid.data import FactorSpace
from unbraid.data.image_dataset import ImageShape, check_index

SIZE = 64

# The arrow and the colours of the paper's figure 3, measured: half of the arrow that points to the right, in pixels
# from the centre of the image. Nothing is further out than 26, so that no rotation clips it.
_SHAFT = (-25.0, 5.0)  # from, half its thickness
_HEAD = (12.4, 24.4, 21.0)  # two diagonal bars: where their back and front meet the axis, half the width
_BACKGROUND, _DARKEST, _BRIGHTEST = 22, 43, 199  # grey, and the least and largest channel of each hue


@dataclass(frozen=True)
class Arrow:
    """After the Arrow of LSBD (Tonnaer et al. 2022, appendix E), 64 x 64 x 3.

    Rotation k turns the arrow anticlockwise by k / rotations of a turn, from pointing right; hue k is the colour at
    k / hues of the circle, from red, with saturation and value .78 as in the paper's figure 3. The coordinates are
    turned and not the pixels, so that every step is the same rotation: a quarter turn of the arrow is exactly a
    quarter turn of the image.

    Args:
        hues: how many, evenly around the circle of hues, 2 to 256.
        rotations: how many, evenly around a turn, 2 to 256.
        antialias: soft borders, from 4 x 4 samples per pixel.

    Raises:
        ValueError: too few levels, or hues too close to be told apart.
    """

    hues: int = 64
    rotations: int = 64
    antialias: bool = True

    def __post_init__(self) -> None:
        check_whole("hues", self.hues, 2, 256)
        check_whole("rotations", self.rotations, 2, 256)

    @property
    def space(self) -> FactorSpace:
        sizes = self.hues, self.rotations
        hues, rotations = (tuple((np.arange(size) / size).tolist()) for size in sizes)
        return FactorSpace(("hue", "rotation"), sizes, ("cyclic", "cyclic"), (hues, rotations))

    @property
    def image_shape(self) -> ImageShape:
        return SIZE, SIZE, 3

    def __len__(self) -> int:
        return self.hues * self.rotations

    def images(self, index: IntArray) -> UInt8Array:
        hue, rotation = np.divmod(check_index(index, len(self)), self.rotations)
        images = np.empty((len(hue), SIZE, SIZE, 3), dtype=np.uint8)
        masks = _masks(self.rotations, 4 if self.antialias else 1)
        _paint(masks, hue_circle(self.hues, _DARKEST, _BRIGHTEST), rotation, hue, images)
        return images


def hue_circle(n: int, least: int = 0, most: int = 255) -> UInt8Array:
    """(n, 3) red, green, blue: n hues in equal steps around the circle from red, between these two channels."""
    sixths = 6 * np.arange(n)[:, None] / n
    distance = np.abs((sixths - [0, 2, 4] + 3) % 6 - 3)  # from pure red, green and blue, in sixths of a turn
    return np.floor(least + (most - least) * np.clip(2 - distance, 0, 1) + 0.5).astype(np.uint8)


@numba.njit(cache=True)
def _paint(masks: UInt8Array, colours: UInt8Array, mask: IntArray, colour: IntArray, out: Any) -> None:
    for i in range(len(mask)):
        cover = np.arange(256).reshape(256, 1)
        shades = (cover * colours[colour[i]] + (255 - cover) * _BACKGROUND + 127) // 255
        for row in range(SIZE):
            for column in range(SIZE):
                for channel in range(3):
                    out[i, row, column, channel] = shades[masks[mask[i], row, column], channel]


@lru_cache(maxsize=4)
def _masks(rotations: int, samples: int) -> UInt8Array:
    """(rotations, 64, 64) cover of each pixel by the arrow, 0 to 255."""
    points = (np.arange(SIZE * samples) + 0.5) / samples - SIZE / 2
    right, up = points[None, :], -points[:, None]
    angles = 2 * np.pi * np.arange(rotations) / rotations
    # Rounded far above the last bit, where C libraries differ: quarter turns become exact besides.
    cosines, sines = (np.round(wave(angles) * 2.0**40) / 2.0**40 for wave in (np.cos, np.sin))
    masks = np.empty((rotations, SIZE, SIZE), dtype=np.uint8)
    for k, (cosine, sine) in enumerate(zip(cosines, sines, strict=True)):
        inside = _inside(cosine * right + sine * up, cosine * up - sine * right)
        counts = inside.reshape(SIZE, samples, SIZE, samples).sum(axis=(1, 3))
        masks[k] = (255 * counts + samples**2 // 2) // samples**2
    masks.flags.writeable = False
    return masks


def _inside(along: FloatArray, across: FloatArray) -> BoolArray:
    end, thickness = _SHAFT
    back, front, width = _HEAD
    across = np.abs(across)
    shaft = (along >= end) & (along <= back) & (across <= thickness)
    head = (along + across >= back) & (along + across <= front) & (across <= width)
    return shaft | head
