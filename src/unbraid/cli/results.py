"""`unbraid results`: what papers report beside what was measured, as a folder of files."""

import re
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unbraid._utils.counted import counted
from unbraid.cli._commands import Commands
from unbraid.cli._options import Csv, Json, Latex, Markdown, listed, number_or_text, pair, refuse
from unbraid.cli._trust import TrustCode
from unbraid.cli.show import Files, say, show

if TYPE_CHECKING:
    from unbraid.types import DataFrame

results_app = typer.Typer(
    cls=Commands,
    help="Record, check and show reported and measured numbers.",
    epilog="Start with: unbraid results table --paper lsbd-2022",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Folder = Annotated[Path, typer.Option(metavar="DIR", help="Folder of the results.")]


@results_app.command("add")
def add(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SCORES.json|STUDY|TABLE",
            help="Score card of `unbraid score --json`, folder of a study, or table of `unbraid export`.",
        ),
    ],
    folder: Folder = Path("results"),
    model: Annotated[
        str | None,
        typer.Option(
            metavar="ORG__NAME",
            help="Whose model it is; needed for a score card. For a study ORG is enough: its families name the models.",
            show_default="unbraid, of a study",
        ),
    ] = None,
    study: Annotated[
        str | None, typer.Option(help="Name of the study; default that of the study, the table or the score card.")
    ] = None,
    dataset: Annotated[str | None, typer.Option(help="Name of the dataset; needed for a score card.")] = None,
    setting: Annotated[
        str | None, typer.Option(help="Setting of the model, such as beta=4; default as in the study.")
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="Comma-separated columns; default the headline of each metric, udr.score, ...")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=VALUE", help="For a study: record only these runs; may be repeated."),
    ] = None,
    commit: Annotated[
        str | None, typer.Option(metavar="SHA", help="For a score card: commit of the code that scored, 40 digits.")
    ] = None,
    external: Annotated[
        bool, typer.Option("--external", help="Put the numbers beside those of a paper, into external/STUDY.json.")
    ] = False,
    reason: Annotated[
        str | None, typer.Option(help="Why a number is replaced, or differs from the reported one.")
    ] = None,
    trust_code: TrustCode = None,
) -> None:
    """Record what was measured.

    Recorded are the means over the seeds of each setting, with their 95 % intervals. Each family, commit and study has
    a file, ORG__FAMILY/COMMIT/STUDY.json. COMMIT is `unclean` for runs of code that was never committed, or was changed
    since, and `several` for a mean over runs of several commits. No number is replaced without --reason, which is kept
    in the file's history.

    Examples:

      unbraid results add study/

      unbraid results add table.csv --columns mig.score,dci_lasso.completeness

      unbraid results add scores.json --model my-lab__sparse_vae --dataset shapes3d

      unbraid results add table.csv --only hyper.beta=6 --external --model dci-2018__beta_vae --study teapot
    """
    from unbraid.results.adding import added, write
    from unbraid.results.schema import EXTERNAL

    if source.suffix == ".json":
        refuse({"only": only}, "is for a study; this is a score card")
        file = study or _file_name(source.stem)
        of = source.stem if external else file  # a paper's file is named after the paper's study
        parts = _of_card(source, model, of, dataset, setting, commit, listed(columns))
    else:
        refuse({"commit": commit}, "is for a score card; the runs of a study name their own")
        frame, named = _opened(source, trust_code or ())
        file = study or _file_name(named)
        of = named if external else file
        parts = _of_study(_only(frame, only or ()), model, of, dataset, setting, listed(columns))
    places: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for (name, revision), scores in parts.items():
        places.setdefault((name, EXTERNAL if external else revision), []).extend(scores)
    plans = [
        added(folder, name, revision, file, scores, reason=reason, today=date.today())
        for (name, revision), scores in places.items()
    ]
    for plan in plans:
        write(plan)
        done = "wrote" if plan.n_new or plan.n_replaced else "nothing new for"
        say(f"{done} {plan.path}: {plan.n_new} new, {plan.n_replaced} replaced, {plan.n_same} as before")


def _of_card(
    path: Path, model: str | None, study: str, dataset: str | None, setting: str | None, commit: str | None,
    columns: list[str],
) -> dict[tuple[str, str], list[dict[str, Any]]]:  # fmt: skip
    """Its numbers, by model and revision."""
    from unbraid.results.measured import in_card
    from unbraid.results.schema import COMMIT, SHORT, UNCLEAN
    from unbraid.storage.score_file import read_scores_file

    card = read_scores_file(path)
    if model is None or "__" not in model:
        raise ValueError(
            f"{path} does not say whose model it scores: give --model ORG__NAME, such as my-lab__sparse_vae"
        )
    if dataset is None:
        raise ValueError(f"{path} does not name its dataset: give --dataset")
    if commit is not None and not re.fullmatch(COMMIT, commit):
        raise ValueError(f"--commit {commit}: give all 40 digits, as git rev-parse HEAD prints them")
    scores = in_card(
        card, dataset=dataset, setting=setting or "", study=study, commit=commit or "", columns=columns or None
    )
    return {(model, (commit or UNCLEAN)[:SHORT]): scores}


def _of_study(
    frame: "DataFrame", model: str | None, study: str, dataset: str | None, setting: str | None, columns: list[str]
) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Its means, by model and revision."""
    from unbraid.results.measured import in_table
    from unbraid.results.schema import key_of, named

    org, whole, name = (model or "unbraid").partition("__")
    families = list(dict.fromkeys(frame["family"]))
    if whole and len(families) > 1:
        raise ValueError(
            f"--model {model}: there are runs of {', '.join(families)}; give ORG alone, or --only family={families[0]}"
        )
    renamed = {key: value for key, value in (("dataset", dataset), ("setting", setting)) if value is not None}
    parts: dict[tuple[str, str], list[dict[str, Any]]] = {}
    seen = set()
    for family, revision, score in in_table(frame, study, columns or None):
        score |= renamed
        if (family, key_of(score)) in seen:
            raise ValueError(f"there are several numbers for {named(score)}; --only picks runs of one setting")
        seen.add((family, key_of(score)))
        parts.setdefault((f"{org}__{name or family}", revision), []).append(score)
    return parts


def _opened(path: Path, trust: list[str] | tuple[()]) -> "tuple[DataFrame, str]":
    """The results of a study or a table, and its name."""
    from unbraid.analysis.merging import is_table, read_table
    from unbraid.cli.study import opened
    from unbraid.results.measured import NEEDED

    if is_table(path):
        return read_table(path, NEEDED), path.stem
    with opened(path, trust=trust) as study:
        return study.results(), study.config.name


def _file_name(study: str) -> str:
    """A study's name as that of a file, with a hyphen in place of what cannot stand in one."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", study).strip("-") or study


def _only(frame: "DataFrame", wanted: list[str] | tuple[()]) -> "DataFrame":
    """The rows of which each of these columns has that value."""
    from unbraid.analysis.columns import check_columns

    for text in wanted:
        column, value = pair("--only", text, "COLUMN=VALUE")
        check_columns(frame, [column])
        kept = frame.loc[[number_or_text(str(each)) == number_or_text(value) for each in frame[column]]]
        if kept.empty:
            held = ", ".join(dict.fromkeys(str(each) for each in frame[column].dropna()))
            raise ValueError(f"--only {text}: no run has it; {column} is {held or 'empty'}")
        frame = kept
    return frame


@results_app.command("check")
def check(
    folder: Folder = Path("results"),
    against: Annotated[
        str | None,
        typer.Option(
            metavar="REVISION",
            help="Also report numbers that vanished since this commit, branch or tag of git, or changed without a new "
            "entry in the history of their file.",
        ),
    ] = None,
) -> None:
    """Check every file, and print one line for each fault.

    The exit code is 2 if there is one. A file must have the right structure and a path that agrees with its content.
    Each reported number must have its place in the paper, and a reason if it lies outside the interval of the measured
    one.

    Examples:

      unbraid results check

      unbraid results check --against main
    """
    from unbraid.results.check import faults
    from unbraid.results.earlier import changes
    from unbraid.results.files import paths

    found = faults(folder) + (changes(folder, against) if against is not None else [])
    for fault in found:
        say(fault)
    files = counted(len(paths(folder)), "file")
    if found:
        raise ValueError(f"{folder}: {counted(len(found), 'fault')} in {files}")
    say(f"{folder}: no fault in {files}")


@results_app.command("table")
def table(
    folder: Folder = Path("results"),
    paper: Annotated[str | None, typer.Option(help="Only of this paper, such as lsbd-2022; unbraid: measured.")] = None,
    model: Annotated[
        str | None, typer.Option(help="Only of this model, such as beta_vae or unbraid__beta_vae.")
    ] = None,
    dataset: Annotated[str | None, typer.Option(help="Only of this dataset.")] = None,
    metric: Annotated[str | None, typer.Option(help="Only of this metric, such as mig or mig.score.")] = None,
    csv: Csv = None,
    latex: Latex = None,
    markdown: Markdown = None,
    json: Json = None,
) -> None:
    """Show reported and measured numbers, one per row.

    A row has what the paper reports, what was measured with its 95 % interval, and where.

    --json has everything, such as spreads, seeds, commits and reasons; --csv leaves out seeds and baselines.

    Examples:

      unbraid results table --paper lsbd-2022

      unbraid results table --model beta_vae --metric mig --latex table.tex

      unbraid results table --dataset teapot --csv teapot.csv
    """
    to = Files(csv, latex, markdown, json)
    from unbraid.results.files import entries, read_all
    from unbraid.results.shown import chosen, records, whole_table
    from unbraid.results.shown import table as table_of

    wanted = {"paper": paper, "model": model, "dataset": dataset, "metric": metric}
    found = chosen(list(entries(read_all(folder))), wanted)
    show(table_of(found), to, content=records(found), rows=whole_table(found))


@results_app.command("show")
def show_model(
    model: Annotated[str, typer.Argument(help="A model, such as lsbd_vae, or of one paper: lsbd-2022__lsbd_vae.")],
    folder: Folder = Path("results"),
    csv: Csv = None,
    latex: Latex = None,
    markdown: Markdown = None,
    json: Json = None,
) -> None:
    """Show all that is recorded of one model.

    These are numbers, sources, reasons and the history of each file.

    Examples:

      unbraid results show lsbd_vae

      unbraid results show lsbd-2022__lsbd_vae --json lsbd_vae.json
    """
    to = Files(csv, latex, markdown, json)
    from unbraid.results.files import entries, read_all
    from unbraid.results.shown import chosen, of_one, whole_table
    from unbraid.results.shown import table as table_of

    contents = read_all(folder)
    found = chosen(list(entries(contents)), {"model": model}, options=False)
    names = {each.model for each in found}
    held = [content for content in contents if content["model"] in names]
    parts = [part for content in held for part in of_one(content)]
    show(parts, to, content=held, rows=whole_table(found), paper=table_of(found))
