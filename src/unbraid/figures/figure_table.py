"""The table of figures: the one source for the command line, the documentation and the tests."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from unbraid.base.arguments import check_whole, list_of
from unbraid.base.suggest import suggestion
from unbraid.data import Representation
from unbraid.figures import code_figures as _codes
from unbraid.figures import run_figures as _runs
from unbraid.figures import study_figures as _studies
from unbraid.figures.drawn_figure import Drawn
from unbraid.figures.figure_choices import Chosen
from unbraid.figures.figure_source import KIND_IN_WORDS, Kind, Source, open_source
from unbraid.show.paper import COLUMN, PAGE, fit_width, inches


@dataclass(frozen=True)
class FigureRow:
    """One figure: what it needs, and the function that draws it from a Source and named options."""

    function: Callable[..., Drawn]
    needs: Kind  # "codes": a file of codes, or a run, which holds some
    source: str = ""  # the published figure that it follows
    width: float = COLUMN  # mm, where none is asked for
    chooses: tuple[str, ...] = ()  # which of codes, factors and top may be asked for

    @property
    def title(self) -> str:
        return (inspect.getdoc(self.function) or "").partition("\n")[0].rstrip(".")

    @property
    def options(self) -> dict[str, Any]:
        """Defaults of the options by name."""
        parameters = inspect.signature(self.function).parameters.values()
        return {
            parameter.name: parameter.default
            for parameter in parameters
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY
        }


ALL = ("codes", "factors", "top")

FIGURES: Mapping[str, FigureRow] = MappingProxyType(
    {
        "hinton": FigureRow(_codes.hinton, "codes", "DCI fig. 3", chooses=ALL),
        "information": FigureRow(_codes.information, "codes", "SNC/NK eq. 2", chooses=ALL),
        "important-codes": FigureRow(_codes.important_codes, "codes", "DCI fig. 5", PAGE, ("factors",)),
        "latents": FigureRow(_codes.latents, "codes", "β-TCVAE fig. 4", PAGE, ALL),
        "circles": FigureRow(_codes.circles, "codes", "LSBD fig. 2", PAGE, ("factors",)),
        "kl": FigureRow(_codes.kl, "codes", chooses=("codes", "top")),
        "traversals": FigureRow(_runs.traversals, "run", "DCI fig. 6", PAGE, chooses=("codes", "top")),
        "rotation-traversal": FigureRow(_runs.rotation_traversal, "run", "LSBD fig. 10", PAGE),
        "object-interpolation": FigureRow(_runs.object_interpolation, "run", "LSBD fig. 11-12", PAGE),
        "samples": FigureRow(_runs.samples, "run"),
        "reconstructions": FigureRow(_runs.reconstructions, "run", width=PAGE),
        "gap": FigureRow(_runs.gap, "run", "DCI fig. 4", PAGE),
        "curves": FigureRow(_runs.curves, "run", width=PAGE),
        "boxes": FigureRow(_studies.boxes, "study", "UDR fig. 2-3", PAGE),
        "correlations": FigureRow(_studies.correlations, "study", "SNC/NK fig. 14", PAGE),
        "scatter": FigureRow(_studies.scatter, "study", "β-TCVAE fig. 6"),
        "hyperparameter": FigureRow(_studies.hyperparameter, "study"),
        "tradeoff": FigureRow(_studies.tradeoff, "study", "β-TCVAE fig. 3"),
        "total-correlation": FigureRow(_studies.total_correlation, "study", "β-TCVAE fig. 1"),
        "metric-argument": FigureRow(_studies.metric_argument, "study", "β-TCVAE fig. 5"),
        "similarity": FigureRow(_studies.similarity, "study", "UDR fig. 6"),
    }
)


def draw(
    name: str,
    source: Source | Representation,
    options: Mapping[str, Any] | None = None,
    *,
    width: float | None = None,
    codes: Sequence[str | int] = (),
    factors: Sequence[str] = (),
    top: int | None = None,
) -> Drawn:
    """Draw one figure, as it is printed: at a width, with text of 7 to 8 points.

    Args:
        name: of FIGURES.
        source: what it is drawn from; see `open_source`. Or codes in memory.
        options: by name, as text or in their own type; the others keep their defaults.
        width: mm, 40 to 1,000; by default that of a column of a journal, 89, or of a page, 183, as
            `FIGURES[name].width` says.
        codes: those to show, by name or number, in this order.
        factors: those to show.
        top: number of codes to show, most important first. By default 24 where there are more than 40, and in `latents`
            as many as fit into the width.

    Raises:
        ValueError: an unknown name, option, code or factor, what does not fit into the width, a
            source of another kind, or one that lacks what the figure shows.
    """
    row = find_figure(name)
    source = open_source(source) if isinstance(source, Representation) else source
    accepted = {"codes": ("codes", "run"), "run": ("run",), "study": ("study",)}[row.needs]
    if source.kind not in accepted:
        kinds = " or ".join(KIND_IN_WORDS[kind] for kind in accepted)
        raise ValueError(f"{source.path} is {source.description}; {name} needs {kinds}")
    choices = {"codes": codes, "factors": factors, "top": top}
    for choice, value in choices.items():
        if value and choice not in row.chooses:
            does = f"; it takes {' and '.join(row.chooses)}" if row.chooses else ""
            raise ValueError(f"{name} shows no choice of {choice}{does}")
    codes, factors = list_of("codes", codes), list_of("factors", factors)
    if codes and top:
        raise ValueError("give either codes or top, the number of most important codes")
    mm = row.width if width is None else width
    inches(mm)
    n_codes = None if top is None else check_whole("top", top, 1)
    chosen = Chosen(mm, tuple(map(str, codes)), factors, n_codes)
    drawn = row.function(_with(source, chosen), **_checked(name, row, options or {}))
    fit_width(drawn.figure, mm, caption=drawn.caption)
    return replace(drawn, width=mm)


def _with(source: Source, chosen: Chosen) -> Source:
    """The same, with what is asked for; what is read already stays so."""
    changed = replace(source, chosen=chosen)
    changed.__dict__.update({name: value for name, value in source.__dict__.items() if name not in changed.__dict__})
    return changed


def find_figure(name: str) -> FigureRow:
    """The row of a figure; an unknown name raises a ValueError that offers the nearest."""
    if name not in FIGURES:
        raise ValueError(f"unknown figure {name!r}; {suggestion(name, FIGURES)}")
    return FIGURES[name]


def _checked(name: str, row: FigureRow, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options in the types of their defaults."""
    checked: dict[str, Any] = {}
    for option, value in options.items():
        if option not in row.options:
            available = ", ".join(row.options) or "none"
            raise ValueError(f"{name} has no option {option!r}; it has {available}")
        kind = type(row.options[option])
        try:
            checked[option] = kind(value)
        except ValueError:
            raise ValueError(f"{option} of {name} must be {TYPE_IN_WORDS[kind]}; got {value!r}") from None
        if kind is int and checked[option] < 0:
            raise ValueError(f"{option} of {name} must be 0 or more; got {value}")
    return checked


TYPE_IN_WORDS = {int: "a whole number", float: "a number", str: "text"}
