"""Every figure by name: what it needs, how it is drawn, and the numbers behind it."""

from unbraid.figures.drawn_figure import Drawn
from unbraid.figures.figure_source import Source, open_source
from unbraid.figures.figure_table import FIGURES, FigureRow, draw, find_figure

__all__ = ["FIGURES", "Drawn", "FigureRow", "Source", "draw", "find_figure", "open_source"]
