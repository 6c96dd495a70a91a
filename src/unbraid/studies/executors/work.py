"""Tasks: what executors are given and give back, and the work of one, wherever it runs."""

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from unbraid.base.device import LESS, out_of_memory
from unbraid.data.image_dataset import FactorDataset
from unbraid.files.run_files import WORKING
from unbraid.files.trust import Trusted, trusted_in
from unbraid.files.whole_files import DiskFull, disk_is_full
from unbraid.runs.run import open_run
from unbraid.studies.holdout.answers import complete_answers
from unbraid.studies.run_scores import complete_scores
from unbraid.training.loop import Report, train_here
from unbraid.training.snapshots import Snapshots
from unbraid.training.train import training_of
from unbraid.training.writing import write_run

AGAIN = "--retry failed goes on from its last checkpoint"

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


def perform(
    datasets: Mapping[str, FactorDataset], tasks: Sequence[Task], report: Callable[[TaskProgress], None]
) -> list[Outcome]:
    """Train and score tasks; several are trained stacked, so they must share what stacked members share.

    Nothing is done twice: a finished run is only scored, by the metrics that its scores lack.
    `unbraid.training.workers.run_jobs` calls this and `train` as they are.

    Raises:
        DiskFull: no room for what has to be written.
        KeyboardInterrupt: stopped by SIGINT; checkpoints are saved.
    """
    failures = train(datasets, tasks, report)
    return [failures.get(task.id) or _scored(task, datasets, report) for task in tasks]


def train(
    datasets: Mapping[str, FactorDataset], tasks: Sequence[Task], report: Callable[[TaskProgress], None]
) -> dict[str, Outcome]:
    """The part of `perform` that needs the device; the outcomes of those that failed, by id."""
    try:
        _train([task for task in tasks if not task.target.exists()], datasets, report)
    except Exception as error:
        _stop_if_full(error, tasks[0].working)
        if len(tasks) == 1:
            return {tasks[0].id: failed(tasks[0], error)}
    else:
        return {}
    # One of them, or all together, exceed the device's memory: halve the stack until only the culprits fail. The memory
    # of this attempt is free once the error is out of scope.
    middle = len(tasks) // 2
    return {**train(datasets, tasks[:middle], report), **train(datasets, tasks[middle:], report)}


def _train(
    tasks: Sequence[Task], datasets: Mapping[str, FactorDataset], report: Callable[[TaskProgress], None]
) -> None:
    if not tasks:
        return
    plans, members = zip(*(training_of(task.config) for task in tasks), strict=True)
    first = tasks[0]
    snapshot_plan = Snapshots(first.snapshots, first.snapshot_metrics)
    plan = replace(plans[0], checkpoint_seconds=first.checkpoint_every, snapshots=snapshot_plan)
    dataset = datasets[tasks[0].dataset]
    for task in tasks:
        task.working.mkdir(parents=True, exist_ok=True)

    def report_members(sent: Report) -> None:
        for index, number in enumerate(sent.members):
            logs = {name: float(values[index]) for name, values in sent.logs.items() if np.isfinite(values[index])}
            report(TaskProgress(tasks[number].id, sent.step, logs))

    trained = train_here(plan, members, dataset, folders=[task.working for task in tasks], report=report_members)
    for task, result in zip(tasks, trained, strict=True):
        write_run(task.working, task.target, task.config, result, dataset)


def _scored(task: Task, datasets: Mapping[str, FactorDataset], report: Callable[[TaskProgress], None]) -> Outcome:
    try:
        status = open_run(task.target, trust=task.trusted).status
        if status["state"] == "diverged":
            return Outcome(task.id, "diverged", f"step {status['step']}: {status['reason']}")

        def tell(doing: str) -> None:
            report(TaskProgress(task.id, int(status["step"]), doing=doing))

        complete_scores(
            task.target, task.metrics, held_out=task.held_out, retry=task.retry, dataset=datasets[task.dataset],
            trust=task.trusted,
            progress=lambda metric, *_: tell(f"scoring {metric}"),
        )  # fmt: skip
        if task.questions:
            tell("asking about unseen images")
            complete_answers(task.target, task.questions, datasets[task.dataset], task.trusted)
    except Exception as error:
        _stop_if_full(error, task.target)
        return failed(task, error)
    return Outcome(task.id, "finished")


def failed(task: Task, error: BaseException) -> Outcome:
    """The outcome of a task in which this went wrong."""
    return Outcome(task.id, "failed", explain(error), "".join(traceback.format_exception(error)))


def explain(error: BaseException) -> str:
    """One line for the record."""
    text = " ".join(str(error).split())
    if out_of_memory(error):
        return f"out of memory: {LESS}; {AGAIN} ({text})"
    return text if isinstance(error, ValueError | OSError) and text else f"{type(error).__name__}: {text}"


def out_of_time(reason: object) -> str:
    """One line on why a run failed that exceeded its time limit."""
    return f"time_limit: {reason}; with a longer one {AGAIN}"


def died(reason: object, tries: int) -> str:
    """One line on why a run failed whose process died several times."""
    return f"{reason} ({tries} times); {AGAIN}"


def _stop_if_full(error: Exception, folder: Path) -> None:
    if isinstance(error, BrokenPipeError):
        raise error  # nobody waits for the outcome any more
    if disk_is_full(error):
        raise DiskFull(f"{folder}: no space left; with more of it the same command continues ({error})") from error
