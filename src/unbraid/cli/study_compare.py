"""`unbraid study compare`: is one family, or one setting, better than another?"""

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from unbraid.cli._paths import check_outputs
from unbraid.cli._progress import stage_progress
from unbraid.cli._say import say
from unbraid.cli._terminal import Terminal
from unbraid.cli._trust import TrustCode

if TYPE_CHECKING:
    from unbraid.analysis.comparison import Comparison


def compare(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a study, or a merged table.")],
    by: Annotated[
        str, typer.Option(help="Column that defines the groups: family, setting, hyper.beta, ...")
    ] = "family",
    columns: Annotated[
        str | None,
        typer.Option(help="Columns of the results to compare, with commas; default the metrics.", show_default=False),
    ] = None,
    over: Annotated[
        Literal["runs", "settings"], typer.Option(help="Sampling unit: runs, or settings averaged over their seeds.")
    ] = "runs",
    within: Annotated[
        str | None,
        typer.Option(
            help="Column of which groups that are compared have one value; default label in a study of several "
            "datasets, unless --by tells these apart.",
            show_default=False,
        ),
    ] = None,
    confidence: Annotated[float, typer.Option(help="Confidence level of the intervals.")] = 0.95,
    out: Annotated[
        Path | None, typer.Option(help="Write the differences to this .csv file.", show_default=False)
    ] = None,
    latex: Annotated[Path | None, typer.Option(help="Write means ± intervals to this .tex file.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write them to this .md file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    trust_code: TrustCode = None,
) -> None:
    """Compare the scores of groups of runs: which is better, by how much, and is it significant?

    The sampling unit is the run, not the image, because seeds change a score more than images do. A difference is the
    median of all differences between two groups, with the interval of a rank test. P values are corrected for all
    comparisons shown (Holm), and a group is called better only if the difference is significant. Scores depend on the
    number of rows: runs with more rows than others are scored again on subsets of as many, from the codes in their
    folders; of a table, unequal rows are refused.

    Examples:

      unbraid study compare study/

      unbraid study compare study/ --by hyper.beta --columns mig.score,dci_lasso.disentanglement

      unbraid study compare study/ --by family --over settings --out differences.csv

      unbraid study compare study/ --latex table.tex

      unbraid study compare several-datasets/ --by dataset
    """
    from unbraid.analysis.comparison import compare_groups, usual_within
    from unbraid.analysis.merging import read_table
    from unbraid.cli.study import is_table, opened
    from unbraid.cli.study_agreement import check_out, listed, write_table
    from unbraid.scoring.tables import save_table

    check_out(out)
    tables = {".tex": latex, ".md": markdown}
    check_outputs(tables)
    if is_table(folder):
        frame = read_table(folder)
        within = within or usual_within(frame, by)
        found = compare_groups(frame, by, listed(columns), over=over, within=within, confidence=confidence)
    else:
        study = opened(folder, trust=trust_code or ())
        with stage_progress("scoring as many rows") as progress:
            found = study.compare(
                by, listed(columns), over=over, within=within, confidence=confidence, progress=progress
            )
    if out is not None:
        write_table(out, found.to_frame())
    for path in tables.values():
        if path is not None:
            save_table(path, *found.table(), foot=found.footnote)
            say(f"wrote {path}", err=True)
    if json:
        say(json_format.dumps(found.to_dict(), indent=2, allow_nan=False))
        return
    _print(Terminal(), found)


def _print(console: Console, found: "Comparison") -> None:
    percent = f"{found.confidence:.0%}"
    means = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("column", found.by, found.over, "mean", percent, "median"):
        means.add_column(name, justify="left" if name in ("column", found.by) else "right")
    for each in found.groups:
        between = f"{each.low:.3f} to {each.high:.3f}"
        means.add_row(each.column, each.group, str(each.n), f"{each.mean:.3f}", between, f"{each.median:.3f}")
    apart = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("column", "groups", "difference", percent, "p", "p (Holm)", "better"):
        apart.add_column(name, justify="left" if name in ("column", "groups", "better") else "right")
    for each in found.shifts:
        between = f"{each.low:+.3f} to {each.high:+.3f}".replace("inf", "∞")
        apart.add_row(
            each.column, f"{each.first} - {each.second}", f"{each.shift:+.3f}", between, f"{each.p:.2g}",
            f"{each.p_holm:.2g}", each.better,
        )  # fmt: skip
    for table in (means, apart):
        console.print(table, markup=False)
    for note in found.notes:
        console.print(f"note: {note}", markup=False, highlight=False, soft_wrap=True)
