"""What each code does to the images: one strip of images per code and seed image."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from unbraid.plots._style import ACCENT, FONT_SIZE, GRID, INK, MUTED
from unbraid.types import FloatArray

DPI = 100
GAP, MARGIN, HEAD = 2, 12, 17  # pixels at scale 1
BETWEEN = 18  # two blocks side by side


def plot_traversals(
    images: FloatArray,
    originals: FloatArray,
    reconstructions: FloatArray,
    *,
    captions: Sequence[str],
    marked: Sequence[bool] | None = None,
    columns: int = 2,
    scale: float = 1.0,
    title: str = "",
) -> Figure:
    """A block per code, one seed image a row; above them the seed images and what the model makes of them.

    Args:
        images: (n_codes, n_rows, n_steps, height, width, channels), 0 .. 1, in the order to be drawn.
        originals, reconstructions: (n_shown, height, width, channels), 0 .. 1, the seed images first.
        captions: above each block, one per code.
        marked: which captions stand out, one per code; the others are muted. By default none is either.
        columns: blocks side by side.
        scale: pixels of the figure per pixel of an image.
        title: above all.

    Returns:
        A figure whose size fits its images pixel by pixel: save it at its own dpi (100).

    Raises:
        ValueError: arrays of shapes that do not agree, or columns below 1.
    """
    n_codes, n_rows, n_steps, height, width, _ = images.shape
    if not (originals.shape == reconstructions.shape and originals.shape[1:] == images.shape[3:]):
        raise ValueError(
            f"originals and reconstructions must be (n_shown, {height}, {width}, {images.shape[-1]}); "
            f"got {originals.shape} and {reconstructions.shape}"
        )
    if len(captions) != n_codes or (marked is not None and len(marked) != n_codes) or columns < 1:
        raise ValueError(f"one caption and mark for each of {n_codes} codes, and columns of 1 or more")
    columns = min(columns, n_codes)
    block = n_steps * (width + GAP) - GAP, n_rows * (height + GAP) - GAP
    pair = len(originals) * (width + GAP) - GAP, 2 * (height + GAP) - GAP
    top = MARGIN + (22 if title else 0)
    start = top + HEAD + pair[1] + MARGIN
    row_step = HEAD + block[1] + MARGIN
    size = (
        max(2 * MARGIN + columns * (block[0] + BETWEEN) - BETWEEN, 2 * MARGIN + pair[0], 320),
        start + -(-n_codes // columns) * row_step,
    )
    figure = Figure(figsize=(scale * size[0] / DPI, scale * size[1] / DPI), dpi=DPI, facecolor="white")

    def write(text: str, x: float, y: float, colour: str, **options: object) -> None:
        figure.text(x / size[0], 1 - y / size[1], text, color=colour, parse_math=False, va="top", **options)  # pyright: ignore[reportArgumentType]

    def draw(tiles: FloatArray, x: float, y: float, extent: tuple[int, int], edge: str) -> None:
        sheet = sheet_of(tiles)
        box = (x / size[0], 1 - (y + extent[1]) / size[1], extent[0] / size[0], extent[1] / size[1])
        axes = figure.add_axes(box, xticks=[], yticks=[])
        axes.patch.set_alpha(0.0)
        axes.imshow(sheet, interpolation="nearest", aspect="auto")
        axes.spines[:].set(color=edge, linewidth=0.6 if edge == GRID else 1.4)

    small = FONT_SIZE * 0.72 * scale
    if title:
        write(title, MARGIN, MARGIN, INK, fontsize=small * 1.3, weight="bold")
    write(
        f"images, and their reconstructions below; the first {n_rows} are changed further down",
        MARGIN,
        top,
        INK,
        fontsize=small,
    )
    draw(np.stack([originals, reconstructions]), MARGIN, top + HEAD, pair, GRID)
    for number in range(n_codes):
        down, across = divmod(number, columns)
        x, y = MARGIN + across * (block[0] + BETWEEN), start + down * row_step
        stands_out = marked is not None and bool(marked[number])
        colour = ACCENT if stands_out else INK if marked is None else MUTED
        write(captions[number], x, y, colour, fontsize=small, weight="bold" if stands_out else "normal")
        draw(images[number], x, y + HEAD, block, ACCENT if stands_out else GRID)
    return figure


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
