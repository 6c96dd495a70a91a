"""`unbraid families`: what can be trained."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unbraid.cli._options import Files
from unbraid.cli.show_command import show
from unbraid.files.table_formats import Cell, Table

if TYPE_CHECKING:
    from unbraid.families import Family


def list_families(
    family: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Show the hyperparameters and published grids of this one.")
    ] = None,
    *,
    to: Files,
) -> None:
    """List the families of models, or show one.

    Examples:

      unbraid families

      unbraid families beta_vae
    """
    from unbraid.base.optional import require

    require("torch", "train", "training")
    from unbraid.families.family_table import FAMILIES, find_family
    from unbraid.files.trust import trusting

    if family is not None:
        row = find_family(trusting(family))
        show([*_one(family, row)], to, content={family: _described(family, row)})
        return
    rows = {**FAMILIES, **FAMILIES.installed()}
    cells = [
        [
            name, row.title, row.supervision.kind if row.supervision else "", ", ".join(row.presets),
            FAMILIES.package_of(name) or row.source,
        ]
        for name, row in rows.items()
    ]  # fmt: skip
    table = Table(["family", "what it is", "supervision", "published grids", "source"], cells, "lllll")
    show(table, to, content={name: _described(name, row) for name, row in rows.items()})


def _one(name: str, row: "Family") -> "Iterator[Table | str]":
    yield row.cited if name in row.title else f"{name}: {row.cited}"
    rows = [
        [
            key, str(option.default), _end(option.low), _end(option.high),
            option.help + (f" ({', '.join(filter(None, option.choices))})" if any(option.choices) else ""),
        ]
        for key, option in row.hyperparameters.items()
    ]  # fmt: skip
    yield Table(["--set", "default", "from", "to", "what it does"], rows, "llrrl")
    for preset, entries in row.presets.items():
        settings = "; ".join(", ".join(f"{key}={value}" for key, value in entry.items()) for entry in entries)
        yield f"--preset {preset}: {settings}"
    if row.supervision:
        supervision, amounts = row.supervision, ", ".join(row.supervision.amounts)
        yield f"- Is told {supervision.kind}, for which a dataset needs {supervision.needs}. How much: {amounts}."
    yield from (f"- {note}" for note in row.notes)


def _end(number: float) -> Cell:
    return Cell("") if abs(number) == float("inf") else Cell(f"{number:g}", number)


def _described(name: str, row: "Family") -> dict[str, Any]:
    from unbraid.families.family_table import FAMILIES

    return {
        "title": row.title,
        "source": row.source,
        "hyperparameters": {
            name: {
                "default": option.default,
                "kind": option.kind,
                "low": None if option.low == float("-inf") else option.low,
                "high": None if option.high == float("inf") else option.high,
                "choices": [choice for choice in option.choices if choice],
                "help": option.help,
            }
            for name, option in row.hyperparameters.items()
        },
        "presets": {name: [dict(entry) for entry in entries] for name, entries in row.presets.items()},
        "supervision": row.supervision
        and {
            "kind": row.supervision.kind,
            "needs": row.supervision.needs,
            "amounts": list(row.supervision.amounts),
        },
        "notes": list(row.notes),
        "package": FAMILIES.package_of(name),
    }
