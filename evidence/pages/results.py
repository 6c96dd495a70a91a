"""Every number of results/ on one page, with boxes that filter its rows; as HTML, which thousands of rows need."""

import json
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from pages.texts import ROOT

FOLDER = ROOT / "evidence" / "results"
FILTERS = ("paper", "model", "dataset", "metric")
HEADS = ("paper", "model", "dataset", "metric", "setting", "reported", "measured, 95 % interval", "place")
ABOUT = """\
# Reported and measured

What papers report, beside what was measured with unbraid, number by number. A reported number has its place in the
paper, a measured one the study that it comes from. Rows of `unbraid` are means over seeds that no single number of a
paper is held against. Point at a measured number to see seeds, commit and the reason why it differs.
[The guide](reproductions/index.md#reported-and-measured-numbers) says how the records are kept."""


def page() -> str:
    """The page; without any row where the folder is not there."""
    contents = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.rglob("*.json"))]
    scores = [{"model": content["model"], **score} for content in contents for score in content["scores"]]
    boxes = "".join(_box(name, sorted({_value(score, name) for score in scores})) for name in FILTERS)
    words = '<label>words <input type="search" name="words"></label>'
    form = f'<form class="results-filters" autocomplete="off">{boxes}{words}<output></output></form>'
    head = "".join(f"<th>{name}</th>" for name in HEADS)
    rows = "\n".join(map(_row, scores))
    table = f'<table class="results">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>'
    return f"{ABOUT}\n\n{form}\n\n{table}\n"


def _value(score: Mapping[str, Any], name: str) -> str:
    if name in ("paper", "model"):
        return score["model"].split("__")[name == "model"]
    return score[name]


def _box(name: str, values: Iterable[str]) -> str:
    options = "".join(f"<option>{escape(value)}</option>" for value in values)
    return f'<label>{name} <select name="{name}"><option value="">all</option>{options}</select></label>'


def _row(score: Mapping[str, Any]) -> str:
    reported, measured = score.get("reported"), score.get("measured")
    cells = [*(_value(score, name) for name in FILTERS), score["setting"], reported["printed"] if reported else ""]
    place = reported["place"] if reported else score["measured"]["study"]
    return (
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        + f'<td title="{escape(_source(score))}">{_interval(measured) if measured else ""}</td>'
        f"<td>{escape(place)}</td></tr>"
    )  # fmt: skip


def _interval(measured: Mapping[str, Any]) -> str:
    ends = f" [{measured['low']:.3f}, {measured['high']:.3f}]" if "low" in measured else ""
    return f"{measured['value']:.3f}{ends}"


def _source(score: Mapping[str, Any]) -> str:
    """What stands behind a measured number."""
    measured = score.get("measured")
    if measured is None:
        return ""
    seeds = f"{measured['units']} {measured['unit']}{'s' * (measured['units'] > 1)}"
    parts = [seeds, measured["study"], measured["commit"][:12], measured["machine"], score.get("reason", "")]
    return "; ".join(part for part in parts if part)
