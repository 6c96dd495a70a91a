"""A white ball in a small world that an agent moves it through: up, down, left, right."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from unbraid.base.arguments import check_number, check_whole
from unbraid.base.types import FloatArray, IntArray, UInt8Array
from unbraid.data import FactorSpace
from unbraid.data.image_dataset import ImageShape, check_index

EDGE = 1e-9  # pixels by which the border is moved outwards, off every sample point: the same bytes everywhere
ARENA = (12.0, 75.0)  # walls of the world within a frame of 84 pixels


@dataclass(frozen=True)
class Flatland:
    """Flatland (Caselles-Dupré et al. 2019), on the grid of Quessard et al. 2020, size x size x 1.

    The ball stands at 27 + 3.3 i pixels (i = 0 .. 9) along each axis of an 84 x 84 frame, y downwards; one step
    past the last position it is back at the first. It jumps there, as in the published world: it is never cut by
    the edge. `size` 64 shows the middle of the frame (pixels 10 to 73), as ForwardVAE sees it, and 84 all of it.

    Caselles-Dupré's own simulation steps by 5 pixels and wraps after about 7 steps, by collisions with the walls;
    its cycle is not exact and is not followed here. Random walks over the ball's positions, with the action between
    consecutive frames, come from `unbraid.data.pairs.walks(dataset.space, ...)`.

    Args:
        positions: along each axis, at most 64.
        radius: of the ball, in pixels.
        size: of the image, 64 or 84 pixels.
        antialias: a grey border, from 4 x 4 samples per pixel.

    Raises:
        ValueError: the ball does not fit, or the size is another.
    """

    positions: int = 10
    radius: float = 15
    size: int = 64
    antialias: bool = False

    def __post_init__(self) -> None:
        if check_whole("size", self.size, 1) not in (64, 84):
            raise ValueError(f"size must be 64 or 84; got {self.size}")
        check_whole("positions", self.positions, 1, 64)
        check_number("radius", self.radius, least=1, most=30)
        if _visible_centres(self.positions, self.radius, self.size)[-1] + self.radius > self.size:
            raise ValueError(
                f"at {self.positions} positions a ball of radius {self.radius} leaves {self.size} pixels; take size=84"
            )

    @property
    def space(self) -> FactorSpace:
        centres = tuple(_centres(self.positions, self.radius).tolist())
        sizes = self.positions, self.positions
        return FactorSpace(("position_y", "position_x"), sizes, ("cyclic", "cyclic"), (centres, centres))

    @property
    def image_shape(self) -> ImageShape:
        return self.size, self.size, 1

    def __len__(self) -> int:
        return self.positions**2

    def images(self, index: IntArray) -> UInt8Array:
        samples = 4 if self.antialias else 1
        return _frames(self.positions, self.radius, self.size, samples)[check_index(index, len(self))]


def _centres(positions: int, radius: float) -> FloatArray:
    step = (ARENA[1] - ARENA[0] - 2 * radius) / positions
    return ARENA[0] + radius + step * np.arange(positions)


def _visible_centres(positions: int, radius: float, size: int) -> FloatArray:
    return _centres(positions, radius) - (84 - size) / 2


@lru_cache(maxsize=4)
def _frames(positions: int, radius: float, size: int, samples: int) -> UInt8Array:
    """(positions^2, size, size, 1): all images."""
    points = (np.arange(size * samples) + 0.5) / samples
    squares = (points - _visible_centres(positions, radius, size)[:, None]) ** 2
    frames = np.empty((positions, positions, size, size), dtype=np.uint8)
    for y, x in np.ndindex(positions, positions):
        inside = squares[y][:, None] + squares[x] <= radius**2 + EDGE
        counts = inside.reshape(size, samples, size, samples).sum(axis=(1, 3))
        frames[y, x] = (255 * counts + samples**2 // 2) // samples**2
    frames.flags.writeable = False
    return frames.reshape(-1, size, size, 1)
