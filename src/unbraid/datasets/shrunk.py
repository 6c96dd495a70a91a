"""Images of a dataset made smaller, for models and studies that must be quick."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unbraid.base.arguments import check_whole
from unbraid.base.types import IntArray, UInt8Array
from unbraid.data import Space
from unbraid.data.image_dataset import FactorDataset, ImageShape, check_images


@dataclass(frozen=True, eq=False)
class ShrunkImages:
    """A dataset whose every pixel is the mean of `factor` x `factor` pixels of another.

    Whole numbers are rounded, halves up; floats keep their type.

    Args:
        source: the dataset, of images.
        factor: 2 makes 32 x 32 of 64 x 64.

    Raises:
        ValueError: no whole number of at least 1, or one that does not divide height and width; or `source` holds the
            rows (n, n_features) of a table, or labels without images.

    Example:
        >>> from unbraid.datasets import load
        >>> load("sprites", shrink=2).image_shape
        (32, 32, 1)
    """

    source: FactorDataset
    factor: int

    def __post_init__(self) -> None:
        check_whole("shrink", self.factor, 1)
        if len(self.source.image_shape) != 3:
            shape = ", ".join(map(str, self.source.image_shape))
            raise ValueError(f"shrink={self.factor} is for images; this is a table of shape ({len(self)}, {shape})")
        check_images(self.source)
        height, width, _ = self.source.image_shape
        if height % self.factor or width % self.factor:
            raise ValueError(f"shrink={self.factor} does not divide images of {height} x {width}")

    @property
    def space(self) -> Space:
        return self.source.space

    @property
    def image_shape(self) -> ImageShape:
        height, width, channels = self.source.image_shape
        return height // self.factor, width // self.factor, channels

    def __len__(self) -> int:
        return len(self.source)

    def images(self, index: IntArray) -> UInt8Array:
        images: npt.NDArray[Any] = self.source.images(index)
        height, width, channels = self.image_shape
        area, real = self.factor**2, images.dtype.kind == "f"
        # The smallest type that holds twice the sums and an area more; sums of float16 are exact enough in float32.
        kind = np.result_type(images.dtype, np.float32) if real else np.min_scalar_type(511 * area)
        rows = self._summed(images.reshape(len(images) * height, self.factor, width * self.factor * channels), kind)
        blocks = self._summed(rows.reshape(len(images) * height * width, self.factor, channels), kind)
        means = blocks / area if real else (2 * blocks + area) // (2 * area)
        return means.astype(images.dtype).reshape(len(images), height, width, channels)

    def _summed(self, parts: npt.NDArray[Any], kind: np.dtype[Any]) -> npt.NDArray[Any]:
        """Sums over the middle of three axes, in this type."""
        total = parts[:, 0].astype(kind)
        for k in range(1, self.factor):  # one part after the other: a tenth of the time of numpy.sum over short axes
            total += parts[:, k]
        return total
