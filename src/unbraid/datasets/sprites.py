"""White sprites on black: the grid of dSprites, drawn by a rule that was calibrated on images of the official file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np

from unbraid.base.types import FloatArray, IntArray, UInt8Array
from unbraid.data import FactorSpace
from unbraid.data.image_dataset import FactorDataset, ImageShape, ReadingProgress, check_index
from unbraid.datasets.image_store import StoredImages, cache_folder, cached, content_of

VERSION = 2  # raised whenever any pixel changes
TURN = 39  # steps of orientation in a full turn; level 39 is level 0 again
SAMPLES = 4  # per axis and pixel, when anti-aliased

_SHAPES = ("square", "ellipse", "heart")


def sprites_space(drop_duplicate_orientation: bool = False) -> FactorSpace:
    """The factors of dSprites in its order, without the constant colour."""
    orientations = TURN if drop_duplicate_orientation else TURN + 1
    angles = np.linspace(0, 2 * np.pi, TURN + 1)[:orientations]
    positions = tuple(np.linspace(0, 1, 32).tolist())
    return FactorSpace(
        names=("shape", "scale", "orientation", "position_x", "position_y"),
        sizes=(3, 6, orientations, 32, 32),
        kinds=("categorical", "ordinal", "cyclic", "ordinal", "ordinal"),
        values=(_SHAPES, tuple(np.linspace(0.5, 1, 6).tolist()), tuple(angles.tolist()), positions, positions),
    )


SPACE = sprites_space()


@dataclass(frozen=True)
class Sprites:
    """Sprites drawn on demand, 64 x 64 x 1.

    A pixel is white when its centre lies inside the shape: with X, Y its offset from (16 + 32 position_x,
    16 + 32 position_y), y downwards, and u = (cos a X - sin a Y) / s, v = (sin a X + cos a Y) / s,

    - square: |u| <= 9.6 and |v| <= 9.6
    - ellipse: (u / 12.765)^2 + (v / 7.205)^2 <= 1
    - heart: the curve u = 9.615 sin^3 t, v = -1.453 - 0.66176091 (13 cos t - 5 cos 2t - 2 cos 3t - cos 4t)

    What is known: 12 images of the official dSprites (a square, seven ellipses and four hearts, 1 724 white pixels)
    are these to the pixel, and all 737 280 images together have as many white pixels as the official file,
    128 328 862. What is not: the constants of ellipse and heart are fitted to just that, the heart's last digits to the
    total, so that too many pixels of one shape may stand against too few of the other, and border pixels of any other
    image may differ. The images are therefore dSprites-like and not dSprites.

    Args:
        antialias: grey borders, from 4 x 4 samples per pixel.
        drop_duplicate_orientation: leave out orientation 39, which is orientation 0 again (2 pi); 718 848 images.
    """

    antialias: bool = False
    drop_duplicate_orientation: bool = False

    @property
    def space(self) -> FactorSpace:
        return sprites_space(True) if self.drop_duplicate_orientation else SPACE

    @property
    def image_shape(self) -> ImageShape:
        return 64, 64, 1

    def __len__(self) -> int:
        return len(self.space)

    def images(self, index: IntArray) -> UInt8Array:
        positions = check_index(index, len(self))
        images = np.zeros((len(positions), 64, 64, 1), dtype=np.uint8)
        samples = SAMPLES if self.antialias else 1
        _draw(positions, self.space.sizes[2], samples, 0.0, _COSINES, _SINES, images[..., 0])
        return images


def open_sprites(
    root: Path,
    *,
    progress: ReadingProgress | None = None,
    antialias: bool = False,
    drop_duplicate_orientation: bool = False,
    cache: bool | None = None,
) -> FactorDataset:
    """Open the sprites.

    Args:
        root: folder of all caches.
        progress: told of images done while the cache is built.
        antialias: grey borders, from 4 x 4 samples per pixel; default white or black by the pixel's centre.
        drop_duplicate_orientation: leave out orientation 39, which repeats orientation 0.
        cache: True reads the images from a file and draws it first if need be (0.38 GB; 3 GB anti-aliased), False
            draws every batch anew; by default the file is read where there is one. The images are the same.
    """
    drawn = Sprites(antialias, drop_duplicate_orientation)
    chosen = {"antialias": antialias, "drop_duplicate_orientation": drop_duplicate_orientation}
    folder = cache_folder(root, "sprites", VERSION, **{key: value for key, value in chosen.items() if value})
    if cache:
        description = {"source": f"unbraid sprites, version {VERSION}", "rendered": True} | chosen
        return cached(folder, lambda: content_of(drawn, binary=not antialias, description=description), progress)
    return StoredImages(folder) if cache is None and folder.exists() else drawn


_ANGLES = 2 * np.pi * np.arange(TURN) / TURN
# Rounded far above the last bit, where C libraries differ.
_COSINES, _SINES = (np.round(wave(_ANGLES) * 2.0**40) / 2.0**40 for wave in (np.cos, np.sin))


@numba.njit(cache=True)
def _draw(
    index: IntArray, orientations: int, samples: int, edge: float, cosines: FloatArray, sines: FloatArray, out: Any
) -> None:
    """Draw sprites into zeroed (n, 64, 64), at `samples` x `samples` points per pixel.

    `edge` moves the borders outwards, for the test that no point of any image lies within 1e-11 of one: the bytes
    are the same on every machine, whatever the last bit of its cosine and whether or not it fuses multiply and add.
    """
    for i in range(len(index)):
        rest, y = divmod(index[i], 32)
        rest, x = divmod(rest, 32)
        rest, orientation = divmod(rest, orientations)
        shape, scale = divmod(rest, 6)
        size = (5 + scale) / 10
        cosine, sine = cosines[orientation % TURN] / size, sines[orientation % TURN] / size
        centre_x, centre_y = 16 + 32 * x / 31, 16 + 32 * y / 31
        # No shape reaches further than the corner of the square, 13.58 at full size.
        reach = 13.6 * size + 1
        for row in range(int(centre_y - reach), int(centre_y + reach) + 1):
            for column in range(int(centre_x - reach), int(centre_x + reach) + 1):
                inside = 0
                for part in range(samples * samples):
                    offset_y = row + (part // samples + 0.5) / samples - centre_y
                    offset_x = column + (part % samples + 0.5) / samples - centre_x
                    u = cosine * offset_x - sine * offset_y
                    v = sine * offset_x + cosine * offset_y
                    inside += _inside(shape, u, v, edge)
                out[i, row, column] = (255 * inside + samples * samples // 2) // (samples * samples)


@numba.njit(cache=True)
def _inside(shape: int, u: float, v: float, edge: float) -> bool:
    if shape == 0:
        return max(abs(u), abs(v)) <= 9.6 + edge
    if shape == 1:
        return (u / 12.765) ** 2 + (v / 7.205) ** 2 <= 1 + edge
    if abs(u) > 9.615 or v > 9.8 or v < -9.5:
        return False
    # With k = |cos t| the curve meets the line of constant u at two heights; between them is inside.
    k2 = 1 - np.cbrt((u / 9.615) ** 2)
    if k2 < 0:
        return False
    height = (-1.453 - v) / 0.66176091
    return abs(height - (4 - 2 * k2 - 8 * k2 * k2)) <= np.sqrt(k2) * (19 - 8 * k2) + edge
