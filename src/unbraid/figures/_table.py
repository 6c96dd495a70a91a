"""The table of figures: the one source for the command line, the documentation and the tests."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from warnings import warn

from unbraid._suggest import suggestion
from unbraid.figures import _codes, _runs, _studies
from unbraid.figures._drawn import Drawn
from unbraid.figures._source import SAID, Kind, Source


@dataclass(frozen=True)
class FigureRow:
    """One figure: what it needs, and the function that draws it from a Source and named options."""

    function: Callable[..., Drawn]
    needs: Kind  # "codes": a file of codes, or a run, which holds some
    source: str = ""  # the published figure that it follows

    @property
    def title(self) -> str:
        return (inspect.getdoc(self.function) or "").partition("\n")[0].rstrip(".")

    @property
    def options(self) -> dict[str, Any]:
        """Defaults of the options by name."""
        parameters = inspect.signature(self.function).parameters.values()
        return {each.name: each.default for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY}


FIGURES: Mapping[str, FigureRow] = MappingProxyType(
    {
        "hinton": FigureRow(_codes.hinton, "codes", "DCI fig. 3"),
        "information": FigureRow(_codes.information, "codes", "SNC/NK eq. 2"),
        "important-codes": FigureRow(_codes.important_codes, "codes", "DCI fig. 5"),
        "latents": FigureRow(_codes.latents, "codes", "β-TCVAE fig. 4"),
        "circles": FigureRow(_codes.circles, "codes", "LSBD fig. 2"),
        "kl": FigureRow(_codes.kl, "codes"),
        "traversals": FigureRow(_runs.traversals, "run"),
        "rotation-traversal": FigureRow(_runs.rotation_traversal, "run", "LSBD fig. 10"),
        "object-interpolation": FigureRow(_runs.object_interpolation, "run", "LSBD fig. 11-12"),
        "reconstructions": FigureRow(_runs.reconstructions, "run"),
        "curves": FigureRow(_runs.curves, "run"),
        "boxes": FigureRow(_studies.boxes, "study", "UDR fig. 2-3"),
        "correlations": FigureRow(_studies.correlations, "study", "SNC/NK fig. 14"),
        "scatter": FigureRow(_studies.scatter, "study", "β-TCVAE fig. 6"),
        "hyperparameter": FigureRow(_studies.hyperparameter, "study"),
        "tradeoff": FigureRow(_studies.tradeoff, "study", "β-TCVAE fig. 1"),
        "total-correlation": FigureRow(_studies.total_correlation, "study", "β-TCVAE fig. 3"),
        "similarity": FigureRow(_studies.similarity, "study", "UDR fig. 6"),
    }
)

RENAMED = {"once-around": "rotation-traversal", "between-objects": "object-interpolation"}  # until version 0.2


def draw(name: str, source: Source, options: Mapping[str, Any] | None = None) -> Drawn:
    """Draw one figure.

    Args:
        name: of FIGURES.
        source: what it is drawn from; see `open_source`.
        options: by name, as text or in their own type; the others keep their defaults.

    Raises:
        ValueError: an unknown name or option, a source of another kind, or one that lacks what the figure shows.
    """
    row = find_figure(name)
    accepted = {"codes": ("codes", "run"), "run": ("run",), "study": ("study",)}[row.needs]
    if source.kind not in accepted:
        wanted = " or ".join(SAID[kind] for kind in accepted)
        raise ValueError(f"{source.path} is {source.said}; {name} needs {wanted}")
    return row.function(source, **_checked(name, row, options or {}))


def find_figure(name: str) -> FigureRow:
    """The row of a figure; an unknown name raises a ValueError that offers the nearest."""
    if name in RENAMED:
        warn(f"the figure {name} is called {RENAMED[name]} now", FutureWarning, stacklevel=2)
        return FIGURES[RENAMED[name]]
    if name not in FIGURES:
        raise ValueError(f"unknown figure {name!r}; {suggestion(name, FIGURES)}")
    return FIGURES[name]


def _checked(name: str, row: FigureRow, given: Mapping[str, Any]) -> dict[str, Any]:
    """Options in the types of their defaults."""
    checked: dict[str, Any] = {}
    for option, value in given.items():
        if option not in row.options:
            there = ", ".join(row.options) or "none"
            raise ValueError(f"{name} has no option {option!r}; it has {there}")
        kind = type(row.options[option])
        try:
            checked[option] = kind(value)
        except ValueError:
            raise ValueError(f"{option} of {name} must be {_SAID[kind]}; got {value!r}") from None
        if kind is int and checked[option] < 0:
            raise ValueError(f"{option} of {name} must be 0 or more; got {value}")
    return checked


_SAID = {int: "a whole number", float: "a number", str: "text"}
