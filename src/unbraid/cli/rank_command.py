"""`unbraid rank`: which of many models, or of the runs of a study, is best, without labels."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from unbraid.cli._options import OUTPUT, Csv, Embedding, Html, Json, Latex, Markdown, refuse
from unbraid.cli._progress import stage_progress
from unbraid.cli._trust import TrustCode
from unbraid.cli.show_command import Files, say, show
from unbraid.files.table_formats import Table, table_of

if TYPE_CHECKING:
    from unbraid.ranking.ranking import Ranking
    from unbraid.runs.model_list import Models

# Headings of options.
UDR, FILES, STUDY, MACHINES = "How models are compared", "Files and models", "A study", "Where"


Paths: TypeAlias = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...|STUDY",
        help="Two or more files of codes of the same samples, folders of models, or a folder of them; or the "
        "folder of a study.",
    ),
]
By: TypeAlias = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=FILES,
        metavar="COLUMN|folder|name|PATTERN|LABEL,...",
        help="Compare models within groups only, by a column of the runs (family, hyper.beta, "
        "...), the folder, the name less the number at its end (beta4-0.npy is of beta4), a pattern such as "
        "'(beta[0-9]+)', or one label for each.",
    ),
]
Compared: TypeAlias = Annotated[
    Literal["same-hyperparameters", "same-family", "all"] | None,
    typer.Option(
        rich_help_panel=STUDY,
        help="Which models are compared, all, those of one family, or the seeds of one setting, as in "
        "the paper. Default as in the YAML, or all.",
    ),
]
Similarity: TypeAlias = Annotated[
    Literal["lasso", "spearman", "pearson"] | None,
    typer.Option(
        rich_help_panel=UDR,
        help="Similarity of two latents; default as in the YAML of a study, lasso, or spearman with --top.",
    ),
]
Top: TypeAlias = Annotated[
    int | None,
    typer.Option(
        rich_help_panel=FILES,
        help="Compare each code with its N most similar (spearman or pearson), for thousands of codes.",
    ),
]
Alpha: TypeAlias = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=UDR,
        help="Penalty of the lasso, or cv: by cross-validation, as the paper. Default as in the YAML, or 0.1.",
    ),
]
Informative: TypeAlias = Annotated[
    Literal["signal", "kl"] | None,
    typer.Option(
        rich_help_panel=UDR,
        help="How informative latents are found: by their signal, or by their KL as in the paper. Default as in "
        "the YAML, or signal.",
    ),
]
Threshold: TypeAlias = Annotated[
    float | None,
    typer.Option(
        rich_help_panel=UDR,
        help="A latent counts when its signal, or its mean KL, is above this, in nats. Default as in the YAML, or "
        "0.01.",
    ),
]
Comparisons: TypeAlias = Annotated[
    int | None,
    typer.Option(
        rich_help_panel=UDR,
        help="Number of other models that each one is compared with; default as in a study's YAML, or all.",
    ),
]
Seed: TypeAlias = Annotated[
    int | None,
    typer.Option(rich_help_panel=UDR, help="Seed of the drawn comparisons. Default as in the YAML, or 0."),
]
Untrained: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        rich_help_panel=FILES,
        metavar="FILE",
        help="Codes of the same samples by an untrained model; give two or more, each with --untrained. "
        "No model that scores as low as they do is called best.",
    ),
]
MetricColumn: TypeAlias = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=STUDY,
        help="Column by which to check that seeds matter, such as mig.score. It changes no rank.",
    ),
]
Executor: TypeAlias = Annotated[
    Literal["local", "ray"],
    typer.Option(rich_help_panel=MACHINES, help="Where models are compared: on this machine, or on a Ray cluster."),
]
Address: TypeAlias = Annotated[
    str | None,
    typer.Option(rich_help_panel=MACHINES, help="With --executor ray: of the cluster, auto (default) or host:port."),
]
Rows: TypeAlias = Annotated[
    int | None,
    typer.Option(rich_help_panel=OUTPUT, help="Number of models in the table; default all files, or 20 of a study."),
]


def rank(
    paths: Paths,
    codes: Embedding = None,
    by: By = None,
    compare: Compared = None,
    similarity: Similarity = None,
    top: Top = None,
    alpha: Alpha = None,
    informative: Informative = None,
    kl_threshold: Threshold = None,
    n_comparisons: Comparisons = None,
    seed: Seed = None,
    untrained: Untrained = None,
    metric: MetricColumn = None,
    executor: Executor = "local",
    address: Address = None,
    rows: Rows = None,
    csv: Csv = None,
    latex: Latex = None,
    markdown: Markdown = None,
    json: Json = None,
    html: Html = None,
    trust_code: TrustCode = None,
) -> None:
    """Rank models without labels, by how well they agree.

    Unsupervised Disentanglement Ranking (UDR) takes models to be disentangled if their latents match those of the
    others one to one. Files hold codes of the same samples in the same order, and need no labels. Uninformative latents
    are left out; in a file without log_variances these are the constant ones.

    Of a study, the best setting has the highest median, and the best model the highest score among those that can be
    called good. Metrics that need labels are shown too, if there are any, and so are the baselines without training
    where its YAML says `baselines: true`; † marks runs that are no better. Comparisons are kept in STUDY/udr/, so a new
    model only adds its own. --latex and --markdown write the medians by setting, --csv all runs, the best first.

    Examples:

      unbraid rank study/

      unbraid rank study/ --similarity spearman --compare all --rows 5 --csv runs.csv --latex settings.tex

      unbraid rank seed0.npz seed1.npz seed2.npz

      unbraid rank runs/ --codes z.npy --by model.name

      unbraid rank codes/*.npy --by name --html ranking.html

      unbraid rank runs/*.npz --alpha cv --informative kl --json ranking.json

      unbraid rank activations/*.npz --similarity pearson --top 10

      unbraid rank study/ --executor ray --address auto
    """
    from unbraid.runs.foreign_models import check_not_fitted
    from unbraid.runs.model_list import Models
    from unbraid.studies.rank_models import executed
    from unbraid.studies.store import is_study

    if rows is not None and rows < 1:
        raise ValueError(f"--rows must be at least 1; got {rows}")
    to, where = Files(csv, latex, markdown, json, html), executed(executor, address, top)
    options = {
        "similarity": similarity, "alpha": None if alpha is None else penalty(alpha), "informative": informative,
        "kl_threshold": kl_threshold, "n_comparisons": n_comparisons, "seed": seed,
    }  # fmt: skip
    options = {name: value for name, value in options.items() if value is not None}
    study = next(filter(is_study, paths), None)
    if study is None:
        files = Models(paths, codes, needed=2)
        refuse({"compare": compare, "metric": metric, "trust-code": trust_code}, "is for a study; these are files")
        with where:
            _rank_files(files, codes, by, top, untrained or [], options, rows, to)
        return
    if len(paths) > 1:
        check_not_fitted(study)
        raise ValueError(f"{study} is a study; rank takes one study alone, or files and folders of models")
    of_files = {"codes": codes, "by": by, "top": top, "untrained": untrained or None}
    refuse(of_files, f"is for files; {study} is a study")
    refuse({"html": html}, f"is for files; unbraid report {study} makes the page of a study")
    if similarity == "pearson":
        raise ValueError(f"--similarity pearson needs --top, which is for files; {study} is a study")
    options |= {} if compare is None else {"compare": compare}
    with where:
        _rank_study(study, options, metric, rows or 20, to, trust_code)


def _rank_files(
    files: "Models", codes: str | None, by: str | None, top: int | None, untrained: list[Path],
    options: dict[str, Any], n_rows: int | None, to: Files,
) -> None:  # fmt: skip
    from unbraid.ranking.ranking_page import ranking_page
    from unbraid.ranking.verdicts import group_verdicts, model_verdict
    from unbraid.runs.model_list import Models

    if len(files) < 2:
        raise ValueError(f"rank compares models with each other; give two or more files (got {len(files)})")
    ranking = _ranked(files, codes, by, top, Models(untrained, codes, strict=True).paths, options)
    for note in ranking.notes:
        say(f"note: {note}", err=True)
    grouped = by is not None
    table = _table(ranking, grouped=grouped)
    content = {**_content(ranking, options.get("similarity"), top, grouped=grouped), "failed": files.failures}
    show(
        [table.first(n_rows), *(group_verdicts if grouped else model_verdict)(ranking)], to, rows=table, paper=table,
        content=content if to.json else None, html=ranking_page(ranking, grouped=grouped) if to.html else None,
    )  # fmt: skip
    files.check()


def _rank_study(
    folder: Path, options: dict[str, Any], metric: str | None, n_rows: int, to: Files, trust: list[str] | None
) -> None:
    from unbraid.cli.study_command import opened
    from unbraid.scoring.result_columns import together
    from unbraid.studies.ranked_study import rank_parts, setting_medians
    from unbraid.studies.snapshot import check_runs, check_some_left

    with opened(folder, trust=trust or ()) as study, stage_progress("reading codes") as progress:
        snapshots = study.snapshots()
        check_some_left(snapshots)
        rankings, left_out = rank_parts(snapshots, options, metric, progress=progress)
    for label, reason in left_out.items():
        say(f"{label}: {reason}", err=True)
    table = together({label: ranking.table for label, ranking in rankings.items()})
    content = {label: ranking.content() for label, ranking in rankings.items()} if to.json else {}
    shown: list[Table | str] = []
    for label, ranking in rankings.items():
        shown += [*([label] if label else []), *ranking.tables(n_rows), *ranking.lines()]
    show(shown, to, content=content.get("", content), rows=table_of(table), paper=setting_medians(table))
    check_runs(snapshots, {path: reason for ranking in rankings.values() for path, reason in ranking.failed.items()})


def penalty(text: str) -> float | Literal["cv"]:
    """What --alpha says."""
    if text == "cv":
        return "cv"
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--alpha must be a number or cv; got {text!r}") from None


def _ranked(
    files: "Models", codes: str | None, by: str | None, top: int | None, untrained: list[Path],
    options: dict[str, Any],
) -> "Ranking":  # fmt: skip
    from unbraid.runs.foreign_models import code_path
    from unbraid.runs.grouping import group_names
    from unbraid.studies.rank_models import rank as rank_codes
    from unbraid.studies.rank_models import read_model

    models = files.map(lambda path: read_model(str(path), code_path(path, codes), wide=top is not None))
    groups = None if by is None else group_names(files.paths, by)
    with stage_progress("comparing models") as progress:
        ranking = rank_codes(
            {str(path): model for path, model in models.items()},
            groups=groups,
            top=top,
            untrained=[code_path(path, codes) for path in untrained],
            progress=partial(progress, "comparing models"),
            **options,
        )
    for path, reason in ranking.left_out.items():
        raise ValueError(f"{path}: {reason}")
    return ranking


def _table(ranking: "Ranking", *, grouped: bool) -> Table:
    rows = [
        [
            place, float(ranking.scores[model]), int(ranking.informative[model]),
            *([ranking.families[model]] if grouped else []), ranking.runs[model],
        ]
        for place, model in enumerate(ranking.best_first, start=1)
    ]  # fmt: skip
    heads = ["rank", "UDR", "informative latents", *(["group"] if grouped else []), "model"]
    return Table(heads, rows, "rrr" + "l" * (len(heads) - 3), keys=len(heads) - 1)


def _content(ranking: "Ranking", similarity: str | None, top: int | None, *, grouped: bool) -> dict[str, Any]:
    options = ranking.options
    pairs = [[float(value) if value == value else None for value in row] for row in ranking.pairs]
    return {
        "similarity": similarity or options.similarity, **({} if top is None else {"top": top}),
        "alpha": options.alpha, "informative": options.informative, "kl_threshold": options.kl_threshold,
        "best": ranking.best, "why_none": ranking.why_none(),
        **({"groups": dict(zip(ranking.runs, ranking.families, strict=True))} if grouped else {}),
        "scores": dict(zip(ranking.runs, map(float, ranking.scores), strict=True)),
        "notes": list(ranking.notes), "pairs": pairs,
    }  # fmt: skip
