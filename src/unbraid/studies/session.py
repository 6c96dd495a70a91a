"""One `study run`: what is left to do goes to an executor, what comes back into the folder."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

from unbraid._files import written_whole
from unbraid.datasets.base import FactorDataset
from unbraid.studies import store
from unbraid.studies.executors import EXECUTORS, Outcome, Step, Task
from unbraid.studies.expand import Planned, Surroundings, check_metrics, expand, metric_names
from unbraid.studies.results import write_results
from unbraid.studies.schema import suggestion
from unbraid.studies.study import Study, StudyProgress, StudyRun, state_of
from unbraid.training.run import tidy


@dataclass(frozen=True)
class Extra:
    """Work of a study beyond the runs of its families, such as the same models trained on fewer images."""

    # More tasks, and their images by `task.dataset`; done in the same queue as the others. The dataset is that of the
    # study, opened; folders of the runs are `study.folder / "runs"`. Neither trains nor writes.
    tasks: Callable[[Study, FactorDataset, Surroundings], tuple[Sequence[Task], Mapping[str, FactorDataset]]]
    # After all tasks: what is to be computed from their runs. Some may have failed.
    finish: Callable[[Study, FactorDataset], None]


# Told of every run as it ends, within a context that lasts as long as the session.
Listener: TypeAlias = Callable[[StudyRun], None]

EXTRAS: tuple[Extra, ...] = ()
LISTENERS: tuple[Callable[[Study], AbstractContextManager[Listener]], ...] = ()


def run_study(
    study: Study,
    executor: str,
    *,
    retry: str | None,
    progress: Callable[[StudyProgress], None] | None,
    options: Mapping[str, Any],
) -> list[StudyRun]:
    """What `Study.run` does; arguments as there."""
    if executor not in EXECUTORS:
        raise ValueError(f"unknown executor {executor!r}; {suggestion(executor, EXECUTORS)}")
    folder = study.known_folder()
    store.check_folder(folder)
    dataset, around = study.meet()
    planned = expand(study.config, around)
    check_metrics(study.config, dataset.space.kinds, dataset.space.names)
    folder.mkdir(parents=True, exist_ok=True)
    with store.claimed(folder), ExitStack() as stack:
        with written_whole(folder / store.YAML) as temporary:
            temporary.write_text(study.text, encoding="utf-8")
        store.write_surroundings(folder, study.source, around)
        (folder / store.RUNS).mkdir(exist_ok=True)
        datasets: dict[str, FactorDataset] = {around.dataset["content"]: dataset}
        tasks = [_task(study, each) for each in planned]
        for extra in EXTRAS:
            more, theirs = extra.tasks(study, dataset, around)
            tasks += more
            datasets |= theirs
        listeners = [stack.enter_context(each(study)) for each in LISTENERS]
        session = _Session(study, planned, tasks, listeners, progress, retry)
        working = EXECUTORS[executor](session.waiting, datasets, report=session.step, **options)
        with closing(cast(Generator[Outcome, None, None], working)) as outcomes:
            for outcome in outcomes:
                session.end(outcome)
        for extra in EXTRAS:
            extra.finish(study, dataset)
        write_results(study)
    return study.runs()


def _task(study: Study, planned: Planned) -> Task:
    zero_shot = study.config.zero_shot
    return Task(
        planned.id, planned.config, str(study.known_folder().absolute() / store.RUNS), metric_names(study.config),
        zero_shot.gap if zero_shot else None,
    )  # fmt: skip


class _Session:
    """What is known about the tasks while they are at work."""

    def __init__(
        self,
        study: Study,
        planned: Sequence[Planned],
        tasks: Sequence[Task],
        listeners: Sequence[Listener],
        progress: Callable[[StudyProgress], None] | None,
        retry: str | None,
    ) -> None:
        self.folder, self.metrics = study.known_folder(), metric_names(study.config)
        self.planned = {each.id: each for each in planned}
        self.tasks = {task.id: task for task in tasks}
        self.listeners, self.progress = listeners, progress
        self.taken: dict[str, int] = {}
        self.logs: Mapping[str, float] = {}
        self.done: dict[str, str] = {}  # state by run
        for task in self.tasks.values():
            if task.target.exists():
                tidy(task.target)
            state = self._state(task)
            if state == "failed" and retry == "failed":
                continue
            if state != "waiting":
                self.done[task.id] = state
        left = [task for task in self.tasks.values() if task.id not in self.done]
        self.waiting = sorted(left, key=lambda task: not task.working.exists())  # those begun come first
        self._tell()

    def _state(self, task: Task) -> str:
        return state_of(self.folder, self._planned(task), task.metrics).state

    def _planned(self, task: Task) -> Planned:
        if task.id in self.planned:
            return self.planned[task.id]
        return Planned(task.id, task.config["family"], "", task.config["seed"], task.config)

    def step(self, sent: Step) -> None:
        self.taken[sent.id] = sent.step
        self.logs = sent.logs
        self._tell()

    def end(self, outcome: Outcome) -> None:
        planned = self._planned(self.tasks[outcome.id])
        if outcome.state == "failed":
            before = store.read_failure(self.folder, outcome.id)
            failure = store.Failure(
                outcome.id, planned.family, planned.setting, planned.seed, outcome.reason or "it gave no reason",
                1 + (before.attempts if before else 0),
            )  # fmt: skip
            store.write_failure(self.folder, failure)
        else:
            store.forget_failure(self.folder, outcome.id)
        self.taken.pop(outcome.id, None)
        self.done[outcome.id] = outcome.state
        run = state_of(self.folder, planned, self.metrics)
        for told in self.listeners:
            told(replace(run, state=outcome.state, reason=outcome.reason))
        self._tell()

    def _tell(self) -> None:
        if self.progress:
            steps = {name: task.config["steps"] for name, task in self.tasks.items()}
            failed = sum(state == "failed" for state in self.done.values())
            self.progress(
                StudyProgress(
                    len(steps), len(self.done), failed, sum(steps.values()), sum(steps[name] for name in self.done),
                    dict(self.taken), self.logs,
                )
            )  # fmt: skip
