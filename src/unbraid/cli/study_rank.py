"""`unbraid study rank`: which model of a study is best, without labels."""

import json as json_format
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from unbraid.analysis.settings import brief_settings, with_brief_settings
from unbraid.cli._paths import check_outputs
from unbraid.cli._progress import stage_progress
from unbraid.cli._say import say
from unbraid.cli._terminal import Terminal
from unbraid.cli._trust import TrustCode
from unbraid.cli.rank import penalty
from unbraid.confidence.baselines import ABOVE, MARK
from unbraid.types import DataFrame

if TYPE_CHECKING:
    from unbraid.ranking.ranking import Ranking, RankingOptions
    from unbraid.ranking.suitability import Suitability


def rank(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a study, as `unbraid study run` makes it.")],
    similarity: Annotated[
        Literal["lasso", "spearman"] | None,
        typer.Option(help="Similarity of two latents; default as in the YAML, or lasso.", show_default=False),
    ] = None,
    compare: Annotated[
        Literal["same-hyperparameters", "same-family", "all"] | None,
        typer.Option(
            help="Which models are compared: all, those of one family, or the seeds of one setting, as in the paper. "
            "Default as in the YAML, or all.",
            show_default=False,
        ),
    ] = None,
    alpha: Annotated[
        str | None,
        typer.Option(
            help="Penalty of the lasso, or cv: by cross-validation, as the paper. Default as in the YAML, or 0.1.",
            show_default=False,
        ),
    ] = None,
    informative: Annotated[
        Literal["signal", "kl"] | None,
        typer.Option(
            help="How informative latents are found: by their signal, or by their KL as in the paper. Default "
            "as in the YAML, or signal.",
            show_default=False,
        ),
    ] = None,
    n_comparisons: Annotated[
        int | None,
        typer.Option(help="Number of other models that each one is compared with; default all.", show_default=False),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(help="Column by which to check that seeds matter, such as mig.score.", show_default=False),
    ] = None,
    rows: Annotated[int, typer.Option(help="Number of rows in the table of runs.")] = 20,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    latex: Annotated[Path | None, typer.Option(help="Write the medians by setting to this .tex file.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write them to this .md file.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write all runs, the best first, to this .csv file.")] = None,
    trust_code: TrustCode = None,
) -> None:
    """Rank the runs of a study by Unsupervised Disentanglement Ranking (UDR).

    UDR takes models to be disentangled if their latents match those of the others one to one. The best setting has the
    highest median, and the best model the highest score. Metrics that need labels are shown too, if there are any.
    With `baselines: true` in the YAML the baselines without training are shown too; † marks runs that are no better.
    Comparisons are kept in DIR/udr/, so a new model only adds its own.

    Examples:

      unbraid study rank study/

      unbraid study rank study/ --similarity spearman --compare all --rows 5

      unbraid study rank study/ --json > ranking.json

      unbraid study rank study/ --latex settings.tex --csv runs.csv
    """
    if rows < 1:
        raise ValueError(f"--rows must be at least 1; got {rows}")
    tables = {".tex": latex, ".md": markdown, ".csv": csv}
    check_outputs(tables)
    from unbraid.analysis.columns import numbers, together
    from unbraid.cli.study import opened
    from unbraid.ranking.ranking import NothingToRank
    from unbraid.studies.baselines import beside_baselines, no_better_runs
    from unbraid.studies.results import results
    from unbraid.studies.study_ranking import rank_study, ranking_options

    study = opened(folder, trust=trust_code or ())
    found, runs = {}, {label: part.runs() for label, part in study.parts().items()}
    if metric is not None:
        for label, part in study.parts().items():
            numbers(results(part, runs[label]), metric)
    for label, part in study.parts().items():
        options = _options(ranking_options(part), similarity, compare, alpha, informative, n_comparisons)
        try:
            with stage_progress(f"{label} reading codes".strip()) as progress:
                ranking = rank_study(part, options, progress=progress, runs=runs[label])
        except NothingToRank as error:
            if not label:
                raise
            say(f"{label}: {error}", err=True)
            continue
        frame = results(part, runs[label])
        checks = _checks(frame, ranking, metric)
        paths = {run.id: run.path for run in runs[label]}
        found[label] = _Ranked(
            ranking, _beside(frame, ranking), checks, paths, part.config.baselines,
            beside_baselines(part, runs[label]), no_better_runs(frame),
        )  # fmt: skip
    if not found:
        raise ValueError(f"{folder}: no dataset has two runs that can be compared")
    _save(together({label: each.table for label, each in found.items()}), tables)
    if json:
        plain = {label: _content(each) for label, each in found.items()}
        say(json_format.dumps(plain.get("", plain), indent=2, allow_nan=False))
        return
    console = Terminal()
    for label, each in found.items():
        if label:
            _say(console, label)
        _print(console, each, rows)


@dataclass(frozen=True)
class _Ranked:
    """The models of one dataset."""

    ranking: "Ranking"
    table: DataFrame
    checks: "Sequence[Suitability]"
    paths: Mapping[str, Path]
    asked: bool  # whether the study has baselines
    beside: Sequence[Mapping[str, Any]]  # what these score
    worse: Mapping[str, Collection[str]]  # runs that are no better, by column


def _print(console: Console, found: _Ranked, n_rows: int) -> None:
    from unbraid.ranking.verdicts import study_verdict

    table, chosen = found.table, found.ranking.choose()
    brief = with_brief_settings(table)
    _print_runs(console, brief, n_rows, found.worse)
    _print_settings(console, brief)
    _print_baselines(console, found)
    _print_notes(console, found.ranking, found.checks)
    named = brief_settings(zip(table["family"], table["setting"], strict=True))
    for line in study_verdict(found.ranking, named, found.paths):
        _say(console, line)
    if chosen is not None:
        _print_labels(console, table, chosen.run)
        if by := [_short(column) for column, runs in found.worse.items() if chosen.run in runs]:
            _say(console, f"it is no better than its best baseline by {', '.join(by)}")


def _options(
    planned: "RankingOptions", similarity: Any, compare: Any, alpha: str | None, informative: Any, n_comparisons: Any
) -> "RankingOptions":
    given = {
        "similarity": similarity, "compare": compare, "alpha": None if alpha is None else penalty(alpha),
        "informative": informative, "n_comparisons": n_comparisons,
    }  # fmt: skip
    return replace(planned, **{name: value for name, value in given.items() if value is not None})


def _beside(frame: DataFrame, ranking: "Ranking") -> DataFrame:
    """The ranking with seeds and the headline of each metric beside it, the best first."""
    from unbraid.analysis.columns import headline_columns

    judged = [ABOVE] if frame[ABOVE].notna().to_numpy().any() else []
    return ranking.to_frame().merge(frame[["run", "seed", *judged, *headline_columns(frame)]], on="run", how="left")


def _checks(frame: DataFrame, ranking: "Ranking", metric: str | None) -> "list[Suitability]":
    from unbraid.analysis.columns import headline_columns, higher_is_better
    from unbraid.ranking.suitability import suitability

    known = headline_columns(frame)
    column = metric or ("mig.score" if "mig.score" in known or not known else known[0])
    rows = frame.loc[frame["run"].isin(ranking.runs)]
    return suitability(rows, ranking, column, higher_is_better=higher_is_better(column) is not False)


def _content(found: _Ranked) -> dict[str, Any]:
    chosen, paths = found.ranking.choose(), found.paths
    rows = [
        {name: value for name, value in row.items() if value == value} | {"path": str(paths[row["run"]])}
        for row in found.table.to_dict("records")
    ]
    return found.ranking.to_dict() | {
        "best_path": None if chosen is None else str(paths[chosen.run]),
        "best_setting": None if chosen is None else {"family": chosen.family, "setting": chosen.setting},
        "runs": rows,
        "suitability": [asdict(each) for each in found.checks],
        **({"baselines": found.beside} if found.beside else {}),
    }


def _metrics(table: Any) -> list[str]:
    fixed = {"label", "rank", "run", "family", "setting", "udr.score", "udr.informative", "seed", ABOVE}
    return [name for name in table.columns if name not in fixed]


def _print_runs(console: Console, table: Any, n_rows: int, worse: Mapping[str, Collection[str]]) -> None:
    metrics = _fitting(console, table, (9, 10, 7, 18))
    shown = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("", "UDR", "latents", *map(_short, metrics)):
        shown.add_column(name, justify="right", no_wrap=True)
    for name in ("family", "setting", "seed", "run"):
        shown.add_column(name, justify="right" if name == "seed" else "left", no_wrap=name != "setting")
    for row in table.head(n_rows).to_dict("records"):
        shown.add_row(
            str(row["rank"]), f"{row['udr.score']:.3f}", str(row["udr.informative"]), *_numbers(row, metrics, worse),
            row["family"], row["setting"], str(row["seed"]), row["run"],
        )  # fmt: skip
    console.print(shown, markup=False)
    if len(table) > n_rows:
        console.print(f"... and {len(table) - n_rows} more; --rows {len(table)} shows all", highlight=False)


def _print_settings(console: Console, table: Any) -> None:
    from unbraid._utils.natural_order import natural

    metrics = _fitting(console, table, (7, 8))
    groups = table.groupby(["family", "setting"], sort=False)
    shown = Table(box=SIMPLE_HEAD, pad_edge=False, title="medians by setting", title_justify="left", title_style="")
    shown.add_column("family", no_wrap=True)
    shown.add_column("setting")
    for name in ("runs", "UDR", *map(_short, metrics)):
        shown.add_column(name, justify="right", no_wrap=True)
    for (family, setting), rows in sorted(groups, key=lambda group: (group[0][0], natural(group[0][1]))):
        medians = rows[["udr.score", *metrics]].median().to_dict()
        shown.add_row(family, setting, str(len(rows)), f"{medians['udr.score']:.3f}", *_numbers(medians, metrics))
    console.print(shown, markup=False)


def _save(table: Any, outputs: Mapping[str, Path | None]) -> None:
    from unbraid._utils.natural_order import natural
    from unbraid.scoring.tables import save_table

    metrics = _metrics(table)
    runs = [[str(row[name]) for name in table.columns] for row in table.to_dict("records")]
    brief: Any = with_brief_settings(table)
    keys = [name for name in ("label", "family", "setting") if name in table.columns]
    groups = sorted(brief.groupby(keys, sort=False), key=lambda group: (*group[0][:-1], natural(group[0][-1])))
    settings = []
    for key, rows in groups:
        medians = rows[["udr.score", *metrics]].median().to_dict()
        settings.append([*key, str(len(rows)), f"{medians['udr.score']:.3f}", *_numbers(medians, metrics)])
    for suffix, path in outputs.items():
        if path is None:
            continue
        if suffix == ".csv":
            save_table(path, list(table.columns), runs)
        else:
            save_table(path, [*keys, "runs", "UDR", *map(_short, metrics)], settings)
        say(f"wrote {path}", err=True)


def _fitting(console: Console, table: Any, taken: Sequence[int]) -> list[str]:
    """As many metrics as the terminal has room for beside columns of these widths, family and setting."""
    room = console.width - sum(taken) - 6 - sum(int(table[name].str.len().max()) for name in ("family", "setting"))
    shown: list[str] = []
    for name in _metrics(table):
        room -= max(len(_short(name)), 6) + 3
        if room < 0:
            break
        shown.append(name)
    return shown


def _print_baselines(console: Console, found: _Ranked) -> None:
    from unbraid.cli._study_baselines import baselines_table
    from unbraid.studies.baselines import summaries

    measured = [name for name in _metrics(found.table) if any(name in each["scores"] for each in found.beside)]
    if measured:
        console.print(baselines_table(summaries(found.beside), measured), markup=False)
    elif found.asked:
        _say(console, "note: the baselines that the YAML asks for are not scored yet; unbraid study run scores them")
    if any(found.worse.values()):
        _say(console, f"{MARK} no better than its best baseline")


def _print_notes(console: Console, ranking: "Ranking", checks: "Sequence[Suitability]") -> None:
    from unbraid.ranking.suitability import PUBLISHED

    for reason, count in Counter(ranking.left_out.values()).items():
        names = [run for run, why in ranking.left_out.items() if why == reason]
        _say(console, f"left out: {f'{count} runs' if count > 1 else names[0]} ({reason})")
    for note in ranking.notes:
        _say(console, f"note: {note}")
    for each in checks:
        if each.warning:
            _say(console, f"warning: {each.warning}")
        elif each.within_seed_win_rate is not None and each.across_seed_win_rate is not None:
            _say(
                console,
                f"{each.family}: by {each.metric}, the best model of a seed is at least as good as a random one in "
                f"{each.within_seed_win_rate:.0%} of cases, and its setting under another seed in "
                f"{each.across_seed_win_rate:.0%} (by luck {each.within_seed_luck:.0%} and "
                f"{each.across_seed_luck:.0%}; published VAEs {PUBLISHED:.0%} of the latter, PCA 100%)",
            )


def _print_labels(console: Console, table: DataFrame, chosen: str) -> None:
    """What metrics that know the factors, which the ranking did not, say of the choice."""
    from unbraid.analysis.columns import higher_is_better

    told = []
    for name in _metrics(table):
        known = table.loc[table[name].notna(), ["run", name]]
        own = known.loc[known["run"] == chosen, name]
        if len(own):
            better = known[name] > own.iloc[0] if higher_is_better(name) is not False else known[name] < own.iloc[0]
            best = known[name].max() if higher_is_better(name) is not False else known[name].min()
            place = f"place {1 + int(better.sum())} of {len(known)}, best {best:.3f}"
            told.append(f"{_short(name)} {own.iloc[0]:.3f} ({place})")
    if told:
        _say(console, f"the labels, opened afterwards, say of it: {', '.join(told)}")


def _say(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def _short(column: str) -> str:
    # Each metric has one headline, so that its name is enough.
    return column.rpartition(".")[0]


def _numbers(
    row: Mapping[str, Any], names: Sequence[str], worse: Mapping[str, Collection[str]] = MappingProxyType({})
) -> list[str]:
    marks = {name: MARK * (row.get("run") in worse.get(name, ())) for name in names}
    return [f"{row[name]:.3f}{marks[name]}" if row[name] == row[name] else "-" for name in names]
