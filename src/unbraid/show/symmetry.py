"""How cyclic factors turn the codes: embeddings in their planes (LSBD fig. 2), and what each frequency leaves."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle

from unbraid.base.types import ArrayLike, FloatArray
from unbraid.show.paper import across
from unbraid.show.style import (
    CYCLIC,
    FONT_SIZE,
    GRID,
    INK,
    MARK,
    MUTED,
    dots,
    label,
    new_axes,
    new_panels,
    thinned,
    tidy,
)

WIDTH, HEIGHT = 2.4, 1.9  # inches
ACROSS = 4  # planes in a row
LEFT = 0.62  # inches
MOST_DOTS = 3_000


def plot_symmetry(
    result: Any,
    *,
    subgroup: int = 0,
    rows: ArrayLike | None = None,
    max_points: int = MOST_DOTS,
    ax: Axes | None = None,
) -> Axes:
    """Embeddings in the plane of one cyclic factor, coloured by its angle; a perfect code is a ring of hues in order.

    Args:
        result: what `d_lsbd` returns: `projected` (n_subgroups, n_samples, 2) and `angles` (n_samples, n_subgroups).
        subgroup: which of its cyclic factors.
        rows: samples to draw, such as those of one object, since each object has a plane of its own; default all.
        max_points: dots drawn; beyond it a random choice, always the same.
        ax: where to draw; by default axes of their own, square.

    Returns:
        The axes, of equal scale, with the unit circle. Their first collection holds the dots.
    """
    points = np.asarray(result.projected[subgroup])
    angles = np.asarray(result.angles[:, subgroup])
    if rows is not None:
        points, angles = points[np.asarray(rows)], angles[np.asarray(rows)]
    return _draw_plane(points, angles, max_points, ax if ax is not None else new_axes(HEIGHT, HEIGHT))


def _draw_plane(points: FloatArray, angles: FloatArray, max_points: int, ax: Axes) -> Axes:
    """Points (n, 2) coloured by their angles (n,), and the unit circle."""
    drawn = thinned(len(points), max_points)
    tidy(ax)
    dots(ax, *points[drawn].T, colours=CYCLIC(angles[drawn] / (2 * np.pi) % 1.0), area=7)
    ax.add_patch(Circle((0, 0), 1, fill=False, edgecolor=GRID, linewidth=1.0, zorder=1))
    extent = 1.1 * max(1.0, float(np.abs(points).max(initial=0.0)))
    ax.set(xlim=(-extent, extent), ylim=(-extent, extent), aspect="equal")
    label(ax, "first axis of the plane", "second axis")
    return ax


def plot_dispersion(result: Any, *, subgroup: int = 0, ax: Axes | None = None) -> Axes:
    """Dispersion that is left after each frequency of one cyclic factor is undone; the least is marked.

    Args:
        result: what `d_lsbd` returns: `dispersion` (n_subgroups, max_frequency + 1).
        subgroup: which of its cyclic factors.
        ax: where to draw; by default axes of their own.

    Returns:
        The axes. Their first line holds the dispersions, their last the least.
    """
    left = np.asarray(result.dispersion[subgroup])
    ax = ax if ax is not None else new_axes(WIDTH, HEIGHT)
    tidy(ax)
    best = int(left.argmin())
    ax.plot(left, color=MUTED, marker="o", markersize=3.5, linewidth=1.2)
    ax.plot([best], [left[best]], color=MARK, marker="o", markersize=6)
    ax.annotate(
        f"{left[best]:.2f}", (best, left[best]), (5, 6), textcoords="offset points", color=INK, fontsize=8
    )  # fmt: skip
    ax.set_ylim(0, 1.08 * max(1.0, float(left.max())))
    label(ax, "frequency |ω|", "dispersion left")
    return ax


def plot_circles(
    result: Any,
    *,
    names: Sequence[str] | None = None,
    rows: ArrayLike | None = None,
    back: FloatArray | None = None,
    only: Sequence[int] | None = None,
    width: float | None = None,
) -> list[Axes]:
    """Each cyclic factor: embeddings in its plane, coloured by its angle, with the dispersion that is left.

    Args:
        result: what `d_lsbd` returns.
        names: of the cyclic factors, in the order of `result.subgroups`; default "factor 0", ...
        rows: samples to draw, such as those of one object; default all.
        back: (n_subgroups, n_rows, 2) the same samples turned back by their angles, for a second panel each; a perfect
            code is a single point. Default none.
        only: which of them, by their places in `result.subgroups`; default all.
        width: of the whole figure in mm, such as 89 or 183; by default four panels in a row.

    Returns:
        The axes, one per cyclic factor, or with `back` two: before and after.

    Reference:
        Tonnaer et al. 2022 (LSBD), figure 2.
    """
    heads = list(names or (f"factor {factor}" for factor in result.subgroups))
    n_panels = 1 if back is None else 2
    shown = list(range(len(heads))) if only is None else list(only)
    n_across, side = across(width, n_panels * len(shown), ACROSS, HEIGHT, LEFT)
    panels = new_panels(n_panels * len(shown), n_across, (side, side), left=LEFT)
    for place, subgroup in enumerate(shown):
        before, head = panels[n_panels * place], heads[subgroup]
        plot_symmetry(result, subgroup=subgroup, rows=rows, ax=before)
        _head(before, f"{head}: D_LSBD {float(np.asarray(result.per_subgroup)[subgroup]):.3f}", named=not place)
        if back is not None:
            angles, after = np.asarray(result.angles[:, subgroup]), panels[n_panels * place + 1]
            _draw_plane(back[subgroup], angles if rows is None else angles[np.asarray(rows)], MOST_DOTS, after)
            _head(after, f"{head}: turned back", named=False)
    return panels


def _head(ax: Axes, title: str, *, named: bool) -> None:
    ax.set_title(title, fontsize=FONT_SIZE, color=INK, pad=5, parse_math=False)
    ax.locator_params(nbins=3)
    if not named:
        ax.set_ylabel("")
