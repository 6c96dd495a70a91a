"""What executors are given and what they give back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from unbraid.files.run_files import WORKING
from unbraid.files.trust import Trusted, trusted_in

EndState: TypeAlias = Literal["finished", "diverged", "failed"]


@dataclass(frozen=True)
class Task:
    """One run of a study: all that a process needs to train, encode and score it, but for the images.

    Plain data, so that it can be sent anywhere.
    """

    id: str
    config: Mapping[str, Any]  # what config.json will hold; `unbraid.training.train.training_of` reads it
    folder: str  # of the run folders
    metrics: tuple[str, ...] = ()  # to score, or to give a reason for in scores.json
    held_out: str | None = None  # option of the metric zero_shot
    questions: tuple[Mapping[str, Any], ...] = ()  # about images it never saw; see `unbraid.studies.holdout.answers`
    retry: bool = False  # try again the metrics that failed
    checkpoint_every: float = 120.0  # seconds
    time_limit: float | None = None  # seconds; enforced where the task has its own process
    snapshots: int = 0
    snapshot_metrics: tuple[str, ...] = ("mig",)
    label: str = ""  # of the setting, for runs that the study does not list

    @property
    def dataset(self) -> str:
        """The key of its images in the mapping that executors get beside the tasks."""
        return self.config["dataset"]["content"]

    @property
    def trusted(self) -> list[Trusted]:
        """A network of the user's own that it is to be trained with."""
        return trusted_in([self.config["family"], self.config["hyperparameters"]])

    @property
    def target(self) -> Path:
        return Path(self.folder) / self.id

    @property
    def working(self) -> Path:
        return Path(self.folder) / (self.id + WORKING)


@dataclass(frozen=True)
class Outcome:
    """How a task ended."""

    id: str
    state: EndState
    reason: str | None = None  # of "diverged" and "failed", one line
    details: str = ""  # the traceback, where there is one


@dataclass(frozen=True)
class TaskProgress:
    """How far a task at work is; sent now and then."""

    id: str
    step: int
    logs: Mapping[str, float] = field(default_factory=dict)  # latest means by name
    doing: str = ""  # once all steps are taken, such as "scoring mig"
