"""`unbraid train` and `unbraid continue`: one model or a population, into run folders."""

import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unbraid.base.comma_lists import listed, separated
from unbraid.base.progress_bar import progress_bar
from unbraid.cli._options import CheckpointEvery, Device, DryRun, Trust, number_or_text, pair, yaml_options
from unbraid.cli._progress import continuing, metric_progress
from unbraid.cli.show_command import Files, print_table, say, show
from unbraid.files.table_formats import Table

if TYPE_CHECKING:
    from unbraid.runs.run import Run
    from unbraid.training.train import Prepared


@dataclass(frozen=True)
class TrainingOptions:
    """Options of `unbraid.train` by their names there, beside the hyperparameters of families."""

    preset: Annotated[str | None, typer.Option(help="A published grid of the family, such as udr.")] = None
    steps: Annotated[int, typer.Option(help="Training steps of each run.")] = 30_000
    batch_size: Annotated[int, typer.Option(help="Images per step.")] = 64
    device: Device = "auto"
    precision: Annotated[str, typer.Option(help="auto, float32, bfloat16 or float64.")] = "auto"
    checkpoint_every: CheckpointEvery = 120.0
    snapshots: Annotated[int, typer.Option(help="Number of evenly spaced steps at which to compute metrics.")] = 0
    snapshot_metrics: Annotated[str, typer.Option(help="Comma-separated metrics for --snapshots.")] = "mig"
    hold_out: Annotated[
        float,
        typer.Option(help="Size of the hold-out set, as a number of images or a share below 1; its ELBO is kept."),
    ] = 0
    hold_out_every: Annotated[int, typer.Option(help="Steps between evaluations on the hold-out set.")] = 500
    patience: Annotated[
        int,
        typer.Option(
            help="Early stopping after this many evaluations without improvement; 0: never. Keeps the best weights."
        ),
    ] = 0


def train(
    family: Annotated[str, typer.Argument(help="Family to train, such as vae or beta_vae (see `unbraid families`).")],
    images: Annotated[str | None, typer.Argument(metavar="[DATASET]", help="The same as --dataset.")] = None,
    *,
    dataset: Annotated[
        str | None,
        typer.Option(help="A dataset of `unbraid data list`, or the path of your own images, with factors or without."),
    ] = None,
    seeds: Annotated[str, typer.Option(help="Number of seeds (4) or a list (0,7; a single seed: 7,).")] = "1",
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE[,...]", help="A hyperparameter; of several values each is trained."),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            metavar="OPTION=VALUE",
            help="An option of the dataset; of own TIFFs, pages=channels takes their pages as channels.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder in which each run gets its own folder.")] = Path("runs"),
    track: Annotated[
        str | None,
        typer.Option(
            metavar="tensorboard|wandb|mlflow,...",
            help="Also write curves and settings of the runs to these trackers when all have ended, below "
            "./tracking. Nothing is sent, unless WANDB_MODE=online.",
        ),
    ] = None,
    options: TrainingOptions,
    dry_run: DryRun = False,
) -> None:
    """Train a family, one run per setting and seed.

    The settings are all combinations of the given values.

    Each run has its own folder under --out. If training was interrupted, the same command resumes it and ends with the
    same weights. Finished runs are not trained again.

    Examples:

      unbraid train beta_vae --dataset sprites --seeds 4 --set beta=1,4,16 --steps 30000 --out runs

      unbraid train beta_vae --dataset sprites --seeds 4 --set beta=1,4,16 --dry-run

      unbraid train vae --dataset square --set latents=4 --set learning_rate=1e-3 --steps 2000

      unbraid train vae --dataset square --set "optimizer=AdamW(weight_decay=0.01)"

      unbraid train beta_vae --dataset my-images/ --preset udr --seeds 50

      unbraid train vae folder-of-pictures/
    """
    if (images is None) is (dataset is None):
        raise ValueError("name the dataset once: unbraid train FAMILY DATASET, or --dataset DATASET")
    chosen = _seeds(seeds)
    from unbraid.base.optional import require

    require("torch", "train", "training")
    from unbraid.training.train import prepared, train_into
    from unbraid.training.train import train as train_models

    if track is not None:
        from unbraid.studies.tracking import check_names

        check_names(listed(track))
    hyperparameters: dict[str, Any] = _settings(sets, inspect.signature(train_models).parameters)
    source = {"name": images or dataset, **yaml_options("--data", data)}
    with continuing(), progress_bar(family) as report:
        planned = prepared(
            family, source, seeds=chosen, progress=report,
            **{**vars(options), **hyperparameters, "snapshot_metrics": listed(options.snapshot_metrics)},
        )  # fmt: skip
        runs = [] if dry_run else train_into(out, *planned, progress=report)
    if dry_run:
        _estimate(planned, out)
    else:
        print_runs(runs)
        if track is not None:
            from unbraid.studies.tracking import track_runs

            for place in track_runs(runs, listed(track), Path()):
                say(f"tracked in {place}")


def _estimate(planned: "Prepared", out: Path) -> None:
    from unbraid.studies.estimate import estimate_training
    from unbraid.studies.study_text import estimated

    with metric_progress("measuring") as progress:
        estimate = estimate_training(planned, out, progress)
    show([*estimated(estimate)], Files())


def _settings(sets: list[str] | None, reserved: Iterable[str]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for text in sets or ():
        name, values = pair("--set", text, "NAME=VALUE or NAME=VALUE,VALUE")
        if name in set(reserved):
            raise ValueError(f"--set {text}: {name} is not a hyperparameter; see unbraid train --help")
        if name in settings:
            raise ValueError(f"--set {text}: {name} is given twice; write its values with commas between")
        settings[name] = [number_or_text(value) for value in separated(values)]
    return settings


def _seeds(text: str) -> int | list[int]:
    try:
        numbers = [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise ValueError(f"--seeds {text}: write how many (4), or which (0,1,5)") from None
    return numbers[0] if "," not in text and numbers else numbers


SHOWN = ("loss", "reconstruction", "kl", "total_correlation")  # of the last point of the curves, which hold the rest


def print_runs(runs: "list[Run]") -> None:
    """A line per run: what tells it from the others, its last losses, how it ended."""
    from unbraid.families.family import completed
    from unbraid.families.family_table import find_family
    from unbraid.training.train import readable_logs

    hyperparameters = [completed(find_family(run.config["family"]), run.config["hyperparameters"]) for run in runs]
    varied = [name for name in hyperparameters[0] if len({str(values[name]) for values in hyperparameters}) > 1]
    ended = [readable_logs(run.status["last"]) for run in runs]
    last = list(dict.fromkeys(name for numbers in ended for name in numbers if name.split("/")[0] in SHOWN))
    heads = ["run", *(name.replace("_", " ") for name in ("seed", *varied, *last)), "state"]
    rows = []
    for run, values, logs in zip(runs, hyperparameters, ended, strict=True):
        settings = [f"{values[name]}" for name in varied]
        numbers = [f"{logs[name]:.4g}" if name in logs else "-" for name in last]
        rows.append([run.path.name, run.config["seed"], *settings, *numbers, _ended(run)])
    print_table(Table(heads, rows, "l" + "r" * (len(heads) - 2) + "l"))
    for run in runs:
        if note := run.status.get("note"):
            say(f"{run.path.name} looks wrong: {note}")
    say(f"in {runs[0].path.parent}")


def _ended(run: "Run") -> str:
    """How a run ended."""
    state, step = run.status["state"], run.status["step"]
    if state == "diverged":
        return f"diverged at step {step}: {run.status['reason']}"
    early = run.status.get("held_out", {}).get("stopped")
    return f"{state}, stopped early at step {step}" if early else state


def continue_run(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run, as `unbraid train` makes it.")],
    steps: Annotated[int, typer.Option(help="Total training steps, including those already taken.")],
    dataset: Annotated[str | None, typer.Option(help="Training images; default those named in the run.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the new run; default the one that holds this run.")
    ] = None,
    checkpoint_every: CheckpointEvery = 120.0,
    *,
    trust: Trust,
) -> None:
    """Train a finished run further, into a folder of its own.

    The new run has the weights and the id of one that was trained with so many steps from the start. If that is
    impossible, because its learning rate falls over the whole training, nothing is trained.

    Examples:

      unbraid continue runs/3f6c0f0a8d1e2b47 --steps 60000
    """
    from unbraid.runs.run import open_run
    from unbraid.training.continuing import continue_run as go_on

    begun = open_run(run, trust=trust.names)
    with continuing(), progress_bar(str(begun.config["family"])) as report:
        longer = go_on(begun, steps, dataset=dataset, out=out, checkpoint_every=checkpoint_every, progress=report)
    print_runs([longer])
