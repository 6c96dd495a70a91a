"""How much each latent says: its KL from the prior."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from unbraid.base.types import ArrayLike
from unbraid.show.style import ACCENT, FONT_SIZE, GRID, INK, MUTED, label, new_axes, tidy

WIDTH, BAR = 2.9, 0.19  # inches
INFORMATIVE = 0.01  # nats; UDR's threshold


def plot_kl(
    kl: ArrayLike,
    *,
    threshold: float = INFORMATIVE,
    names: list[str] | None = None,
    codes: Sequence[int] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Latents by falling KL: informative ones in blue, those that the model leaves unused in grey.

    Args:
        kl: (n_codes,) mean KL of each latent's posterior from the prior, nats.
        threshold: above it a latent is informative (UDR).
        names: default "code 0", "code 1", ...
        codes: those to draw; default all.
        ax: where to draw; by default axes of their own.

    Returns:
        The axes. Their patches are the bars, from the most informative latent downwards.

    """
    values = np.asarray(kl, dtype=float)
    order = np.argsort(-values, kind="stable")
    order = order[np.isin(order, codes)] if codes is not None else order
    labels = names or [f"code {code}" for code in range(len(values))]
    ax = ax if ax is not None else new_axes(WIDTH, BAR * len(order))
    tidy(ax)
    ax.spines["left"].set_visible(False)
    colours = [ACCENT if values[code] > threshold else MUTED for code in order]
    ax.barh(np.arange(len(order)), values[order], height=0.68, color=colours, zorder=2)
    for place, code in enumerate(order):
        ax.annotate(
            f"{values[code]:.3g}", (values[code], place), (3, 0), textcoords="offset points",
            va="center", fontsize=FONT_SIZE - 2, color=INK if values[code] > threshold else MUTED,
        )  # fmt: skip
    ax.set(ylim=(len(order) - 0.4, -0.6), xlim=(0, 1.12 * max(values.max(), threshold)))
    ax.set_yticks(range(len(order)), [labels[code] for code in order], parse_math=False)
    ax.tick_params(axis="y", length=0)
    ax.xaxis.grid(True, color=GRID, linewidth=0.6)
    ax.set_axisbelow(True)
    label(ax, "KL from the prior, nats per image")
    return ax
