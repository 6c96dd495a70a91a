"""`unbraid study add`: representations of one's own among the runs of a study."""

from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Annotated

import typer

from unbraid.base.comma_lists import listed
from unbraid.cli._options import Kinds, LabelTable, StudyFolder, Trust, kinds_of, settings_of
from unbraid.cli._paths import opened
from unbraid.cli._progress import stage_progress
from unbraid.cli.show_command import say
from unbraid.studies.study_text import failed_metrics

if TYPE_CHECKING:
    from unbraid.studies.study import Study


@dataclass(frozen=True)
class Names:
    """What the runs are called in the study."""

    family: Annotated[str | None, typer.Option(help="Family named in the results; a run folder knows its own.")] = None
    setting: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A hyperparameter of all of them; may be repeated.")
    ] = None
    seed: Annotated[
        int | None,
        typer.Option(
            help="Seed of the first; the others count up. Default the next that is free, or a run folder's own."
        ),
    ] = None
    name: Annotated[
        list[str] | None,
        typer.Option(help="Name of each run in the results, in order; default the file name without its suffix."),
    ] = None


@dataclass(frozen=True)
class Begun:
    """What a study of codes alone begins with."""

    labels: LabelTable = None
    metrics: Annotated[
        str | None,
        typer.Option(
            help="With --labels: comma-separated metrics of the new study.",
            show_default="mig,dci_lasso,sap,modularity,mcc",
        ),
    ] = None
    kinds: Kinds = None


def add(
    folder: StudyFolder,
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Representation files, run folders of `unbraid train`, or folders of models of other frameworks.",
        ),
    ],
    *,
    names: Names,
    begun: Begun,
    trust: Trust,
) -> None:
    """Add models that were trained elsewhere to a study.

    They are scored, ranked and compared like the study's own. A file holds codes of the images of the study, in their
    order: all images, or the 10,000 that the study's runs are encoded on (docs/studies.md says how to encode them).
    Pictures of a folder are in the order of their names. Several files are several seeds of one setting. Folders of
    other frameworks' models hold one file of codes each, and their configs give settings and seeds.

    If the study does not exist yet, --labels begins one of codes alone, without images, scored by --metrics.

    Examples:

      unbraid study add study/ mine-0.npz mine-1.npz --family mine --setting beta=4

      unbraid study add study/ runs/1f0c3a5be2d94c77

      unbraid study add study/ their_runs/ --family theirs

      unbraid study add new_study/ their_runs/ --labels labels.csv --metrics mig,dci_lasso
    """
    from unbraid.files.whole_files import with_home
    from unbraid.runs.model_list import Models
    from unbraid.scoring.score import without_presets
    from unbraid.studies.added import METRICS, begin
    from unbraid.studies.added import add as add_files
    from unbraid.studies.store import ADDED, is_study

    labels, trusted = begun.labels, trust.names
    if labels is None and (begun.metrics or begun.kinds):
        raise ValueError("--metrics and --kinds are for a study that begins with --labels; others have theirs")
    if labels is None and not is_study(folder) and not folder.exists():
        raise FileNotFoundError(f"{folder}: no such study; --labels begins one of codes alone, without images")
    new, fresh = labels is not None and not is_study(folder), not folder.exists()
    if labels is not None:
        table = with_home(labels)
        trusted = [*trusted, str(table.absolute()), str(table.resolve())]
        if new:
            metrics = list(without_presets(listed(begun.metrics) or METRICS))
            begin(folder, labels, metrics=metrics, kinds=kinds_of(begun.kinds))
    try:
        with opened(folder, trust=trusted) as study, stage_progress("reading") as progress:
            _check_begun(study, begun, folder)
            models = Models(files)
            runs = add_files(
                study, models, family=names.family, setting=settings_of("--setting", names.setting) or None,
                seed=names.seed, names=names.name, progress=progress,
            )  # fmt: skip
    except BaseException:
        # A study that nothing could be added to is none; what lay there before stays.
        if new and fresh and not any((folder / ADDED).glob("*/")):
            rmtree(folder, ignore_errors=True)
        raise
    for run in runs:
        say(f"added {' '.join(filter(None, (run.family, run.setting, f'seed {run.seed}')))}: {run.path}")
    for line in failed_metrics(runs):
        say(line)
    models.check()


def _check_begun(study: "Study", begun: Begun, folder: Path) -> None:
    """Raises ValueError where the study has begun with something else than the options say."""
    from unbraid.files.whole_files import with_home
    from unbraid.scoring.score import without_presets

    dataset = study.config.dataset
    if begun.labels is not None and with_home(begun.labels).resolve() != Path(dataset.name).resolve():
        raise ValueError(f"--labels is of a study that begins; {folder} has begun with {dataset.name}")
    metrics = None if begun.metrics is None else list(without_presets(listed(begun.metrics)))
    for option, value, own in (
        ("--metrics", metrics, study.config.metrics),
        ("--kinds", kinds_of(begun.kinds), dataset.options.get("kinds")),
    ):
        if value and value != own:
            raise ValueError(f"{option} is of a study that begins; {folder} has begun with {own}")
