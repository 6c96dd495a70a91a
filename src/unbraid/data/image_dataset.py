"""What every dataset is: images by their index, and the factors that made them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from unbraid.base.types import IntArray, UInt8Array
from unbraid.data.space import Space

ImageShape: TypeAlias = tuple[int, int, int]  # height, width, channels
MOST_CHANNELS = 16  # colours, stains or bands
FEW_CHANNELS = 4  # an axis of so few is that of the channels, where another is longer that should be
NO_IMAGES: ImageShape = (0, 0, 0)  # of labels alone
ReadingProgress: TypeAlias = Callable[[int, int], None]  # images done, images in all


class FactorDataset(Protocol):
    """Images with known factors; training, encoding and metrics take any of them.

    `space` is a FactorSpace where the images are a full grid of factors, and a FactorTable where each has factors
    of its own (a teapot at random angles, photographs with attributes). Either way image i has the factors
    `space.factors([i])`, `space.names` and `space.kinds` describe their columns, and `len(dataset) == len(space)`.
    What needs a grid (acting on one factor, every view of an object) asks for a FactorSpace and says so.

    A dataset can be pickled: a worker process gets its own, which reopens its files.
    """

    @property
    def space(self) -> Space: ...

    @property
    def image_shape(self) -> ImageShape: ...

    def __len__(self) -> int: ...

    def images(self, index: IntArray) -> UInt8Array:
        """Images at these positions (n,): uint8 (n, height, width, channels) from 0 to 255; a fresh array.

        Images given as floats, which is possible without factors, come back as floats from 0 to 1, and a table as its
        rows (n, n_features).

        Raises:
            ValueError: a position is outside 0 .. len - 1.
        """
        ...


def check_images(dataset: FactorDataset) -> None:
    """Raises ValueError for labels alone, and for a table: there are no pixels to be shown or written."""
    shape: tuple[int, ...] = tuple(dataset.image_shape)
    if len(shape) != 3:
        raise ValueError(f"images are needed; this dataset is a table of shape {(len(dataset), *shape)}")
    if 0 in shape:
        raise ValueError("images are needed; this dataset holds labels without images")


@dataclass(frozen=True, eq=False)
class ArrayDataset:
    """Images that are in memory already.

    Args:
        array: (n, height, width, channels) uint8.
        space: their factors, in the same order.

    Raises:
        ValueError: another shape or dtype, or another number of images than the space has entries.
    """

    array: UInt8Array
    space: Space

    def __post_init__(self) -> None:
        if self.array.dtype != np.uint8 or self.array.ndim != 4:
            raise ValueError(
                f"images must be uint8 (n, height, width, channels); got {self.array.dtype} {self.array.shape}"
            )
        if len(self.array) != len(self.space):
            raise ValueError(f"{len(self.array)} images for {len(self.space)} combinations of factors")

    @property
    def image_shape(self) -> ImageShape:
        height, width, channels = self.array.shape[1:]
        return height, width, channels

    def __len__(self) -> int:
        return len(self.array)

    def images(self, index: IntArray) -> UInt8Array:
        return self.array[check_index(index, len(self))]


def check_index(index: IntArray | list[int], n_images: int) -> IntArray:
    """Positions (n,) as int64.

    Raises:
        ValueError: not whole numbers in one dimension, or outside 0 .. n_images - 1.
    """
    positions = np.asarray(index)
    if positions.ndim != 1 or (positions.dtype.kind not in "iu" and len(positions)):
        raise ValueError(f"index must be whole numbers (n,); got {positions.dtype} {positions.shape}")
    positions = np.ascontiguousarray(positions, dtype=np.int64)
    # Seen without sign, a negative position is larger than any valid one: a single pass finds both faults.
    if len(positions) and positions.view(np.uint64).max() >= n_images:
        bad = positions[(positions < 0) | (positions >= n_images)][0]
        raise ValueError(f"index {bad} is outside the dataset; it has {n_images} images, 0 to {n_images - 1}")
    return positions
