"""Hinton diagrams: which code matters to which factor."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.patches import Rectangle

from unbraid.base.types import ArrayLike, FloatArray, IntArray
from unbraid.show.style import ACCENT, FONT_SIZE, GRID, INK, MARK, MUTED, new_axes

CELL = 0.27  # inches
LARGEST_SIDE = 0.9  # of a cell


def plot_hinton(
    matrix: ArrayLike | Any,
    *,
    row_names: Sequence[str] | None = None,
    column_names: Sequence[str] | None = None,
    greyed: Iterable[int] = (),
    alignment: ArrayLike | None = None,
    codes: Sequence[int] | None = None,
    top: int | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Squares whose areas are the entries of a matrix; rows are codes, columns factors (DCI fig. 3).

    Args:
        matrix: (n_codes, n_factors), or a Result with `importance` or else `mutual_information`. The largest
            magnitude fills its cell; negative entries are hollow; zeros are not drawn.
        row_names: default "code 0", "code 1", ...
        column_names: default "factor 0", "factor 1", ...
        greyed: rows to draw in grey, such as dead codes.
        alignment: (n_factors,) row that belongs to each column, framed; negative where none does.
        codes: rows to draw, in this order; default all.
        top: draw so many rows in place of `codes`, most important first; see `important_first`.
        ax: where to draw; by default axes of their own.

    Returns:
        The axes. Their first collection holds one square per non-zero entry, row by row.

    Raises:
        ValueError: `matrix` is not a finite matrix.

    Reference:
        Eastwood & Williams 2018 (DCI), figure 3.
    """
    values = matrix_of(matrix)
    n_rows, n_columns = values.shape
    rows = [f"code {i}" for i in range(n_rows)] if row_names is None else list(row_names)
    columns = [f"factor {j}" for j in range(n_columns)] if column_names is None else list(column_names)
    chosen = np.arange(n_rows) if codes is None else np.arange(n_rows)[list(codes)]
    if top is not None:
        chosen = important_first(values)[:top]
    place = {int(row): number for number, row in enumerate(chosen)}
    values, rows = values[chosen], [rows[row] for row in chosen]
    grey = {place[row] for row in greyed if row in place}
    framed = [place.get(int(row), -1) for row in np.asarray([] if alignment is None else alignment, dtype=int)]
    n_rows = len(rows)
    ax = ax if ax is not None else new_axes(CELL * n_columns, CELL * n_rows)
    ax.patch.set_alpha(0.0)
    ax.set(xlim=(-0.5, n_columns - 0.5), ylim=(n_rows - 0.5, -0.5), aspect="equal")
    ax.add_collection(_squares(values, grey), autolim=False)
    ax.hlines(np.arange(n_rows + 1) - 0.5, -0.5, n_columns - 0.5, color=GRID, linewidth=0.6, zorder=0, clip_on=False)
    ax.vlines(np.arange(n_columns + 1) - 0.5, -0.5, n_rows - 0.5, color=GRID, linewidth=0.6, zorder=0, clip_on=False)
    for column, row in enumerate(framed):
        if row >= 0:
            frame = Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=MARK, linewidth=1.6, zorder=3)
            frame.set_clip_on(False)
            ax.add_patch(frame)
    ax.xaxis.tick_top()
    upright = max(map(len, columns), default=0) * 0.075 <= CELL
    turn: dict[str, Any] = {} if upright else {"rotation": 45, "ha": "left", "rotation_mode": "anchor"}
    ax.set_xticks(range(n_columns), columns, fontsize=FONT_SIZE, color=INK, parse_math=False, **turn)
    ax.set_yticks(range(n_rows), rows, fontsize=FONT_SIZE, color=INK, parse_math=False)
    for row in grey:
        ax.get_yticklabels()[row].set_color(MUTED)
    ax.tick_params(length=0, pad=3)
    ax.spines[:].set_visible(False)
    return ax


def important_first(matrix: ArrayLike | Any) -> IntArray:
    """Rows of a matrix by their best rank among the codes of a factor, those of equal rank by their largest entry.

    So the first rows are the best code of each factor, then the second best, however small its entries are.
    """
    values = np.abs(matrix_of(matrix))
    ranks = np.argsort(np.argsort(-values, axis=0, kind="stable"), axis=0)
    ranks[values == 0] = len(values)
    return np.lexsort((-values.max(axis=1, initial=0.0), ranks.min(axis=1, initial=len(values))))


def matrix_of(matrix: ArrayLike | Any) -> FloatArray:
    """(n_codes, n_factors): itself, or the `importance` or else the `mutual_information` of a Result."""
    for field in ("importance", "mutual_information"):
        matrix = getattr(matrix, field, matrix)
    values = np.asarray(matrix, dtype=float)
    if values.ndim != 2 or not np.isfinite(values).all():
        raise ValueError(f"a Hinton diagram draws a finite matrix (n_codes, n_factors); got shape {values.shape}")
    return values


def _squares(values: FloatArray, grey: set[int]) -> PolyCollection:
    drawn = np.argwhere(values != 0)
    entries = values[drawn[:, 0], drawn[:, 1]]
    largest = np.abs(values).max(initial=0.0)
    half = 0.5 * LARGEST_SIDE * np.sqrt(np.abs(entries) / (largest or 1.0))
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    outlines = drawn[:, None, ::-1] + half[:, None, None] * corners
    colours = [MUTED if row in grey else ACCENT for row in drawn[:, 0]]
    filled = [colour if entry > 0 else "none" for colour, entry in zip(colours, entries, strict=True)]
    # A filled square has no outline: it would add to the area, which is the message.
    edges = ["none" if entry > 0 else colour for colour, entry in zip(colours, entries, strict=True)]
    return PolyCollection(list(outlines), facecolors=filled, edgecolors=edges, linewidths=0.9, zorder=2)
