"""`unbraid score`: every metric of codes in a file, in several side by side, or in the folder of a run."""

import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from math import pi
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.box import SIMPLE_HEAD
from rich.padding import Padding
from rich.table import Table

from unbraid._utils.arguments import check_number, check_whole
from unbraid._utils.suggest import suggestion
from unbraid.cli._paths import check_outputs, expanded
from unbraid.cli._progress import metric_progress
from unbraid.cli._say import say
from unbraid.cli._terminal import Terminal
from unbraid.cli._trust import TrustCode, TrustData, trusted
from unbraid.confidence.baselines import no_better, told

Named = TypeVar("Named")

if TYPE_CHECKING:
    from unbraid.confidence.baselines import Baseline
    from unbraid.representation import Representation
    from unbraid.scoring.card import ScoreCard, Scored
    from unbraid.scoring.score import Confidence


NO_KEY = "{}: sparse codes have no column that names their rows; leave --key out to match rows by position"


def score(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="File of codes (.npy, .npz, .safetensors, .parquet, .csv, or a sparse .npz of SciPy), folder of such "
            "files, or run folder. Several are compared in one table.",
            show_default=False,
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            help="Table of labels (.csv, .parquet, .npz, .npy) with one row per row of codes, for codes without "
            "factors in their file.",
            show_default=False,
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column that names the rows, in the tables of codes and of --labels both: rows are matched by it.",
            show_default=False,
        ),
    ] = None,
    example: Annotated[bool, typer.Option("--example", help="Score the shipped codes of a β-TCVAE instead.")] = False,
    metrics: Annotated[
        str, typer.Option(help="Comma-separated metrics and presets (see `unbraid metrics`).")
    ] = "standard",
    factors: Annotated[
        str | None,
        typer.Option("--factors", "--columns", help="Comma-separated factors to score against; default all."),
    ] = None,
    kinds: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=KIND,...",
            help="Kinds of factors: categorical, ordinal, continuous or cyclic. Others are guessed, with a note.",
            show_default=False,
        ),
    ] = None,
    period: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=NUMBER,...", help="Period of factors that are angles, such as hue=360.", show_default=False
        ),
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(
            metavar="VALUE,...", help="Values that mean 'missing', besides empty cells and NaN.", show_default=False
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of weights: how many rows each row stands for. It is not scored as a factor.",
            show_default=False,
        ),
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of groups of dependent rows: trial, animal, video or session. It is not scored as a factor.",
            show_default=False,
        ),
    ] = None,
    code_blocks: Annotated[
        str | None,
        typer.Option(
            metavar="0-1,2,4+7",
            help="Comma-separated blocks of codes that belong together; adds block_r2 and block_mcc.",
            show_default=False,
        ),
    ] = None,
    factor_blocks: Annotated[
        str | None,
        typer.Option(
            metavar="position=x+y,shape",
            help="Comma-separated blocks of factors, in the order of the code blocks; default one factor per block.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same numbers.")] = 0,
    held_out: Annotated[
        str | None,
        typer.Option(
            help="Condition for the rows that zero_shot holds out of training, such as 'size > 1 and hue == 0'."
        ),
    ] = None,
    null: Annotated[
        str,
        typer.Option(
            metavar="NUMBER|shift|shift:NUMBER",
            help="Permutation test with this many shuffles of the rows (of whole groups with --groups). For time "
            "series: `shift`, 100 circular shifts by at least a tenth of the length.",
        ),
    ] = "0",
    baselines: Annotated[
        bool,
        typer.Option(
            "--baselines",
            help="For a run: also score a random projection of the same images, their PCA and the untrained encoder.",
        ),
    ] = False,
    confidence: Annotated[
        float | None,
        typer.Option(
            help="Confidence level, such as .95: adds an interval for the mean score of new samples of as many rows. "
            "A note marks intervals that were not validated.",
            show_default=False,
        ),
    ] = None,
    resamples: Annotated[
        int | None,
        typer.Option(
            help="Number of subsamples for the intervals; default 200, or 20 for metrics that train.",
            show_default=False,
        ),
    ] = None,
    how_many: Annotated[
        float | None,
        typer.Option(
            help="Rows needed for an interval of ± this value.",
            show_default=False,
        ),
    ] = None,
    dense: Annotated[
        bool,
        typer.Option(
            "--dense", help="Convert sparse codes to a full array, if it fits into memory, so that all metrics run."
        ),
    ] = False,
    trust_code: TrustCode = None,
    trust_data: TrustData = None,
    json: Annotated[Path | None, typer.Option(help="Write the scores to this .json file.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write one standalone page to this .html file.")] = None,
    latex: Annotated[Path | None, typer.Option(help="Write the headlines as a LaTeX table to this .tex file.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write them as a Markdown table to this .md file.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write them to this .csv file.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with code 3 if a metric failed.")] = False,
) -> None:
    """Score codes against factors by every published metric.

    Scores of a run are added to its scores.json if they are of all factors, with seed 0 and without --held-out. Scores
    that are there already are never changed. For d_lsbd, which needs whole objects, up to 10 000 more images of the
    run's dataset are encoded.

    Examples:

      unbraid score --example --html scores.html

      unbraid score codes.npz --metrics mig,dci_lasso --json scores.json

      unbraid score codes.npy --labels labels.csv --columns shape,hue --kinds shape=categorical --period hue=360

      unbraid score seed0.npz seed1.npz seed2.npz --metrics mig,dci_lasso --latex table.tex

      unbraid score codes.npy --labels labels.csv --weights count --metrics mig,modularity

      unbraid score codes.npz --code-blocks 0-1,2 --factor-blocks position=x+y,shape --metrics mcc,r2

      unbraid score codes.npz --metrics mig,sap,snc --null 99

      unbraid score codes.npz --metrics mig,sap,snc --null shift

      unbraid score codes.npy --labels labels.csv --groups trial --metrics mig,sap,snc --null 99 --confidence .95

      unbraid score codes.npz --metrics mig,sap,snc --confidence .95

      unbraid score codes.npz --metrics mig,sap,snc --how-many .01

      unbraid score runs/3f6c0f0a8d1e2b47 --html scores.html

      unbraid score runs/3f6c0f0a8d1e2b47 --metrics mig,snc --baselines

      unbraid score codes.npz --metrics zero_shot --held-out "elevation > 0.79 and red > green + 0.15"
    """
    if bool(files) == example:
        raise ValueError(
            "give one representation FILE, or --example for the shipped one; several FILEs are put side by side"
        )
    if how_many is not None:
        check_number("--how-many", how_many, above=0)
        confidence = 0.95 if confidence is None else confidence
    interval = interval_of(confidence, resamples)
    times = int(null) if null.isascii() and null.isdigit() else null
    tables = {".tex": latex, ".md": markdown, ".csv": csv}
    check_outputs({".json": json, ".html": html, **tables})
    from unbraid.representation.representation import example_path, read_wide
    from unbraid.runs.objects import objects_of
    from unbraid.scoring.score import choose
    from unbraid.scoring.score import score as score_codes
    from unbraid.storage.trust import Untrusted, trusting

    chosen = listed(metrics)
    blocked = code_blocks is not None or factor_blocks is not None
    if not blocked:  # which metrics of blocks there are is known with the codes
        choose(trusting(chosen))
    paths = expanded(files) if files else [example_path()]
    if len(paths) > 1 and (json or html):
        raise ValueError(
            "--json and --html are of one card; several are put side by side by --latex, --markdown, --csv"
        )
    about = about_labels(kinds, period, missing)
    if baselines:
        _refuse_no_runs(paths, labels, about)
    cards: dict[str, ScoreCard] = {}
    for path in paths:
        name = "the shipped example" if example else str(path)
        if not dense and (wide := read_wide(path)) is not None:
            given = {"seed": seed, "null": times, "confidence": interval}
            if key is not None:
                raise ValueError(NO_KEY.format(path))
            given |= {"weights": weights, "groups": groups}
            given |= {"code_blocks": code_blocks, "factor_blocks": factor_blocks}
            cards[name] = replace(_wide_card(path, wide, labels, factors, about, metrics=chosen, **given), path=name)
            continue
        representation, chosen_factors = labelled(path, labels, factors, about, weights, groups, dense=dense, key=key)
        names = representation.names

        def orbits(path: Path = path, names: tuple[str, ...] = names) -> "Representation":
            return objects_of(path, trust=trusted(trust_code, trust_data))().keep_factors(names)

        own = not labels and not about  # factors as the run has them
        beside = _baselines(path, trusted(trust_code, trust_data)) if baselines else None
        with metric_progress() as progress:
            try:
                card = score_codes(
                    representation, metrics=chosen, seed=seed, held_out=held_out, null=times, confidence=interval,
                    progress=progress, orbits=orbits if path.is_dir() and own else None,
                    code_blocks=code_blocks, factor_blocks=factor_blocks, baselines=beside,
                )  # fmt: skip
            except Untrusted:
                raise
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from error
        cards[name] = replace(card, path=name, chosen_factors=chosen_factors)
        if path.is_dir() and own and weights is None and groups is None and not blocked:
            say(_kept(path, cards[name]), err=True)
    from unbraid.scoring.tables import compare, footnote, table_text
    from unbraid.storage.files import atomic_write

    # All are made before the first is written, so that what fails leaves none.
    head, rows = compare(called(cards))
    texts = {out: next(iter(cards.values())).text(out) for out in (json, html) if out is not None}
    texts |= {out: table_text(out, head, rows, foot=footnote(cards)) for out in tables.values() if out is not None}
    for out, text in texts.items():
        with atomic_write(out) as temporary:
            temporary.write_text(text, encoding="utf-8")
    if len(cards) == 1:
        _print(next(iter(cards.values())), how_many)
    else:
        _print_beside(head, rows, cards)
    for out in texts:
        say(f"wrote {out}", err=True)
    if strict and any(card.failed for card in cards.values()):
        raise typer.Exit(3)


def interval_of(confidence: float | None, resamples: int | None) -> "Confidence | None":
    """What --confidence and --resamples say, as `unbraid.score` takes it."""
    if resamples is None:
        return confidence
    if confidence is None:
        raise ValueError("--resamples is for intervals: give --confidence, such as .95")
    check_whole("--resamples", resamples, 2)
    return confidence, resamples


def _refuse_no_runs(paths: Iterable[Path], labels: Path | None, about: Mapping[str, Any]) -> None:
    """Raises ValueError where there are no images to make baselines of, or rows that are not the images'."""
    from unbraid.storage.run_files import WEIGHTS

    for path in paths:
        if not (path / WEIGHTS).is_file():
            raise ValueError(f"{path}: --baselines are of images, and this is no folder of a trained run")
    if labels is not None or about:
        raise ValueError("--baselines go by the factors of the run; leave --labels, --kinds, --period, --missing out")


def _baselines(run: Path, trust: Collection[str]) -> "dict[str, Baseline]":
    from unbraid._utils.optional import require

    require("torch", "train", "encoding the images of a run")
    from unbraid.runs.run import load_run

    return load_run(run, trust=trust).baselines()


def about_labels(kinds: str | None, period: str | None, missing: str | None) -> dict[str, Any]:
    """What the options say of labels, as `Representation.of` takes it."""
    about = {"kinds": _by_name("--kinds", kinds), "period": _numbers("--period", period), "missing": _values(missing)}
    return {name: value for name, value in about.items() if value is not None}


def labelled(
    path: Path,
    labels: Path | None,
    factors: str | None,
    about: dict[str, Any],
    weights: str | None = None,
    groups: str | None = None,
    *,
    dense: bool = False,
    key: str | None = None,
) -> "tuple[Representation, tuple[str, ...]]":
    """Codes with the factors asked for, and their names where they are not all."""
    from unbraid._utils.arrays import as_full
    from unbraid.representation import POSTERIOR, Representation
    from unbraid.runs.folder import read_codes
    from unbraid.storage.tables import read_columns, read_sparse

    columns, notes = {}, ()
    sparse = read_sparse(path) if dense and path.is_file() else None
    if key is not None and sparse is not None:
        raise ValueError(NO_KEY.format(path))
    if sparse is not None:
        held, columns = Representation(as_full(sparse)), {} if labels is None else dict(read_columns(labels))
    elif labels is not None:
        held, columns, notes = _matched(path, labels, key)
    elif key is not None:
        raise ValueError("--key matches the rows of --labels to those of the codes; give --labels, too")
    else:
        held = read_codes(path)
    chosen = None if factors is None else listed(factors)
    if labels is None and not about:
        every = held.names
        for option, column in (("weights", weights), ("groups", groups)):
            held = held if column is None else _taken_for(option, held, column, path)
        names = held.names if chosen is None else tuple(chosen)
        return held.keep_factors(names), () if names == every else names
    if labels is None:
        columns = dict(zip(held.names, held.factors.T, strict=True))
        if not columns:
            raise ValueError(f"{path}: it holds codes alone; --labels FILE gives them factors")
        known = {
            name: kind for name, kind in zip(held.names, held.kinds, strict=True) if name not in about.get("period", {})
        }
        about = {**about, "kinds": known | about.get("kinds", {})}
        if chosen is not None:
            about["kinds"] = {name: kind for name, kind in about["kinds"].items() if name in chosen}
    taken: dict[str, Any] = {}
    for option, column in (("weights", weights), ("groups", groups)):
        if column is None:
            continue
        if column not in columns:
            raise ValueError(f"{labels or path}: no column {column!r} for --{option}; {suggestion(column, columns)}")
        taken[option] = columns.pop(column)
        about = {**about, "kinds": {name: kind for name, kind in about.get("kinds", {}).items() if name != column}}
    if groups is None and held.groups is not None:
        taken["groups"] = held.groups
    posterior = {name: getattr(held, name) for name in POSTERIOR}
    try:
        made = Representation.of(
            held.codes, columns, columns=chosen, code_names=held.code_names, **taken, **about, **posterior
        )  # fmt: skip
    except ValueError as error:
        raise ValueError(f"{labels or path}: {error}") from error
    return replace(made, notes=(*notes, *made.notes)), () if chosen is None else tuple(chosen)


def _matched(path: Path, labels: Path, key: str | None) -> "tuple[Representation, dict[str, Any], tuple[str, ...]]":
    """Codes, and the columns of labels in the order of their rows; notes where rows were matched, or could not be.

    Without a key by the index that pandas wrote to both tables, if it did.
    """
    from unbraid.representation.representation import read_table, row_names
    from unbraid.representation.row_index import counts, note_on_order, order_of, taken
    from unbraid.runs.folder import read_codes
    from unbraid.storage.tables import read_columns

    columns = dict(read_columns(labels, index=True))
    names = row_names(columns, key)
    lacking = f"no column {key!r} to match rows by; both tables (.csv, .parquet) need one"
    if key is not None and names is None:
        raise ValueError(f"{labels}: {lacking}")
    table = path.suffix.lower() in (".csv", ".parquet")
    held, rows = read_table(path, key) if table else (read_codes(path), None)
    if rows is not None and names is not None:
        order = order_of(str(path), rows, str(labels), names, key or "index")
        notes = () if order is None else (note_on_order(str(path), str(labels), order, key or "index"),)
        return held, columns if order is None else taken(columns, order), notes
    if key is not None:
        raise ValueError(f"{path}: {lacking}")
    left = [file for file, found in ((labels, names), (path, rows)) if found is not None and not counts(found)]
    said = "a column without a name was left out; --key COLUMN matches rows by a column of both tables"
    return held, columns, tuple(f"{file}: {said}" for file in left)


def _taken_for(option: str, held: "Representation", column: str, path: Path) -> "Representation":
    """One factor taken for the weights or the groups of rows."""
    if column not in held.names:
        raise ValueError(f"{path}: no column {column!r} for --{option}; {suggestion(column, held.names)}")
    others = [name for name in held.names if name != column]
    try:
        return replace(held.keep_factors(others), **{option: held.factors[:, held.names.index(column)]})
    except ValueError as error:
        raise ValueError(f"{path}: --{option} {column}: {error}") from error


def _wide_card(
    path: Path, codes: Any, labels: Path | None, factors: str | None, about: dict[str, Any], **options: Any
) -> "ScoreCard":
    """Of sparse codes that are read by columns."""
    from unbraid.scoring.score import score as score_codes
    from unbraid.storage.tables import read_columns

    if labels is None:
        raise ValueError(f"{path}: it holds codes alone; --labels FILE gives them factors")
    columns = read_columns(labels)
    for name in listed(factors) if factors else ():
        if name not in columns:
            raise ValueError(f"{labels}: no column {name!r}; {suggestion(name, columns)}")
    columns = {name: columns[name] for name in listed(factors)} if factors else columns
    try:
        card = score_codes(codes, columns, **about, **options)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return replace(card, chosen_factors=tuple(columns) if factors else ())


def _by_name(option: str, text: str | None) -> dict[str, str] | None:
    if text is None:
        return None
    pairs = [part.partition("=") for part in listed(text)]
    for name, equals, value in pairs:
        if not equals or not name.strip() or not value.strip():
            raise ValueError(f"{option} {text}: write NAME=VALUE, with commas between")
    return {name.strip(): value.strip() for name, _, value in pairs}


def _numbers(option: str, text: str | None) -> dict[str, float] | None:
    found: dict[str, float] = {}
    for name, value in (_by_name(option, text) or {}).items():
        times_pi = value.removesuffix("pi").rstrip("*") if value.endswith("pi") else None
        try:
            found[name] = float(value) if times_pi is None else float(times_pi or 1) * pi
        except ValueError:
            raise ValueError(f"{option} {name}={value}: {value!r} is no number, such as 360 or 2pi") from None
    return found or None


def _values(text: str | None) -> list[float | str] | None:
    """Each as text and, where it is one, as a number."""
    if text is None:
        return None
    values: list[float | str] = []
    for part in text.split(","):
        values.append(part.strip())
        with suppress(ValueError):
            values.append(float(part))
    return values


def called(cards: Mapping[str, Named]) -> dict[str, Named]:
    """By the shortest names that differ: of files without folder and suffix, where that suffices."""
    stems = [Path(path).stem for path in cards]
    names = stems if len(set(stems)) == len(stems) else list(cards)
    return dict(zip(names, cards.values(), strict=True))


def _print_beside(head: list[str], rows: list[list[str]], cards: "Mapping[str, ScoreCard]") -> None:
    table = Table(pad_edge=False, box=SIMPLE_HEAD)
    for place, name in enumerate(head):
        table.add_column(name, justify="right" if place else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    Terminal().print(table, markup=False)
    notes = {path: card.notes for path, card in cards.items()}
    if len(set(notes.values())) == 1:
        notes = {"all": next(iter(notes.values()))}
    for path, each in notes.items():
        for note in each:
            say(f"note: {note}" if path == "all" else f"note: {path}: {note}")
    for path, card in cards.items():
        for name, each in card.failed.items():
            say(f"{path}: {name} failed: {each.reason}")


def _kept(run: Path, card: "ScoreCard") -> str:
    """What the folder of a run keeps of the scores."""
    from unbraid.storage.run_files import SCORES
    from unbraid.studies.scores import keep_by_hand

    names = keep_by_hand(run, card)
    return f"wrote {', '.join(names)} to {run / SCORES}" if names else f"left {run / SCORES} as it is"


def listed(text: str) -> list[str]:
    """Names between commas, but for commas in brackets."""
    return [name.strip() for name in re.split(r",(?![^()]*\))", text) if name.strip()]


def _n_codes(described: Mapping[str, Any]) -> str:
    of = described.get("of_codes")
    return str(described["n_codes"]) if of is None else f"{of:,}"


def _print(card: "ScoreCard", half_width: float | None) -> None:
    from unbraid.metrics import by_question

    described = card.to_dict()["input"]
    factors = ", ".join(
        f"{factor['name']} ({factor['kind']}" + (f", {factor['size']})" if factor["size"] else ")")
        for factor in described["factors"]
    )
    console = Terminal()
    size = f"{described['n_samples']:,} samples, {_n_codes(described)} codes"
    console.print(f"{card.path}\n{size}; factors: {factors}\n")
    needed = {} if half_width is None else card.rows_needed(half_width)
    nulls = [scored.null for scored in card.scored.values() if scored.null is not None]
    confidence = next((each.intervals.confidence for each in card.scored.values() if each.intervals is not None), None)
    between = "{}" if confidence is None else "{:>18}   "
    row = "{:<22}{:>8}   " + between + ("{:>15}{:>8}{:>9}   " if nulls else "{}{}{}") + "{:<8}{}"
    heads = (
        "" if confidence is None else f"{100 * confidence:g} % between",
        *(("shifted" if nulls[0].moved == "shift" else "shuffled", "above", "p  ") if nulls else ("", "", "")),
    )
    console.print(row.format("metric", "score", *heads, "better", "range"), style="bold", highlight=False)
    groups = by_question({name: scored.metric for name, scored in card.scored.items()})
    for question, _, names in groups:
        if len(groups) > 1:
            console.print(f"\n{question}", style="bold", highlight=False)
        for name in names:
            _print_one(console, row, name, card.scored[name], needed, half_width)
    if len(groups) > 1 and (card.skipped or card.failed):
        console.print()
    for name, reason in card.skipped.items():
        console.print(row.format(name, "-", "", "", "", "", "", f"not defined here: {reason}"), highlight=False)
    for name, each in card.failed.items():
        console.print(row.format(name, "-", "", "", "", "", "", f"failed: {each.reason}"), highlight=False)
    for note in card.notes:
        say(f"note: {note}")


def _print_one(
    console: Terminal, row: str, name: str, scored: "Scored", needed: Mapping[str, int], half_width: float | None
) -> None:
    metric = scored.metric
    better = "higher" if metric.higher_is_better else "lower"
    span = "{:g} to {:g}".format(*metric.range).replace("inf", "∞")
    numbers = (f"{scored.headline:.3f}", _ends(scored, metric.headline), *_null(scored))
    console.print(row.format(name, *numbers, better, span), highlight=False)
    others = [
        f"{value} {number:.3f} {_ends(scored, value, '({})')}".rstrip()
        for value, number in scored.values.items()
        if value != metric.headline
    ]
    beside = told(metric.higher_is_better, scored.headline, scored.baselines)
    notes = [note for note in scored.notes if (scored.null is None or note != scored.null.note) and note not in beside]
    for line in beside:
        mark = "! " if no_better(metric.higher_is_better, scored.headline, scored.baselines) else ""
        console.print(Padding(f"{mark}{line}", (0, 0, 0, 4), expand=False), highlight=False)
    for line in ([", ".join(others)] if others else []) + notes:
        console.print(Padding(line, (0, 0, 0, 4), expand=False), style="dim", highlight=False)
    if name in needed:
        line = f"{needed[name]:,} rows for ± {half_width:g}"
        console.print(Padding(line, (0, 0, 0, 4), expand=False), highlight=False)


def _ends(scored: "Scored", value: str, around: str = "{}") -> str:
    """The interval of one of its values, "" where it has none."""
    interval = None if scored.intervals is None else scored.intervals.values.get(value)
    return "" if interval is None else around.format(f"{interval.low:.3f} to {interval.high:.3f}")


def _null(scored: "Scored") -> tuple[str, str, str]:
    """What moved rows score, how far above that it lies, and the p-value, marked where it is not told from them."""
    from unbraid._utils.repr import WITHIN

    if scored.null is None:
        return "", "", ""
    null, mark = scored.null, "!" if scored.null.p > WITHIN else " "
    above = "-" if null.above is None else f"{null.above:.3f}"
    return f"{null.mean:.3f} ± {null.spread:.3f}", above, f"{null.p:.2g} {mark}"
