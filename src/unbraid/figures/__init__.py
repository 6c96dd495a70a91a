"""Every figure by name: what it needs, how it is drawn, and the numbers behind it."""

from unbraid.figures._drawn import Drawn
from unbraid.figures._source import Source, open_source
from unbraid.figures._table import FIGURES, FigureRow, draw, find_figure

__all__ = ["FIGURES", "Drawn", "FigureRow", "Source", "draw", "find_figure", "open_source"]
