"""A coloured room with an object in it: a rendered substitute for 3D Shapes."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from unbraid.base.types import UInt8Array
from unbraid.data import FactorSpace
from unbraid.data.image_dataset import ReadingProgress
from unbraid.datasets.arrow import hue_circle
from unbraid.datasets.image_store import Content, cache_folder, cached
from unbraid.datasets.rendering.renderer import Composed
from unbraid.datasets.rendering.room import SHAPES, room_layers

VERSION = 1
_HUES = tuple(k / 10 for k in range(10))
_SCALES = tuple(0.75 + 0.5 * k / 7 for k in range(8))
_DEGREES = tuple(60.0 * k / 14 - 30 for k in range(15))
GEOMETRY = FactorSpace(
    ("scale", "shape", "orientation"),
    (8, 4, 15),
    ("ordinal", "categorical", "ordinal"),
    (_SCALES, SHAPES, _DEGREES),
)
SPACE = FactorSpace(
    ("floor_hue", "wall_hue", "object_hue", *GEOMETRY.names),
    (10, 10, 10, *GEOMETRY.sizes),
    ("cyclic", "cyclic", "cyclic", *GEOMETRY.kinds),
    (_HUES, _HUES, _HUES, _SCALES, SHAPES, _DEGREES),
)


def open_shapes3d_rendered(root: Path, *, progress: ReadingProgress | None = None) -> Composed:
    """A room with a cube, cylinder, sphere or capsule: 480 000 images with the factors of 3D Shapes.

    Drawn by this package in the manner of 3D Shapes, never its official images. Factors in the official order:
    floor_hue, wall_hue, object_hue, scale, shape, orientation. A hue is k / 10 of the circle of hues, of full
    saturation. Light is linear in the colours, so 480 views are drawn and stored (8 MB); images are mixed from them.

    Args:
        root: folder of all caches.
        progress: called as progress(views done, views in all) while the views are drawn.
    """

    def content() -> Content:
        description = {
            "rendered": True,
            "follows": "3D Shapes",
            "version": VERSION,
            "channels": "floor, wall, object, white",
        }
        return Content(GEOMETRY, (64, 64, 4), _views(), description)

    stored = cached(cache_folder(root, "shapes3d_rendered", VERSION), content, progress)
    layers = np.ascontiguousarray(stored.images(np.arange(len(GEOMETRY))).transpose(0, 3, 1, 2))
    colours = hue_circle(10) / 255
    return Composed(SPACE, layers, (colours, colours, colours))


def _views() -> Iterator[UInt8Array]:
    for scale in _SCALES:
        views = [room_layers(shape, scale, degrees) for shape in range(len(SHAPES)) for degrees in _DEGREES]
        yield np.stack(views).transpose(0, 2, 3, 1)
