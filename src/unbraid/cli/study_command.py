"""`unbraid study`: many runs by one file."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from unbraid.base.progress_bar import progress_bar
from unbraid.cli._commands import Commands
from unbraid.cli._options import DryRun, Files, StudyFolder, TrustCode, grouped
from unbraid.cli._paths import opened
from unbraid.cli._progress import continuing, metric_progress, stage_progress
from unbraid.cli.show_command import say, show
from unbraid.studies.study_text import counts, described, estimated, in_all, status_of, summary

if TYPE_CHECKING:
    from unbraid.studies.study import Study

study_app = typer.Typer(
    cls=Commands,
    help="Run a study: many models described in one file.",
    epilog="Start with: unbraid study run study.yaml --out study/ --dry-run",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@study_app.command("run")
def run(
    file: Annotated[Path, typer.Argument(metavar="STUDY.yaml", help="File that describes the study.")],
    out: Annotated[Path, typer.Option(help="Folder of the study, or s3://bucket/prefix; give it again to resume.")],
    executor: Annotated[
        str | None,
        typer.Option(
            help="local (this machine) or ray; default as in the YAML, or local. Options take precedence over the YAML."
        ),
    ] = None,
    address: Annotated[
        str | None, typer.Option(help="With --executor ray: address of the cluster, auto (default) or host:port.")
    ] = None,
    gpus_per_run: Annotated[
        float | None, typer.Option(help="With --executor ray: share of a GPU for each run, such as 0.25.")
    ] = None,
    processes: Annotated[
        int | None, typer.Option(help="Number of runs at a time on this machine's CPU; default one per core.")
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="I/N", help="Run only part I of N, as one job of an array; other parts can run at the same time."
        ),
    ] = None,
    dry_run: DryRun = False,
    retry: Annotated[Literal["failed"] | None, typer.Option(help="failed: train failed runs again.")] = None,
    retrain: Annotated[
        bool, typer.Option("--retrain", help="Train runs again that used another training version of their family.")
    ] = False,
) -> None:
    """Train and score all runs of a study.

    If a study was interrupted, the same command resumes it; finished runs are not trained again. If you add a seed, a
    setting or a metric to the file, only what is new is computed.

    Examples:

      unbraid study run study.yaml --out study/

      unbraid study run study.yaml --out study/ --dry-run

      unbraid study run study.yaml --out study/ --retry failed

      unbraid study run study.yaml --out study/ --shard 2/8

      unbraid study run study.yaml --out s3://bucket/study --executor ray --address auto
    """
    cluster = {"address": address, "gpus_per_run": gpus_per_run, "processes": processes}
    options = {name: value for name, value in cluster.items() if value is not None}
    with opened(file, out) as study:
        if study.config.executor_with(executor, {})[0] != "ray" and options.keys() - {"processes"}:
            raise ValueError("--address and --gpus-per-run go with --executor ray")
        if dry_run:
            _estimate(study, executor, shard, options | {"retry": retry, "retrain": retrain})
            return
        with continuing(), progress_bar(study.config.name) as report:
            runs = study.run(executor, retry=retry, retrain=retrain, shard=shard, progress=report, **options)
    say(summary(study, runs, out))


def _estimate(study: "Study", executor: str | None, shard: str | None, options: Mapping[str, Any]) -> None:
    from unbraid.studies.estimate import estimate
    from unbraid.studies.several_datasets import naming
    from unbraid.studies.shards import parse_shard

    estimates, only_shard = [], None if shard is None else parse_shard(shard)
    for number, (label, part) in enumerate(study.parts.items()):
        with naming(number, label), metric_progress(f"measuring {label}".strip()) as progress:
            estimates.append(estimate(part, executor, shard=only_shard, progress=progress, **options))
        show([*estimated(estimates[-1], part.config.name if label else "")], Files())
    if len(estimates) > 1:
        say(in_all(estimates))


@study_app.command("status")
@grouped
def status(
    folder: StudyFolder,
    again: Annotated[
        bool, typer.Option("--again", help="Read all files of every run again and compare each with its checksum.")
    ] = False,
    trust_code: TrustCode = None,
    *,
    to: Files,
) -> None:
    """Count the runs by their state, and say why some failed.

    Runs whose files have not changed since they were last read are not read again. --json has every run. The exit code
    is 3 if a run failed or its files are damaged.

    Examples:

      unbraid study status study/

      unbraid study status study/ --json runs.json

      unbraid study status study/ --again
    """
    from unbraid.studies.status import remembered

    statuses = None if again or trust_code else remembered(folder)
    if statuses is None:
        from unbraid.studies.status import compared, keep_index, study_status

        with opened(folder, trust=trust_code) as study, stage_progress("reading") as progress:
            snapshots = [compared(snapshot, progress) if again else snapshot for snapshot in study.snapshots()]
            keep_index(study.require_folder(), snapshots)
        statuses = [study_status(snapshot) for snapshot in snapshots]
    named = [
        described(run) | ({"label": status.label} if status.label else {}) for status in statuses for run in status.runs
    ]
    *rows, _ = (table := counts("", statuses)).rows
    table = replace(table, rows=rows)  # without the sum
    show([part for status in statuses for part in status_of(status)], to, content=named, rows=table, paper=table)
    if any(run.state == "failed" for status in statuses for run in status.runs):
        raise typer.Exit(3)
