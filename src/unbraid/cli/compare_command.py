"""`unbraid compare`: is one of several models, or one group of the runs of a study, better than another?"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import typer

from unbraid.base.comma_lists import listed
from unbraid.cli._options import (
    FACTORS,
    HOW_SURE,
    LABELS,
    Embedding,
    Files,
    FilesAndPage,
    Resamples,
    ScoredLabels,
    TrustCode,
    interval_of,
    refuse,
)
from unbraid.cli._paths import Place, by_short_name, opened
from unbraid.cli._progress import metric_progress, stage_progress
from unbraid.cli.show_command import show
from unbraid.files.table_formats import Table, table_of

if TYPE_CHECKING:
    from unbraid.runs.model_list import Models
    from unbraid.scoring.compare import Difference
    from unbraid.scoring.group_comparison import Comparison, Shift


@dataclass(frozen=True)
class OfModels:
    """What is of models alone, beside their labels."""

    heading: ClassVar = "Models"

    codes: Embedding = None
    factors: Annotated[str | None, typer.Option(rich_help_panel=LABELS, help=FACTORS)] = None
    metrics: Annotated[
        str | None,
        typer.Option(help="Comma-separated metrics and presets (see `unbraid metrics`).", show_default="standard"),
    ] = None
    resamples: Resamples = None
    paired: Annotated[
        bool | None,
        typer.Option(
            "--paired/--unpaired",
            help="Whether row k of every file is the same image; default: yes if their factors match.",
        ),
    ] = None
    seed: Annotated[
        int | None, typer.Option(help="Random seed; the same seed gives the same numbers.", show_default="0")
    ] = None


@dataclass(frozen=True)
class OfStudy:
    """What is of a study alone."""

    heading: ClassVar = "A study"

    by: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column that defines the groups: family, setting, hyper.beta, ...",
            show_default="family",
        ),
    ] = None
    columns: Annotated[str | None, typer.Option(help="Comma-separated columns to compare; default the metrics.")] = None
    over: Annotated[
        Literal["runs", "settings"] | None,
        typer.Option(help="Sampling unit: runs, or settings averaged over their seeds.", show_default="runs"),
    ] = None
    within: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Compare only groups with the same value of this column; default label in a study of several "
            "datasets, unless --by tells these apart.",
        ),
    ] = None


def compare(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...|STUDY",
            help="Files of codes, folders of models, or a folder of them; or one study: its folder, or a table of "
            "results.",
        ),
    ],
    *,
    labels: ScoredLabels,
    of_models: OfModels,
    confidence: Annotated[
        float, typer.Option(rich_help_panel=HOW_SURE, help="Confidence level of the intervals.")
    ] = 0.95,
    of_study: OfStudy,
    to: FilesAndPage,
    trust_code: TrustCode = None,
) -> None:
    """Compare models, or groups of the runs of a study.

    Which is better, by how much, and is the difference significant?

    For models the sampling unit is the image. Files with more rows than the smallest are scored on disjoint subsets of
    its size, because scores depend on the number of rows. To compare families, train several seeds of each and compare
    the study: then the sampling unit is the run, because seeds change a score more than images do. There a difference
    is the median of all differences between two groups, with the interval of a rank test. Runs with more rows than
    others are scored again on subsets of as many, from the codes in their folders; a table of unequal rows is refused.

    P values are corrected for all comparisons shown (Holm), and a model or group is called better only if its
    difference is significant. --latex and --markdown write the scores ± intervals, --csv the differences.

    Examples:

      unbraid compare vae.npz factor_vae.npz --metrics mig,snc --html page.html

      unbraid compare runs/3f6c0f0a8d1e2b47 runs/91c4e8d0f7a6b235 --metrics mig,dci_lasso --latex table.tex

      unbraid compare seed0.npy seed1.npy --labels labels.csv --metrics mig

      unbraid compare study/

      unbraid compare study/ --by hyper.beta --columns mig.score,dci_lasso.disentanglement --csv differences.csv

      unbraid compare several-datasets/ --by dataset --over settings
    """
    from unbraid.runs.model_list import Models

    place = Place.at(paths[0])
    if len(paths) == 1 and place.kind in ("study", "table"):
        refuse({**vars(labels), **vars(of_models), "html": to.html}, f"is of models; {paths[0]} is a study")
        _show_groups(place, of_study, confidence, to, trust_code)
        return
    models = Models(paths, of_models.codes, needed=2)
    refuse({"columns": of_study.columns}, "is for a study; these are models, of which --factors names the factors")
    refuse({**vars(of_study), "trust-code": trust_code}, "is for a study; these are models")
    _show_models(models, labels, of_models, confidence, to)


def _show_models(
    files: "Models", labels: ScoredLabels, of_models: OfModels, confidence: float, to: FilesAndPage
) -> None:
    from unbraid.files.trust import trusting
    from unbraid.runs.labelled_codes import read_labelled
    from unbraid.scoring.compare import compare as compare_models
    from unbraid.scoring.score import choose

    factors = None if of_models.factors is None else listed(of_models.factors)
    description = labels.read(factors, codes=of_models.codes)
    metrics = listed(of_models.metrics or "standard")
    choose(trusting(metrics))
    read = files.map(lambda path: read_labelled(path, description)[0])
    models = by_short_name({str(path): representation for path, representation in read.items()})
    with metric_progress() as progress:
        comparison = compare_models(
            models, metrics=metrics, unwanted=listed(labels.unwanted), seed=of_models.seed or 0,
            confidence=interval_of(confidence, of_models.resamples) or confidence,
            paired=of_models.paired, progress=progress,
        )  # fmt: skip
    paper = Table(*comparison.table(), notes=(comparison.footnote,))
    rows = [(difference.metric, difference, difference.difference) for difference in comparison.differences]
    lines = [f"note: {note}" for note in (comparison.footnote, *comparison.notes)]
    lines.insert(0, f"factors with a code of their own: {comparison.diagnosis}")
    show(
        [replace(paper, notes=()), _differences("metric", "models", comparison.confidence, rows), *lines], to,
        content={**comparison.to_dict(), "failed": files.failures},
        rows=table_of(comparison.to_frame()) if to.csv else None, paper=paper,
        html=comparison.text("page.html") if to.html else None,
    )  # fmt: skip
    files.check()


def _show_groups(place: Place, of_study: OfStudy, confidence: float, to: Files, trust: list[str] | None) -> None:
    from unbraid.studies.compare_models import compare
    from unbraid.studies.snapshot import check_runs, check_some_left, failed_runs
    from unbraid.studies.study_comparison import compare_runs

    options: dict[str, Any] = {
        "by": of_study.by or "family", "columns": listed(of_study.columns) or None, "over": of_study.over or "runs",
        "within": of_study.within, "confidence": confidence,
    }  # fmt: skip
    snapshots = []
    with stage_progress("scoring as many rows") as progress:
        if place.kind == "table":
            comparison = compare(place.path, progress=progress, **options)
        else:
            with opened(place.path, trust=trust) as study:
                snapshots = study.snapshots()
                check_some_left(snapshots)
                comparison = compare_runs(snapshots, progress=progress, **options)
    failures = [{"path": path, "reason": reason} for path, reason in failed_runs(snapshots).items()]
    rows = [(shift.column, shift, shift.shift) for shift in comparison.shifts]
    notes = [f"note: {note}" for note in comparison.notes]
    show(
        [_means(comparison), _differences("column", "groups", comparison.confidence, rows), *notes], to,
        content={**comparison.to_dict(), "failed": failures}, rows=table_of(comparison.to_frame()),
        paper=Table(*comparison.table(), notes=(comparison.footnote,)),
    )  # fmt: skip
    check_runs(snapshots)


def _means(comparison: "Comparison") -> Table:
    rows = [
        [group.column, group.group, group.n, group.mean, f"{group.low:z.3f} to {group.high:z.3f}", group.median]
        for group in comparison.groups
    ]
    heads = ["column", comparison.by, comparison.over, "mean", _between(comparison.confidence), "median"]
    return Table(heads, rows, "llrrrr", keys=2)


def _differences(
    what: str, pair: str, confidence: float, differences: "Sequence[tuple[str, Difference | Shift, float]]"
) -> Table:
    """What differs, between whom, by how much, and who is better."""
    from unbraid.base.repr import p_text

    rows = [
        [
            name, f"{difference.first} - {difference.second}", f"{value:+z.3f}",
            f"{difference.low:+z.3f} to {difference.high:+z.3f}".replace("inf", "∞"), p_text(difference.p),
            p_text(difference.p_holm), difference.better,
        ]
        for name, difference, value in differences
    ]  # fmt: skip
    return Table([what, pair, "difference", _between(confidence), "p", "p (Holm)", "better"], rows, "llrrrrl")


def _between(confidence: float) -> str:
    return f"{100 * confidence:g} % between"
