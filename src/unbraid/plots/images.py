"""Images beside each other."""

import math

import numpy as np
from matplotlib.figure import Figure

from unbraid.plots._shown import ShownFigure
from unbraid.plots.traversals import DPI, MARGIN, scaled, sheet_of
from unbraid.types import ArrayLike


def plot_images(images: ArrayLike, *, columns: int = 0, scale: float = 1.0, width: float | None = None) -> Figure:
    """Images row by row, what is left of the last row clear.

    Args:
        images: (n, height, width, channels), 0 .. 1.
        columns: images in a row; 0: in about a square.
        scale: pixels of the figure per pixel of an image.
        width: of the whole figure in mm, such as 89 or 183, in place of `scale`.

    Returns:
        A figure whose size fits its images pixel by pixel: save it at its own dpi (100).

    Raises:
        ValueError: no images, or columns below 0.
    """
    tiles = np.asarray(images, dtype=float)
    if tiles.ndim != 4 or not len(tiles) or columns < 0:
        raise ValueError(
            f"images must be (n, height, width, channels), columns 0 or more; got {tiles.shape}, {columns}"
        )
    across = min(columns or math.ceil(math.sqrt(len(tiles))), len(tiles))
    down = -(-len(tiles) // across)
    empty = np.full((down * across - len(tiles), *tiles.shape[1:]), np.nan)
    sheet = sheet_of(np.concatenate([tiles, empty]).reshape(down, across, *tiles.shape[1:]))
    whole = sheet.shape[1] + 2 * MARGIN, sheet.shape[0] + 2 * MARGIN
    scale, _, _ = scaled(width, scale, whole[0])
    figure = ShownFigure(figsize=(scale * whole[0] / DPI, scale * whole[1] / DPI), dpi=DPI, facecolor="white")
    box = MARGIN / whole[0], MARGIN / whole[1], sheet.shape[1] / whole[0], sheet.shape[0] / whole[1]
    axes = figure.add_axes(box, xticks=[], yticks=[])
    axes.set_axis_off()
    axes.imshow(sheet, interpolation="nearest", aspect="auto")
    return figure
