"""What was measured, as records: means over the seeds of each setting of a study, and the numbers of a score card."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from unbraid._utils.counted import counted
from unbraid.analysis.alike import check_alike, unequal_rows
from unbraid.analysis.columns import agreement_columns, check_columns, mean_interval, numbers
from unbraid.results.schema import COMMIT, SEVERAL, SHORT, UNCLEAN
from unbraid.storage.score_file import SavedScores
from unbraid.types import DataFrame, FloatArray

CONFIDENCE = 0.95
NEEDED = ("family", "setting", "seed", "state", "dataset")  # of a table; older ones have little more
DIGITS = 6  # of what is recorded: the last digits of a mean hang on the order of its sum


class Found(NamedTuple):
    """One number that was measured, and where it belongs."""

    family: str
    revision: str
    score: dict[str, Any]


def in_table(frame: DataFrame, study: str, columns: Sequence[str] | None = None) -> Iterator[Found]:
    """Means over the finished runs of each dataset, family and setting, with Student's interval.

    Args:
        frame: the results of a study.
        study: its name.
        columns: what is averaged; default the headlines of its metrics, udr.score, and what it says of images that
            models never saw.

    Raises:
        ValueError: there is no such column; no finished run, or one twice, or none with a number; the runs of a setting
            differ in more than their seed, or were scored by different rules or on different numbers of rows.
    """
    check_columns(frame, columns or ())
    frame = frame.loc[frame["state"] == "finished"]
    if frame.empty:
        raise ValueError(f"{study}: no finished run to record")
    if "run" in frame.columns and (twice := frame["run"].dropna()[lambda run: run.duplicated()].tolist()):
        raise ValueError(f"{study}: run {twice[0]} is there more than once; each counts as one training")
    default = (name for name in agreement_columns(frame) if not name.startswith("hyper."))
    chosen = list(dict.fromkeys(columns or default))
    if not chosen:
        raise ValueError(f"{study}: no metrics to record")
    images = "label" if "label" in frame.columns else "dataset"
    check_columns(frame, [images])
    if images == "label" and frame[images].isna().to_numpy().any():  # merged with studies of one dataset
        check_columns(frame, ["dataset"])
        frame = frame.assign(label=frame["label"].fillna(frame["dataset"]))
    if unnamed := int(np.sum(frame[images].isna().to_numpy())):
        raise ValueError(f"{study}: {counted(unnamed, 'run')} without a {images}")
    keys = [images, "family", "setting"]
    if not np.isfinite([numbers(frame, column) for column in chosen]).any():
        raise ValueError(f"{study}: no finished run has a number in {', '.join(chosen)}")
    for _, rows in frame.groupby(images, sort=False):  # models are ranked, and rules chosen, on each dataset alone
        check_alike(rows, chosen, keys)
    for key, rows in frame.groupby(keys, sort=False):
        dataset, family, setting = map(str, key)  # pyright: ignore[reportArgumentType]
        if unequal := unequal_rows(rows, chosen):
            column, fewest, most = unequal
            raise ValueError(f"{study}: {family} {setting}: {column} is of {fewest:,} to {most:,} rows")
        for column in chosen:
            values = numbers(rows, column)
            own = rows.loc[np.isfinite(values)]
            if len(own):
                commit, revision = commit_of(own["commit"] if "commit" in own.columns else ())
                measured = {
                    **mean_of(column, values[np.isfinite(values)]), "units": len(own), "unit": "seed", "commit": commit,
                    "study": study, "seeds": sorted(map(int, own["seed"].dropna())), "machine": _machine(own),
                    **_version(_decisions(own), column),
                }  # fmt: skip
                score = {"metric": column, "dataset": dataset, "setting": setting, "measured": measured}
                yield Found(family, revision, score)


def mean_of(column: str, values: FloatArray) -> dict[str, float]:
    """Mean of a column over runs, and from two on its 95 % interval by Student's t, within the metric's range.

    Example:
        >>> mean_of("mig.score", np.array([0.1, 0.2, 0.3]))
        {'value': 0.2, 'low': 0.0, 'high': 0.448414}
    """
    mean = float(values.mean())
    if len(values) < 2:
        return {"value": rounded(mean)}
    low, high = mean_interval(column, values, CONFIDENCE)
    return {"value": rounded(mean), "low": rounded(low), "high": rounded(high)}


def in_card(
    card: SavedScores, *, dataset: str, setting: str, study: str, commit: str, columns: Sequence[str] | None = None
) -> list[dict[str, Any]]:
    """The numbers of a score card, with its 95 % intervals where it has them; rows are the units.

    Args:
        card: as `unbraid score --json` writes it.
        dataset: of its rows.
        setting: what tells the model from others of its name.
        study: its name.
        commit: of the code that scored, 40 digits, or "".
        columns: such as mig.score; default the headline of each metric.

    Raises:
        ValueError: it has no such column, no metric at all, or intervals of another confidence.
    """
    known = {f"{name}.{value}": (each, value) for name, each in card.metrics.items() for value in each.values}
    chosen = list(dict.fromkeys(columns or (f"{name}.{each.headline}" for name, each in card.metrics.items())))
    if not chosen:
        raise ValueError("the score card has no metric to record")
    scores = []
    for column in chosen:
        if column not in known:
            raise ValueError(f"the score card has no {column}; it has {', '.join(known)}")
        metric, value = known[column]
        measured: dict[str, Any] = {"value": rounded(metric.values[value])}
        if metric.intervals is not None and value in metric.intervals.values:
            if metric.intervals.confidence != CONFIDENCE:
                raise ValueError(
                    f"{column} has an interval of {metric.intervals.confidence:g}; score with --confidence .95"
                )
            interval = metric.intervals.values[value]
            measured |= {"low": rounded(interval.low), "high": rounded(interval.high)}
        measured |= {
            "units": card.input.n_samples, "unit": "row", "commit": commit, "study": study, "seeds": [card.seed],
            "machine": "", **_version([card.decisions()], column),
        }  # fmt: skip
        scores.append({"metric": column, "dataset": dataset, "setting": setting, "measured": measured})
    return scores


def rounded(value: float) -> float:
    """A number in as many digits as are recorded."""
    return float(f"{value:.{DIGITS}g}") + 0.0  # no -0.0


def commit_of(commits: Iterable[Any]) -> tuple[str, str]:
    """The one commit of some runs, "" where there is no such, and the folder of their results.

    Example:
        >>> commit_of(["0123456789abcdef0123456789abcdef01234567", "f" * 40])
        ('', 'several')
        >>> commit_of(["f" * 40, None])
        ('', 'unclean')
    """
    known = list(dict.fromkeys(map(str, commits)))
    if not known or not all(re.fullmatch(COMMIT, each) for each in known):
        return "", UNCLEAN
    return ("", SEVERAL) if len(known) > 1 else (known[0], known[0][:SHORT])


def _decisions(rows: DataFrame) -> list[Mapping[str, Any]]:
    """Of each run, what decided its numbers; nothing of runs of before that was kept."""
    if "computed_with" not in rows.columns:
        return [{}]
    return [json.loads(text) if isinstance(text, str) else {} for text in rows["computed_with"]]


def _version(decisions: Iterable[Mapping[str, Any]], column: str) -> dict[str, int]:
    """The version of the metric of a column, where all of them name the same."""
    metric = column.rpartition(".")[0]
    found = {held.get(metric, {}).get("version") for held in decisions}
    version = found.pop() if len(found) == 1 else None
    return {} if version is None else {"metric_version": version}


def _machine(rows: DataFrame) -> str:
    there = [name for name in ("processor", "accelerator") if name in rows.columns]
    return ", ".join(dict.fromkeys(str(each) for name in there for each in rows[name].dropna().tolist()))
