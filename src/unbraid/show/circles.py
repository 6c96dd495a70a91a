"""All cyclic factors of a representation, each in its own plane (LSBD fig. 2)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from unbraid.base.types import ArrayLike, FloatArray
from unbraid.show.paper import across
from unbraid.show.style import FONT_SIZE, INK, new_panels
from unbraid.show.symmetry import MOST_DOTS, draw_plane, plot_symmetry

SIDE = 1.9  # inches
ACROSS = 4
LEFT = 0.62  # inches


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
    n_across, side = across(width, n_panels * len(shown), ACROSS, SIDE, LEFT)
    panels = new_panels(n_panels * len(shown), n_across, (side, side), left=LEFT)
    for place, subgroup in enumerate(shown):
        before, head = panels[n_panels * place], heads[subgroup]
        plot_symmetry(result, subgroup=subgroup, rows=rows, ax=before)
        _head(before, f"{head}: D_LSBD {float(np.asarray(result.per_subgroup)[subgroup]):.3f}", named=not place)
        if back is not None:
            angles, after = np.asarray(result.angles[:, subgroup]), panels[n_panels * place + 1]
            draw_plane(back[subgroup], angles if rows is None else angles[np.asarray(rows)], MOST_DOTS, after)
            _head(after, f"{head}: turned back", named=False)
    return panels


def _head(ax: Axes, title: str, *, named: bool) -> None:
    ax.set_title(title, fontsize=FONT_SIZE, color=INK, pad=5, parse_math=False)
    ax.locator_params(nbins=3)
    if not named:
        ax.set_ylabel("")
