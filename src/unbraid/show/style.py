"""One look for every plot: sizes in inches, colours that hold on white and on near-black, no pyplot state."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, ListedColormap

from unbraid.base.types import FloatArray, IntArray
from unbraid.show._notebook import Panels, ShownAxes, ShownFigure

# A page may put its own colours in place of these five, so that a figure follows its light or dark scheme.
INK = "#1c2128"
MUTED = "#69737f"
GRID = "#dfe3e8"
ACCENT = "#2468b3"
MARK = "#c9511f"

FONT_SIZE = 9.0
MARKERS = ("o", "^", "s", "D", "v")
# Paul Tol's "bright" scheme without its grey: apart from each other for every common kind of colour vision.
PALETTE = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#aa3377", "#66ccee")
DIVERGING = LinearSegmentedColormap.from_list(
    "unbraid_low_high", ["#b8322a", "#ee9a80", "#f2f0ee", "#86b6dc", "#2166ac"]
)


def _cyclic_map() -> ListedColormap:
    """A closed loop through blue, pink, gold and green in Oklab.

    Lightness and the blue-yellow axis turn together, so that readers who do not tell red from green still see a
    loop; hue alone would fold on itself. It stays clear of white and black, which would vanish on a page.
    """
    angle = np.linspace(0, 2 * np.pi, 256, endpoint=False)
    lightness, a, b = 0.64 + 0.14 * np.sin(angle), 0.085 * np.sin(angle), -0.105 * np.cos(angle)
    to_lms = np.array(
        [[1, 0.3963377774, 0.2158037573], [1, -0.1055613458, -0.0638541728], [1, -0.0894841775, -1.291485548]]
    )
    to_rgb = np.array(
        [
            [4.0767416621, -3.3077115913, 0.2309699292],
            [-1.2684380046, 2.6097574011, -0.3413193965],
            [-0.0041960863, -0.7034186147, 1.707614701],
        ]
    )
    linear = np.clip((np.stack([lightness, a, b], axis=1) @ to_lms.T) ** 3 @ to_rgb.T, 0, 1)
    return ListedColormap(np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055), "loop")


CYCLIC = _cyclic_map()


def new_axes(width: float, height: float) -> Axes:
    """Axes of exactly this size in inches, with room for tick labels and a label on the left and below."""
    left, right, bottom, top = 0.62, 0.12, 0.46, 0.1
    whole_width, whole_height = left + width + right, bottom + height + top
    figure = ShownFigure(figsize=(whole_width, whole_height))
    figure.patch.set_alpha(0.0)
    place = (left / whole_width, bottom / whole_height, width / whole_width, height / whole_height)
    return figure.add_axes(place, axes_class=ShownAxes)


def new_panels(count: int, across: int, panel: tuple[float, float], *, left: float, below: float = 0.45) -> list[Axes]:
    """Axes of this size in inches, at most `across` in a row, each with room on its left, above and below it."""
    across = min(across, count)
    down, above = -(-count // across), 0.3
    width, height = across * (panel[0] + left) + 0.1, down * (panel[1] + above + below)
    figure = ShownFigure(figsize=(width, height))
    figure.patch.set_alpha(0.0)
    figure.subplots_adjust(
        left / width, below / height, 1 - 0.1 / width, 1 - above / height,
        wspace=left / panel[0], hspace=(above + below) / panel[1],
    )  # fmt: skip
    return Panels(figure.add_subplot(down, across, place + 1, axes_class=ShownAxes) for place in range(count))


def tidy(axes: Axes) -> None:
    """Thin muted frame on two sides, small ticks, no background."""
    axes.patch.set_alpha(0.0)
    axes.spines[:].set(color=MUTED, linewidth=0.7)
    for side, spine in axes.spines.items():
        spine.set_visible(side in {"left", "bottom"})
    axes.tick_params(colors=MUTED, labelcolor=INK, labelsize=FONT_SIZE - 1, length=2.5, width=0.7)


def label(axes: Axes, x: str = "", y: str = "") -> None:
    """Axis labels as plain text: a dollar sign in a name is not mathematics."""
    axes.set_xlabel(x, fontsize=FONT_SIZE, color=INK, parse_math=False)
    axes.set_ylabel(y, fontsize=FONT_SIZE, color=INK, parse_math=False)


def dots(axes: Axes, x: FloatArray, y: FloatArray, colours: Any, area: float = 5) -> None:
    """A cloud of dots, the fainter the more there are."""
    alpha = float(np.clip(900 / max(len(x), 1), 0.35, 0.9))
    axes.scatter(x, y, s=area, c=colours, alpha=alpha, linewidths=0, rasterized=True, zorder=2)


def thinned(n_rows: int, largest: int) -> IntArray:
    """Rows to draw: all of them, or `largest` at random; the same ones every time."""
    if n_rows <= largest:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(0).choice(n_rows, largest, replace=False))


def level_colours(n_levels: int) -> list[str]:
    """One colour per level; beyond the palette all alike, since more hues could not be told apart."""
    return list(PALETTE[:n_levels]) if n_levels <= len(PALETTE) else [PALETTE[0]] * n_levels


def family_marks(families: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Colour and marker of each family, in the order of their names; beyond the palette with another marker."""
    n = len(PALETTE)
    return {
        family: (PALETTE[place % n], MARKERS[place // n % len(MARKERS)])
        for place, family in enumerate(sorted(set(families)))
    }


def cyclic_colours(factor: FloatArray, size: int | None = None) -> FloatArray:
    """(n, 4) colour of each value by its angle: of `size` steps, by default those present, or in radians."""
    if not size and (factor != np.rint(factor)).any():
        return CYCLIC(factor / (2 * np.pi) % 1.0)
    period = size or (np.ptp(factor) + 1 if len(factor) else 1)
    return CYCLIC((factor - factor.min()) / period % 1.0)
