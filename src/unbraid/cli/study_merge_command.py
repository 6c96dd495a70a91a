"""`unbraid study merge`: tables of several studies, of one laboratory or many, as one."""

from pathlib import Path
from typing import Annotated

import typer

from unbraid.base.counted import counted
from unbraid.cli._options import TrustCode, check_output
from unbraid.cli._paths import Place
from unbraid.cli.show_command import say


def merge(
    tables: Annotated[
        list[Path],
        typer.Argument(metavar="TABLE...", help="Tables that `unbraid export` wrote, or folders of studies."),
    ],
    out: Annotated[Path, typer.Option(help="Write the table to this .csv or .parquet file.")],
    trust_code: TrustCode = None,
) -> None:
    """Merge the tables of several studies.

    The rows stand below each other; the column `table` says where each comes from. `unbraid compare` and `unbraid study
    agreement` take the merged file in place of a study, and refuse to average what differs.

    Examples:

      unbraid study merge ours.parquet theirs.parquet --out all.parquet

      unbraid study merge study-a/ study-b/ table.csv --out all.csv
    """
    from unbraid.files.table_formats import save_frame
    from unbraid.scoring.merged_tables import merge_tables

    check_output("--out", out, ".csv", ".parquet")
    if len({str(path) for path in tables}) < len(tables):
        raise ValueError("one of the tables is given twice")
    frames = {str(path): Place.at(path).results(trust_code or ()) for path in tables}
    merged = merge_tables(frames)
    save_frame(merged, out)
    say(f"wrote {out}: {counted(len(merged), 'run')} of {counted(len(frames), 'table')}")
