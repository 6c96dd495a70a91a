"""Figures for print and for pages: light or dark, saved with their fonts in them."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.collections import Collection
from matplotlib.colors import LinearSegmentedColormap, to_hex, to_rgba, to_rgba_array
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text

from unbraid.files.whole_files import atomic_write
from unbraid.show.fonts import give_fonts, without_glyph_warnings
from unbraid.show.paper import fit_width, paper_box
from unbraid.show.style import ACCENT, DIVERGING, GRID, INK, MARK, MUTED, PALETTE

Theme = Literal["light", "dark"]
FORMATS = (".png", ".svg", ".pdf")
DPI = 300  # of .png, and of the dense parts of the vector formats
PAGE: Mapping[Theme, str] = MappingProxyType({"light": "#ffffff", "dark": "#121519"})

# Paul Tol's "light" scheme in place of his "bright" one, whose blue and purple sink into a dark page; but for its
# pink, which those without long-wave cones see as its mint.
DARK_PALETTE = ("#77aadd", "#ee8866", "#44bb99", "#eedd88", "#e05aa8", "#99ddff")
DARK: Mapping[str, str] = MappingProxyType(
    {
        INK: "#e4e7eb",
        MUTED: "#98a2ae",
        GRID: "#343b45",
        ACCENT: "#6aa8e8",
        MARK: "#f08a55",
        **dict(zip(PALETTE, DARK_PALETTE, strict=True)),
        "#000000": "#e4e7eb",
        "#ffffff": PAGE["dark"],
    }
)
DARK_DIVERGING = LinearSegmentedColormap.from_list(
    "unbraid_low_high_dark", ["#f0806e", "#94453c", "#22272e", "#2f6296", "#7fb4e8"]
)


def set_theme(figure: Figure, theme: Theme) -> Figure:
    """The same figure on a light or dark page: its background, and every colour of `unbraid.show` in its place.

    Args:
        figure: drawn by functions of `unbraid.show`; it is changed, and returned.
        theme: "light" or "dark". Dark is final: draw again for light.

    Raises:
        ValueError: no such theme.
    """
    if theme not in PAGE:
        raise ValueError(f"theme must be light or dark; got {theme!r}")
    if theme == "dark":
        figure.draw_without_rendering()  # ticks come into being here
        for artist in figure.findobj():
            _recolour(artist)
        for axes in figure.axes:
            for axis in (axes.xaxis, axes.yaxis):
                colours = {name: _dark(value) for name, value in axis.get_tick_params().items() if "color" in name}
                axis.set_tick_params(**colours)
    figure.set_facecolor(PAGE[theme])
    figure.patch.set_alpha(1.0)
    return figure


def save_figure(figure: Figure, path: str | Path, *, theme: Theme = "light", width: float | None = None) -> None:
    """Write a figure as it may be printed. Whole or not at all; the same figure gives the same bytes.

    `.pdf` has its fonts embedded as TrueType (type 42), so that text can be searched and edited; `.svg` has text as
    outlines, which look the same everywhere and need no font; both are vector but for clouds of dots and images.
    `.png` has 300 dots per inch.

    Args:
        figure: drawn by functions of `unbraid.show`.
        path: ends in .png, .svg or .pdf.
        theme: "light" (white page) or "dark"; see `set_theme`.
        width: of the file in mm: 89 for a column of a journal, 183 for a page; see `fit_width`. By default as wide as
            what is drawn.

    Raises:
        ValueError: another suffix, no such theme, or what is drawn does not fit into the width.
        FileNotFoundError: the folder does not exist.
    """
    path = Path(path)
    if path.suffix not in FORMATS:
        raise ValueError(f"{path}: a figure is saved as {', '.join(FORMATS)}")
    settings: dict[Any, Any] = {"pdf.fonttype": 42, "svg.fonttype": "path", "svg.hashsalt": "unbraid"}
    undated: dict[str, dict[str, Any]] = {
        ".pdf": {"CreationDate": None},
        ".svg": {"Date": None},
        ".png": {"Software": None},
    }
    if lacking := give_fonts(figure):
        warnings.warn(f"{path.name}: no font here has the letters {lacking}; install Noto Sans CJK", stacklevel=2)
    box = "tight" if width is None else paper_box(fit_width(figure, width), width)
    with matplotlib.rc_context(settings), without_glyph_warnings(), atomic_write(path) as temporary:
        set_theme(figure, theme).savefig(
            temporary, format=path.suffix[1:], dpi=DPI, bbox_inches=box, pad_inches=0.06,
            metadata=undated[path.suffix],
        )  # fmt: skip


def _dark(colour: Any) -> Any:
    """The dark counterpart of one colour, its opacity kept; any other colour as it is."""
    if isinstance(colour, str) and colour.lower() in {"none", "auto", "inherit"}:
        return colour
    changed = DARK.get(to_hex(colour))
    return colour if changed is None else to_rgba(changed, to_rgba(colour)[3])


def _dark_rows(colours: Any) -> Any:
    rows = to_rgba_array(colours)
    return np.array([_dark(tuple(row)) for row in rows]) if len(rows) else rows


def _recolour(artist: Artist) -> None:
    if isinstance(artist, Text):
        artist.set_color(_dark(artist.get_color()))
    elif isinstance(artist, Line2D):
        face, edge = artist.get_markerfacecolor(), artist.get_markeredgecolor()
        artist.set(color=_dark(artist.get_color()), markerfacecolor=_dark(face), markeredgecolor=_dark(edge))
    elif isinstance(artist, Patch):
        artist.set(facecolor=_dark(artist.get_facecolor()), edgecolor=_dark(artist.get_edgecolor()))
    elif isinstance(artist, Collection) and artist.get_array() is None:
        artist.set(facecolor=_dark_rows(artist.get_facecolor()), edgecolor=_dark_rows(artist.get_edgecolor()))
    elif isinstance(artist, AxesImage) and artist.get_cmap().name == DIVERGING.name:
        artist.set_cmap(DARK_DIVERGING)
