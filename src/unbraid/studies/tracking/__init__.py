"""Trackers: `track: [tensorboard, wandb, mlflow]` in the YAML of a study, and `unbraid score --track`.

Each is one function `write(record, folder)` that puts a run into the tracker's own files beneath `folder`, in place of
what it wrote of that run before. Everything stays on this machine: none of them is given an address, unless
WANDB_MODE=online asks Weights & Biases to send. That one is told while runs train, too.
"""

import hashlib
import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from unbraid.base.optional import require
from unbraid.base.plugins import Table
from unbraid.base.suggest import error_line, suggestion
from unbraid.files.json_records import read_object
from unbraid.runs.run import Run
from unbraid.scoring.card import ScoreCard
from unbraid.studies import store
from unbraid.studies.expand import setting_of
from unbraid.studies.snapshot import Planned, RunView
from unbraid.studies.study_record import StudyPart
from unbraid.studies.tracking import mlflow, tensorboard, wandb
from unbraid.studies.tracking.tracked_run import TrackedRun, tracked_run

FOLDER = "tracking"
EXPERIMENT = "unbraid score"  # of score cards
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Tracker:
    """One row of the table of trackers."""

    write: Callable[[TrackedRun, Path], None]
    needs: tuple[str, ...]  # modules


TRACKERS: Table[Tracker] = Table(
    {
        "tensorboard": Tracker(tensorboard.write, ("tensorboard",)),
        "wandb": Tracker(wandb.write, ("wandb",)),
        "mlflow": Tracker(mlflow.write, ("mlflow", "sqlalchemy", "alembic")),
    },
    "unbraid.trackers",
    lambda row: isinstance(row, Tracker),
    "tracker",
)


class TrackingWarning(UserWarning):
    """A tracker failed to record a run; the run itself is complete."""


def check_names(names: Iterable[str]) -> None:
    """Raises ImportError where a tracker of this name is not installed, ValueError where there is none."""
    for name in names:
        if name not in TRACKERS:
            raise ValueError(f"track: unknown tracker {name!r}; {suggestion(name, TRACKERS)}")
        for module in TRACKERS[name].needs:
            if find_spec(module) is None:
                require(module, "track", f"track: {name}")


class Tracking:
    """Records every run that ends in the study's trackers, and running ones where the tracker supports it."""

    def __init__(self, study: StudyPart, planned: Mapping[str, Planned]) -> None:
        self.study, self.folder = study, study.require_folder() / FOLDER
        self.planned = planned if study.config.track else {}
        self.live: dict[str, wandb.Live | None] = {}  # None where the tracker failed

    def __call__(self, run: RunView) -> None:
        """A run that ended."""
        live = self.live.pop(run.id, None)
        if run.id in self.planned and run.state in ("finished", "diverged"):
            self._tell(run, live)
        elif live is not None:
            self._attempt("wandb", run.id, live.leave)

    def watch(self, run: str, step: int, logs: Mapping[str, float]) -> None:
        """A run that trains, about twice a second."""
        if "wandb" not in self.study.config.track or run not in self.planned or not logs:
            return
        if run not in self.live:
            self.live[run] = self._attempt("wandb", run, partial(self._begin, run))
        if (live := self.live[run]) is not None:
            self._attempt("wandb", run, partial(live.log, step, logs))

    def leave(self) -> None:
        """The study stops: what still trains is continued under another sitting."""
        for run, live in self.live.items():
            if live is not None:
                self._attempt("wandb", run, live.leave)

    def _begin(self, run: str) -> wandb.Live:
        place = self.folder / "wandb"
        place.mkdir(parents=True, exist_ok=True)
        return wandb.Live(self.study.config.name, self.planned[run], place)

    def _tell(self, run: RunView, live: "wandb.Live | None") -> None:
        names = self.study.config.track
        record = self._attempt(", ".join(names), run.id, partial(tracked_run, self.study.config.name, run))
        if record is None:
            if live is not None:
                self._attempt("wandb", run.id, live.leave)
            return
        content = hashlib.sha256(json.dumps([run.state, record.scores], sort_keys=True).encode()).hexdigest()[:16]
        for name in names:
            begun = live if name == "wandb" else None
            if begun is not None or _known(self.folder, name).get(run.id) != content:
                self._attempt(name, run.id, partial(self._write, name, record, begun, content))

    def _write(self, name: str, record: TrackedRun, live: "wandb.Live | None", content: str) -> None:
        place = self.folder / name
        place.mkdir(parents=True, exist_ok=True)
        if live is not None:
            live.end(record, place)
        else:
            TRACKERS[name].write(record, place)
        store.write_json(self.folder / f"{name}.json", {**_known(self.folder, name), record.run.id: content})

    def _attempt(self, name: str, run: str, ask: Callable[[], Answer]) -> Answer | None:
        """The tracker's result; None, with a warning, if it failed: no tracker error may stop the training."""
        try:
            return ask()
        except Exception as error:
            warnings.warn(
                f"{name} was not told of run {run} ({error_line(error)}); `unbraid study run` tells it again",
                TrackingWarning, stacklevel=2,
            )  # fmt: skip
            return None


@contextmanager
def tracked(study: StudyPart, planned: Mapping[str, Planned], runs: Iterable[RunView]) -> Iterator[Tracking]:
    """Records runs in the study's trackers; first those that ended and are not recorded yet."""
    tracking = Tracking(study, planned)
    for run in runs if study.config.track else ():
        tracking(run)
    try:
        yield tracking
    finally:
        tracking.leave()


def _known(folder: Path, name: str) -> dict[str, str]:
    """By run, a hash of its last record; empty if the file is damaged, so that runs are recorded again."""
    try:
        return read_object(folder / f"{name}.json")
    except ValueError:
        return {}


def track_cards(
    cards: Mapping[str, ScoreCard], trackers: Sequence[str], configs: Mapping[str, Mapping[str, Any]], folder: Path
) -> list[Path]:
    """Record the scores of models in trackers, each as a run that replaces its earlier record.

    Args:
        cards: by the name of the model, a path.
        trackers: of `TRACKERS`.
        configs: settings of models, by name; may be missing.
        folder: in which `tracking/<tracker>` is made.

    Returns:
        The folder of each tracker.

    Raises:
        ImportError: a tracker is not installed.
        ValueError: there is none of this name, or one failed.
    """
    check_names(trackers)
    places = [folder / FOLDER / name for name in trackers]
    for name, place in zip(trackers, places, strict=True):
        place.mkdir(parents=True, exist_ok=True)
        for model, card in cards.items():
            try:
                TRACKERS[name].write(_card_record(model, card, configs.get(model, {})), place)
            except Exception as error:  # each has exceptions of its own
                raise ValueError(f"{name} was not told of {model} ({error_line(error)})") from error
    return places


def track_runs(runs: Sequence[Run], trackers: Sequence[str], folder: Path) -> list[Path]:
    """Record runs that ended in trackers, as `track_cards` does."""
    places = [folder / FOLDER / name for name in trackers]
    for name, place in zip(trackers, places, strict=True):
        place.mkdir(parents=True, exist_ok=True)
        for run in runs:
            config, status = run.config, run.status
            setting = setting_of(config["family"], config["hyperparameters"])
            view = RunView(
                run.path.name, config["family"], setting, config["seed"], status["state"], status.get("reason"),
                run.path, config["hyperparameters"], config=config, status=status,
            )  # fmt: skip
            try:
                TRACKERS[name].write(tracked_run("unbraid train", view), place)
            except Exception as error:  # each has exceptions of its own
                raise ValueError(f"{name} was not told of {run.path} ({error_line(error)})") from error
    return places


def _card_record(model: str, card: ScoreCard, config: Mapping[str, Any]) -> TrackedRun:
    path = Path(model)
    name = hashlib.sha256(str(path.absolute()).encode()).hexdigest()[:16]
    title = path.name if path.is_dir() else path.stem  # a folder may be called beta=0.5
    run = RunView(name, title or "codes", "", card.seed, "finished", None, path, {})
    values = {
        f"{metric}.{number}": value for metric, scored in card.scored.items() for number, value in scored.values.items()
    }
    settings = {"codes": model, "rows": card.n_samples, "seed": card.seed}
    settings |= {f"config.{key}" if key in settings else key: value for key, value in config.items()}
    return TrackedRun(EXPERIMENT, run, settings, np.zeros(0, dtype=np.int64), {}, 0, values)
