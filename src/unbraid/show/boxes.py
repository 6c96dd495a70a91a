"""A score by setting: how far seeds differ, and which setting is better (UDR fig. 2-3)."""

from collections.abc import Mapping
from itertools import groupby
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from unbraid.base.types import FloatArray
from unbraid.show.style import FONT_SIZE, GRID, INK, MUTED, family_marks, label, new_axes, tidy

HEIGHT, STEP = 1.8, 0.34  # inches, inches per setting
GAP, LETTER = 0.4, 0.21  # settings between two families, and for a letter of their names
UPRIGHT = 4  # letters of a setting that fit under its box
MOST_DOTS = 60


def plot_box_per_setting(
    result: Any,
    *,
    name: str | None = None,
    colours: Mapping[str, tuple[str, str]] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """One box per setting, family by family: the quartiles, whiskers to the extremes, the runs themselves as dots.

    Args:
        result: what `unbraid.scoring.by_setting` returns: `boxes`, each with family, setting, the five numbers and the
            values of its runs.
        name: of the vertical axis; default the column.
        colours: as for `plot_against`.
        ax: where to draw; by default axes of their own.

    Returns:
        The axes. Their patches are the boxes, from left to right; runs are drawn where a setting has at most 60.

    Raises:
        ValueError: there is no box.

    Reference:
        Duan et al. 2020 (UDR), figures 2 and 3; Chen et al. 2018 (β-TCVAE), figure 1.
    """
    families = [(family, list(boxes)) for family, boxes in groupby(result.boxes, key=lambda box: box.family)]
    if not families:
        raise ValueError(f"{result.column}: no setting has a value")
    shared = [_shared_name([box.setting for box in boxes]) for _, boxes in families]
    heads = [f"{family}\n{name}" if name else family for (family, _), name in zip(families, shared, strict=True)]
    places, width = _places([len(boxes) for _, boxes in families], heads)
    ax = ax if ax is not None else new_axes(STEP * width, HEIGHT)
    tidy(ax)
    ticks: list[str] = []
    marks = family_marks(family for family, _ in families) if colours is None else colours
    for (family, boxes), across, head, name_ in zip(families, places, heads, shared, strict=True):
        ticks += [box.setting.removeprefix(f"{name_}=") for box in boxes]
        for place, box in zip(across, boxes, strict=True):
            _box(ax, place, box, marks[family][0])
        ax.text(
            float(across.mean()), 1.03, head, transform=ax.get_xaxis_transform(),
            ha="center", va="bottom", fontsize=FONT_SIZE - 1, color=INK, parse_math=False,
        )  # fmt: skip
    turn: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    turn = turn if max(map(len, ticks)) > UPRIGHT else {}
    ax.set_xticks(np.concatenate(places), ticks, parse_math=False, **turn)
    ax.tick_params(axis="x", length=0)
    ax.set_xlim(-0.5, width - 0.5)
    ax.yaxis.grid(True, color=GRID, linewidth=0.6)
    ax.set_axisbelow(True)
    label(ax, "", name or result.column)
    return ax


def _places(counts: list[int], heads: list[str]) -> tuple[list[FloatArray], float]:
    """Where the boxes of each family stand, and the width of all, in settings; a long name takes more room."""
    places, start = [], 0.0
    for count, head in zip(counts, heads, strict=True):
        room = max(count, LETTER * max(map(len, head.split("\n"))))
        places.append(start + (room - count) / 2 + np.arange(count))
        start += room + GAP
    return places, start - GAP


def _shared_name(settings: list[str]) -> str:
    """`beta` where every setting is `beta=` and a value."""
    names = {setting.partition("=")[0] for setting in settings}
    single = all(setting.count("=") == 1 for setting in settings)
    return names.pop() if single and len(names) == 1 else ""


def _box(ax: Axes, place: float, box: Any, colour: str) -> None:
    low, high = box.lower_quartile, box.upper_quartile
    ax.vlines([place, place], [box.lowest, high], [low, box.highest], color=colour, linewidth=1.0, zorder=2)
    ax.add_patch(
        Rectangle((place - 0.3, low), 0.6, high - low, facecolor=colour, edgecolor=colour, alpha=0.35, zorder=2)
    )
    ax.hlines(box.median, place - 0.3, place + 0.3, color=INK, linewidth=1.5, zorder=4)
    if len(box.values) <= MOST_DOTS:
        jitter = np.random.default_rng(0).uniform(-0.2, 0.2, len(box.values))
        ax.scatter(place + jitter, box.values, s=5, color=MUTED, alpha=0.8, linewidths=0, zorder=3)
