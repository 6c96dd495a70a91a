"""Records as tables: for the terminal, for papers and for programs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from unbraid._utils.suggest import suggestion
from unbraid.results.files import Entry
from unbraid.storage.table_formats import Cell, Table

FILTERS = ("paper", "model", "dataset", "metric")


def chosen(all_: Sequence[Entry], wanted: Mapping[str, str | None], *, options: bool = True) -> list[Entry]:
    """The numbers that pass every filter.

    Args:
        all_: all numbers.
        wanted: by the names of FILTERS; a model with its paper or without, a metric with its value or without.
        options: whether errors call filters as options of the command line.

    Raises:
        ValueError: a filter names what no number is of, or none passes all of them.
    """
    left = list(all_)
    for name, word in wanted.items():
        if word is None:
            continue
        if not any(word in _words(each, name) for each in all_):
            known = dict.fromkeys(_words(each, name)[0] for each in all_)
            given = f"--{name} {word}: no such {name}" if options else f"no such {name}: {word}"
            raise ValueError(f"{given}; {suggestion(word, known)}")
        left = [each for each in left if word in _words(each, name)]
    if not left:
        given = " ".join(f"--{name} {word}" for name, word in wanted.items() if word is not None)
        raise ValueError(f"no number passes {given} together" if given else "there are no results")
    return left


def _words(entry: Entry, name: str) -> tuple[str, ...]:
    """What names an entry for a filter, the usual word first."""
    metric = entry.score["metric"]
    return {
        "paper": (entry.org,),
        "model": (entry.model.partition("__")[2], entry.model),
        "dataset": (entry.score["dataset"],),
        "metric": (metric, metric.rpartition(".")[0]),
    }[name]


def table(some: Iterable[Entry]) -> Table:
    """A row for each number: model, dataset, metric, setting, reported, measured with its interval, and the place."""
    heads = ["model", "dataset", "metric", "setting", "reported", "measured", "place"]
    rows = [
        [each.model, *_of(each.score), reported_cell(each.score), measured_cell(each.score), place(each.score)]
        for each in some
    ]
    return Table(heads, rows, "llllrrl", keys=4)


def whole_table(some: Iterable[Entry]) -> Table:
    """The same with all that is known of each, a column for each."""
    reported = ("value", "spread", "spread_is", "n", "printed", "place")
    measured = (
        "value", "low", "high", "units", "unit", "commit", "study", "machine", "chance", "seconds", "supervision",
        "date", "metric_version",
    )  # fmt: skip
    heads = [
        "model", "revision", "study", "dataset", "metric", "setting",
        *(f"reported.{name}" for name in reported), *(f"measured.{name}" for name in measured), "reason",
    ]  # fmt: skip
    rows = [
        [
            each.model, each.revision, each.study, *_of(each.score),
            *(each.score.get("reported", {}).get(name) for name in reported),
            *(each.score.get("measured", {}).get(name) for name in measured), each.score.get("reason"),
        ]
        for each in some
    ]  # fmt: skip
    return Table(heads, rows, keys=6)


def records(some: Iterable[Entry]) -> list[dict[str, Any]]:
    """Each number as its file has it, with the names of the file."""
    return [{"model": e.model, "revision": e.revision, "study": e.study, **e.score} for e in some]


def of_one(content: Mapping[str, Any]) -> list[Table | str]:
    """All that one file says, for a reader of the terminal."""
    source = content.get("source")
    paper = "" if source is None else f"{source['authors']} {source['year']}, {source['title']}"
    arxiv = f" (arXiv {source['arxiv']})" if source and source.get("arxiv") else ""
    rows = [[*_of(score), reported_cell(score), measured_cell(score), place(score)] for score in content["scores"]]
    title = f"{content['model']}, {content['revision']}, {content['study']}"
    heads = ["dataset", "metric", "setting", "reported", "measured", "place"]
    reasons: dict[str, list[str]] = {}
    for score in content["scores"]:
        if "reason" in score:
            reasons.setdefault(score["reason"], []).append(f"{score['metric']} {score['setting']}".strip())
    return [
        Table(heads, rows, "lllrrl", title=title, keys=3),
        *([f"source: {paper}{arxiv}"] if paper else []),
        *(f"reason: {reason} ({', '.join(of)})" for reason, of in reasons.items()),
        *(f"{each['date']}: {each['reason']}" for each in content["history"]),
    ]


def reported_cell(score: Mapping[str, Any]) -> Cell | None:
    """As the paper prints it."""
    held = score.get("reported")
    return None if held is None else Cell(held["printed"], held["value"])


def measured_cell(score: Mapping[str, Any]) -> Cell | None:
    """With its interval."""
    held = score.get("measured")
    if held is None:
        return None
    between = f" [{held['low']:.3f}, {held['high']:.3f}]" if "low" in held else ""
    return Cell(f"{held['value']:.3f}{between}", held["value"])


def place(score: Mapping[str, Any]) -> str:
    """Where a reported number stands in the paper, or the study of a measured one."""
    return score["reported"]["place"] if "reported" in score else score["measured"]["study"]


def _of(score: Mapping[str, Any]) -> list[str]:
    return [score[name] for name in ("dataset", "metric", "setting")]
