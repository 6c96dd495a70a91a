"""All cyclic factors of a representation, each in its own plane (LSBD fig. 2)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unbraid.plots.style import FONT_SIZE, INK, new_panels
from unbraid.plots.symmetry import draw_plane, plot_symmetry
from unbraid.types import ArrayLike, FloatArray

SIDE = 1.9  # inches
ACROSS = 4


def plot_circles(
    result: Any,
    *,
    names: Sequence[str] | None = None,
    rows: ArrayLike | None = None,
    back: FloatArray | None = None,
    max_points: int = 3_000,
    figure: Figure | None = None,
) -> list[Axes]:
    """Each cyclic factor: embeddings in its plane, coloured by its angle, with the dispersion that is left.

    Args:
        result: what `d_lsbd` returns.
        names: of the cyclic factors, in the order of `result.subgroups`; default "factor 0", ...
        rows: samples to draw, such as those of one object; default all.
        back: (n_subgroups, n_rows, 2) the same samples turned back by their angles, for a second panel each; a perfect
            code is a single point. Default none.
        max_points: dots drawn in a panel.
        figure: where to draw; by default one of its own.

    Returns:
        The axes, one per cyclic factor, or with `back` two: before and after.

    Reference:
        Tonnaer et al. 2022 (LSBD), figure 2.
    """
    heads = list(names or (f"factor {factor}" for factor in result.subgroups))
    each = 1 if back is None else 2
    panels = new_panels(each * len(heads), ACROSS, (SIDE, SIDE), figure=figure)
    for subgroup, head in enumerate(heads):
        before = panels[each * subgroup]
        plot_symmetry(result, subgroup=subgroup, rows=rows, max_points=max_points, ax=before)
        _head(before, f"{head}: D_LSBD {float(np.asarray(result.per_subgroup)[subgroup]):.3f}", named=not subgroup)
        if back is not None:
            angles, after = np.asarray(result.angles[:, subgroup]), panels[each * subgroup + 1]
            draw_plane(back[subgroup], angles if rows is None else angles[np.asarray(rows)], max_points, after)
            _head(after, f"{head}: turned back", named=False)
    return panels


def _head(ax: Axes, title: str, *, named: bool) -> None:
    ax.set_title(title, fontsize=FONT_SIZE, color=INK, pad=5, parse_math=False)
    ax.locator_params(nbins=3)
    if not named:
        ax.set_ylabel("")
