"""`unbraid fit`: from a folder of unlabelled images to a chosen model."""

import math
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from unbraid.base.comma_lists import listed
from unbraid.base.counted import counted
from unbraid.base.progress_bar import progress_bar
from unbraid.cli._options import Device, yaml_options
from unbraid.cli._progress import continuing
from unbraid.cli.show_command import say

if TYPE_CHECKING:
    from unbraid.fitting.fit import Fitted
    from unbraid.fitting.plan import Plan, Round


Images: TypeAlias = Annotated[
    str, typer.Argument(help="Folder of pictures with its subfolders, or the name or path of a dataset.")
]
Data: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="OPTION=VALUE", help="An option of the dataset; pages=channels takes the pages of TIFFs as channels."
    ),
]
Out: TypeAlias = Annotated[Path, typer.Option(help="Folder for the model, its report and all other files.")]
Minutes: TypeAlias = Annotated[float, typer.Option(help="Time limit of this call.")]
Size: TypeAlias = Annotated[
    int | None,
    typer.Option(help="Height and width of the training images, 16 to 256; default up to 64, as time allows."),
]
Families: TypeAlias = Annotated[
    str,
    typer.Option(help="Kinds of model to train, comma-separated: beta_tcvae, beta_vae, dip_vae_ii, factor_vae, vae."),
]
Latents: TypeAlias = Annotated[
    int, typer.Option(help="Number of latents of a model; those that are not needed stay empty.")
]
Seed: TypeAlias = Annotated[int, typer.Option(help="Random seed of the first model; the others count up.")]
Labels: TypeAlias = Annotated[
    Path | None,
    typer.Option(help="Table (.csv, .parquet) with a column `file`: the models are scored by it after the choice."),
]
PlanFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        help="Repeat this plan.yaml exactly, however long it takes. Minutes, size, families, latents and seed are "
        "its own."
    ),
]
PlanOnly: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Print the plan and check the labels; train nothing.")
]
Executor: TypeAlias = Annotated[str, typer.Option(help="local (this machine) or ray.")]


def fit(
    images: Images,
    out: Out = Path("fitted"),
    minutes: Minutes = 30.0,
    size: Size = None,
    families: Families = "beta_tcvae,beta_vae,dip_vae_ii",
    latents: Latents = 10,
    seed: Seed = 0,
    labels: Labels = None,
    plan: PlanFile = None,
    dry_run: PlanOnly = False,
    device: Device = "auto",
    executor: Executor = "local",
    data: Data = None,
) -> None:
    """Train models on unlabelled images, and choose one of them.

    A model describes each image by a few numbers, called latents. In a good one, each of them follows one thing that
    varies in the images, such as the size of an object.

    The choice needs no labels. Small models of several kinds come first. The settings that find the same latents from
    different random seeds are then trained at full size, and the best model is saved with a report. If it was
    interrupted, the same command resumes it; with more minutes, it adds models to those that are there.

    Examples:

      unbraid fit images/ --minutes 30

      unbraid fit images/ --minutes 30 --dry-run

      unbraid fit images/ --minutes 60 --labels labels.csv

      unbraid fit stacks/ --data pages=channels

      unbraid fit images/ --plan fitted/plan.yaml --out again
    """
    from unbraid.fitting.fit import carry_out, claimed, planned_for
    from unbraid.fitting.hand_over import read_labels

    began = math.inf if plan else time.monotonic()
    names = listed(families)
    with ExitStack() as working:
        with continuing(), progress_bar("fit") as bar:
            pictures, planned = planned_for(
                {"name": images, **yaml_options("--data", data)}, out, minutes=minutes, size=size, families=names,
                latents=latents, seed=seed, plan=plan, device=device, executor=executor, report=bar.show,
                claim=lambda: working.enter_context(claimed(out)),
            )  # fmt: skip
        known = None if labels is None else read_labels(labels, pictures)
        on_labels = () if known is None else known.notes
        for line in (*pictures.notes(), *on_labels, _plan_line(planned)):
            say(line)
        if plan is None and minutes < planned.minutes:
            say(f"this call stops training to end within {counted(minutes, 'minute')}")
        if dry_run:
            return
        with continuing(), progress_bar("fit") as bar:
            fitted = carry_out(
                out, pictures, planned, began=began, minutes=minutes, labels=known, device=device, executor=executor,
                report=bar.show,
            )  # fmt: skip
    _say_fitted(fitted, [note for note in fitted.notes if note not in on_labels])


def _plan_line(plan: "Plan") -> str:
    search, final = plan.search, plan.final
    return (
        f"plan: {_round(search, len(search.settings))}; then {_round(final, plan.most_settings)}: "
        f"about {counted(plan.minutes, 'minute')}"
    )


def _round(planned: "Round", n_settings: int) -> str:
    layers = "convolutions" if planned.network == "conv" else "dense layers"
    return (
        f"{counted(n_settings, 'setting')} x {counted(planned.seeds, 'seed')}, {layers} at {planned.size} x "
        f"{planned.size}, {counted(planned.steps, 'step')}"
    )


def _say_fitted(fitted: "Fitted", notes: list[str]) -> None:
    from unbraid.fitting.choose import next_step

    chosen, choice = fitted.choice.chosen, fitted.choice
    if chosen is None:
        say(f"nothing was chosen: {choice.reason}")
    else:
        model = (
            f"chosen: {chosen.setting}, of {counted(len(choice.candidates), 'model')} (UDR {choice.udr(chosen):.3f})"
        )
        say(f"{model}. {choice.trust}")
        say(f"model: {fitted.folder / 'model'}, codes: {fitted.folder / 'codes.csv'}")
    if step := next_step(choice):
        say(step)
    for note in notes:
        say(note)
    say(f"report: {fitted.report()}")
