"""Is this number right? What each metric was held against, from evidence/evidence.yaml and evidence/evidence.json."""

import json
import re
from collections.abc import Iterable
from functools import cache
from typing import Any

import yaml

from pages.texts import ROOT, table
from unbraid.metrics import MEASURES

KINDS = {  # of checks, in the words of the pages
    "program": "another program",
    "printed": "numbers that another program printed",
    "paper": "a paper",
    "closed form": "a closed form",
    "brute force": "plain loops",
}
OTHERS = ("program", "printed")
ROUNDING = 1e-6
Record = dict[str, Any]


@cache
def evidence() -> dict[str, list[Record]]:
    """The records of each metric, in words and as measured."""
    words = yaml.safe_load((ROOT / "evidence" / "evidence.yaml").read_text(encoding="utf-8"))
    measured = json.loads((ROOT / "evidence" / "evidence.json").read_text(encoding="utf-8"))
    return {name: [{**record, **measured[record["by"]]} for record in records] for name, records in words.items()}


def size(difference: float) -> str:
    """A difference in two digits at most: .0067, or 8 × 10⁻¹⁶."""
    if difference == 0:
        return "0"
    if difference >= 5e-4:
        return f"{difference:.2g}".removeprefix("0")
    digits, exponent = f"{difference:.0e}".split("e")
    raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{digits}\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}10{raised}"


def programs(record: Record) -> list[str]:
    """The other programs of a record, with their versions."""
    if record["kind"] == "printed":
        return record["program"].split(", ")
    return [f"{name} {version}" for name, version in record["packages"].items()]


def section(name: str) -> list[str]:
    """Of the page of a metric."""
    records = evidence().get(name, [])
    if not records:
        return []
    rows = (
        (
            f"{KINDS[record['kind']]}: {record['against']}{_versions(record)}",
            _whole(record["data"]),
            size(record["largest"]),
            _whole(record["why"]),
        )
        for record in records
    )
    checks = "\n".join(f"- `{record['by']}`, {record['numbers']:,} numbers, {record['date']}" for record in records)
    return [
        "## Is this number right?",
        "What it was held against, and how far the two were apart at most. "
        "[The same of all metrics](../is-this-number-right.md)",
        table("held against | on | largest difference | reason", "llrl", rows),
        f"`python evidence/benchmarks/evidence.py --only {name}` repeats these checks:",
        checks,
    ]


def _versions(record: Record) -> str:
    """Of the packages that take part, which are named where the words do not name them."""
    known = [f"{name} {version}" for name, version in record["packages"].items()]
    if len(known) == 1:
        [(name, version)] = record["packages"].items()
        named = name.lower().removeprefix("python-") in record["against"].lower().replace("_", "-")
        known = [version] if named else known
    return f" ({', '.join(known)})" if known else ""


def _whole(text: str) -> str:
    """The text without a line break in a number: 10 000."""
    return re.sub(r"(?<=\d) (?=\d{3}\b)", "\N{NO-BREAK SPACE}", text)


def overview() -> str:
    """One row for each metric."""
    return _overview(name for name in MEASURES if name in evidence())


def beside() -> str:
    """The same for functions that have no page of their own."""
    return _overview(name for name in evidence() if name not in MEASURES)


def _overview(names: Iterable[str]) -> str:
    rows = []
    for name in names:
        others = [record for record in evidence()[name] if record["kind"] in OTHERS]
        rest = [record for record in evidence()[name] if record["kind"] not in OTHERS]
        worst = max(others, key=lambda record: record["largest"], default=None)
        rows.append(
            [
                f"[`{name}`](metrics.md#{name})" if name in MEASURES else f"`{name}`",
                ", ".join(dict.fromkeys(program for record in others for program in programs(record))) or "none",
                size(worst["largest"]) if worst else "–",
                _whole(worst["why"]) if worst else "–",
                ", ".join(dict.fromkeys(map(_in_short, rest))) or "–",
            ]
        )
    return table("metric | other programs | largest difference | reason | and against", "llrll", rows)


def _in_short(record: Record) -> str:
    """Its kind, and how far apart where that is more than rounding."""
    far = f" ({size(record['largest'])})" if record["largest"] > ROUNDING else ""
    return KINDS[record["kind"]] + far
