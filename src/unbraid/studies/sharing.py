"""Results in the shape of Every Eval Ever, a schema of evaluations that many projects share (version 0.3.0).

One record is one run: which model, which images, and each score with its metric, its direction and its range. Records
lie as that project's store has them, data/<collection>/<developer>/<model>/<uuid>.json, one file for each.
"""

import hashlib
import json
import math
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

from unbraid._version import VERSION
from unbraid.analysis.columns import higher_is_better
from unbraid.metrics._shared.arguments import arguments_of, find_metric
from unbraid.storage.score_file import SavedInput, SavedIntervals
from unbraid.studies.results import results
from unbraid.studies.snapshot import RunView, StudySnapshot

SCHEMA_VERSION = "0.3.0"
UNKNOWN = "unknown"
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
    working = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        for record in found:
            path = working / record_path(record)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(record, indent=2, allow_nan=False) + "\n", encoding="utf-8")
        working.chmod(0o755)
        working.rename(folder)
    finally:
        shutil.rmtree(working, ignore_errors=True)
    return len(found)


def record_path(record: Mapping[str, Any]) -> str:
    """Where a record lies: the same for the same evaluation."""
    collection, model = record["evaluation_id"].rpartition("/")[0].split("/", 1)
    name = UUID(bytes=hashlib.sha256(record["evaluation_id"].encode()).digest()[:16], version=4)
    return f"data/{collection}/{model}/{name}.json"


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
    model = f"{_slug(organisation)}/{_slug(f'{run.family}-{run.id}')}"
    about = {name: _text(row[name]) for name in MODEL if name in row}
    hyperparameters = {f"hyperparameter_{name}": _text(value) for name, value in run.hyperparameters.items()}
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"{_slug('unbraid-' + _text(row['dataset']))}/{model}/{now:.6f}",
        "retrieved_timestamp": f"{now:.6f}",
        "source_metadata": {
            "source_name": "unbraid study",
            "source_type": "evaluation_run",
            "source_organization_name": organisation,
            "evaluator_relationship": "first_party",
        },
        "eval_library": {"name": "unbraid", "version": VERSION},
        "model_info": {
            "name": " ".join(filter(None, (run.family, run.setting, f"seed {run.seed}"))),
            "id": model,
            "developer": organisation,
            "additional_details": {
                "deployment_type": "self_deployed",
                "model_availability": UNKNOWN,
                "run": run.id,
                **about,
                **hyperparameters,
            },
        },  # fmt: skip
        "evaluation_results": scores,
    }


def _scores(run: RunView, row: Mapping[str, Any]) -> list[dict[str, Any]]:
    saved = run.scores
    images = {
        "dataset_name": _text(row["dataset"]),
        "source_type": "other",
        "additional_details": {name: _text(row[name]) for name in IMAGES if name in row}
        | (_rows(saved.input) if saved.metrics else {}),
    }
    decided = json.loads(row.get("computed_with", "{}"))
    published = json.loads(row.get("published", "{}"))
    found = []
    for column, value in row.items():
        metric, _, name = column.rpartition(".")
        better = _better(metric, name, decided)
        if better is None:
            continue
        intervals = saved.metrics[metric].intervals if metric in saved.metrics else None
        details = {"computed_with": json.dumps(decided.get(metric) or json.loads(row["ranked_by"]), sort_keys=True)}
        if f"published.{column}" in row:
            details["published"] = repr(float(row[f"published.{column}"]))
            details |= {f"published_{name}": text for name, text in published[column].items()}
        found.append(
            {
                "evaluation_result_id": f"{run.id}/{column}",
                "evaluation_name": column,
                "source_data": images,
                "metric_config": _metric_config(metric, name, better, decided.get(metric) or {}),
                "score_details": {
                    "score": float(value),
                    "details": details,
                    **({} if intervals is None else _uncertainty(intervals, name)),
                },
            }
        )
    return found


def _rows(scored: SavedInput) -> dict[str, str]:
    """Which rows were scored."""
    digests = {} if scored.sha256 is None else scored.sha256.model_dump()
    return {"samples": str(scored.n_samples)} | {f"{name}_sha256": each for name, each in digests.items()}


def _better(metric: str, name: str, decided: Mapping[str, Any]) -> bool | None:
    """Whether higher is better of a value; None of what is no score."""
    if metric not in decided and (metric, name) != ("udr", "score"):
        return None
    known = find_metric(metric)
    return higher_is_better(f"{metric}.{name}") if known is None else known.direction(name)


def _metric_config(metric: str, name: str, better: bool, decided: Mapping[str, Any]) -> dict[str, Any]:
    known, kind = find_metric(metric), metric.partition("(")[0]
    headline = known is not None and known.headline == name
    arguments = {**decided, **arguments_of(metric)}
    parameters = {
        key: value if isinstance(value, str | float | int) else _text(value) for key, value in arguments.items()
    }
    low, high = known.range if known is not None and headline else (-math.inf, math.inf)
    return {
        "metric_id": f"unbraid.{kind}.{name}",
        "metric_name": f"{known.title}, {name}" if known is not None else f"{metric} {name}",
        "metric_kind": kind,
        "metric_parameters": parameters,
        "lower_is_better": not better,
        "score_type": "continuous",
        "min_score": _bound(low),
        "max_score": _bound(high),
        **({"evaluation_description": known.summary} if known is not None else {}),
        **({"additional_details": {"source": known.source}} if known is not None else {}),
    }


def _bound(value: float) -> float | str:
    return value if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"


def _uncertainty(intervals: SavedIntervals, name: str) -> dict[str, Any]:
    if name not in intervals.values:
        return {}
    each = intervals.values[name]
    between = {"lower": each.low, "upper": each.high, "confidence_level": intervals.confidence}
    return {
        "uncertainty": {
            "standard_error": {"value": each.deviation, "method": "parts of the rows"},
            "confidence_interval": {**between, "method": "parts of the rows"},
        }
    }


def _text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, str) else json.dumps(value)


def _slug(text: str) -> str:
    """A part of a path, whatever a family or dataset is called."""
    return re.sub(r"[^A-Za-z0-9_+=-]+|^\.+", "-", text).strip("-")[:100] or "-"
