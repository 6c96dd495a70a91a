"""Which metrics agree: every one against every other (SNC/NK fig. 14)."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from unbraid.base.types import ArrayLike, FloatArray
from unbraid.show.style import DIVERGING, FONT_SIZE, INK, MUTED, new_axes

CELL = 0.36  # inches
FADED = 0.3  # opacity of what chance may have made
PALE = 0.72  # magnitude above which a number stands light on dark


def plot_correlations(
    names: Sequence[str],
    values: ArrayLike,
    p: ArrayLike | None = None,
    *,
    alpha: float = 0.05,
    ax: Axes | None = None,
) -> Axes:
    """Correlations as coloured cells, blue for agreement and red for the opposite; those that chance may make faded.

    Args:
        names: (k,) of the metrics.
        values: (k, k) correlations in [-1, 1]; NaN where there is none, drawn as a dash.
        p: (k, k) p values; None: no cell is faded.
        alpha: cells with a larger p are faded.
        ax: where to draw; by default axes of their own.

    Returns:
        The axes. Their image holds the lower triangle, their texts its numbers, row by row.

    Reference:
        Mahon et al. 2023 (SNC/NK), figure 14.
    """
    matrix = np.asarray(values, dtype=float)
    sure = np.zeros(matrix.shape) if p is None else np.asarray(p, dtype=float)
    k = len(names)
    ax = ax if ax is not None else new_axes(CELL * (k - 1), CELL * (k - 1))
    ax.patch.set_alpha(0.0)
    # The diagonal and what is above it say nothing new: rows begin with the second name, columns end before the last.
    lower = np.tril(np.ones((k - 1, k - 1), dtype=bool))
    shown, certain = matrix[1:, :-1], sure[1:, :-1] <= alpha
    drawn = lower & np.isfinite(shown)
    ax.imshow(
        np.where(drawn, shown, 0.0), cmap=DIVERGING, vmin=-1, vmax=1, interpolation="nearest",
        alpha=np.where(drawn, np.where(certain, 1.0, FADED), 0.0),
    )  # fmt: skip
    for row, column in zip(*np.nonzero(lower), strict=True):
        _number(ax, shown, row, column, bool(certain[row, column]))
    _names(ax, names)
    return ax


def _number(ax: Axes, values: FloatArray, row: int, column: int, certain: bool) -> None:
    value = values[row, column]
    text = "–" if np.isnan(value) else f"{value:.2f}".replace("0.", ".").replace("-", "−")
    light = certain and abs(value) > PALE
    ax.text(
        column, row, text, ha="center", va="center", fontsize=FONT_SIZE - 2,
        color="#ffffff" if light else INK if certain else MUTED,
    )  # fmt: skip


def _names(ax: Axes, names: Sequence[str]) -> None:
    k = len(names)
    ax.set_xticks(
        range(k - 1), names[:-1], fontsize=FONT_SIZE - 1, color=INK, parse_math=False,
        rotation=45, ha="right", rotation_mode="anchor",
    )  # fmt: skip
    ax.set_yticks(range(k - 1), names[1:], fontsize=FONT_SIZE - 1, color=INK, parse_math=False)
    ax.set_xticks(np.arange(k) - 0.5, minor=True)
    ax.tick_params(length=0, which="both", pad=3)
    ax.spines[:].set_visible(False)
