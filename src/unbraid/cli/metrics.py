"""`unbraid metrics`: what there is."""

import json as json_format
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from unbraid.cli._say import say
from unbraid.cli._terminal import Terminal


def list_metrics(
    json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
) -> None:
    """List every metric with its direction, range and source.

    Examples:

      unbraid metrics

      unbraid metrics --json
    """
    from unbraid.metrics import MEASURES, METRICS, PRESETS

    measures = {**MEASURES, **METRICS.installed()}
    if json:
        rows = {
            name: {
                "title": metric.title,
                "headline": metric.headline,
                "higher_is_better": metric.higher_is_better,
                "range": [str(end) if abs(end) == float("inf") else end for end in metric.range],
                "summary": metric.summary,
                "limitations": metric.limitations,
                "needs": metric.needs,
                "source": metric.source,
                "version": metric.version,
                "package": METRICS.package_of(name),
            }
            for name, metric in measures.items()
        }
        say(json_format.dumps(rows, indent=2, ensure_ascii=False))
        return
    table = Table(pad_edge=False, box=SIMPLE_HEAD)
    for column in ("metric", "better", "range", "what it says", "source"):
        table.add_column(column, no_wrap=column in {"metric", "better"})
    for name, metric in measures.items():
        low, high = (f"{end:g}".replace("inf", "∞") for end in metric.range)
        needs = f" Needs {metric.needs.removeprefix('needs ')}." if metric.needs else ""
        direction = "higher" if metric.higher_is_better else "lower"
        source = METRICS.package_of(name) or metric.source
        table.add_row(name, direction, f"{low} to {high}", metric.summary + needs, source)
    Terminal().print(table)
    say("Presets, which may stand for ids:")
    for name, chosen in PRESETS.items():
        say(f"  {name}: {'every metric' if name == 'all' else ', '.join(chosen)}")
