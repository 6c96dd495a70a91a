"""`unbraid metrics`: what there is."""

import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

from unbraid.cli._options import Files
from unbraid.cli.show_command import show
from unbraid.files.table_formats import Table

if TYPE_CHECKING:
    from unbraid.metrics import Metric


def list_metrics(
    metric: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Show the arguments and limitations of this one.")
    ] = None,
    *,
    to: Files,
) -> None:
    """List the metrics with direction, range and source, or show one.

    Examples:

      unbraid metrics

      unbraid metrics mig

      unbraid metrics --json metrics.json
    """
    from unbraid.metrics import BLOCKED, MEASURES, METRICS, PRESETS

    measures = {**MEASURES, **METRICS.installed()}
    if metric is not None and metric not in PRESETS:
        name = metric.partition("(")[0]
        row = measures.get(name) or BLOCKED.get(name)
        if row is None:
            from unbraid.metrics._shared.metric_arguments import metric_hint

            raise ValueError(f"unknown metric {metric!r}; {metric_hint(name)}")
        parts, arguments = [*_facts(name, row)], _arguments(row)
        if arguments.rows:
            parts.append(arguments)
        if example := _example(row):
            parts.append(f'Set them like this: --metrics "{name}({example})"')
        show(parts, to, content={name: _described(name, row)}, rows=arguments, paper=arguments)
        return
    measures = {name: row for name, row in measures.items() if name in PRESETS.get(metric or "", measures)}
    rows = [
        [name, _better(row), _range(row), _what_it_says(row), METRICS.package_of(name) or row.source]
        for name, row in measures.items()
    ]
    table = Table(["metric", "better", "range", "what it says", "source"], rows, "lllll")
    presets = {name: "every metric" if name == "all" else ", ".join(chosen) for name, chosen in PRESETS.items()}
    lines = [] if metric else ["Presets, which may stand for ids:", *(f"  {name}: {presets[name]}" for name in presets)]
    show([table, *lines], to, content={name: _described(name, row) for name, row in measures.items()})


def _facts(name: str, row: "Metric") -> Iterator[Table | str]:
    from unbraid.metrics._shared.chance import chance_in_words

    yield f"{name}: {row.title} ({row.source})"
    yield f"- {_what_it_says(row)}"
    yield f"- Limitations: {row.limitations}"
    noise = f"; independent noise: {chance_in_words(row.chance)}" if row.of == "codes" else ""
    yield f"- {_better(row).capitalize()} is better, {_range(row)}. Perfect: {row.best:g}{noise}."


def _arguments(row: "Metric") -> Table:
    """What --metrics "mig(bins=10)" chooses."""
    from unbraid.base.docstrings import argument_texts
    from unbraid.metrics._shared.metric_arguments import choosable

    texts, parameters = argument_texts(row.function), inspect.signature(row.function).parameters
    chosen = choosable(row) if row.of == "codes" else ()
    rows = [[name, str(parameters[name].default), texts.get(name, "")] for name in chosen]
    return Table(["argument", "default", "what it does"], rows, "lll")


def _example(row: "Metric") -> str:
    """An argument at another value than its default; "" where no other is known."""
    from unbraid.metrics._shared.metric_arguments import choosable

    hints, parameters = get_type_hints(row.function), inspect.signature(row.function).parameters
    for name in choosable(row) if row.of == "codes" else ():
        default = parameters[name].default
        choices = get_args(hints[name]) if get_origin(hints[name]) is Literal else ()
        if choices:
            return f"{name}={next(choice for choice in choices if choice != default)}"
        if isinstance(default, bool):
            return f"{name}={not default}"
        if isinstance(default, int):
            return f"{name}={default // 2}"
        if isinstance(default, float):
            return f"{name}={0.9 * default:.3g}"
    return ""


def _what_it_says(row: "Metric") -> str:
    return row.summary + (f" Needs {row.needs.removeprefix('needs ')}." if row.needs else "")


def _better(row: "Metric") -> str:
    return "higher" if row.higher_is_better else "lower"


def _range(row: "Metric") -> str:
    return "{:g} to {:g}".format(*row.range).replace("inf", "∞")


def _described(name: str, row: "Metric") -> dict[str, Any]:
    from unbraid.metrics import METRICS

    names = ("title", "headline", "higher_is_better", "range", "summary", "limitations", "needs", "source", "version")
    ends = [str(end) if abs(end) == float("inf") else end for end in row.range]
    return {name: getattr(row, name) for name in names} | {"range": ends, "package": METRICS.package_of(name)}
