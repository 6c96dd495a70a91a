"""Every number of results/ on one page, with boxes that filter its rows; as HTML, which thousands of rows need."""

from collections.abc import Iterable
from html import escape

from pages.texts import ROOT
from unbraid.results.files import Entry, entries, read_all
from unbraid.results.shown import measured_cell, place, reported_cell
from unbraid.storage.table_formats import text_of

FOLDER = ROOT / "results"
FILTERS = ("paper", "model", "dataset", "metric")
HEADS = ("paper", "model", "dataset", "metric", "setting", "reported", "measured, 95 % interval", "place")
ABOUT = """\
# Reported and measured

What papers report, beside what was measured with unbraid, number by number. A reported number has its place in the
paper, a measured one the study that it comes from. Rows of `unbraid` are means over seeds that no single number of a
paper is held against. Point at a measured number to see seeds, commit and the reason why it differs.
[The guide](results.md) says how the records are kept, and `unbraid results table` prints them."""


def page() -> str:
    """The page; without any row where the folder is not there."""
    some = list(entries(read_all(FOLDER))) if FOLDER.is_dir() else []
    boxes = "".join(_box(name, sorted({_value(each, name) for each in some})) for name in FILTERS)
    words = '<label>words <input type="search" name="words"></label>'
    form = f'<form class="results-filters" autocomplete="off">{boxes}{words}<output></output></form>'
    head = "".join(f"<th>{name}</th>" for name in HEADS)
    rows = "\n".join(map(_row, some))
    table = f'<table class="results">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>'
    return f"{ABOUT}\n\n{form}\n\n{table}\n"


def _value(entry: Entry, name: str) -> str:
    if name in ("paper", "model"):
        return entry.model.split("__")[name == "model"]
    return str(entry.score[name])


def _box(name: str, values: Iterable[str]) -> str:
    options = "".join(f"<option>{escape(value)}</option>" for value in values)
    return f'<label>{name} <select name="{name}"><option value="">all</option>{options}</select></label>'


def _row(entry: Entry) -> str:
    score = entry.score
    cells = [*(_value(entry, name) for name in FILTERS), score["setting"]]
    numbers = [_number(reported_cell(score)), _number(measured_cell(score))]
    return (
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + f"<td>{numbers[0]}</td>"
        f'<td title="{escape(_told(entry))}">{numbers[1]}</td><td>{escape(place(score))}</td></tr>'
    )


def _number(cell: object) -> str:
    return "" if cell is None else escape(text_of(cell))


def _told(entry: Entry) -> str:
    """What stands behind a measured number."""
    held = entry.score.get("measured")
    if held is None:
        return ""
    many = f"{held['units']} {held['unit']}{'s' * (held['units'] > 1)}"
    parts = [many, held["study"], held["commit"][:12], held["machine"], entry.score.get("reason", "")]
    return "; ".join(part for part in parts if part)
