"""What each code does to the images: one strip of images per code and seed image."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from unbraid.base.types import FloatArray
from unbraid.show.sheets import DPI, GAP, MARGIN, add_sheet, new_figure, scaled
from unbraid.show.style import ACCENT, GRID, INK, MUTED

BETWEEN = 18  # pixels at scale 1 between two blocks side by side
APART = 8  # images that stand apart, and their row


def plot_traversals(
    images: FloatArray,
    originals: FloatArray | None = None,
    reconstructions: FloatArray | None = None,
    *,
    captions: Sequence[str],
    first: FloatArray | None = None,
    last: FloatArray | None = None,
    marked: Sequence[bool] | None = None,
    columns: int = 2,
    scale: float = 1.0,
    width: float | None = None,
) -> Figure:
    """A block per code, one seed image a row; above them the seed images and what the model makes of them.

    Args:
        images: (n_codes, n_rows, n_steps, height, width, channels), 0 .. 1, in the order to be drawn.
        originals, reconstructions: (n_shown, height, width, channels), 0 .. 1, the seed images first. By default there
            are none, and the blocks begin at the top.
        captions: above each block, one per code.
        first, last: (n_codes, n_rows, height, width, channels), images that stand apart, left and right of each row.
        marked: which captions stand out, one per code; the others are muted. By default none is either.
        columns: blocks side by side.
        scale: pixels of the figure per pixel of an image.
        width: of the whole figure in mm, such as 89 or 183, in place of `scale`; captions have 7 points.

    Returns:
        A figure whose size fits its images pixel by pixel: save it at its own dpi (100).
    """
    n_codes, n_rows, _, height, across, _ = images.shape
    seeds = [stack for stack in (originals, reconstructions) if stack is not None]
    columns = min(columns, n_codes)
    strips = [stack for stack in (first, images, last) if stack is not None]
    strips = [strip if strip.ndim == 6 else strip[:, :, None] for strip in strips]
    extents = [(strip.shape[2] * (across + GAP) - GAP, n_rows * (height + GAP) - GAP) for strip in strips]
    block = sum(extent[0] for extent in extents) + APART * (len(extents) - 1), extents[0][1]
    pair = (len(seeds[0]) * (across + GAP) - GAP, 2 * (height + GAP) - GAP) if seeds else (0, 0)
    whole = max(2 * MARGIN + columns * (block[0] + BETWEEN) - BETWEEN, 2 * MARGIN + pair[0], 320)
    scale, small, head = scaled(width, scale, whole)
    start = MARGIN + head + pair[1] + MARGIN if seeds else MARGIN
    row_step = head + block[1] + MARGIN
    size = whole, start + -(-n_codes // columns) * row_step
    figure = new_figure(size, scale)

    def write(text: str, x: float, y: float, colour: str, **options: object) -> None:
        figure.text(x / size[0], 1 - y / size[1], text, color=colour, parse_math=False, va="top", **options)  # pyright: ignore[reportArgumentType]

    def draw(tiles: FloatArray, x: float, y: float, edge: str) -> None:
        axes = add_sheet(figure, size, tiles, x, y)
        axes.spines[:].set(color=edge, linewidth=0.6 if edge == GRID else 1.4)

    if seeds:
        heading = f"images and their reconstructions; the first {n_rows} change below"
        write(heading, MARGIN, MARGIN, INK, fontsize=small)
        draw(np.stack(seeds), MARGIN, MARGIN + head, GRID)
    for number in range(n_codes):
        down, across = divmod(number, columns)
        x, y = MARGIN + across * (block[0] + BETWEEN), start + down * row_step
        stands_out = marked is not None and bool(marked[number])
        colour = ACCENT if stands_out else INK if marked is None else MUTED
        caption = _shortened(captions[number], (block[0] if columns > 1 else whole - MARGIN) * scale / DPI, small)
        write(caption, x, y, colour, fontsize=small, weight="bold" if stands_out else "normal")
        for strip, extent in zip(strips, extents, strict=True):
            draw(strip[number], x, y + head, ACCENT if stands_out else GRID)
            x += extent[0] + APART
    return figure


def _shortened(caption: str, room: float, points: float) -> str:
    """The caption, cut to so many inches."""
    longest = max(12, int(room / (0.5 * points / 72)))  # a letter is about half as wide as it is high
    return caption if len(caption) <= longest else f"{caption[: longest - 1]}…"
