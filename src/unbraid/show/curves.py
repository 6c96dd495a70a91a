"""How losses and their parts went during training."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from unbraid.show.paper import across
from unbraid.show.style import FONT_SIZE, GRID, INK, PALETTE, label, new_panels, tidy

PANEL = (2.15, 1.35)  # inches
ACROSS = 3
LEFT = 0.62  # inches


def plot_curves(
    curves: Mapping[str, Any],
    *,
    names: Sequence[str] | None = None,
    width: float | None = None,
) -> list[Axes]:
    """One panel per logged quantity, over training steps; each of several runs a line.

    Args:
        curves: `step` and, by name, arrays of the same length, as `Run.curves` gives; or such curves by run.
        names: which quantities; by default all, in their order.
        width: of the whole figure in mm, such as 89 or 183; by default three panels in a row.

    Returns:
        The axes, one per quantity, with one line per run in the order given.

    Raises:
        ValueError: no such quantity, or nothing to draw.
    """
    runs = {"": curves} if "step" in curves else dict(curves)
    known = list(dict.fromkeys(name for own in runs.values() for name in own if name != "step"))
    shown = known if names is None else list(names)
    if not shown or not set(shown) <= set(known):
        raise ValueError(f"there are curves of {', '.join(known) or 'nothing'}; asked for {', '.join(shown) or 'none'}")
    n_across, wide = across(width, len(shown), ACROSS, PANEL[0], LEFT)
    panels = new_panels(len(shown), n_across, (wide, PANEL[1]), left=LEFT)
    for ax, name in zip(panels, shown, strict=True):
        tidy(ax)
        for number, (run, own) in enumerate(runs.items()):
            if name in own:
                colour = PALETTE[number % len(PALETTE)]
                step, values = (np.asarray(own[column], dtype=float) for column in ("step", name))
                ax.plot(step, values, color=colour, linewidth=1.3, label=run)
        ax.set_title(name, fontsize=FONT_SIZE, color=INK, loc="left", pad=5, parse_math=False)
        ax.yaxis.grid(True, color=GRID, linewidth=0.6)
        ax.xaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
        ax.yaxis.set_major_locator(MaxNLocator(nbins=4))
    for ax in panels[-n_across:]:
        label(ax, "training step")
    if len(runs) > 1:
        for text in panels[0].legend(fontsize=FONT_SIZE - 2, frameon=False, labelcolor=INK).get_texts():
            text.set_parse_math(False)
    return panels
