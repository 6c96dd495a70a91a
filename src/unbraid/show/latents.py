"""Every code against every factor (β-TCVAE fig. 4)."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import MaxNLocator

from unbraid.base.types import ArrayLike, FloatArray, IntArray, Kind
from unbraid.show._notebook import Panels, ShownFigure
from unbraid.show.paper import inches
from unbraid.show.style import DIVERGING, FONT_SIZE, GRID, INK, MUTED, PALETTE, level_colours

PANEL = (1.05, 0.82)  # inches
MARGIN = (0.95, 0.12, 0.3, 0.12)  # left, right, top, bottom
SIDES = MARGIN[0] + MARGIN[1]
NARROWEST = 0.5  # inches of a panel in which a curve is still seen
LINE_LEVELS = 40  # a factor with more levels is cut into as many steps
LARGEST_GROUPS = len(PALETTE)


def plot_latents(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind],
    factor_names: Sequence[str] | None = None,
    code_names: Sequence[str] | None = None,
    width: float | None = None,
    figure: Figure | SubFigure | None = None,
) -> list[list[Axes]]:
    """Mean of each code at each level of each factor: one row of panels per factor, one column per code.

    Two ordered factors named `*_x` and `*_y` share a row of maps over the plane: blue where the code is high, red where
    it is low. Other rows are lines, one per level of the first categorical factor with two to six levels, so that a
    code that treats the levels differently shows; a categorical factor's own row has the mean and the 10th to 90th
    percentile of each level.

    Args:
        codes: (n_samples, n_codes); leave dead codes out.
        factors: (n_samples, n_factors).
        kinds: kind of each factor.
        factor_names: default "factor 0", ...
        code_names: default "code 0", ...
        width: of the whole figure in mm, such as 89 or 183; by default as wide as all codes need.
        figure: where to draw; by default one of its own.

    Returns:
        The axes, one list per row. All share one vertical scale.

    Reference:
        Chen et al. 2018 (β-TCVAE), figure 4.
    """
    code_matrix, factor_matrix = np.asarray(codes, dtype=float), np.asarray(factors, dtype=float)
    n_codes, n_factors = code_matrix.shape[1], factor_matrix.shape[1]
    names = list(factor_names or (f"factor {k}" for k in range(n_factors)))
    heads = list(code_names or (f"code {i}" for i in range(n_codes)))
    rows = factor_rows(names, kinds)
    if figure is None:
        panel = PANEL if width is None else (min((inches(width) - SIDES) / n_codes, 1.3 * PANEL[0]), PANEL[1])
        figure = new_grid(len(rows), n_codes, panel)
    grid = np.asarray(figure.subplots(len(rows), n_codes, squeeze=False))
    split = colouring_factor(factor_matrix, kinds)
    low, high = np.percentile(code_matrix, (1, 99))
    margin = 0.08 * (high - low or 1.0)
    for panels, row in zip(grid, rows, strict=True):
        for code, ax in enumerate(panels):
            _bare(ax)
            column = code_matrix[:, code]
            if len(row) == 2:
                _map(ax, column, factor_matrix[:, list(row)], max(abs(low), abs(high)))
            else:
                groups = None if row[0] == split else split
                _lines(ax, column, factor_matrix, row[0], kinds[row[0]], groups)
                ax.set_ylim(low - margin, high + margin)
                if code == 0:
                    _scale(ax)
        panels[0].set_ylabel(
            "\n".join(names[k] for k in row),
            rotation=0, ha="right", va="center", fontsize=FONT_SIZE, color=INK, parse_math=False,
        )  # fmt: skip
    figure.align_ylabels(grid[:, 0])  # left of the widest numbers
    for ax, head in zip(grid[0], heads, strict=True):
        ax.set_title(head, fontsize=FONT_SIZE, color=INK, pad=5, parse_math=False)
    return Panels(list(panels) for panels in grid)


def fitting_codes(width: float) -> int:
    """How many codes stand side by side in a figure of so many mm."""
    return max(1, int((inches(width) - SIDES) / NARROWEST))


def new_grid(n_rows: int, n_columns: int, panel: tuple[float, float]) -> Figure:
    """A figure with room for so many panels of this size in inches."""
    left, right, top, bottom = MARGIN
    width, height = left + right + n_columns * panel[0], top + bottom + n_rows * panel[1]
    figure = ShownFigure(figsize=(width, height))
    figure.patch.set_alpha(0.0)
    figure.subplots_adjust(
        left / width, bottom / height, 1 - right / width, 1 - top / height, wspace=0.12, hspace=0.16
    )  # fmt: skip
    return figure


def factor_rows(names: Sequence[str], kinds: Sequence[Kind]) -> list[tuple[int, ...]]:
    """Factors in their order, an ordered pair `*_x`, `*_y` together in the place of the first."""
    ordered = {
        name: k for k, (name, kind) in enumerate(zip(names, kinds, strict=True)) if kind in {"ordinal", "continuous"}
    }
    pairs = {
        k: ordered[name[:-1] + "y"] for name, k in ordered.items() if name.endswith("_x") and name[:-1] + "y" in ordered
    }
    second = set(pairs.values())
    return [(k, pairs[k]) if k in pairs else (k,) for k in range(len(names)) if k not in second]


def colouring_factor(factors: FloatArray, kinds: Sequence[Kind]) -> int | None:
    """The first categorical factor with few enough levels to be told apart by colour."""
    for k, kind in enumerate(kinds):
        if kind == "categorical" and 2 <= len(np.unique(factors[:, k])) <= LARGEST_GROUPS:
            return k
    return None


def _bare(ax: Axes) -> None:
    ax.patch.set_alpha(0.0)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set(color=GRID, linewidth=0.8)


def steps_of(values: FloatArray, kind: Kind) -> tuple[FloatArray, IntArray]:
    """Position of each step of a factor, and the step of each sample."""
    present, step = np.unique(values, return_inverse=True)
    if len(present) <= LINE_LEVELS or kind == "categorical":
        return present, step
    edges = np.linspace(values.min(), values.max(), LINE_LEVELS + 1)
    used, step = np.unique(np.searchsorted(edges[1:-1], values, side="right"), return_inverse=True)
    return ((edges[1:] + edges[:-1]) / 2)[used], step


def _lines(ax: Axes, code: FloatArray, factors: FloatArray, factor: int, kind: Kind, split: int | None) -> None:
    places, step = steps_of(factors[:, factor], kind)
    ax.axhline(0, color=GRID, linewidth=0.7, zorder=0)
    if kind == "categorical":
        _bars(ax, code, places, step)
    else:
        group = np.zeros(len(code), int) if split is None else np.unique(factors[:, split], return_inverse=True)[1]
        n_groups = int(group.max()) + 1
        colours = [INK] if split is None else level_colours(n_groups)
        means = _means(code, (n_groups, len(places)), (group, step))
        for line, colour in zip(means, colours, strict=True):
            ax.plot(places[np.isfinite(line)], line[np.isfinite(line)], color=colour, linewidth=1.2)
    span = np.ptp(places) or 1.0
    spare = 0.35 if kind == "categorical" else 0.03
    ax.set_xlim(places.min() - spare * span, places.max() + spare * span)


def _bars(ax: Axes, code: FloatArray, places: FloatArray, step: IntArray) -> None:
    # Means of a code may agree where its spread does not, as when only one shape shows an angle.
    groups = [code[step == place] for place in range(len(places))]
    low, high = np.array([np.percentile(group, (10, 90)) for group in groups]).T
    colours = level_colours(len(places))
    ax.vlines(places, low, high, colors=colours, linewidth=1.2)
    ax.scatter(places, [group.mean() for group in groups], s=16, c=colours, linewidths=0, zorder=3)


def _map(ax: Axes, code: FloatArray, plane: FloatArray, largest: float) -> None:
    (x_places, x), (y_places, y) = (steps_of(column, "ordinal") for column in plane.T)
    means = _means(code, (len(y_places), len(x_places)), (y, x))
    bound = largest or 1.0
    ax.imshow(means, cmap=DIVERGING, vmin=-bound, vmax=bound, origin="lower", aspect="auto", interpolation="nearest")


def _means(code: FloatArray, shape: tuple[int, int], cells: tuple[IntArray, IntArray]) -> FloatArray:
    """Mean of a code in each cell, NaN in an empty one."""
    counts, sums = np.zeros(shape), np.zeros(shape)
    np.add.at(counts, cells, 1)
    np.add.at(sums, cells, code)
    return np.divide(sums, counts, out=np.full(shape, np.nan), where=counts > 0)


def _scale(ax: Axes) -> None:
    ax.yaxis.set_major_locator(MaxNLocator(nbins=3, steps=[1, 2, 5, 10]))
    ax.tick_params(axis="y", length=0, pad=2, labelsize=FONT_SIZE - 2, labelcolor=MUTED)
    # Of very large or small codes: a power of ten, which would lie across the heads.
    ax.yaxis.get_offset_text().set(size=FONT_SIZE - 2, x=-0.02, ha="right", color=MUTED)
