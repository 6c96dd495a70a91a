"""Figures and axes that a notebook shows as pictures."""

import io
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

DPI = 120


class ShownFigure(Figure):
    """A figure that a notebook shows where it is the last value of a cell; pyplot knows nothing of it."""

    def _repr_png_(self) -> bytes:
        target = io.BytesIO()
        self.savefig(target, format="png", dpi=DPI, facecolor="white", bbox_inches="tight")
        return target.getvalue()


class ShownAxes(Axes):
    """Axes that a notebook shows as their whole figure."""

    def _repr_png_(self) -> bytes:
        return _png(self.figure)


class Panels(list[Any]):
    """Axes of one figure, which a notebook shows as a whole."""

    def _repr_png_(self) -> bytes:
        first = self[0]
        return _png((first[0] if isinstance(first, list) else first).figure)


def _png(figure: Any) -> bytes:
    return ShownFigure._repr_png_(figure)
