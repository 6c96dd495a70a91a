"""Trackers that are told of the runs of a study: `track: [tensorboard, wandb, mlflow]` in its YAML.

Each is one function `write(record, folder)` that puts a run into the tracker's own files beneath `folder`, in place of
what it wrote of that run before. Everything stays on this machine: none of them is given an address.
"""

import hashlib
import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

from unbraid._extras import require
from unbraid._records import read_object
from unbraid.studies.record import StudyRecord, StudyRun
from unbraid.studies.storage import store
from unbraid.studies.tracking import mlflow, tensorboard, wandb
from unbraid.studies.tracking.record import TrackedRun, tracked_run

FOLDER = "tracking"


@dataclass(frozen=True)
class Tracker:
    """One row of the table of trackers."""

    write: Callable[[TrackedRun, Path], None]
    needs: tuple[str, ...]  # modules


TRACKERS: Mapping[str, Tracker] = MappingProxyType(
    {
        "tensorboard": Tracker(tensorboard.write, ("tensorboard",)),
        "wandb": Tracker(wandb.write, ("wandb",)),
        "mlflow": Tracker(mlflow.write, ("mlflow", "sqlalchemy", "alembic")),
    }
)


class TrackingWarning(UserWarning):
    """A tracker was not told of a run; the run itself is whole."""


def check_trackers(study: StudyRecord) -> None:
    """Raises ImportError where a tracker of the study is not installed."""
    for name in study.config.track:
        for module in TRACKERS[name].needs:
            if find_spec(module) is None:
                require(module, "track", f"track: {name}")


@contextmanager
def tracked(study: StudyRecord) -> Iterator[Callable[[StudyRun], None]]:
    """Tells the trackers of a study of every run that ends, and first of those that they do not know yet."""
    folder = study.known_folder() / FOLDER
    planned = {each.id for each in study.planned()} if study.config.track else set()

    def told(run: StudyRun) -> None:
        if run.id in planned and run.state in ("finished", "diverged"):
            _tell(study, run, folder)

    for run in study.runs() if study.config.track else ():
        told(run)
    yield told


def _tell(study: StudyRecord, run: StudyRun, folder: Path) -> None:
    record = tracked_run(study.config.name, run)
    content = hashlib.sha256(json.dumps([run.state, record.scores], sort_keys=True).encode()).hexdigest()[:16]
    for name in study.config.track:
        known = _known(folder, name)
        if known.get(run.id) == content:
            continue
        try:
            (folder / name).mkdir(parents=True, exist_ok=True)
            TRACKERS[name].write(record, folder / name)
        except Exception as error:
            # Whatever a tracker trips over must not stop the training of a study; it is asked again next time.
            said = " ".join(f"{type(error).__name__}: {error}".split())
            warnings.warn(
                f"{name} was not told of run {run.id} ({said}); `unbraid study run` tells it again",
                TrackingWarning, stacklevel=2,
            )  # fmt: skip
        else:
            store.write_json(folder / f"{name}.json", {**known, run.id: content})


def _known(folder: Path, name: str) -> dict[str, str]:
    """By run, a hash of what the tracker was told of it."""
    path = folder / f"{name}.json"
    return read_object(path) if path.exists() else {}
