"""What is wrong in a folder of results: one line for each fault."""

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from records.files import path_of, paths, read, text_of
from records.schema import EXTERNAL, SEVERAL, SHORT, UNCLEAN, apart, key_of, named
from unbraid.metrics import MEASURES
from unbraid.metrics._shared.metric_arguments import find_metric
from unbraid.scoring.result_columns import HELD_OUT, ROUNDING


def faults(folder: Path) -> list[str]:
    """Of all files: structure, place, sources, reasons, intervals, commits, history.

    Raises:
        FileNotFoundError: there is no such folder.
    """
    return [f"{path}: {fault}" for path in paths(folder) for fault in _of_file(path, folder)]


def _of_file(path: Path, folder: Path) -> Iterator[str]:
    try:
        content = read(path)
    except ValueError as error:
        yield str(error).removeprefix(f"{path}").removeprefix(":").strip()
        return
    where = path_of(folder, content["model"], content["revision"], content["study"])
    if path != where:
        yield f"results of this model, revision and study lie in {where}"
    if path.read_bytes() != text_of(content).encode():
        yield "is not laid out as results are: keys in their order, an indent of 1, a newline at the end"
    if content["revision"] == EXTERNAL and "source" not in content:
        yield "has no source, which numbers of a paper have"
    yield from of_content(content)


def of_content(content: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong in the history and the numbers of a file, wherever it lies."""
    yield from _of_history(content["history"])
    for key, times in Counter(map(key_of, content["scores"])).items():
        if times > 1:
            yield f"{named(dict(zip(('metric', 'dataset', 'setting'), key, strict=True)))} is there {times} times"
    for score in content["scores"]:
        for fault in _of_score(score, content["revision"]):
            yield f"{named(score)}: {fault}"


def _of_history(history: list[Mapping[str, str]]) -> Iterator[str]:
    dates = [each["date"] for each in history]
    for each in dates:
        if not _is_date(each):
            yield f"history: {each} is no date"
    if dates != sorted(dates):
        yield "history: the oldest entry comes first"


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _of_score(score: Mapping[str, Any], revision: str) -> Iterator[str]:
    reported, measured = score.get("reported"), score.get("measured")
    if (known := MEASURES.get(score["metric"]) or find_metric(score["metric"])) is not None:
        yield f"write {score['metric']}.{known.headline}, the name of the column"
    if reported is None and measured is None:
        yield "has neither a reported nor a measured number"
    if reported is not None:
        if revision != EXTERNAL:
            yield f"a reported number lies under {EXTERNAL}, not under {revision}"
        if ("spread" in reported) != ("spread_is" in reported):
            yield "spread and spread_is go together; write 'not said' where the paper does not say what its spread is"
    if measured is not None:
        yield from _of_measured(measured, revision)
    yield from outside(score)
    if reported is not None and measured is not None and apart(score) and "reason" not in score:
        yield f"reported {reported['value']:g} lies outside {_interval(measured)} that was measured: give a reason"


def outside(score: Mapping[str, Any]) -> Iterator[str]:
    """Each number of a score that lies outside the range of its metric, where its column is that of a metric."""
    metric, _, value = score["metric"].rpartition(".")
    known = find_metric(metric)
    if known is None or value not in (known.headline, HELD_OUT):
        return
    least, most = known.range
    for kind in ("reported", "measured"):
        held = score.get(kind, {})
        numbers = {name: held[name] for name in ("value", "low", "high", "chance") if name in held}
        for name, number in {**numbers, **held.get("baselines", {})}.items():
            if not least - ROUNDING <= number <= most + ROUNDING:
                span = f"{least:g} to {most:g}".replace("inf", "∞")
                of = "" if name == "value" else f"{name} "
                yield f"{kind} {of}{number:g} lies outside the range of {metric}, {span}"


def _of_measured(measured: Mapping[str, Any], revision: str) -> Iterator[str]:
    low, high = measured.get("low"), measured.get("high")
    if (low is None) != (high is None):
        yield "low and high go together"
    elif low is not None and not low <= measured["value"] <= high:
        yield f"measured {measured['value']:g} lies outside its own interval, {_interval(measured)}"
    if "date" in measured and not _is_date(measured["date"]):
        yield f"measured on {measured['date']}, which is no date"
    if revision in (UNCLEAN, SEVERAL) and measured["commit"]:
        yield f"was measured by commit {measured['commit'][:SHORT]}, and lies under {revision}"
    elif revision not in (EXTERNAL, UNCLEAN, SEVERAL) and measured["commit"][:SHORT] != revision:
        yield f"lies under {revision}, and was measured by {measured['commit'][:SHORT] or 'no commit'}"


def _interval(measured: Mapping[str, Any]) -> str:
    low, high = (measured.get(end, measured["value"]) for end in ("low", "high"))
    return f"[{low:g}, {high:g}]"
