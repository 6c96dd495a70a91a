"""The table of a study: one row per run, everything known about it.

Columns, in this order:
    run, family, setting, seed, state, reason, dataset, steps, seconds
    hyper.<name>                   every hyperparameter; NaN where the family has none of that name
    train.<log>                    last point of the curves: train.reconstruction, train.kl, ...
    <metric id>.<value name>       mig.score, dci_lasso.disentanglement, ...; NaN where it is not defined, where it
                                   failed (`reason` says why), or where what is kept is on other terms than the study's
    and what the tables of COLUMNS add, such as udr.score.
"""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from unbraid._extras import require
from unbraid._files import atomic_write
from unbraid.metrics import METRICS
from unbraid.metrics.deciding import Decision
from unbraid.runs.folder import read_folder
from unbraid.studies.holdout.results import columns as generalisation_columns
from unbraid.studies.record import StudyRecord, StudyRun
from unbraid.studies.scores import missing_metrics, read_scores, wanted_scores
from unbraid.studies.storage import store
from unbraid.studies.study_ranking import udr_columns
from unbraid.types import DataFrame

# Each adds columns: from the study and its runs to {run: {column: value}}; runs it knows nothing of are left out.
Columns: TypeAlias = Callable[[StudyRecord, list[StudyRun]], Mapping[str, Mapping[str, Any]]]
COLUMNS: tuple[Columns, ...] = (udr_columns, generalisation_columns)


def results(study: StudyRecord) -> DataFrame:
    """One row per run (a pandas DataFrame), those added included.

    Raises:
        ImportError: pandas is not installed.
        ValueError: the study has no folder, or a file in it is damaged.
    """
    pandas = require("pandas", "table", "results of a study")
    runs, wanted = study.runs(), study.wanted_scores()
    configs = {planned.id: planned.config for planned in study.planned()}
    rows = {run.id: {**_row(run, configs.get(run.id, {})), **_numbers(run, wanted)} for run in runs}
    for columns in COLUMNS:
        for name, values in columns(study, runs).items():
            rows[name].update(values)
    names = _ordered(rows.values())
    return pandas.DataFrame(list(rows.values()), columns=names)


def _row(run: StudyRun, config: Mapping[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {
        "run": run.id,
        "family": run.family,
        "setting": run.setting,
        "seed": run.seed,
        "state": run.state,
        "reason": run.reason,
        "dataset": config["dataset"]["name"] if config else None,
        "steps": config["steps"] if config else None,
        "seconds": None,
    }
    row |= {f"hyper.{name}": value for name, value in run.hyperparameters.items()}
    if run.path.is_dir() and run.path.parent.name == store.RUNS:
        status = read_folder(run.path)[1]
        row |= {"seconds": status["seconds"]}
        row |= {f"train.{name}": value for name, value in status["last"].items()}
    return row


def _numbers(run: StudyRun, wanted: Mapping[str, Decision]) -> dict[str, float]:
    """Values of the metrics, as far as they were computed on the study's terms; NaN of those that failed."""
    if not run.path.is_dir():
        return {}
    scores = read_scores(run.path)
    terms = {**wanted_scores(scores.metrics), **wanted}
    outdated = missing_metrics(scores, terms)
    numbers = {f"{name}.{_headline(name)}": math.nan for name in run.failed_metrics}
    for metric, entry in scores.metrics.items():
        if metric not in outdated:
            numbers |= {f"{metric}.{name}": value for name, value in entry.values.items()}
    return numbers


def _headline(metric: str) -> str:
    return METRICS[metric].headline if metric in METRICS else "score"


def _ordered(rows: Any) -> list[str]:
    names = list(dict.fromkeys(name for row in rows for name in row))
    groups = ("hyper.", "train.")
    return sorted(names, key=lambda name: _rank(name, groups, names))


def _rank(name: str, groups: tuple[str, ...], names: list[str]) -> tuple[int, int]:
    if "." not in name:
        return 0, names.index(name)
    for place, group in enumerate(groups, start=1):
        if name.startswith(group):
            return place, names.index(name)
    return len(groups) + 1, names.index(name)


def write_results(study: StudyRecord, path: Path | None = None) -> Path:
    """Write the results as .parquet or .csv; by default the folder's results.parquet. Whole or not at all.

    Raises:
        ValueError: another suffix.
        FileNotFoundError: the folder does not exist.
    """
    path = path or study.known_folder() / store.RESULTS
    if path.suffix not in (".csv", ".parquet"):
        raise ValueError(f"{path}: results are written as .csv or .parquet")
    frame = results(study)
    with atomic_write(path) as temporary:
        if path.suffix == ".csv":
            frame.to_csv(temporary, index=False)
        else:
            frame.to_parquet(temporary, index=False)
    return path
