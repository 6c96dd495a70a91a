"""Two columns of results against each other, coloured by family (β-TCVAE fig. 1, 3 and 6)."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from unbraid.base.types import ArrayLike
from unbraid.show.style import FONT_SIZE, INK, MARK, family_marks, label, new_axes, tidy

WIDTH, HEIGHT = 2.9, 2.1  # inches
SMALLEST, LARGEST = 14.0, 90.0  # areas of dots, points squared


def plot_against(
    x: ArrayLike,
    y: ArrayLike,
    families: Sequence[str],
    *,
    sizes: ArrayLike | None = None,
    x_name: str = "x",
    y_name: str = "y",
    marked: Sequence[int] = (),
    colours: Mapping[str, tuple[str, str]] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """One dot per run, or per setting, in the colour of its family.

    Args:
        x: (n,) real.
        y: (n,) real.
        families: (n,) of each dot.
        sizes: (n,) numbers that make a dot larger, such as the value of β; default all alike.
        x_name: label of the horizontal axis.
        y_name: label of the vertical axis.
        marked: positions of dots to ring.
        colours: colour and marker of each family, as `unbraid.show.family_marks` gives them for all families of a
            study, so that they are the same in all of its figures; by default those of the families given.
        ax: where to draw; by default axes of their own.

    Returns:
        The axes. They have one collection of dots per family, in the order of their names.

    Reference:
        Chen et al. 2018 (β-TCVAE), figures 1, 3 and 6.
    """
    across, up = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    areas = _areas(sizes, len(across))
    ax = ax if ax is not None else new_axes(WIDTH, HEIGHT)
    tidy(ax)
    names = sorted(set(families))
    marks = family_marks(families) if colours is None else colours
    for family in names:
        own = np.array([name == family for name in families])
        colour, mark = marks[family]
        ax.scatter(
            across[own], up[own], s=areas[own], color=colour, marker=mark, alpha=0.7, linewidths=0, label=family,
            zorder=2,
        )  # fmt: skip
    for place in marked:
        ax.scatter(
            across[place], up[place], s=areas[place] + 60, facecolors="none", edgecolors=MARK, linewidths=1.4, zorder=3
        )
    if len(names) > 1:
        legend = ax.legend(
            fontsize=FONT_SIZE - 1.5, labelcolor=INK, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.02),
            borderpad=0, handletextpad=0.3,
        )  # fmt: skip
        for text, handle in zip(legend.get_texts(), legend.legend_handles, strict=True):
            text.set_parse_math(False)
            if handle is not None:
                handle.set_sizes([SMALLEST * 1.6])  # pyright: ignore[reportAttributeAccessIssue]
    ax.margins(0.08)
    label(ax, x_name, y_name)
    return ax


def _areas(sizes: ArrayLike | None, n: int) -> np.ndarray:
    if sizes is None:
        return np.full(n, SMALLEST)
    # By rank: hyperparameters are usually spaced by ratios, and the largest would leave the others alike.
    order = np.unique(np.asarray(sizes, dtype=float), return_inverse=True)[1]
    return SMALLEST + (LARGEST - SMALLEST) * order / max(order.max(), 1)
