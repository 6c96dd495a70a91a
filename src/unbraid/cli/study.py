"""`unbraid study`: many runs by one file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from unbraid._extras import require

if TYPE_CHECKING:
    from unbraid.studies.study import Study

study_app = typer.Typer(
    help="Run a study: many models by one file, stopped and continued at will.",
    epilog="Start with: unbraid study run study.yaml --out study/ --dry-run",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a study, as `unbraid study run` makes it.")]


@study_app.command("run")
def run(
    file: Annotated[Path, typer.Argument(metavar="STUDY.yaml", help="The study.")],
    out: Annotated[Path, typer.Option(help="Folder of the results; the same one continues.")],
    executor: Annotated[str, typer.Option(help="local (this machine) or ray.")] = "local",
    address: Annotated[str | None, typer.Option(help="With --executor ray: of the cluster, such as auto.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the runs and what they cost; write nothing.")
    ] = False,
    retry: Annotated[Literal["failed"] | None, typer.Option(help="failed: try again what failed.")] = None,
) -> None:
    """Train and score all runs of a study.

    Interrupted or killed, the same command continues; what is finished is not done again. A seed, a setting or a metric
    added to the file adds only what is new.

    Examples:

      unbraid study run study.yaml --out study/

      unbraid study run study.yaml --out study/ --dry-run

      unbraid study run study.yaml --out study/ --retry failed
    """
    del dry_run
    options: dict[str, Any] = {} if address is None else {"address": address}
    study = opened(file, out)
    study.run(executor, retry=retry, **options)


@study_app.command("status")
def status(folder: Folder) -> None:
    """Count the runs of each family and setting by their state.

    Examples:

      unbraid study status study/
    """
    for each in opened(folder).runs():
        typer.echo(f"{each.family} {each.setting} {each.seed} {each.state} {each.reason or ''}")


@study_app.command("export")
def export(
    folder: Folder,
    out: Annotated[Path, typer.Option(help="Write the table to this .csv or .parquet file.")],
) -> None:
    """Write the table of results: one row per run.

    Examples:

      unbraid study export study/ --out results.csv
    """
    from unbraid.studies.results import write_results

    typer.echo(f"wrote {write_results(opened(folder), out)}")


def opened(path: Path, out: Path | None = None) -> "Study":
    """The study; for every command of this group."""
    require("torch", "train", "unbraid study")
    from unbraid.studies.study import Study

    return Study.load(path, out)
