"""Sheets of images, and figures that show them pixel by pixel."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unbraid.base.arrays import side_by_side
from unbraid.base.types import FloatArray
from unbraid.show._notebook import ShownFigure
from unbraid.show.paper import MARGIN as EDGE
from unbraid.show.paper import SMALL, inches
from unbraid.show.style import FONT_SIZE

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
    tiles = tiles[..., :3] if tiles.shape[-1] >= 3 else tiles[..., :1]
    seen = np.isfinite(tiles).all(axis=-1, keepdims=True)
    colours = np.broadcast_to(np.clip(np.nan_to_num(tiles), 0.0, 1.0).astype(float), (*tiles.shape[:-1], 3))
    return side_by_side(np.concatenate([colours, seen], axis=-1), GAP)
