"""Channels in colours: what stands alone has its hue, and all of them together are white."""

import numpy as np
import pytest

from unbraid.show.image_addresses import in_colours


@pytest.mark.parametrize("channels", [2, 4, 5, 16])
def test_all_channels_together_are_white_and_none_black(channels: int) -> None:
    shades = np.array([0, 100, 255], dtype=np.uint8)
    images = np.repeat(shades[:, None], channels, axis=1)
    np.testing.assert_array_equal(in_colours(images), np.repeat(shades[:, None], 3, axis=1))
    np.testing.assert_allclose(in_colours(images / 255), np.repeat(shades[:, None] / 255, 3, axis=1))


def test_of_two_channels_one_is_red_and_one_is_cyan() -> None:
    np.testing.assert_array_equal(in_colours(np.eye(2)), [[1, 0, 0], [0, 1, 1]])


@pytest.mark.parametrize("channels", [1, 3])
def test_grey_and_colours_stay_as_they_are(channels: int) -> None:
    images = np.random.default_rng(0).random((4, channels))
    assert in_colours(images) is images
