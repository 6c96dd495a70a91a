"""What was measured, as records: means over the seeds of a setting."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from records.schema import COMMIT
from unbraid.base.types import DataFrame, FloatArray
from unbraid.scoring.result_columns import check_alike, check_columns, mean_interval, numbers, unequal_rows

CONFIDENCE = 0.95
DIGITS = 6  # of what is recorded: the last digits of a mean hang on the order of its sum


def means(runs: DataFrame, study: str, columns: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The mean of each column over the seeds of one setting, as the `measured` part of a record.

    Args:
        runs: finished runs of one setting of a study, a row of its results for each.
        study: its name.
        columns: such as "mig.score"; a column without any number is left out.

    Raises:
        ValueError: there is no such column; a run twice; runs that differ in more than their seed, or that were scored
            by different rules or on different numbers of rows.
    """
    check_columns(runs, columns)
    if "run" in runs.columns and (twice := runs["run"].dropna()[lambda run: run.duplicated()].tolist()):
        raise ValueError(f"{study}: run {twice[0]} is there more than once; each counts as one training")
    keys = ["label" if "label" in runs.columns else "dataset", "family", "setting"]
    if len(runs[keys].drop_duplicates()) > 1:
        raise ValueError(f"{study}: runs of more than one dataset, family or setting")
    check_alike(runs, columns, keys)
    if unequal := unequal_rows(runs, columns):
        column, fewest, most = unequal
        raise ValueError(f"{study}: {column} is of {fewest:,} to {most:,} rows")
    records = {}
    for column in columns:
        values = numbers(runs, column)
        scored = runs.loc[np.isfinite(values)]
        if len(scored):
            records[column] = {
                **_mean(column, values[np.isfinite(values)]), "units": len(scored), "unit": "seed",
                "commit": commit_of(scored["commit"] if "commit" in scored.columns else ()), "study": study,
                "seeds": sorted(map(int, scored["seed"].dropna())), "machine": _machine(scored),
                **_version(_decisions(scored), column),
            }  # fmt: skip
    return records


def _mean(column: str, values: FloatArray) -> dict[str, float]:
    """Mean over runs, and from two on its 95 % interval by Student's t, within the metric's range."""
    mean = float(values.mean())
    if len(values) < 2:
        return {"value": _rounded(mean)}
    low, high = mean_interval(column, values, CONFIDENCE)
    return {"value": _rounded(mean), "low": _rounded(low), "high": _rounded(high)}


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}") + 0.0  # no -0.0


def commit_of(commits: Iterable[Any]) -> str:
    """The one commit of some runs; "" where they have several, or one of them was of changed or unknown code."""
    distinct = {str(commit) for commit in commits}
    return next(iter(distinct)) if len(distinct) == 1 and re.fullmatch(COMMIT, *distinct) else ""


def _decisions(runs: DataFrame) -> list[Mapping[str, Any]]:
    """Of each run, what decided its numbers; older tables do not say."""
    if "computed_with" not in runs.columns:
        return [{}]
    return [json.loads(text) if isinstance(text, str) else {} for text in runs["computed_with"]]


def _version(decisions: Iterable[Mapping[str, Any]], column: str) -> dict[str, int]:
    """The version of the metric of a column, where all runs name the same."""
    metric = column.rpartition(".")[0]
    versions = {decision.get(metric, {}).get("version") for decision in decisions}
    version = versions.pop() if len(versions) == 1 else None
    return {} if version is None else {"metric_version": version}


def _machine(runs: DataFrame) -> str:
    columns = [name for name in ("processor", "accelerator") if name in runs.columns]
    return ", ".join(dict.fromkeys(str(text) for name in columns for text in runs[name].dropna().tolist()))
