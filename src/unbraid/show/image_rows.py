"""Images beside each other."""

import math

import numpy as np
from matplotlib.figure import Figure

from unbraid.base.types import ArrayLike
from unbraid.show.sheets import GAP, MARGIN, add_sheet, new_figure, scaled


def plot_images(images: ArrayLike, *, columns: int = 0, scale: float = 1.0, width: float | None = None) -> Figure:
    """Images row by row, what is left of the last row clear.

    Args:
        images: (n, height, width, channels), 0 .. 1.
        columns: images in a row; 0: in about a square.
        scale: pixels of the figure per pixel of an image.
        width: of the whole figure in mm, such as 89 or 183, in place of `scale`.

    Returns:
        A figure whose size fits its images pixel by pixel: save it at its own dpi (100).
    """
    tiles = np.asarray(images, dtype=float)
    across = min(columns or math.ceil(math.sqrt(len(tiles))), len(tiles))
    down = -(-len(tiles) // across)
    empty = np.full((down * across - len(tiles), *tiles.shape[1:]), np.nan)
    height, wide = tiles.shape[1:3]
    size = across * (wide + GAP) - GAP + 2 * MARGIN, down * (height + GAP) - GAP + 2 * MARGIN
    figure = new_figure(size, scaled(width, scale, size[0])[0])
    sheet = np.concatenate([tiles, empty]).reshape(down, across, *tiles.shape[1:])
    add_sheet(figure, size, sheet, MARGIN, MARGIN).set_axis_off()
    return figure
