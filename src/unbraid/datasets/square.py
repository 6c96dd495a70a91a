"""A white block that moves over a black square whose opposite edges are joined."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unbraid.base.arguments import check_whole
from unbraid.base.types import IntArray, UInt8Array
from unbraid.data import FactorSpace
from unbraid.data.image_dataset import FactorDataset, ImageShape, ReadingProgress, check_index

SIZE = 64


def square_space(positions: int = 64) -> FactorSpace:
    pixels = tuple((SIZE // positions * np.arange(positions)).tolist())
    return FactorSpace(("y", "x"), (positions, positions), ("cyclic", "cyclic"), (pixels, pixels))


@dataclass(frozen=True)
class Square:
    """The Square of LSBD (Tonnaer et al. 2022, appendix E), 64 x 64 x 1.

    Image (y, x) is image (0, 0) rolled down by y and to the right by x steps; in image (0, 0) the block fills the
    top left corner. One step is 64 / positions pixels.

    Raises:
        ValueError: the block does not fit, or a step would not be whole pixels.
    """

    side: int = 16
    positions: int = 64

    def __post_init__(self) -> None:
        check_whole("side", self.side, 1, SIZE - 1)
        if SIZE % check_whole("positions", self.positions, 1):
            raise ValueError(f"positions must divide {SIZE}; got {self.positions}")

    @property
    def space(self) -> FactorSpace:
        return square_space(self.positions)

    @property
    def image_shape(self) -> ImageShape:
        return SIZE, SIZE, 1

    def __len__(self) -> int:
        return self.positions**2

    def images(self, index: IntArray) -> UInt8Array:
        y, x = np.divmod(check_index(index, len(self)), self.positions)
        pixels, step = np.arange(SIZE), SIZE // self.positions
        # Row p of the strips is white at the pixels that a block at position p covers.
        strips = np.where((pixels - step * np.arange(self.positions)[:, None]) % SIZE < self.side, 255, 0)
        strips = strips.astype(np.uint8)
        return (strips[y][:, :, None] & strips[x][:, None, :])[..., None]


def open_square(
    root: Path, *, progress: ReadingProgress | None = None, side: int = 16, positions: int = 64
) -> FactorDataset:
    """Open the square.

    Args:
        root: unused; nothing is stored.
        progress: unused.
        side: of the block, 1 to 63 pixels.
        positions: along each axis, a divisor of 64.
    """
    return Square(side, positions)
