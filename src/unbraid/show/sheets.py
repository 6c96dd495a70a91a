"""Images beside each other, and beside what a model makes of them; figures show them pixel by pixel."""

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unbraid.base.arrays import side_by_side
from unbraid.base.types import ArrayLike, FloatArray
from unbraid.show._notebook import ShownFigure
from unbraid.show.image_addresses import in_colours
from unbraid.show.paper import MARGIN as EDGE
from unbraid.show.paper import SMALL, inches
from unbraid.show.style import FONT_SIZE, GRID, MUTED

DPI = 100
GAP, MARGIN, HEAD, BETWEEN = 2, 12, 17, 10  # pixels at scale 1


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
    tiles = in_colours(tiles)
    seen = np.isfinite(tiles).all(axis=-1, keepdims=True)
    colours = np.broadcast_to(np.clip(np.nan_to_num(tiles), 0.0, 1.0).astype(float), (*tiles.shape[:-1], 3))
    return side_by_side(np.concatenate([colours, seen], axis=-1), GAP)


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


def plot_reconstructions(
    images: ArrayLike,
    reconstructions: ArrayLike,
    *,
    columns: int = 10,
    scale: float = 1.0,
    width: float | None = None,
) -> Figure:
    """Rows of images, each with its reconstructions right below.

    Args:
        images, reconstructions: (n, height, width, channels), 0 .. 1.
        columns: images in a row.
        scale: pixels of the figure per pixel of an image.
        width: of the whole figure in mm, such as 89 or 183, in place of `scale`; its text has 7 points.

    Returns:
        A figure whose size fits its images pixel by pixel: save it at its own dpi (100). One axes per pair of rows.
    """
    before, after = (np.asarray(stack, dtype=float) for stack in (images, reconstructions))
    columns = min(columns, len(before))
    height, across = before.shape[1:3]
    n_rows = -(-len(before) // columns)
    block = columns * (across + GAP) - GAP, 2 * (height + GAP) - GAP
    whole = max(block[0] + 2 * MARGIN, 240)
    scale, small, head = scaled(width, scale, whole)
    top = MARGIN + head
    size = whole, top + n_rows * (block[1] + BETWEEN) - BETWEEN + MARGIN
    figure = new_figure(size, scale)
    figure.text(
        MARGIN / size[0], 1 - MARGIN / size[1], "images, and their reconstructions below",
        color=MUTED, fontsize=small, va="top", parse_math=False,
    )  # fmt: skip
    for row in range(n_rows):
        chosen = slice(row * columns, (row + 1) * columns)
        pair = np.stack([_filled(before[chosen], columns), _filled(after[chosen], columns)])
        y = top + row * (block[1] + BETWEEN)
        axes = add_sheet(figure, size, pair, MARGIN, y)
        axes.spines[:].set(color=GRID, linewidth=0.6)
    return figure


def _filled(row: FloatArray, columns: int) -> FloatArray:
    """A last row that is too short, made as long as the others by images that are clear."""
    missing = np.full((columns - len(row), *row.shape[1:]), np.nan)
    return np.concatenate([row, missing])
