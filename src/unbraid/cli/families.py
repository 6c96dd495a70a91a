"""`unbraid families`: what can be trained."""

import json as json_format
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from unbraid.cli._say import say
from unbraid.cli._terminal import Terminal

if TYPE_CHECKING:
    from unbraid.families import Family, Hyperparameter


def list_families(
    family: Annotated[
        str | None, typer.Argument(help="Show the hyperparameters of this one.", show_default=False)
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """List the families of models, or the hyperparameters and published grids of one.

    Examples:

      unbraid families

      unbraid families beta_vae
    """
    from unbraid._utils.optional import require

    require("torch", "train", "training")
    from unbraid.families.table import FAMILIES, find_family
    from unbraid.storage.trust import trusting

    rows = {**FAMILIES, **FAMILIES.installed()} if family is None else {family: find_family(trusting(family))}
    if json:
        described = {name: {**_described(row), "package": FAMILIES.package_of(name)} for name, row in rows.items()}
        say(json_format.dumps(described, indent=2))
        return
    console = Terminal()
    if family is not None:
        _print_one(console, family, rows[family])
        return
    table = Table(pad_edge=False, box=SIMPLE_HEAD)
    for column in ("family", "what it is", "supervision", "published grids", "source"):
        table.add_column(column, no_wrap=column in {"family", "supervision"})
    for name, row in rows.items():
        told = row.supervision.kind if row.supervision else ""
        table.add_row(name, row.title, told, ", ".join(row.presets), FAMILIES.package_of(name) or row.source)
    console.print(table, markup=False)


def _print_one(console: Console, name: str, row: "Family") -> None:
    console.print(f"{name}: {row.title} ({row.source})", markup=False, highlight=False)
    table = Table(pad_edge=False, box=SIMPLE_HEAD)
    for column in ("--set", "default", "from", "to", "what it does"):
        table.add_column(column, no_wrap=column == "--set", justify="right" if column in {"from", "to"} else "left")
    for hyperparameter, each in row.hyperparameters.items():
        low, high = ("" if abs(end) == float("inf") else f"{end:g}" for end in (each.low, each.high))
        table.add_row(hyperparameter, str(each.default), low, high, _help(each))
    console.print(table, markup=False)
    for preset, entries in row.presets.items():
        settings = "; ".join(", ".join(f"{key}={value}" for key, value in entry.items()) for entry in entries)
        console.print(f"--preset {preset}: {settings}", markup=False, highlight=False)
    if row.supervision:
        told, amounts = row.supervision, ", ".join(row.supervision.amounts)
        line = f"- Is told {told.kind}, for which a dataset needs {told.needs}. How much: {amounts}."
        console.print(line, markup=False, highlight=False)
    for note in row.notes:
        console.print(f"- {note}", markup=False, highlight=False)


def _help(row: "Hyperparameter") -> str:
    choices = [choice for choice in row.choices if choice]
    return row.help + (f" ({', '.join(choices)})" if choices else "")


def _described(row: "Family") -> dict[str, Any]:
    return {
        "title": row.title,
        "source": row.source,
        "hyperparameters": {
            name: {
                "default": each.default,
                "kind": each.kind,
                "low": None if each.low == float("-inf") else each.low,
                "high": None if each.high == float("inf") else each.high,
                "choices": [choice for choice in each.choices if choice],
                "help": each.help,
            }
            for name, each in row.hyperparameters.items()
        },
        "presets": {name: [dict(entry) for entry in entries] for name, entries in row.presets.items()},
        "supervision": row.supervision
        and {
            "kind": row.supervision.kind,
            "needs": row.supervision.needs,
            "amounts": list(row.supervision.amounts),
        },
        "notes": list(row.notes),
    }
