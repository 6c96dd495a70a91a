"""A factor against the code, or the two codes, that know most about it."""

from collections.abc import Sequence
from math import ceil
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from unbraid.base.types import ArrayLike, FloatArray, IntArray, Kind
from unbraid.show.style import (
    CYCLIC,
    INK,
    MUTED,
    PALETTE,
    cyclic_colours,
    dots,
    label,
    level_colours,
    new_axes,
    thinned,
    tidy,
)

WIDTH, HEIGHT = 2.75, 1.9  # inches
BAND = (10, 90)  # percentiles
BAND_BINS = 30  # steps of the band where a factor has more levels than that
LARGEST_BAND_SAMPLE = 50_000
MOST_TICKS = 8  # levels beyond which not each is marked
FEWEST_LETTERS = 4  # of a level whose name is shortened
LETTER = 4.4  # points that a letter of them is wide
LONGEST_NAME = 12  # characters of a level beside its neighbours


def plot_factor_code(
    code: ArrayLike,
    factor: ArrayLike,
    *,
    kind: Kind = "ordinal",
    size: int | None = None,
    levels: Sequence[str] = (),
    period: float = 0.0,
    code_name: str = "code",
    factor_name: str = "factor",
    greyed: bool = False,
    max_points: int = 2_000,
    ax: Axes | None = None,
) -> Axes:
    """One code against one factor (DCI fig. 5): dots, the mean, and the band between its 10th and 90th percentile.

    Args:
        code: (n_samples,) real.
        factor: (n_samples,) levels, or real values of a continuous factor.
        kind: "categorical" draws a strip of dots per level with its mean and percentiles; "cyclic" colours by angle.
        size: number of steps of a cyclic factor; by default those between its extremes.
        levels: names of the levels, of level 0 first; by default their numbers.
        period: of a cyclic factor in radians: once around in the unit in which its axis is marked, such as 360; 0:
            radians.
        code_name: label of the vertical axis.
        factor_name: label of the horizontal axis.
        greyed: dots in grey, for a dead code.
        max_points: dots drawn; beyond it a random choice, always the same.
        ax: where to draw; by default axes of their own.

    Returns:
        The axes. Their first collection holds the dots.
    """
    values, numbers = np.asarray(code, dtype=float), np.asarray(factor, dtype=float)
    ax = ax if ax is not None else new_axes(WIDTH, HEIGHT)
    tidy(ax)
    rows = thinned(len(values), max_points)
    colours = (
        MUTED if greyed else _colours(numbers, kind, size)[rows] if kind in {"categorical", "cyclic"} else PALETTE[0]
    )
    if kind == "categorical":
        _strips(ax, values, numbers, rows, colours, levels)
    else:
        _cloud(ax, values, numbers, rows, kind, colours, levels)
    if kind == "cyclic":
        _mark_angles(ax, np.unique(numbers), levels, period)
    label(ax, factor_name, code_name)
    return ax


def plot_code_plane(
    codes: ArrayLike,
    factor: ArrayLike,
    *,
    kind: Kind = "cyclic",
    size: int | None = None,
    code_names: tuple[str, str] = ("code 0", "code 1"),
    max_points: int = 2_000,
    ax: Axes | None = None,
) -> Axes:
    """Two codes against each other, coloured by a factor: how a cyclic factor takes two codes (DCI fig. 5).

    Args:
        codes: (n_samples, 2).
        factor: (n_samples,).
        kind: "cyclic" colours by angle, "categorical" by level, any other from low to high.
        size: number of steps of a cyclic factor; by default those between its extremes.
        code_names: labels of the two axes.
        max_points: dots drawn; beyond it a random choice, always the same.
        ax: where to draw; by default axes of their own, square.

    Returns:
        The axes, of equal scale. Their first collection holds the dots.
    """
    plane, levels = np.asarray(codes, dtype=float), np.asarray(factor, dtype=float)
    ax = ax if ax is not None else new_axes(HEIGHT, HEIGHT)
    tidy(ax)
    rows = thinned(len(plane), max_points)
    dots(ax, plane[rows, 0], plane[rows, 1], _colours(levels, kind, size)[rows])
    ax.set_aspect("equal", adjustable="datalim")
    ax.xaxis.set_major_locator(MaxNLocator(nbins=4))  # more labels of small codes, such as −0.025, overlap
    label(ax, *code_names)
    return ax


def _colours(levels: FloatArray, kind: Kind, size: int | None) -> FloatArray:
    from matplotlib.colors import to_rgba_array

    if kind == "cyclic":
        return cyclic_colours(levels, size)
    if kind == "categorical":
        present, position = np.unique(levels, return_inverse=True)
        return to_rgba_array(level_colours(len(present)))[position]
    # Half of the loop, from dark green over blue to light, is a scale from low to high.
    spread = np.ptp(levels) or 1.0
    return CYCLIC((0.75 + 0.5 * (levels - levels.min()) / spread) % 1.0)


def _cloud(
    ax: Axes, values: FloatArray, levels: FloatArray, rows: IntArray, kind: Kind, colours: Any, names: Sequence[str]
) -> None:
    present = np.unique(levels)
    width = np.diff(present).min() if kind != "continuous" and 1 < len(present) <= BAND_BINS else 0.0
    jitter = np.random.default_rng(0).uniform(-0.25, 0.25, len(rows)) * width
    dots(ax, levels[rows] + jitter, values[rows], colours)
    centres, mean, low, high = _band(values, levels)
    ax.fill_between(centres, low, high, color=MUTED, alpha=0.18, linewidth=0, zorder=1)
    ax.plot(centres, mean, color=INK, linewidth=1.3, zorder=3)
    if kind != "continuous" and len(present) <= MOST_TICKS:
        _mark_levels(ax, present.tolist(), present.tolist(), names)


def _mark_angles(ax: Axes, present: FloatArray, names: Sequence[str], period: float) -> None:
    """Half turns of angles in radians, in the unit of their labels; quarter turns of levels that have names."""
    if (present != np.rint(present)).any():
        low = -0.5 if present.min() < 0 else 0.0
        turns = np.array([low, low + 0.5, low + 1.0])
        ax.set_xticks((2 * np.pi * turns).tolist(), [_angle(turn, period or 2 * np.pi) for turn in turns])
    elif names and len(present) > MOST_TICKS:
        places = [round(len(names) * quarter / 4) for quarter in range(4)]
        ax.set_xticks(places, [level_name(place, names) for place in places])


def _angle(turns: float, period: float) -> str:
    """Some half turns, as "180", "12" or, where once around is pi or 2 pi, "π/2"."""
    halves = 2 * turns * period / np.pi
    if not any(np.isclose(period, known, rtol=1e-6) for known in (np.pi, 2 * np.pi)):
        return f"{turns * period:.6g}".replace("-", "−")
    sign = "−" if halves < 0 else ""
    return sign + {0: "0", 1: "π/2", 2: "π", 4: "2π"}[round(abs(halves))]


def _strips(
    ax: Axes, values: FloatArray, levels: FloatArray, rows: IntArray, colours: Any, names: Sequence[str]
) -> None:
    present, position = np.unique(levels, return_inverse=True)
    jitter = np.random.default_rng(0).uniform(-0.3, 0.3, len(rows))
    dots(ax, position[rows] + jitter, values[rows], colours)
    for place in range(len(present)):
        own = values[position == place]
        low, high = np.percentile(own, BAND)
        ax.vlines(place, low, high, color=INK, linewidth=1.3, zorder=3)
        ax.hlines(own.mean(), place - 0.2, place + 0.2, color=INK, linewidth=1.8, zorder=3)
    shown = range(len(present)) if len(present) <= 12 else np.linspace(0, len(present) - 1, 6).astype(int)
    _mark_levels(ax, list(shown), present[shown].tolist(), names)


def level_name(level: float, names: Sequence[str], *, longest: int | None = LONGEST_NAME) -> str:
    """What a level is called: its name, shortened, or its number."""
    if not 0 <= level < len(names):
        return f"{level:g}"
    name = names[int(level)]
    return name if longest is None or len(name) <= longest else f"{name[: longest - 1]}…"


def _mark_levels(ax: Axes, places: Sequence[float], levels: Sequence[float], names: Sequence[str]) -> None:
    """Names as long as fit beside each other; where not even a few letters do, of every second level, ..."""
    room = ax.bbox.width / ax.figure.dpi * 72 / LETTER / len(places)  # letters from one level to the next
    least = max(len(level_name(level, names, longest=FEWEST_LETTERS)) for level in levels)
    step = ceil(least / room)
    longest = int(np.clip(room * step - 1, FEWEST_LETTERS, LONGEST_NAME))
    ax.set_xticks(places[::step], [level_name(level, names, longest=longest) for level in levels[::step]])


def _band(values: FloatArray, levels: FloatArray) -> tuple[FloatArray, ...]:
    """Centre, mean and two percentiles per level, or per bin of equal width where levels are many."""
    rows = thinned(len(values), LARGEST_BAND_SAMPLE)
    values, levels = values[rows], levels[rows]
    present, step = np.unique(levels, return_inverse=True)
    if len(present) > 2 * BAND_BINS:
        edges = np.linspace(levels.min(), levels.max(), BAND_BINS + 1)
        step = np.searchsorted(edges[1:-1], levels, side="right")
        present = ((edges[1:] + edges[:-1]) / 2)[np.unique(step)]
    groups = [values[step == level] for level in np.unique(step)]
    low, high = np.array([np.percentile(group, BAND) for group in groups]).T
    return present, np.array([group.mean() for group in groups]), low, high
