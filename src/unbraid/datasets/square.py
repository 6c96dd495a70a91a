"""A white block that moves over a black square whose opposite edges are joined."""

from dataclasses import dataclass

import numpy as np

from unbraid.base.arguments import check_whole
from unbraid.base.types import IntArray, UInt8Array
from unbraid.data import FactorSpace
from unbraid.data.image_dataset import ImageShape, check_index

SIZE = 64


@dataclass(frozen=True)
class Square:
    """The Square of LSBD (Tonnaer et al. 2022, appendix E), 64 x 64 x 1.

    Image (y, x) is image (0, 0) rolled down by y and to the right by x steps; in image (0, 0) the block fills the
    top left corner. One step is 64 / positions pixels.

    Args:
        side: of the block, 1 to 63 pixels.
        positions: along each axis, a divisor of 64.

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
        pixels = tuple((SIZE // self.positions * np.arange(self.positions)).tolist())
        return FactorSpace(("y", "x"), (self.positions, self.positions), ("cyclic", "cyclic"), (pixels, pixels))

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
