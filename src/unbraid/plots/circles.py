"""All cyclic factors of a representation, each in its own plane (LSBD fig. 2)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unbraid.plots._style import FONT_SIZE, INK, new_panels
from unbraid.plots.symmetry import plot_symmetry
from unbraid.types import ArrayLike

SIDE = 1.9  # inches
ACROSS = 4


def plot_circles(
    result: Any,
    *,
    names: Sequence[str] | None = None,
    rows: ArrayLike | None = None,
    max_points: int = 3_000,
    figure: Figure | None = None,
) -> list[Axes]:
    """One panel per cyclic factor: embeddings in its plane, coloured by its angle, with the dispersion that is left.

    Args:
        result: what `d_lsbd` returns.
        names: of the cyclic factors, in the order of `result.subgroups`; default "factor 0", ...
        rows: samples to draw, such as those of one object; default all.
        max_points: dots drawn in a panel.
        figure: where to draw; by default one of its own.

    Returns:
        The axes, one per cyclic factor.

    Reference:
        Tonnaer et al. 2022 (LSBD), figure 2.
    """
    heads = list(names or (f"factor {factor}" for factor in result.subgroups))
    panels = new_panels(len(heads), ACROSS, (SIDE, SIDE), figure=figure)
    for subgroup, (ax, head) in enumerate(zip(panels, heads, strict=True)):
        plot_symmetry(result, subgroup=subgroup, rows=rows, max_points=max_points, ax=ax)
        title = f"{head}: D_LSBD {float(np.asarray(result.per_subgroup)[subgroup]):.3f}"
        ax.set_title(title, fontsize=FONT_SIZE, color=INK, pad=5, parse_math=False)
        ax.locator_params(nbins=3)
        if subgroup:
            ax.set_ylabel("")
    return panels
