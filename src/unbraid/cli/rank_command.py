"""`unbraid rank`: which of many models, or of the runs of a study, is best, without labels."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import typer

from unbraid.cli._options import OUTPUT, Embedding, FilesAndPage, TrustCode, refuse
from unbraid.cli._paths import Place, opened
from unbraid.cli._progress import stage_progress
from unbraid.cli.show_command import say, show
from unbraid.files.table_formats import Table, table_of

if TYPE_CHECKING:
    from unbraid.ranking.ranking import Ranking


@dataclass(frozen=True)
class Similarity:
    """How models are compared."""

    heading: ClassVar = "How models are compared"

    similarity: Annotated[
        Literal["lasso", "spearman", "pearson"] | None,
        typer.Option(
            help="Similarity of two latents; default as in the YAML of a study, lasso, or spearman with --top."
        ),
    ] = None
    alpha: Annotated[
        str | None,
        typer.Option(
            help="Penalty of the lasso, or cv: by cross-validation, as the paper. Default as in the YAML, or 0.1."
        ),
    ] = None
    informative: Annotated[
        Literal["signal", "kl"] | None,
        typer.Option(
            help="How informative latents are found: by their signal, or by their KL as in the paper. Default as in "
            "the YAML, or signal."
        ),
    ] = None
    kl_threshold: Annotated[
        float | None,
        typer.Option(
            help="A latent counts when its signal, or its mean KL, is above this, in nats. Default as in the YAML, or "
            "0.01."
        ),
    ] = None
    n_comparisons: Annotated[
        int | None,
        typer.Option(
            help="Number of other models that each one is compared with; default as in a study's YAML, or all."
        ),
    ] = None
    seed: Annotated[int | None, typer.Option(help="Seed of the drawn comparisons. Default as in the YAML, or 0.")] = (
        None
    )

    @property
    def options(self) -> dict[str, Any]:
        """Those that are set."""
        options = {**vars(self), "alpha": None if self.alpha is None else penalty(self.alpha)}
        return {name: value for name, value in options.items() if value is not None}


@dataclass(frozen=True)
class OfFiles:
    """What is of files and models."""

    heading: ClassVar = "Files and models"

    codes: Embedding = None
    by: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN|folder|name|PATTERN|LABEL,...",
            help="Compare models within groups only, by a column of the runs (family, hyper.beta, "
            "...), the folder, the name less the number at its end (beta4-0.npy is of beta4), a pattern such as "
            "'(beta[0-9]+)', or one label for each.",
        ),
    ] = None
    top: Annotated[
        int | None,
        typer.Option(help="Compare each code with its N most similar (spearman or pearson), for thousands of codes."),
    ] = None
    untrained: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Codes of the same samples by an untrained model; give two or more, each with --untrained. "
            "No model that scores as low as they do is called best.",
        ),
    ] = None


@dataclass(frozen=True)
class OfStudy:
    """What is of a study."""

    heading: ClassVar = "A study"

    compare: Annotated[
        Literal["same-hyperparameters", "same-family", "all"] | None,
        typer.Option(
            help="Which models are compared, all, those of one family, or the seeds of one setting, as in "
            "the paper. Default as in the YAML, or all."
        ),
    ] = None
    metric: Annotated[
        str | None,
        typer.Option(help="Column by which to check that seeds matter, such as mig.score. It changes no rank."),
    ] = None


def rank(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...|STUDY",
            help="Two or more files of codes of the same samples, folders of models, or a folder of them; or the "
            "folder of a study.",
        ),
    ],
    *,
    of_files: OfFiles,
    of_study: OfStudy,
    similarity: Similarity,
    executor: Annotated[
        Literal["local", "ray"],
        typer.Option(rich_help_panel="Where", help="Where models are compared: on this machine, or on a Ray cluster."),
    ] = "local",
    address: Annotated[
        str | None,
        typer.Option(rich_help_panel="Where", help="With --executor ray: of the cluster, auto (default) or host:port."),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=OUTPUT, help="Number of models in the table; default all files, or 20 of a study."
        ),
    ] = None,
    to: FilesAndPage,
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
    from unbraid.studies.rank_models import executed

    if rows is not None and rows < 1:
        raise ValueError(f"--rows must be at least 1; got {rows}")
    study = next((path for path in paths if Place.at(path).kind == "study"), None)
    where = executed(executor, address, of_files.top)
    if study is None:
        refuse({**vars(of_study), "trust_code": trust_code}, "is for a study; these are files")
        with where:
            _rank_files(paths, of_files, similarity, rows, to)
        return
    if len(paths) > 1:
        raise ValueError(f"{study} is a study; rank takes one study alone, or files and folders of models")
    refuse(vars(of_files), f"is for files; {study} is a study")
    refuse({"html": to.html}, f"is for files; unbraid report {study} makes the page of a study")
    with where:
        _rank_study(study, of_study, similarity, rows or 20, to, trust_code)


def _rank_files(
    paths: list[Path], of_files: OfFiles, similarity: Similarity, n_rows: int | None, to: FilesAndPage
) -> None:
    from unbraid.ranking.ranking_page import ranking_page
    from unbraid.ranking.verdicts import group_verdicts, model_verdict
    from unbraid.runs.foreign_models import code_path
    from unbraid.runs.grouping import group_names
    from unbraid.runs.model_list import Models
    from unbraid.studies.rank_models import rank as rank_codes
    from unbraid.studies.rank_models import read_model

    codes, top = of_files.codes, of_files.top
    files = Models(paths, codes, needed=2)
    if len(files) < 2:
        raise ValueError(f"rank compares models with each other; give two or more files (got {len(files)})")
    untrained = Models(of_files.untrained or [], codes, strict=True).paths
    models = files.map(lambda path: read_model(str(path), code_path(path, codes), wide=top is not None))
    groups = None if of_files.by is None else group_names(files.paths, of_files.by)
    with stage_progress("comparing models") as progress:
        ranking = rank_codes(
            {str(path): model for path, model in models.items()},
            groups=groups,
            top=top,
            untrained=[code_path(path, codes) for path in untrained],
            progress=partial(progress, "comparing models"),
            **similarity.options,
        )
    files.failed |= {path: f"{path}: {reason}" for path, reason in ranking.left_out.items()}
    for note in ranking.notes:
        say(f"note: {note}", err=True)
    grouped = groups is not None
    table = _table(ranking, grouped=grouped)
    content = {**_content(ranking, similarity.similarity, top, grouped=grouped), "failed": files.failures}
    show(
        [table.first(n_rows), *(group_verdicts if grouped else model_verdict)(ranking)], to, rows=table, paper=table,
        content=content if to.json else None, html=ranking_page(ranking, grouped=grouped) if to.html else None,
    )  # fmt: skip
    files.check()


def _rank_study(
    folder: Path, of_study: OfStudy, similarity: Similarity, n_rows: int, to: FilesAndPage, trust: list[str] | None
) -> None:
    from unbraid.scoring.result_columns import together
    from unbraid.studies.ranked_study import rank_parts, setting_medians
    from unbraid.studies.snapshot import check_runs, check_some_left

    if similarity.similarity == "pearson":
        raise ValueError(f"--similarity pearson needs --top, which is for files; {folder} is a study")
    options = similarity.options | ({} if of_study.compare is None else {"compare": of_study.compare})
    with opened(folder, trust=trust) as study, stage_progress("reading codes") as progress:
        snapshots = study.snapshots()
        check_some_left(snapshots)
        rankings, left_out = rank_parts(snapshots, options, of_study.metric, progress=progress)
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
