"""`unbraid metrics`: what there is."""

from typing import TYPE_CHECKING, Any

from unbraid.cli._options import Csv, Json, Latex, Markdown
from unbraid.cli.show import Files, show
from unbraid.storage.table_formats import Table

if TYPE_CHECKING:
    from unbraid.metrics import Metric


def list_metrics(csv: Csv = None, latex: Latex = None, markdown: Markdown = None, json: Json = None) -> None:
    """List every metric with its direction, range and source.

    Examples:

      unbraid metrics

      unbraid metrics --json metrics.json
    """
    to = Files(csv, latex, markdown, json)
    from unbraid.metrics import MEASURES, METRICS, PRESETS

    measures = {**MEASURES, **METRICS.installed()}
    rows = [
        [
            name, "higher" if metric.higher_is_better else "lower",
            "{:g} to {:g}".format(*metric.range).replace("inf", "∞"),
            metric.summary + (f" Needs {metric.needs.removeprefix('needs ')}." if metric.needs else ""),
            METRICS.package_of(name) or metric.source,
        ]
        for name, metric in measures.items()
    ]  # fmt: skip
    table = Table(["metric", "better", "range", "what it says", "source"], rows, "lllll")
    presets = {name: "every metric" if name == "all" else ", ".join(chosen) for name, chosen in PRESETS.items()}
    lines = [f"  {name}: {said}" for name, said in presets.items()]
    content = {name: _described(metric) | {"package": METRICS.package_of(name)} for name, metric in measures.items()}
    show([table, "Presets, which may stand for ids:", *lines], to, content=content)


def _described(metric: "Metric") -> dict[str, Any]:
    names = ("title", "headline", "higher_is_better", "range", "summary", "limitations", "needs", "source", "version")
    ends = [str(end) if abs(end) == float("inf") else end for end in metric.range]
    return {name: getattr(metric, name) for name in names} | {"range": ends}
