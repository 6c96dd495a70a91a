"""`unbraid compare`: is one of several models, or one group of the runs of a study, better than another?"""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from unbraid.cli._options import (
    FACTORS,
    HOW_SURE,
    LABELS,
    Csv,
    Embedding,
    Html,
    Json,
    Key,
    Kinds,
    LabelTable,
    Latex,
    Markdown,
    Missing,
    Period,
    Resamples,
    RowGroups,
    Unwanted,
    Weights,
    interval_of,
    labels_of,
    listed,
    refuse,
)
from unbraid.cli._paths import PathKind, by_short_name, kind_of
from unbraid.cli._progress import metric_progress, stage_progress
from unbraid.cli._trust import TrustCode
from unbraid.cli.show_command import Files, show
from unbraid.files.table_formats import Table, table_of

if TYPE_CHECKING:
    from unbraid.runs.labelled_codes import Labels
    from unbraid.runs.model_list import Models
    from unbraid.scoring.compare import Difference
    from unbraid.scoring.group_comparison import Comparison, Shift

MODELS, STUDY = "Models", "A study"  # headings of options


Paths: TypeAlias = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...|STUDY",
        help="Files of codes, folders of models, or a folder of them; or one study: its folder, or a table of results.",
    ),
]
Factors: TypeAlias = Annotated[str | None, typer.Option(rich_help_panel=LABELS, help=FACTORS)]
Metrics: TypeAlias = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=MODELS,
        help="Comma-separated metrics and presets (see `unbraid metrics`).",
        show_default="standard",
    ),
]
Level: TypeAlias = Annotated[float, typer.Option(rich_help_panel=HOW_SURE, help="Confidence level of the intervals.")]
Paired: TypeAlias = Annotated[
    bool | None,
    typer.Option(
        "--paired/--unpaired",
        rich_help_panel=MODELS,
        help="Whether row k of every file is the same image; default: yes if their factors match.",
    ),
]
Seed: TypeAlias = Annotated[
    int | None,
    typer.Option(rich_help_panel=MODELS, help="Random seed; the same seed gives the same numbers.", show_default="0"),
]
By: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        rich_help_panel=STUDY,
        help="Column that defines the groups: family, setting, hyper.beta, ...",
        show_default="family",
    ),
]
Columns: TypeAlias = Annotated[
    str | None, typer.Option(rich_help_panel=STUDY, help="Comma-separated columns to compare; default the metrics.")
]
Over: TypeAlias = Annotated[
    Literal["runs", "settings"] | None,
    typer.Option(
        rich_help_panel=STUDY,
        help="Sampling unit: runs, or settings averaged over their seeds.",
        show_default="runs",
    ),
]
Within: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        rich_help_panel=STUDY,
        help="Compare only groups with the same value of this column; default label in a study of several datasets, "
        "unless --by tells these apart.",
    ),
]


def compare(
    paths: Paths,
    labels: LabelTable = None,
    key: Key = None,
    codes: Embedding = None,
    factors: Factors = None,
    kinds: Kinds = None,
    period: Period = None,
    missing: Missing = None,
    metrics: Metrics = None,
    unwanted: Unwanted = None,
    confidence: Level = 0.95,
    resamples: Resamples = None,
    paired: Paired = None,
    weights: Weights = None,
    groups: RowGroups = None,
    seed: Seed = None,
    by: By = None,
    columns: Columns = None,
    over: Over = None,
    within: Within = None,
    csv: Csv = None,
    latex: Latex = None,
    markdown: Markdown = None,
    json: Json = None,
    html: Html = None,
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
    to = Files(csv, latex, markdown, json, html)
    if len(paths) == 1 and (kind := kind_of(paths[0])) in ("study", "table"):
        of_models = {
            "labels": labels, "key": key, "codes": codes, "factors": factors, "kinds": kinds, "period": period,
            "missing": missing, "metrics": metrics, "unwanted": unwanted, "resamples": resamples, "paired": paired,
            "weights": weights, "groups": groups, "seed": seed, "html": html,
        }  # fmt: skip
        refuse(of_models, f"is of models; {paths[0]} is a study")
        chosen = {"by": by or "family", "columns": listed(columns) or None, "over": over or "runs", "within": within}
        _show_groups(paths[0], kind, to, {**chosen, "confidence": confidence}, trust_code)
        return
    from unbraid.runs.model_list import Models

    models = Models(paths, codes, needed=2)
    refuse({"columns": columns}, "is for a study; these are models, of which --factors names the factors")
    of_study = {"by": by, "over": over, "within": within, "trust-code": trust_code}
    refuse(of_study, "is for a study; these are models")
    description = labels_of(
        labels, None if factors is None else listed(factors), kinds, period, missing, weights=weights, groups=groups,
        unwanted=listed(unwanted), key=key, codes=codes,
    )  # fmt: skip
    chosen = {"metrics": listed(metrics or "standard"), "unwanted": listed(unwanted)}
    options = {"confidence": interval_of(confidence, resamples), "seed": seed or 0, "paired": paired}
    _show_models(models, description, to, {**chosen, **options})


def _show_models(files: "Models", description: "Labels", to: Files, options: dict[str, Any]) -> None:
    from unbraid.files.trust import trusting
    from unbraid.runs.labelled_codes import read_labelled
    from unbraid.scoring.compare import compare as compare_models
    from unbraid.scoring.score import choose

    choose(trusting(options["metrics"]))
    read = files.map(lambda path: read_labelled(path, description)[0])
    models = by_short_name({str(path): representation for path, representation in read.items()})
    with metric_progress() as progress:
        comparison = compare_models(models, progress=progress, **options)
    scores = Table(*comparison.table())
    paper = Table(*comparison.table(), notes=(comparison.footnote,))
    rows = [(difference.metric, difference, difference.difference) for difference in comparison.differences]
    notes = [f"note: {note}" for note in (comparison.footnote, *comparison.notes)]
    notes.insert(0, f"factors with a code of their own: {comparison.diagnosis}")
    show(
        [scores, _differences("metric", "models", comparison.confidence, rows), *notes], to,
        content={**comparison.to_dict(), "failed": files.failures},
        rows=table_of(comparison.to_frame()) if to.csv else None, paper=paper,
        html=comparison.text("page.html") if to.html else None,
    )  # fmt: skip
    files.check()


def _show_groups(path: Path, kind: PathKind, to: Files, options: dict[str, Any], trust: list[str] | None) -> None:
    from unbraid.cli.study_command import opened
    from unbraid.studies.compare_models import compare
    from unbraid.studies.snapshot import check_runs, check_some_left, failed_runs
    from unbraid.studies.study_comparison import compare_runs

    with (
        nullcontext(path) if kind == "table" else opened(path, trust=trust or ()) as study,
        stage_progress("scoring as many rows") as progress,
    ):
        snapshots = [] if isinstance(study, Path) else study.snapshots()
        check_some_left(snapshots)
        comparison = (
            compare(study, progress=progress, **options)
            if isinstance(study, Path)
            else compare_runs(snapshots, progress=progress, **options)
        )
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
