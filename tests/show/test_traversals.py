"""The picture of traversals, pixel by pixel."""

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg

from unbraid.show import plot_traversals
from unbraid.show.sheets import GAP, HEAD, MARGIN


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
