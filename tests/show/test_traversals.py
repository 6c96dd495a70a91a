"""The picture of traversals, pixel by pixel."""

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from unbraid.show import plot_traversals
from unbraid.show.sheets import GAP, HEAD, MARGIN
from unbraid.show.traversal_grid import APART


def drawn(figure) -> np.ndarray:
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3]


def test_images_are_where_they_belong() -> None:
    """2 codes, 1 row, 3 steps of 8 x 8: image (code, step) is all of shade (code + step) / 4."""
    shades = (np.arange(2)[:, None] + np.arange(3)) / 4
    images = np.broadcast_to(shades[:, None, :, None, None, None], (2, 1, 3, 8, 8, 1))
    seeds = np.full((20, 8, 8, 1), 0.6)
    figure = plot_traversals(images, seeds, seeds / 2, captions=["a", "b"], columns=1)
    pixels = drawn(figure)
    top = MARGIN + HEAD
    assert pixels[top + 4, MARGIN + 4].tolist() == [153] * 3
    assert abs(int(pixels[top + 8 + GAP + 4, MARGIN + 4, 0]) - 76) <= 1
    start = top + 2 * 8 + GAP + MARGIN
    for code in range(2):
        y = start + code * (HEAD + 8 + MARGIN) + HEAD + 4
        for step in range(3):
            shown = int(pixels[y, MARGIN + step * (8 + GAP) + 4, 0])
            assert abs(shown - 255 * shades[code, step]) <= 1


def test_images_may_stand_apart_on_either_side() -> None:
    images = np.full((1, 2, 3, 8, 8, 1), 0.4)
    pixels = drawn(plot_traversals(images, captions=["a"], first=images[:, :, 0] + 0.2, last=images[:, :, 0] + 0.6))
    y, left = MARGIN + HEAD + 4, MARGIN + 4
    places = [left, left + 8 + APART, left + 8 + APART + 2 * (8 + GAP), left + 8 + 2 * APART + 3 * 8 + 2 * GAP]
    assert [int(pixels[y, x, 0]) for x in places] == [153, 102, 102, 255]
    assert pixels[y, left + 8 : left + 4 + APART].min() > 200  # between them the page


def test_marked_captions_stand_out() -> None:
    images = np.zeros((2, 1, 3, 8, 8, 3))
    seeds = np.zeros((1, 8, 8, 3))
    figure = plot_traversals(images, seeds, seeds, captions=["first", "second"], marked=[True, False])
    weights = {text.get_text(): text.get_weight() for text in figure.texts}
    assert weights["first"] == "bold"
    assert weights["second"] == "normal"


def test_shapes_that_disagree_are_refused() -> None:
    images = np.zeros((2, 1, 3, 8, 8, 3))
    with pytest.raises(ValueError, match="originals and reconstructions must be"):
        plot_traversals(images, np.zeros((1, 8, 9, 3)), np.zeros((1, 8, 9, 3)), captions=["a", "b"])
    with pytest.raises(ValueError, match=r"first and last must be \(2, 1, 8, 8, 3\); got \(2, 3, 8, 8, 3\)"):
        plot_traversals(images, captions=["a", "b"], first=np.zeros((2, 3, 8, 8, 3)))
    with pytest.raises(ValueError, match="one caption and mark for each of 2 codes"):
        plot_traversals(images, np.zeros((1, 8, 8, 3)), np.zeros((1, 8, 8, 3)), captions=["a"])
