"""Images beside what a model makes of them."""

import numpy as np
from matplotlib.figure import Figure

from unbraid.base.types import ArrayLike, FloatArray
from unbraid.show.sheets import GAP, MARGIN, add_sheet, new_figure, scaled
from unbraid.show.style import GRID, MUTED

BETWEEN = 10  # pixels at scale 1


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
