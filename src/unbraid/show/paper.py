"""Figures as wide as a column, or as a page, of a journal."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from unbraid.base.arguments import check_number
from unbraid.show.fonts import give_fonts, without_glyph_warnings
from unbraid.show.style import MUTED

COLUMN, PAGE = 89.0, 183.0  # mm
NARROWEST, WIDEST = 40.0, 1_000.0  # mm
LARGE, SMALL = 8.0, 7.0  # points: of names and titles, and of all else
MARGIN = 0.04  # inches around what is drawn
LEAST = 0.4  # of its own width, below which a figure is not squeezed
TRIALS = 12
INCH = 25.4  # mm


def inches(width: float) -> float:
    """A width in mm as inches.

    Raises:
        ValueError: it is none that a page has.
    """
    return check_number("width", width, least=NARROWEST, most=WIDEST) / INCH


def fit_width(figure: Figure, width: float, *, caption: str = "") -> Figure:
    """The same figure, made to be printed at a width: text of 7 to 8 points, and no wider than that.

    A figure that is narrower stays as it is, in the middle. What is drawn keeps its proportions where they matter, as
    of cells and images; other panels become narrower and not lower.

    Args:
        figure: drawn by functions of `unbraid.show`; it is changed, and returned.
        width: mm; a column is 89 wide and a page 183.
        caption: said below it, such as what is left out.

    Raises:
        ValueError: the width is none, or names and numbers alone are wider.
    """
    room = inches(width) - 2 * MARGIN
    give_fonts(figure)
    with without_glyph_warnings():
        return _fitted(figure, width, room, caption)


def _fitted(figure: Figure, width: float, room: float, caption: str) -> Figure:
    _set_sizes(figure)
    own = figure.get_figwidth()
    square = any(axes.get_aspect() != "auto" for axes in figure.axes)
    for _ in range(TRIALS):
        excess = _drawn(figure).width - room
        if excess <= 0:
            break
        before, after = figure.get_size_inches(), max(figure.get_figwidth() - excess - 0.01, LEAST * own)
        figure.set_size_inches(after, before[1] * after / before[0] if square else before[1])
    else:
        raise ValueError(f"the figure does not fit into {width:g} mm; show less of it, or make it wider")
    if caption:
        box, size = _drawn(figure), figure.get_size_inches()
        figure.text(
            (box.x0 + box.x1) / 2 / size[0], (box.y0 - MARGIN) / size[1], caption, ha="center", va="top",
            fontsize=SMALL, color=MUTED, parse_math=False,
        )  # fmt: skip
    return figure


def paper_box(figure: Figure, width: float) -> Bbox:
    """What of a figure that fits is saved, in inches: all that is drawn, in the middle of exactly this width."""
    with without_glyph_warnings():
        box = _drawn(figure)
    middle, half = (box.x0 + box.x1) / 2, inches(width) / 2
    return Bbox.from_extents(middle - half, box.y0 - MARGIN, middle + half, box.y1 + MARGIN)


def across(width: float | None, count: int, most: int, panel: float, left: float) -> tuple[int, float]:
    """How many panels stand side by side, and how wide each is in inches.

    Args:
        width: of the figure, mm; None: as wide as `most` panels.
        count: panels in all.
        most: panels in a row where there is no width.
        panel, left: inches of a panel where there is no width, and of the room on its left.
    """
    if width is None:
        return min(most, count), panel
    room = inches(width) - 0.1
    fitting = max(1, min(count, round(room / (0.6 * panel + left))))
    balanced = -(-count // -(-count // fitting))
    return balanced, min(room / balanced - left, 1.3 * panel)


def _set_sizes(figure: Figure) -> None:
    figure.draw_without_rendering()  # ticks come into being here
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_tick_params(which="both", labelsize=SMALL)
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        text.set_fontsize(LARGE if float(text.get_fontsize()) > LARGE - 0.1 else SMALL)


def _drawn(figure: Figure) -> Bbox:
    """The box of all that is drawn, in inches."""
    box = figure.get_tightbbox()
    return box if np.isfinite(box.extents).all() else Bbox.from_bounds(0, 0, *figure.get_size_inches())
