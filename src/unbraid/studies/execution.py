"""One `study run`: tasks that are not done go to an executor, their results into the folder."""

import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias, cast

from unbraid.base.signals import terminable
from unbraid.base.suggest import suggestion
from unbraid.base.threads import n_cores
from unbraid.base.types import Progress
from unbraid.data.image_dataset import NO_IMAGES, FactorDataset
from unbraid.families.family_table import FAMILIES, find_family
from unbraid.files.marks import ReadOnce
from unbraid.files.remote import carried_study, discard, mirror_of
from unbraid.files.table_formats import save_frame
from unbraid.files.whole_files import write_text
from unbraid.runs.folder import tidy
from unbraid.scoring.score import choose
from unbraid.studies import store
from unbraid.studies.executors import EXECUTORS, Outcome, Task, TaskProgress
from unbraid.studies.expand import StudyEnvironment, check_metrics, check_snapshots, expand, metric_names
from unbraid.studies.holdout.answers import ANSWERS, missing_answers, read_answers
from unbraid.studies.holdout.held_out_runs import held_out_tasks, write_generalisation
from unbraid.studies.run_scores import complete_scores, score_requirements
from unbraid.studies.schema import StudyConfig
from unbraid.studies.several_datasets import all_results, naming
from unbraid.studies.shards import Shard, claimed, last_of_shards
from unbraid.studies.snapshot import Planned, RunView, StudySnapshot, read_run
from unbraid.studies.status import keep_index
from unbraid.studies.study_baselines import score_baselines
from unbraid.studies.study_ranking import rank_when_done
from unbraid.studies.study_record import StudyPart, StudyProgress
from unbraid.studies.study_table import write_results
from unbraid.studies.tracking import Tracking, check_names, tracked
from unbraid.training.train import check_disk, check_images, check_members, needed_space, training_of

CHECKPOINTS = 6  # weights and two moments, and for a moment two of each


Listener: TypeAlias = Callable[[RunView], None]  # called with every run as it ends


def score_added(study: StudyPart, snapshot: StudySnapshot, progress: Progress) -> bool:
    """Compute the scores that added representations still lack; failures are recorded.

    Returns:
        Whether anything was computed.
    """
    # One whose config.json cannot be read has no family.
    runs, computed = [run for run in snapshot.runs if run.is_added and run.family], False
    for number, run in enumerate(runs):
        progress(f"scoring {run.id}", number, len(runs))
        try:
            computed |= complete_scores(
                run.path, metric_names(study.config), held_out=study.config.held_out, retry=True, saved=run.scores
            )
        except ValueError as error:
            failure = store.Failure(run.id, run.family, run.setting, run.seed, str(error), 1)
            store.write_failure(snapshot.folder, failure)
            computed = True
        else:
            store.forget_failure(snapshot.folder, run.id)
            computed |= run.state == "failed"
    return computed


# Run after all tasks, on their runs, some of which may have failed. Each returns whether it computed anything; slow
# ones report (what is done, done, all).
FINISHING: tuple[Callable[[StudyPart, StudySnapshot, Progress], bool], ...] = (
    write_generalisation, score_added, score_baselines, rank_when_done,
)  # fmt: skip


@dataclass(frozen=True)
class Ready:
    """A study and its tasks, checked as far as that is possible before it begins."""

    study: StudyPart
    around: StudyEnvironment
    tasks: Sequence[Task]  # done or not
    datasets: Mapping[str, FactorDataset]
    planned: Sequence[Planned]


def run_study(
    folder: Path,
    text: str,
    parts: Mapping[str, StudyPart],
    executor: str,
    *,
    retry: str | None,
    retrain: bool,
    shard: Shard | None = None,
    progress: Callable[[StudyProgress], None] | None,
    options: Mapping[str, Any],
) -> list[RunView]:
    """`Study.run`, dataset by dataset; all datasets are checked before anything is written.

    Args:
        folder, text: of the study, the text being its YAML.
        parts: by label, "" of a study of one dataset, which lies in the folder itself.
        executor, retry, retrain, shard, progress, options: as there.
    """
    reports = {label: progress and _of_dataset(progress, label) for label in parts}
    prepared: dict[str, Ready] = {}
    for number, (label, part) in enumerate(parts.items()):
        with naming(number, label):
            prepared[label] = ready(part, executor, retrain=retrain, progress=reports[label], options=options)
    with ExitStack() as stack:
        stack.enter_context(terminable())
        if "" not in parts:
            for part_ready in prepared.values():
                needed_disk(part_ready.tasks, part_ready.datasets)
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(claimed(folder, shard))
            write_text(folder / store.YAML, text)
            stack.enter_context(carried_study(folder))
        snapshots = [
            run_ready(part_ready, executor, retry=retry, shard=shard, progress=reports[label], options=options)
            for label, part_ready in prepared.items()
        ]
        if "" not in parts:
            with last_of_shards(folder, shard):
                if shard:  # other shards may have finished runs since
                    snapshots = [part.snapshot() for part in parts.values()]
                save_frame(all_results(snapshots), folder / store.RESULTS)
    keep_index(folder, snapshots)
    return [run for part_ready in snapshots for run in part_ready.runs]


def _of_dataset(progress: Callable[[StudyProgress], None], label: str) -> Callable[[StudyProgress], None]:
    return lambda sent: progress(replace(sent, label=label))


def check_executor(executor: str, options: Mapping[str, Any]) -> None:
    """Raises ValueError where there is no executor of this name, or it has not these options."""
    if executor not in EXECUTORS:
        raise ValueError(f"unknown executor {executor!r}; {suggestion(executor, EXECUTORS)}")
    known = set(inspect.signature(EXECUTORS[executor]).parameters) - {"tasks", "datasets", "report"}
    for name in options:
        if name not in known:
            available = ", ".join(sorted(known)) or "none"
            raise ValueError(f"executor {executor!r} has no option {name!r}; it has {available}")


def ready(
    study: StudyPart,
    executor: str,
    *,
    retrain: bool,
    progress: Callable[[StudyProgress], None] | None,
    options: Mapping[str, Any],
) -> Ready:
    """The first half of running one dataset, which writes nothing."""
    check_executor(executor, options)
    study.require_folder()

    def read(*what: Any) -> None:
        if progress:
            progress(StudyProgress(0, 0, 0, 0, 0, after=what))  # of how many runs is not known yet

    dataset, around = study.resolve_environment(read)
    around = _of_this_version(study, around, retrain=retrain)
    tasks, datasets, planned = all_tasks(study, dataset, around)
    check_names(study.config.track)
    return Ready(study, around, tasks, datasets, planned)


def run_ready(
    prepared: Ready,
    executor: str,
    *,
    retry: str | None,
    shard: Shard | None,
    progress: Callable[[StudyProgress], None] | None,
    options: Mapping[str, Any],
) -> StudySnapshot:
    """The second half of running one dataset.

    Returns:
        The study as it is then.
    """
    study, planned = prepared.study, prepared.planned
    folder, files = study.require_folder(), ReadOnce()
    code = {name: digest for planned_run in planned for name, digest in planned_run.config.get("code", {}).items()}
    around = replace(prepared.around, code=code)
    tasks = shard.part(prepared.tasks) if shard else prepared.tasks
    with ExitStack() as stack:
        begun = (folder / store.ABOUT).exists()
        if begun:
            stack.enter_context(claimed(folder, shard))
            _clean(tasks)
        ledger = TaskLedger(study, planned, tasks, retry=retry, progress=progress, files=files)
        untrained = untrained_of(ledger.waiting)
        check_disk(folder, len(untrained), needed_disk(untrained, prepared.datasets))
        working = EXECUTORS[executor](ledger.waiting, prepared.datasets, report=ledger.step, **options)
        # The study has passed all checks: from here on files are written.
        if not begun:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(claimed(folder, shard))
        _keep(study, around)
        listeners: list[Listener] = [stack.enter_context(carried_study(folder))]
        if not shard:  # shards must not write into one tracker at once; a run of the whole study reports all runs
            listeners.append(stack.enter_context(tracked(study, ledger.planned, ledger.runs.values())))
        ledger.listeners = listeners if study.config.track or mirror_of(folder) else []  # each call reads the run
        with closing(cast(Generator[Outcome, None, None], working)) as outcomes:
            for outcome in outcomes:
                ledger.end(outcome)
        with last_of_shards(folder, shard):
            snapshot = study.snapshot(around=around, files=files)
            write_results(snapshot)  # before slower work that may be interrupted
            done = not shard or all(run.state != "waiting" for run in snapshot.runs)
            if done and any([finish(study, snapshot, ledger.after) for finish in FINISHING]):
                snapshot = study.snapshot(around=around, files=files)
                write_results(snapshot)
    return snapshot


def _of_this_version(study: StudyPart, around: StudyEnvironment, *, retrain: bool) -> StudyEnvironment:
    """Raises ValueError where a family's training version has changed since the study began, unless it is retrained."""
    present: dict[str, int] = {}
    for name in dict.fromkeys(section.name for section in study.config.families if section.name in FAMILIES):
        begun, present[name] = around.version(name), FAMILIES[name].version
        if begun != present[name] and not retrain:
            raise ValueError(
                f"{study.require_folder()}: its models of {name} are of training version {begun}, this unbraid has "
                f"{present[name]}, which gives other weights; --retrain (retrain=True) trains them anew, and the "
                "old ones leave the results"
            )
    return replace(around, training=present)


def _keep(study: StudyPart, around: StudyEnvironment) -> None:
    folder = study.require_folder()
    write_text(folder / store.YAML, study.text)
    store.write_environment(folder, study.source, around)
    (folder / store.RUNS).mkdir(exist_ok=True)  # last: study.yaml and study.json make the folder that of a study


def all_tasks(
    study: StudyPart, dataset: FactorDataset, around: StudyEnvironment
) -> tuple[list[Task], dict[str, FactorDataset], list[Planned]]:
    """The tasks of a study, done or not; the images of each; and which of them are the runs of the YAML.

    Raises:
        ValueError: a setting or a metric that does not exist, or has no meaning here; code that the user does not
            trust.
    """
    study.check_trust()
    planned = expand(study.config, around)
    check_what_is_trained(study.config, dataset)
    check_metrics(study.config, dataset.space.kinds, dataset.space.names)
    check_snapshots(study.config, dataset.space.kinds)
    held_out, parts = held_out_tasks(study, dataset, around)
    tasks = [*(_task(study, run) for run in planned), *held_out]
    return tasks, {around.dataset["content"]: dataset, **parts}, planned


def check_what_is_trained(config: StudyConfig, dataset: FactorDataset) -> None:
    """Raises ValueError for models to train without images, or for images without models to train."""
    alone = dataset.image_shape == NO_IMAGES
    if alone and (config.families or config.baselines):
        section = "families" if config.families else "baselines"
        raise ValueError(
            f"{config.dataset.name} holds labels without images, so nothing can be trained on it: leave `{section}` "
            "out, and add codes by unbraid study add"
        )
    if not alone and not config.families:
        raise ValueError("families: needs at least one; only a study of labels without images has none")


def untrained_of(tasks: Sequence[Task]) -> list[Task]:
    """The tasks that have still to be trained; the others are only scored."""
    return [task for task in tasks if not task.target.exists()]


def needed_disk(tasks: Sequence[Task], datasets: Mapping[str, FactorDataset]) -> int:
    """Bytes of the run folders, and of the checkpoints on the way to them.

    Raises:
        ValueError: networks or settings that do not fit the images.
    """

    def kind(task: Task) -> tuple[str, str]:
        return task.config["family"], task.dataset

    needed = heaviest = 0
    for (family, content), group in groupby(sorted(tasks, key=kind), kind):
        row, dataset = find_family(family), datasets[content]
        trainings = [training_of(task.config) for task in group]
        members = [member for _, member in trainings]
        check_images(row, dataset, members)
        weights = check_members(row, dataset, trainings)
        needed += needed_space(dataset, weights, members, row)
        heaviest = max(heaviest, *weights.values())
    return needed + CHECKPOINTS * heaviest * min(n_cores(), len(tasks))


def _task(study: StudyPart, planned: Planned) -> Task:
    folder = str(study.require_folder().absolute() / store.RUNS)
    return Task(
        planned.id, planned.config, folder, metric_names(study.config), study.config.held_out,
        checkpoint_every=study.config.checkpoint_every, time_limit=study.config.time_limit,
        snapshots=study.config.snapshots, snapshot_metrics=tuple(study.config.snapshot_metrics),
    )  # fmt: skip


def _clean(tasks: Sequence[Task]) -> None:
    """Remove what killed processes left in finished runs; the study is locked, so no process still writes there."""
    for task in tasks:
        if task.target.exists():
            tidy(task.target)
            if task.working.exists():  # the machine was lost before it removed this folder
                discard(task.working)
            for left in task.target.glob(f".{ANSWERS}.*.part"):
                left.unlink()


class TaskLedger:
    """The state of the tasks while they run."""

    def __init__(
        self,
        study: StudyPart,
        planned: Sequence[Planned],
        tasks: Sequence[Task],
        *,
        retry: str | None = None,
        progress: Callable[[StudyProgress], None] | None = None,
        files: ReadOnce,
    ) -> None:
        self.study, self.folder, self.files = study, study.require_folder(), files
        self.runs: dict[str, RunView] = {}  # of the YAML, as they were at the start
        self.planned = {run.id: run for run in planned}
        self.tasks = {task.id: replace(task, retry=retry == "failed") for task in tasks}
        self.requirements = {
            terms: score_requirements(terms[0], held_out=terms[1], rows=choose(terms[0]) if terms[0] else {})
            for terms in {(task.metrics, task.held_out) for task in tasks}
        }
        self.listeners: list[Listener] = []
        self.progress = progress
        self.steps_taken: dict[str, int] = {}
        self.logs: Mapping[str, float] = {}
        self.doing: dict[str, str] = {}
        self.done: dict[str, str] = {}  # state by run
        self.steps = {task.id: int(task.config["steps"]) for task in tasks}
        for task in self.tasks.values():
            run = self._run(task)
            if task.id in self.planned:
                self.runs[task.id] = run
            again = task.retry and (run.state == "failed" or run.failed_metrics)
            questions = task.questions if run.state == "finished" else ()
            answers = self.files(read_answers, task.target, ANSWERS) if questions else {}
            if run.state != "waiting" and not again and not missing_answers(answers, questions):
                self.done[task.id] = run.state
        left = [task for task in self.tasks.values() if task.id not in self.done]
        self.waiting = sorted(left, key=lambda task: not task.working.exists())  # those begun come first
        self._tell()

    def _run(self, task: Task) -> RunView:
        return read_run(self.folder, self._planned(task), self.requirements[task.metrics, task.held_out], self.files)

    def _planned(self, task: Task) -> Planned:
        if task.id in self.planned:
            return self.planned[task.id]
        return Planned(task.id, task.config["family"], task.label, task.config["seed"], task.config)

    def step(self, sent: TaskProgress) -> None:
        self.steps_taken[sent.id] = sent.step
        self.logs = sent.logs
        for listener in self.listeners:
            if isinstance(listener, Tracking):
                listener.watch(sent.id, sent.step, sent.logs)
        if sent.doing:
            self.doing[sent.id] = sent.doing
        self._tell()

    def end(self, outcome: Outcome) -> None:
        planned = self._planned(self.tasks[outcome.id])
        if outcome.state == "failed":
            before = store.read_failure(self.folder, outcome.id, self.files)
            failure = store.Failure(
                outcome.id, planned.family, planned.setting, planned.seed, outcome.reason or "it gave no reason",
                1 + (before.attempts if before else 0), outcome.details, self.tasks[outcome.id].target.exists(),
            )  # fmt: skip
            store.write_failure(self.folder, failure)
        else:
            store.forget_failure(self.folder, outcome.id)
        if self.tasks[outcome.id].target.exists():
            discard(self.tasks[outcome.id].working)
        self.steps_taken.pop(outcome.id, None)
        self.doing.pop(outcome.id, None)
        self.done[outcome.id] = outcome.state
        if self.listeners:
            run = self._run(self.tasks[outcome.id])
            for listener in self.listeners:
                listener(replace(run, state=outcome.state, reason=outcome.reason or run.reason))
        self._tell()

    def after(self, what: str, done: int, total: int) -> None:
        self._tell((what, done, total))

    def _tell(self, after: tuple[str, int, int] | None = None) -> None:
        if self.progress:
            failed = sum(state == "failed" for state in self.done.values())
            done_steps = sum(self.steps[name] for name in self.done)
            self.progress(
                StudyProgress(
                    len(self.steps), len(self.done), failed, sum(self.steps.values()), done_steps,
                    dict(self.steps_taken), self.logs, dict(self.doing), after,
                )
            )  # fmt: skip
