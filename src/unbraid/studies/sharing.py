"""The runs of a study as records of Every Eval Ever, one file for each, as that project's store has them."""

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from unbraid.analysis.columns import higher_is_better
from unbraid.metrics._shared.arguments import find_metric
from unbraid.sharing.every_eval_ever import (
    UNKNOWN,
    in_text,
    metric_config,
    record,
    record_path,
    result,
    rows_scored,
    uncertainty,
)
from unbraid.sharing.numbers import slug
from unbraid.storage.files import atomic_folder
from unbraid.studies.results import results
from unbraid.studies.snapshot import RunView, StudySnapshot

# Columns that describe the model, and the images.
MODEL = (
    "family", "setting", "seed", "steps", "batch_size", "hold_out", "device", "precision", "training_version",
    "unbraid", "commit", "torch", "numpy", "processor", "accelerator",
)  # fmt: skip
IMAGES = ("content", "dataset_options")


def write_records(*studies: StudySnapshot, folder: Path, organisation: str = UNKNOWN, now: float | None = None) -> int:
    """Write a record for each finished run below a new folder, all or none, and say how many.

    Args:
        studies: that of each dataset.
        folder: there is none of that name yet.
        organisation: who trained and measured the models.
        now: seconds since 1970, when the records are made; by default now.

    Raises:
        ValueError: the folder is there already, or no run has a score.
        FileNotFoundError: the folder in which it is to lie does not exist.
    """
    if folder.exists():
        raise ValueError(f"{folder} is there already; records are written into a new folder")
    if not folder.parent.is_dir():
        raise FileNotFoundError(f"{folder}: the folder {folder.parent} does not exist")
    now = time.time() if now is None else now
    found = [each for study in studies for each in records(study, organisation=organisation, now=now)]
    if not found:
        raise ValueError(f"{studies[0].folder}: no run has a score yet")
    with atomic_folder(folder) as working:
        for each in found:
            path = working / record_path(each)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(each, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    return len(found)


def records(snapshot: StudySnapshot, *, organisation: str, now: float) -> Iterator[dict[str, Any]]:
    """The record of each finished run with a score."""
    rows = {str(row["run"]): row for row in results(snapshot).to_dict("records")}
    for run in snapshot.runs:
        row = {str(name): value for name, value in rows[run.id].items() if value is not None and value == value}
        if run.state == "finished" and (scores := _scores(run, row)):
            yield _record(run, row, scores, organisation, now)


def _record(
    run: RunView, row: Mapping[str, Any], scores: list[dict[str, Any]], organisation: str, now: float
) -> dict[str, Any]:
    about = {name: in_text(row[name]) for name in MODEL if name in row}
    hyperparameters = {f"hyperparameter_{name}": in_text(value) for name, value in run.hyperparameters.items()}
    return record(
        scores,
        model=f"{slug(organisation)}/{slug(run.family)}-{run.id}",  # the id whole, which a long family would cut off
        name=" ".join(filter(None, (run.family, run.setting, f"seed {run.seed}"))),
        developer=organisation,
        dataset=in_text(row["dataset"]),
        source={
            "source_name": "unbraid study",
            "source_organization_name": organisation,
            "evaluator_relationship": "first_party",
        },
        details={"run": run.id, **about, **hyperparameters},
        version=run.scores.unbraid or UNKNOWN,
        now=now,
    )


def _scores(run: RunView, row: Mapping[str, Any]) -> list[dict[str, Any]]:
    saved = run.scores
    images = {
        "dataset_name": in_text(row["dataset"]),
        "source_type": "other",
        "additional_details": {name: in_text(row[name]) for name in IMAGES if name in row}
        | (rows_scored(saved.input) if saved.metrics else {}),
    }
    decided = json.loads(row.get("computed_with", "{}"))
    found = []
    for column, value in row.items():
        metric, _, name = column.rpartition(".")
        better = _better(metric, name, decided)
        if better is None:
            continue
        intervals = saved.metrics[metric].intervals if metric in saved.metrics else None
        details = {"computed_with": json.dumps(decided.get(metric) or json.loads(row["ranked_by"]), sort_keys=True)}
        config = metric_config(
            metric, name, find_metric(metric), higher_is_better=better, decided=decided.get(metric) or {}
        )
        uncertain = {} if intervals is None else uncertainty(intervals, name, saved.input.n_samples)
        found.append(
            result(column, value, data=images, config=config, details=details, uncertain=uncertain, prefix=f"{run.id}/")
        )
    return found


def _better(metric: str, name: str, decided: Mapping[str, Any]) -> bool | None:
    """Whether higher is better of a value; None of what is no score."""
    if metric not in decided and (metric, name) != ("udr", "score"):
        return None
    known = find_metric(metric)
    return higher_is_better(f"{metric}.{name}") if known is None else known.direction(name)
