"""Runs in a local SQLite store of MLflow.

mlflow server --backend-store-uri sqlite:///study/tracking/mlflow/mlflow.db
"""

import logging
import os
from pathlib import Path
from typing import Any

from unbraid.base.optional import require
from unbraid.studies.tracking.tracked_run import TrackedRun

DATABASE = "mlflow.db"
MOST_METRICS, MOST_PARAMETERS = 1000, 100  # in one request
LONGEST = 500  # characters of a parameter


def write(record: TrackedRun, folder: Path) -> None:
    """Write a run of the experiment named like the study into folder/mlflow.db."""
    # The package counts its users over the network unless told not to.
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    require("mlflow", "track", "track: mlflow")
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param

    logging.getLogger("mlflow").setLevel(logging.WARNING)
    client = MlflowClient(tracking_uri=f"sqlite:///{(folder / DATABASE).absolute()}")
    experiment = _experiment(client, record.study, folder)
    for before in client.search_runs([experiment], f"tags.unbraid_run = '{record.run.id}'"):
        client.delete_run(before.info.run_id)
    tags = {"unbraid_run": record.run.id, "setting": record.run.setting, "state": record.run.state}
    if record.run.reason:
        tags["reason"] = record.run.reason
    run = client.create_run(experiment, run_name=record.name, tags=tags).info.run_id
    metrics = [Metric(_key(name), value, 0, record.end) for name, value in record.scores.items()]
    for name, values in record.curves.items():
        points = zip(record.steps, values, strict=True)
        metrics += [Metric(_key(f"train/{name}"), float(value), 0, int(step)) for step, value in points]
    for some in _parts(metrics, MOST_METRICS):
        client.log_batch(run, metrics=some)
    settings = record.settings.items()
    parameters = [Param(_key(name).replace("/", "_"), str(value)[:LONGEST]) for name, value in settings]
    for some in _parts(parameters, MOST_PARAMETERS):
        client.log_batch(run, params=some)
    client.set_terminated(run, "FINISHED" if record.run.state == "finished" else "FAILED")


def _experiment(client: Any, name: str, folder: Path) -> str:
    known = client.get_experiment_by_name(name)
    if known is not None:
        return known.experiment_id
    return client.create_experiment(name, artifact_location=str((folder / "artifacts").absolute()))


def _key(name: str) -> str:
    """A name that MLflow takes: letters, digits, and `_-. /:`."""
    return "".join(letter if letter.isalnum() or letter in "_-. /:" else "_" for letter in name)


def _parts(items: list[Any], size: int) -> list[list[Any]]:
    return [items[start : start + size] for start in range(0, len(items), size)]
