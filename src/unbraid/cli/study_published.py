"""`unbraid study published`: numbers of papers beside those of the study."""

from typing import Any

from unbraid.cli._options import Csv, Json, Latex, Markdown, StudyFolder
from unbraid.cli._trust import TrustCode
from unbraid.cli.show import Files, show
from unbraid.storage.table_formats import Cell, Table


def published(
    folder: StudyFolder,
    csv: Csv = None,
    latex: Latex = None,
    markdown: Markdown = None,
    json: Json = None,
    trust_code: TrustCode = None,
) -> None:
    """Show numbers of papers next to those of the study.

    The numbers are those that the YAML names under `published`, each with the result of the study's runs.

    Examples:

      unbraid study published study/

      unbraid study published study/ --markdown published.md
    """
    to = Files(csv, latex, markdown, json)
    from unbraid.cli.study import opened
    from unbraid.studies.published import beside_published
    from unbraid.studies.results import results

    with opened(folder, trust=trust_code or ()) as study:
        snapshots = study.snapshots()
    rows: list[dict[str, Any]] = [
        ({"label": each.label} if each.label else {}) | row
        for each in snapshots
        for row in beside_published(each, results(each))
    ]
    if not rows:
        raise ValueError(f"{folder}: the study has no published numbers; add a section `published` to its YAML")
    names = ["label"] if "label" in rows[0] else []
    heads = [*names, "family", "setting", "column", "runs", "measured", "published", "difference"]
    table = Table(heads, [_cells(row, names) for row in rows], "l" * (len(heads) - 4) + "rrrr", keys=len(heads) - 4)
    sources = dict.fromkeys(f"{row['source']}; may differ: {row['reason']}" for row in rows)
    show([table, *sources], to, content=rows)


def _cells(row: dict[str, Any], names: list[str]) -> list[Any]:
    from unbraid.studies.expand import setting_text

    measured, spread, difference = row["measured"], row["deviation"], row["difference"]
    reach = "" if spread is None else f" ± {spread:z.3f}"
    return [
        *(row[name] for name in names), row["family"], setting_text(row["setting"], row["setting"]), row["column"],
        row["runs"], None if measured is None else Cell(f"{measured:z.3f}{reach}", measured),
        Cell(f"{row['published']:g}", row["published"]),
        None if difference is None else Cell(f"{difference:+z.3f}", difference),
    ]  # fmt: skip
