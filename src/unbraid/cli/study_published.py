"""`unbraid study published`: numbers of papers beside those of the study."""

import json as json_format
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from unbraid.cli._say import say
from unbraid.cli._terminal import Terminal
from unbraid.cli._trust import TrustCode


def published(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a study, as `unbraid study run` makes it.")],
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    trust_code: TrustCode = None,
) -> None:
    """Show each number of a paper that the YAML names under `published` beside what the runs of the study reached.

    Examples:

      unbraid study published study/
    """
    from unbraid.cli.study import opened
    from unbraid.studies.expand import setting_text
    from unbraid.studies.published import beside_published

    rows: list[dict[str, Any]] = [
        ({"label": label} if label else {}) | row
        for label, part in opened(folder, trust=trust_code or ()).parts().items()
        for row in beside_published(part, part.results())
    ]
    if not rows:
        raise ValueError(f"{folder}: the study names no published numbers; give it a section `published`")
    if json:
        say(json_format.dumps(rows, indent=2, allow_nan=False))
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    names = ("label",) if "label" in rows[0] else ()
    for name in (*names, "family", "setting", "column", "runs", "measured", "published", "difference"):
        table.add_column(name, justify="left" if name in ("label", "family", "setting", "column") else "right")
    for row in rows:
        spread = "" if row["deviation"] is None else f" ± {row['deviation']:.3f}"
        measured = "-" if row["measured"] is None else f"{row['measured']:.3f}{spread}"
        difference = "-" if row["difference"] is None else f"{row['difference']:+.3f}"
        setting = setting_text(row["setting"], row["setting"])
        table.add_row(
            *(row[name] for name in names),
            row["family"],
            setting,
            row["column"],
            str(row["runs"]),
            measured,
            f"{row['published']:g}",
            difference,
        )
    console = Terminal()
    console.print(table, markup=False)
    for source, reason in dict.fromkeys((row["source"], row["reason"]) for row in rows):
        console.print(f"{source}; may differ: {reason}", markup=False, highlight=False, soft_wrap=True)
