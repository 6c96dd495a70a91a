"""Smaller images: means of blocks."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from unbraid.data import FactorSpace
from unbraid.datasets import ArrayDataset, load
from unbraid.datasets.shrunk import ShrunkImages

ROWS = [[0, 1, 10, 20], [2, 3, 30, 41], [255, 255, 0, 0], [255, 254, 0, 1]]


def dataset() -> ArrayDataset:
    """Two images: the rows above, and as many ones."""
    first = np.array(ROWS, dtype=np.uint8)
    return ArrayDataset(np.stack([first, np.ones_like(first)])[..., None], FactorSpace(("a",), (2,), ("ordinal",)))


def test_a_pixel_is_the_mean_of_its_block_with_halves_rounded_up() -> None:
    """(0 + 1 + 2 + 3) / 4 = 1.5 -> 2; 101 / 4 = 25.25 -> 25; 1019 / 4 = 254.75 -> 255; 1 / 4 -> 0."""
    images = ShrunkImages(dataset(), 2).images(np.array([1, 0]))
    assert images[..., 0].tolist() == [[[1, 1], [1, 1]], [[2, 25], [255, 0]]]
    assert images.dtype == np.uint8


def test_load_shrinks_any_dataset_and_keeps_its_factors() -> None:
    whole, small = load("shapes3d_rendered"), load("shapes3d_rendered", shrink=4)
    assert small.image_shape == (16, 16, 3)
    assert small.space == whole.space
    index = np.array([7, 123_456])
    blocks = whole.images(index).astype(float).reshape(2, 16, 4, 16, 4, 3).mean(axis=(2, 4))
    assert np.abs(small.images(index) - blocks).max() <= 0.5
    again = pickle.loads(pickle.dumps(small))
    assert np.array_equal(again.images(index), small.images(index))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats_are_averaged_and_keep_their_type(dtype: type[np.floating], tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).random((3, 4, 8, 1)).astype(dtype)
    pixels[0] = 1.0
    np.save(tmp_path / "images.npy", pixels)
    small = load(str(tmp_path / "images.npy"), shrink=2)
    images = small.images(np.arange(3))
    means = pixels.astype(float).reshape(3, 2, 2, 4, 2, 1).mean(axis=(2, 4))
    assert (small.image_shape, images.dtype) == ((2, 4, 1), dtype)
    np.testing.assert_allclose(images, means, rtol=float(np.finfo(dtype).eps))
    assert images.max() == 1.0


def test_a_table_has_nothing_to_shrink(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.zeros((4, 5)))
    with pytest.raises(ValueError, match=r"^shrink=2 is for images; this is a table of shape \(4, 5\)$"):
        load(str(tmp_path / "rows.npy"), shrink=2)


@pytest.mark.parametrize("factor", [1, 11, 16])  # the last sums that 16 bits hold, and larger ones
def test_sums_of_large_blocks_do_not_overflow(factor: int) -> None:
    pixels = np.random.default_rng(0).integers(200, 256, size=(3, factor, 2 * factor, 3), dtype=np.uint8)
    pixels[0] = 255
    source = ArrayDataset(pixels, FactorSpace(("a",), (3,), ("ordinal",)))
    means = pixels.reshape(3, 1, factor, 2, factor, 3).mean(axis=(2, 4))
    assert np.array_equal(ShrunkImages(source, factor).images(np.arange(3)), np.floor(means + 0.5))
