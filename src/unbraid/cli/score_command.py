"""`unbraid score`: every metric of codes in files or in the folders of runs."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

import typer

from unbraid.base.comma_lists import listed
from unbraid.base.suggest import suggestion
from unbraid.cli._options import (
    CODES,
    FACTORS,
    HOW_SURE,
    OUTPUT,
    Embedding,
    FilesAndPage,
    Metrics,
    Resamples,
    ScoredLabels,
    Seed,
    Trust,
    check_output,
    interval_of,
    pair,
    refuse,
)
from unbraid.cli._paths import by_short_name
from unbraid.cli._progress import metric_progress, stage_progress
from unbraid.cli.show_command import say, show

if TYPE_CHECKING:
    from unbraid.runs.labelled_codes import Labels
    from unbraid.runs.model_list import Models
    from unbraid.scoring.card import ScoreCard

EXAMPLE = "the shipped example"
MOST = 4  # models that a note names
PER_CODE = 999  # shuffles of groups for the table of codes, where --null names none
WITHIN = 0.05  # up to which the corrected p of a code is counted
SHOWN = 6  # columns of configs beside the scores

Paths: TypeAlias = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[FILE]...",
        help="File of codes (.npy, .npz, .safetensors, .parquet, .csv, a sparse .npz of SciPy, or .h5ad), folder "
        "of such files, folder of a model (of unbraid, or codes with labels and a config beside them), or folder "
        "of models. Several models give a table with one row per model.",
    ),
]
HeldOut: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Condition for the rows that zero_shot holds out of training, such as 'size > 1 and hue == 0'."),
]


@dataclass(frozen=True)
class CodeOptions:
    """How codes are read."""

    heading: ClassVar = CODES

    codes: Embedding = None
    code_blocks: Annotated[
        str | None,
        typer.Option(
            metavar="0-1,2,4+7",
            help="Comma-separated blocks of codes that belong together; adds block_r2 and block_mcc.",
        ),
    ] = None
    factor_blocks: Annotated[
        str | None,
        typer.Option(
            metavar="position=x+y,shape",
            help="Comma-separated blocks of factors, in the order of the code blocks; default one factor per block.",
        ),
    ] = None
    units: Annotated[
        str | None,
        typer.Option(
            metavar="pca",
            help="For codes of several numbers per unit, (rows, units, size) in a file, or --code-blocks: score the "
            "first principal component of each unit.",
        ),
    ] = None
    dense: Annotated[
        bool,
        typer.Option(
            "--dense", help="Convert sparse codes to a full array, if it fits into memory, so that all metrics run."
        ),
    ] = False

    @property
    def blocks(self) -> dict[str, str | None]:
        return {"code_blocks": self.code_blocks, "factor_blocks": self.factor_blocks}


@dataclass(frozen=True)
class HowSure:
    """What stands beside the scores."""

    heading: ClassVar = HOW_SURE

    null: Annotated[
        str,
        typer.Option(
            metavar="NUMBER|shift|shift:NUMBER",
            help="Permutation test with this many shuffles of the rows (of whole groups with --groups). For time "
            "series: `shift`, 100 other stretches of codes beside the middle half of the factors.",
        ),
    ] = "0"
    baselines: Annotated[
        bool,
        typer.Option(
            "--baselines",
            help="For a run: also score a random projection of the same images, their PCA and the untrained encoder.",
        ),
    ] = False
    confidence: Annotated[
        float | None,
        typer.Option(
            help="Confidence level, such as .95: adds an interval for the mean score of new samples of as many rows. "
            "A note marks intervals that were not validated."
        ),
    ] = None
    resamples: Resamples = None
    how_many: Annotated[float | None, typer.Option(help="Rows needed for an interval of ± this value.")] = None

    @property
    def options(self) -> dict[str, Any]:
        """As `unbraid.score` takes them."""
        confidence = self.confidence
        if self.how_many is not None:
            from unbraid.base.arguments import check_number

            check_number("--how-many", self.how_many, above=0)
            confidence = 0.95 if confidence is None else confidence
        null = int(self.null) if self.null.isdecimal() else self.null
        return {"null": null, "baselines": self.baselines, "confidence": interval_of(confidence, self.resamples)}


@dataclass(frozen=True)
class SeveralModels:
    """How several models are put in order."""

    heading: ClassVar = "Several models"

    sort: Annotated[
        str | None, typer.Option(metavar="METRIC", help="Metric that sorts the rows; default the first of --metrics.")
    ] = None
    by: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN|folder|name|PATTERN",
            help="Also the means of groups, by a column of the runs (family, hyper.beta, ...), the "
            "folder, the name less the number at its end, or a pattern such as '(beta[0-9]+)'.",
        ),
    ] = None


@dataclass(frozen=True)
class Checks:
    """When the command fails."""

    heading: ClassVar = "Checks"

    fail_under: Annotated[
        str | None, typer.Option(metavar="METRIC=NUMBER,...", help="Exit with code 3 if a score is worse than this.")
    ] = None
    strict: Annotated[bool, typer.Option("--strict", help="Exit with code 3 if a metric failed.")] = False


@dataclass(frozen=True)
class MoreOutput:
    """What is shown or written beside the scores."""

    heading: ClassVar = OUTPUT

    details: Annotated[
        bool, typer.Option("--details", help="Also the other values of each metric, and all notes on them.")
    ] = False
    per_code: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write a row for each code to this .csv or .parquet file: its best factor, its information, and "
            "p and q. With --groups or --null shift p comes from shuffles (999), else from a test of independence.",
        ),
    ] = None
    track: Annotated[
        str | None,
        typer.Option(
            metavar="tensorboard|wandb|mlflow,...",
            help="Also write the scores as runs of these trackers, below ./tracking. Nothing is sent, unless "
            "WANDB_MODE=online.",
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.per_code is not None:
            check_output("--per-code", self.per_code, ".csv", ".parquet")
        if self.track is not None:
            from unbraid.studies.tracking import check_names

            check_names(listed(self.track))


def score(
    files: Paths = None,
    *,
    example: Annotated[bool, typer.Option("--example", help="Score the shipped codes of a β-TCVAE instead.")] = False,
    metrics: Metrics = "standard",
    factors: Annotated[str | None, typer.Option("--factors", "--columns", help=FACTORS)] = None,
    seed: Seed = 0,
    held_out: HeldOut = None,
    labels: ScoredLabels,
    codes: CodeOptions,
    how_sure: HowSure,
    more: MoreOutput,
    to: FilesAndPage,
    several: SeveralModels,
    checks: Checks,
    trust: Trust,
) -> None:
    """Say which factors are in the codes, and score codes against factors by published metrics.

    First the answer: which codes hold each factor, and what is wrong. Then one line per metric; --details adds their
    other values and notes, --metrics none leaves them out.

    Several models make a table with a row for each, the best first.

    Scores of a run are added to its scores.json if they are of all factors, with seed 0 and without --held-out. Scores
    that are there already are never changed. For d_lsbd, which needs whole objects, up to 10 000 more images of the
    run's dataset are encoded.

    Examples:

      unbraid score --example --html scores.html

      unbraid score codes.npz --metrics mig,dci_lasso --json scores.json

      unbraid score codes.npy --labels labels.csv --columns shape,hue --kinds shape=categorical --period hue=360

      unbraid score cells.h5ad --codes X_scVI --factors cell_type,dosage --unwanted batch

      unbraid score runs/ --metrics mig,dci_lasso --by hyper.beta --csv models.csv --latex table.tex

      unbraid score codes.npz --metrics mig --fail-under mig=.3

      unbraid score codes.npy --labels labels.csv --groups trial --metrics mig,sap,snc --null 99 --confidence .95

      unbraid score runs/3f6c0f0a8d1e2b47 --metrics mig,snc --baselines

      unbraid score codes.npz --metrics zero_shot --held-out "elevation > 0.79 and red > green + 0.15"
    """
    if bool(files) == example:
        raise ValueError("give one or more FILEs of codes or runs, or --example for the shipped codes")
    from unbraid.data.representation import example_path
    from unbraid.files.trust import trusting
    from unbraid.runs.grouping import group_names
    from unbraid.runs.model_list import Models
    from unbraid.runs.score_run import check_baselines

    chosen, unwanted = trusting(listed(metrics)), listed(labels.unwanted)
    names = _names_of(chosen, unwanted, codes)
    bounds = _bounds(checks.fail_under, names)
    sort = None if several.sort is None else _metric_name(f"--sort {several.sort}", several.sort, names)
    columns = None if factors is None else list(dict.fromkeys([*listed(factors), *unwanted]))
    models = Models(files or [example_path()], codes.codes)
    description = labels.read(columns, dense=codes.dense, codes=codes.codes)
    sources = _sources(models, description)
    alone = len(models) == 1 and several.by is None
    if not alone:
        of_one = {"per-code": more.per_code, "how-many": how_sure.how_many, "html": to.html}
        refuse(of_one, "is for one FILE without --by; unbraid compare writes a page of several models")
    configs = _configs(models, several.by)
    group_of = {} if several.by is None else dict(zip(models.paths, group_names(models.paths, several.by), strict=True))
    if how_sure.baselines:
        check_baselines(models.paths, description)
    options = {"metrics": chosen, "unwanted": unwanted, "seed": seed, "held_out": held_out, "trust": trust.names}
    options |= {"units": codes.units, **codes.blocks, **how_sure.options}
    words = _words({**vars(labels), "unwanted": None, "codes": codes.codes, "resamples": how_sure.resamples})
    described = {"options": (*words, "--dense") if codes.dense else words, **({"path": EXAMPLE} if example else {})}
    cards, lines = _score_models(models, sources, options, described, alone=alone)
    if alone:
        _show_one(next(iter(cards.values())), to, how_sure, more)
    else:
        groups = [group_of[path] for path in models.paths] if group_of else None
        _show_several(cards, to, groups, several.by, sort, configs, models.failures)
    for line in lines:
        say(line, err=True)
    if more.track is not None:
        _track(cards, listed(more.track), configs)
    worse = _say_worse(bounds, cards)
    models.check()
    if worse or (checks.strict and any(card.failed for card in cards.values())):
        raise typer.Exit(3)


def _words(options: Mapping[str, Any]) -> tuple[str, ...]:
    """The options that describe the labels, as a card keeps them."""
    return tuple(word for name, value in options.items() if value is not None for word in (f"--{name}", str(value)))


def _names_of(metrics: Sequence[str], unwanted: Sequence[str], codes: CodeOptions) -> list[str] | None:
    """Names of the scores; None with blocks, whose metrics are known with the codes."""
    from unbraid.scoring.score import choose
    from unbraid.scoring.unwanted import name_of

    if any(codes.blocks.values()):
        return None
    return [*choose(metrics), *map(name_of, unwanted)]


def _score_models(
    models: "Models", sources: "Mapping[Path, tuple[Path, Labels]]", options: Mapping[str, Any],
    described: Mapping[str, Any], *, alone: bool,
) -> "tuple[dict[str, ScoreCard], list[str]]":  # fmt: skip
    """A card for each model by its path, and lines on what the folders of runs keep, to print below the scores."""
    from unbraid.runs.score_run import score_path
    from unbraid.scoring.card import without_samples
    from unbraid.scoring.score import choose

    lines: list[str] = []
    numbers = count(1)

    def score_model(path: Path) -> "ScoreCard":
        source, labels = sources[path]
        what = f"scoring {next(numbers)}/{len(models)}" if len(models) > 1 else "scoring"
        with metric_progress(what, choose(options["metrics"])) as progress:
            card = score_path(source, labels, progress=progress, **options)
        card = replace(card, **{"path": str(path), **described})
        _ = card.diagnosis  # while the codes are at hand
        blocked = options["code_blocks"] or options["factor_blocks"]
        if path in models.runs and labels.in_codes_file and not labels.row_columns and not blocked:
            lines.append(_keep_scores(path, card))
        return card if alone else without_samples(card)

    return {card.path or "": card for card in models.map(score_model).values()}, lines


def _track(cards: "Mapping[str, ScoreCard]", trackers: Sequence[str], configs: Mapping[str, Mapping[str, Any]]) -> None:
    from unbraid.studies.tracking import track_cards

    for place in track_cards(cards, trackers, configs, Path()):
        say(f"reported to {place}", err=True)


def _sources(models: "Models", description: "Labels") -> "dict[Path, tuple[Path, Labels]]":
    """File and labels of each model; several embeddings of one .h5ad file, which --codes names, are models as well."""
    names = listed(description.codes)
    if len(names) < 2 or [path.suffix.lower() for path in models.paths] != [".h5ad"]:
        return {path: (path, description) for path in models.paths}
    (file,) = models.paths
    models.paths = [Path(name) for name in names]
    return {Path(name): (file, replace(description, codes=name)) for name in names}


def _configs(models: "Models", by: str | None) -> dict[str, dict[str, Any]]:
    """What the configs of models of other frameworks say, in columns; config.<name> where a column is called so."""
    from unbraid.runs.grouping import run_columns

    def config_of(path: Path) -> dict[str, Any]:
        run = path in models.runs
        if not path.is_dir() or (run and by is None):
            return {}
        columns = run_columns(path)
        return {} if run else {_column(name): value for name, value in columns.items() if name != by}

    return {str(path): columns for path, columns in models.map(config_of).items()}


def _column(key: str) -> str:
    """What the column of a key of configs is called, beside those of the scores."""
    from unbraid.metrics import METRICS

    return f"config.{key}" if key in {"model", "models", *METRICS} else key


def _show_one(card: "ScoreCard", to: FilesAndPage, how_sure: HowSure, more: MoreOutput) -> None:
    from unbraid.scoring.card_tables import score_rows, score_table
    from unbraid.scoring.card_text import card_text

    cards = by_short_name({card.path or "": card})
    html = card.text("page.html") if to.html else None
    if not to.printed:
        say(f"{card.path}\n{card_text(card, details=more.details, half_width=how_sure.how_many)}")
    show([], to, content=card.to_dict(), rows=score_rows(cards), paper=score_table(cards), html=html)
    if more.per_code is not None:
        _write_codes(card, more.per_code, how_sure.options["null"])


def _write_codes(card: "ScoreCard", path: Path, null: int | str) -> None:
    from unbraid.files.table_formats import save_frame

    with stage_progress("per code") as progress:
        frame = card.per_code(null or PER_CODE, progress=progress)
    save_frame(frame, path)
    n_significant = sum(frame["q"] <= WITHIN)
    say(
        f"wrote {path}: {n_significant} of {len(frame)} codes have significant information on a factor (q <= {WITHIN})",
        err=True,
    )


def _show_several(
    cards: "Mapping[str, ScoreCard]", to: FilesAndPage, groups: Sequence[str] | None, by: str | None, sort: str | None,
    configs: Mapping[str, Mapping[str, Any]], failures: Sequence[Mapping[str, str]],
) -> None:  # fmt: skip
    from unbraid.base.version import VERSION
    from unbraid.runs.grouping import UNGROUPED, is_seed, varying
    from unbraid.scoring.card_tables import group_rows, group_table, score_rows, score_table
    from unbraid.scoring.result_columns import DIAGNOSIS

    # Scores are not thrown away because no model has one of them.
    lacking = sort and not any(sort in card for card in cards.values())
    unsorted = [f"note: no model has {sort}, and so it sorts none"] if lacking else []
    named, how = by_short_name(cards), {"by": _column(by or ""), "sort": None if unsorted else sort}
    columns = {name: dict(configs.get(path, {})) for name, path in zip(named, cards, strict=True)}
    varied = varying(list(columns.values()))
    shown = {name: {key: own[key] for key in varied[:SHOWN] if key in own} for name, own in columns.items()}
    paper = score_table(named, groups, extra_columns=shown, **how)
    for name, card in named.items():
        if card.diagnosis is not None:
            shown[name][DIAGNOSIS] = columns[name][DIAGNOSIS] = card.diagnosis.column
    tables = [score_table(named, groups, extra_columns=shown, **how)]
    rows = score_rows(named, groups, extra_columns=columns, **how)
    notes = [*unsorted, *_notes(cards)]
    if len(varied) > SHOWN:
        notes.append(f"note: {len(varied) - SHOWN} more columns of the configs vary; --csv has all")
    if groups is None and any(map(is_seed, varied)):
        notes.append("note: --by setting adds the means over the seeds of each setting")
    content: dict[str, Any] = {"unbraid": VERSION, "models": rows.records, "failed": list(failures)}
    if groups is not None:
        members = {name: group for name, group in zip(named, groups, strict=True) if group != UNGROUPED}
        if ungrouped := [name for name in named if members and name not in members]:
            notes.append(f"note: in no group, without {by}: {', '.join(ungrouped)}")
        members = members or dict.fromkeys(named, UNGROUPED)
        grouped = {name: named[name] for name in members}
        paper = group_table(grouped, list(members.values()), **how)
        tables = [replace(tables[0], notes=()), paper]
        content["means"] = group_rows(grouped, list(members.values()), **how).records
    content["cards"] = {name: card.to_dict() for name, card in named.items()}
    show([*tables, *notes], to, content=content, rows=rows, paper=paper)


def _notes(cards: "Mapping[str, ScoreCard]") -> list[str]:
    """What is to be known of several cards: each note once, with the models that it is of."""
    models: dict[str, list[str]] = {}
    for name, card in cards.items():
        for note in card.notes:
            models.setdefault(note, []).append(name)
    lines = [f"note: {note}{_in_models(names, len(cards))}" for note, names in models.items()]
    failed = ((path, name, failure) for path, card in cards.items() for name, failure in card.failed.items())
    return lines + [f"{path}: {name} failed: {failure.reason}" for path, name, failure in failed]


def _in_models(models: Sequence[str], n_all: int) -> str:
    """Which models a note is of; nothing where it is of all."""
    if len(models) == n_all:
        return ""
    more = f" and {len(models) - MOST} more" if len(models) > MOST else ""
    return f" ({', '.join(models[:MOST])}{more})"


def _keep_scores(run: Path, card: "ScoreCard") -> str:
    """What the folder of a run keeps of the scores; or why it keeps none, which must not take them from the user."""
    from unbraid.files.run_files import SCORES
    from unbraid.studies.run_scores import keep_by_hand

    try:
        names = keep_by_hand(run, card)
    except (OSError, ValueError) as error:
        return f"warning: {run / SCORES}: the scores are not kept there ({getattr(error, 'strerror', None) or error})"
    return f"wrote {', '.join(names)} to {run / SCORES}" if names else f"left {run / SCORES} as it is"


def _bounds(text: str | None, metrics: Sequence[str] | None) -> dict[str, float]:
    """What --fail-under says, by metric."""
    bounds: dict[str, float] = {}
    for part in listed(text):
        name, value = pair("--fail-under", part, "METRIC=NUMBER, such as mig=.3", last=True)
        try:
            bound = float(value)
        except ValueError:
            bound = math.nan
        if math.isnan(bound):  # of which no score is worse
            raise ValueError(f"--fail-under {part}: {value!r} is not a number")
        name = _metric_name(f"--fail-under {part}", name, metrics)
        if name in bounds:
            raise ValueError(f"--fail-under {part}: {name} has a bound already, {bounds[name]:g}")
        bounds[name] = bound
    return bounds


def _metric_name(what: str, name: str, metrics: Sequence[str] | None) -> str:
    """A metric that an option names, as cards name it; one of `metrics`, where these are known."""
    from unbraid.scoring.card_tables import spelled

    name = spelled(name, metrics or ())
    if metrics is not None and name not in metrics:
        raise ValueError(f"{what}: {name!r} is not among the metrics; {suggestion(name, metrics)}")
    return name


def _say_worse(bounds: Mapping[str, float], cards: "Mapping[str, ScoreCard]") -> bool:
    """Whether a score is worse than its bound, or not there; says which."""
    lines = [line for name, card in cards.items() for line in _worse(bounds, card, name if len(cards) > 1 else "")]
    for line in lines:
        say(f"unbraid: {line}", err=True)
    return bool(lines)


def _worse(bounds: Mapping[str, float], card: "ScoreCard", model: str) -> list[str]:
    """A line for each score that is worse than its bound, or that there is not."""
    lines, model_prefix = [], f"{model}: " if model else ""
    for name, bound in bounds.items():
        scored = card.scored.get(name)
        if scored is None:
            lines.append(f"{model_prefix}{name} was not scored (--fail-under {name}={bound:g})")
        elif scored.headline < bound if scored.metric.higher_is_better else scored.headline > bound:
            way = "below" if scored.metric.higher_is_better else "above"
            shown = f"{scored.headline:.3g}"
            shown = shown if float(shown) != bound else f"{scored.headline:.9g}"  # not 0.3, below 0.3
            lines.append(f"{model_prefix}{name} is {shown}, {way} {bound:g}")
    return lines
