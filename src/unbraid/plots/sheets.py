"""Sheets of images, and figures that show them pixel by pixel."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unbraid.plots._shown import ShownFigure
from unbraid.plots.paper import MARGIN as EDGE
from unbraid.plots.paper import SMALL, inches
from unbraid.plots.style import FONT_SIZE
from unbraid.types import FloatArray

DPI = 100
GAP, MARGIN, HEAD = 2, 12, 17  # pixels at scale 1


def new_figure(size: tuple[float, float], scale: float) -> Figure:
    """A white figure of so many pixels at scale 1."""
    return ShownFigure(figsize=(scale * size[0] / DPI, scale * size[1] / DPI), dpi=DPI, facecolor="white")


def add_sheet(figure: Figure, size: tuple[float, float], tiles: FloatArray, x: float, y: float) -> Axes:
    """Images (n_rows, n_columns, height, width, channels), left upper corner at these pixels of a figure's `size`."""
    sheet = sheet_of(tiles)
    height, width = sheet.shape[:2]
    box = (x / size[0], 1 - (y + height) / size[1], width / size[0], height / size[1])
    axes = figure.add_axes(box, xticks=[], yticks=[])
    axes.patch.set_alpha(0.0)
    axes.imshow(sheet, interpolation="nearest", aspect="auto")
    return axes


def scaled(width: float | None, scale: float, pixels: int) -> tuple[float, float, float]:
    """Scale, size of the small text in points, and the height of its line in pixels of images, of so many in a row."""
    if width is None:
        return scale, FONT_SIZE * 0.72 * scale, HEAD
    scale = (inches(width) - 2 * EDGE) * DPI / pixels
    return scale, SMALL, HEAD / scale


def sheet_of(tiles: FloatArray) -> FloatArray:
    """(n_rows, n_columns, height, width, channels) side by side as red, green, blue and opacity.

    Between images, and where an image is NaN, the sheet is clear: the page shows.
    """
    n_rows, n_columns, height, width, channels = tiles.shape
    tiles = tiles[..., :3] if channels >= 3 else tiles[..., :1]
    sheet = np.zeros((n_rows * (height + GAP) - GAP, n_columns * (width + GAP) - GAP, 4))
    for row in range(n_rows):
        for column in range(n_columns):
            y, x = row * (height + GAP), column * (width + GAP)
            tile, seen = tiles[row, column], np.isfinite(tiles[row, column]).all(axis=-1)
            sheet[y : y + height, x : x + width, :3] = np.clip(np.nan_to_num(tile), 0, 1)
            sheet[y : y + height, x : x + width, 3] = seen
    return sheet
