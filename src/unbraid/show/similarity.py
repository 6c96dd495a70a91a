"""How alike models are, two by two, or the latents of two models (UDR fig. 6)."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from unbraid.base.types import ArrayLike, FloatArray
from unbraid.show.style import DIVERGING, FONT_SIZE, INK, MUTED, new_axes

SIDE, CELL = 3.0, 0.26  # inches: of many models, of one latent
NAMED = 24  # rows up to which each has a name
NUMBERED = 12  # rows up to which cells hold their numbers
PALE = 0.72  # above it a number stands light on dark


def plot_similarity(
    matrix: ArrayLike,
    *,
    row_names: Sequence[str] | None = None,
    column_names: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """A matrix of similarities from 0 (pale) to 1 (blue); cells that were not compared stay empty.

    Args:
        matrix: (n, m): `pairs` of a ranking, models against models, or one of its `matrices`, latents against latents.
        row_names: at most 24 are shown; default none.
        column_names: as row_names.
        groups: of each model, such as its setting; neighbours of one group are framed and named. For square matrices.
        ax: where to draw; by default axes of their own.

    Returns:
        The axes. Their image holds the matrix.

    Raises:
        ValueError: groups that do not fit the matrix.

    Reference:
        Duan et al. 2020 (UDR), figure 6.
    """
    values = np.asarray(matrix, dtype=float)
    n, m = values.shape
    if groups is not None and {len(groups)} != {n, m}:
        raise ValueError(f"{len(groups)} groups do not fit a matrix of shape {values.shape}")
    side = min(SIDE / max(n, m), CELL) if groups is not None or max(n, m) > NAMED else CELL
    ax = ax if ax is not None else new_axes(side * m, side * n)
    ax.patch.set_alpha(0.0)
    known = np.isfinite(values)
    # The pale half of the map for both signs: similarities have none.
    ax.imshow(
        np.where(known, values, 0.0), cmap=DIVERGING, vmin=-1, vmax=1, alpha=known.astype(float),
        interpolation="nearest", aspect="equal",
    )  # fmt: skip
    _ticks(ax, row_names, column_names)
    if groups is not None:
        _frame(ax, groups)
    ax.spines[:].set(color=MUTED, linewidth=0.6)
    if max(n, m) > NUMBERED:
        _key(ax)
    else:
        _numbers(ax, values)
    return ax


def _ticks(ax: Axes, row_names: Sequence[str] | None, column_names: Sequence[str] | None) -> None:
    rows = row_names if row_names is not None and len(row_names) <= NAMED else ()
    columns = column_names if column_names is not None and len(column_names) <= NAMED else ()
    turn: dict[str, Any] = {"rotation": 90} if max(map(len, columns), default=0) > 3 else {}
    style: dict[str, Any] = {"fontsize": FONT_SIZE - 1.5, "color": INK, "parse_math": False}
    ax.set_yticks(range(len(rows)), rows, **style)
    ax.set_xticks(range(len(columns)), columns, **style, **turn)
    ax.tick_params(length=0, pad=3)


def _frame(ax: Axes, groups: Sequence[str]) -> None:
    start = 0
    for group, members in groupby(groups):
        stop = start + len(list(members))
        for edge in {start, stop} - {0, len(groups)}:
            ax.axhline(edge - 0.5, color=MUTED, linewidth=0.5)
            ax.axvline(edge - 0.5, color=MUTED, linewidth=0.5)
        ax.annotate(
            group, (1, (start + stop) / 2 - 0.5), (5, 0), xycoords=("axes fraction", "data"),
            textcoords="offset points", va="center", fontsize=FONT_SIZE - 1.5, color=INK, parse_math=False,
        )  # fmt: skip
        start = stop


def _numbers(ax: Axes, values: FloatArray) -> None:
    for row, column in np.argwhere(np.isfinite(values)):
        value = values[row, column]
        ax.text(
            column, row, f"{value:.2f}".removeprefix("0"), ha="center", va="center", fontsize=FONT_SIZE - 3,
            color="#ffffff" if value > PALE else INK if value > 0.2 else MUTED,
        )  # fmt: skip


def _key(ax: Axes) -> None:
    key = ax.inset_axes((0.0, 1.03, 0.4, 0.035))
    key.imshow(np.linspace(0, 1, 64)[None], cmap=DIVERGING, vmin=-1, vmax=1, aspect="auto")
    key.set_yticks([])
    key.set_xticks([0, 63], ["0", "1"], fontsize=FONT_SIZE - 2, color=INK)
    key.tick_params(length=0, pad=2, top=True, bottom=False, labeltop=True, labelbottom=False)
    key.spines[:].set_visible(False)
