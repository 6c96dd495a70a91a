"""Time, memory and disk of a study or a training, extrapolated from a few measured steps of each kind of run."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, TypeAlias

import numpy as np
import torch

from unbraid.base.counted import counted
from unbraid.base.device import choose_device, visible_devices
from unbraid.base.threads import n_cores
from unbraid.base.types import Progress
from unbraid.data import Representation
from unbraid.data.image_dataset import FactorDataset
from unbraid.data.space import level_names
from unbraid.families.building import structural_settings
from unbraid.families.family import code_parts
from unbraid.families.family_table import find_family
from unbraid.files.marks import ReadOnce
from unbraid.metrics import NotDefined
from unbraid.runs.run import N_CODES
from unbraid.scoring.engine import score_each
from unbraid.scoring.score import choose
from unbraid.studies.execution import TaskLedger, needed_disk, ready, untrained_of
from unbraid.studies.executors import EXECUTORS, Task
from unbraid.studies.executors.local import PACK, kinds, spread
from unbraid.studies.executors.ray import probe_cluster
from unbraid.studies.expand import setting_of
from unbraid.studies.shards import Shard
from unbraid.studies.study_record import StudyPart, StudyProgress
from unbraid.training.loop import train_here
from unbraid.training.train import (
    Prepared,
    check_disk,
    check_images,
    check_members,
    check_out,
    check_space,
    configs_of,
    training_of,
)

# By kind of device: warm-up steps, how many more are measured, and how many seconds of these suffice to separate them
# from one-off costs. On a GPU steps are captured, those of a delayed optimizer step only when it is first due.
WARM_STEPS = {"cpu": 2, "cuda": 64}
MORE_STEPS = {"cpu": (3, 12, 48), "cuda": (64, 256, 1024)}
SECONDS = {"cpu": 0.5, "cuda": 1.0}
COMPILING = 500  # rows that are scored first, so that compilation is not counted for every run


# Whether runs are trained on a CPU, how many at once, how they are grouped, and a caller of functions on that machine.
Place: TypeAlias = tuple[bool, int, Callable[[Sequence[Task]], list[list[Task]]], Callable[..., Any]]


@dataclass(frozen=True)
class Row:
    """Runs of one setting."""

    family: str
    setting: str
    runs: int
    waiting: int
    untrained: int  # of those that wait; the others are only scored
    steps: int  # of each
    seconds_per_step: float  # of one run with a core to itself, or of its share of a stack
    together: int  # runs of the stack that was measured; 1 on a CPU
    seconds: float  # of the runs that wait, training and scoring, one after the other

    @property
    def hours(self) -> float:
        return self.seconds / 3600


@dataclass(frozen=True)
class Estimate:
    """Time, memory and disk of what a study has still to do."""

    rows: Sequence[Row]
    processes: int
    memory_each: int | None  # bytes of one process, or of the device for the largest stack; None: Windows does not say
    memory: int | None  # of all
    disk: int  # bytes of the run folders that are to come
    assumed: str
    load: float = 1.0  # slow-down by other work on the same cores, as measured just now

    @property
    def runs(self) -> int:
        return sum(row.runs for row in self.rows)

    @property
    def waiting(self) -> int:
        return sum(row.waiting for row in self.rows)

    @property
    def steps(self) -> int:
        return sum(row.untrained * row.steps for row in self.rows)

    @property
    def seconds(self) -> float:
        return sum(row.seconds for row in self.rows) / self.processes


def estimate(
    study: StudyPart,
    executor: str | None = None,
    *,
    retry: str | None = None,
    retrain: bool = False,
    shard: Shard | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Estimate:
    """Time, memory and disk of what a study has still to do. Writes nothing.

    Args:
        study: with a folder, which need not be there.
        executor: as for `Study.run`; a cluster is asked what it offers, and the measuring is done there.
        retry, retrain: as for `Study.run`.
        shard: of the study, which alone is to be run.
        progress: called as progress(kind of run, done, total) before each measurement; first, where that takes
            long, as progress("reading images", done, total).
        **options: of the executor.

    Raises:
        ValueError, OSError: as `Study.run`, for what cannot be run.
    """
    name, options = study.config.executor_with(executor, options)

    def read(sent: StudyProgress) -> None:
        if progress and sent.after:
            progress(*sent.after)

    prepared = ready(study, name, retrain=retrain, progress=read, options=options)
    tasks, datasets = prepared.tasks, prepared.datasets
    shard_tasks = shard.part(tasks) if shard else tasks
    whole_of = {task.id: task.questions[0]["of"] for task in shard_tasks if task.questions}
    waiting = TaskLedger(study, prepared.planned, shard_tasks, retry=retry, files=ReadOnce()).waiting
    untrained = untrained_of(waiting)
    disk = check_disk(study.require_folder(), len(untrained), needed_disk(untrained, datasets))
    settings = {run.id: run.setting for run in prepared.planned}
    return _estimate(
        tasks, shard_tasks, waiting, datasets, prepared.around.device, settings=settings, disk=disk, whole_of=whole_of,
        executor=name, options=options, progress=progress,
    )  # fmt: skip


def estimate_training(planned: Prepared, folder: Path, progress: Progress | None = None) -> Estimate:
    """Time, memory and disk of what `unbraid.train` has still to do. Writes nothing.

    Args:
        planned: what is to be trained.
        folder: of the run folders, which need not be there.
        progress: as for `estimate`.

    Raises:
        ValueError, OSError: as `unbraid.train`, for what cannot be trained.
    """
    check_out(folder)
    plan, members, dataset, described = planned
    row, configs = find_family(plan.family), configs_of(*planned[:2], described)
    check_images(row, dataset, members)
    weights = check_members(row, dataset, [(plan, member) for member in members])
    tasks = [Task(name, config, str(folder)) for name, (config, _) in configs.items()]
    waiting = untrained_of(tasks)
    disk = check_space(folder, dataset, weights, [configs[task.id][1] for task in waiting], row)
    settings = {name: setting_of(plan.family, member.hyper) for name, (_, member) in configs.items()}
    datasets = {described["content"]: dataset}
    return _estimate(tasks, tasks, waiting, datasets, plan.device, settings=settings, disk=disk, progress=progress)


def _estimate(
    tasks: Sequence[Task],
    shard_tasks: Sequence[Task],
    waiting: Sequence[Task],
    datasets: Mapping[str, FactorDataset],
    device: str,
    *,
    settings: Mapping[str, str],
    disk: int,
    whole_of: Mapping[str, str] | None = None,
    executor: str = "local",
    options: Mapping[str, Any] | None = None,
    progress: Progress | None,
) -> Estimate:
    """As `estimate`.

    Args:
        tasks: of the whole study.
        shard_tasks: those of this shard, which the estimate is for.
        waiting: those of `shard_tasks` that are not done.
        datasets, device, executor, options, progress: as for the executors.
        settings: by run.
        disk: bytes.
        whole_of: by runs without some images, the run that sees all of them.
    """
    untrained, whole_of = untrained_of(waiting), whole_of or {}
    left_ids, new = {task.id for task in waiting}, {task.id for task in untrained}
    costly = {whole_of.get(task.id, task.id) for task in shard_tasks}
    costly_kinds = [
        kind for kind in kinds([task for task in tasks if not task.questions]) if costly & {t.id for t in kind}
    ]
    costs: dict[str, tuple[float, float, int]] = {}  # as `_cost`, and the runs of the stack that was measured
    used: list[int | None] = []
    clock = processor = 0.0
    with _place(executor, tasks, datasets, device, options or {}) as (on_cpu, room, together, call):
        groups = together(untrained)
        for done, kind in enumerate(costly_kinds):
            if progress:
                progress(kind[0].config["family"], done, len(costly_kinds))
            ids = {task.id for task in kind}
            measured = max((group for group in groups if group[0].id in ids), key=len, default=kind[:1])
            if find_family(kind[0].config["family"]).fit is not None:
                measured = measured[:1]  # these are fitted one after the other
            cost, memory, seconds = call(_measured, measured, {kind[0].dataset: datasets[kind[0].dataset]}, on_cpu)
            clock, processor = clock + seconds[0], processor + seconds[1]
            costs |= {task.id: (*cost, len(measured)) for task in kind}
            used.append(memory)
    # A run without some images is as quick as the one that sees all of them.
    costs |= {task: costs[whole] for task, whole in whole_of.items()}
    load = max(1.0, clock / processor) if on_cpu and processor else 1.0
    scoring = _seconds_of_scoring(tasks[0], datasets, on_cpu) if tasks else 0.0
    settled: dict[tuple[str, str, int], list[Task]] = {}
    for task in shard_tasks:
        setting = settings.get(task.id, task.label)
        settled.setdefault((task.config["family"], setting, task.config["steps"]), []).append(task)
    rows = []
    for (family, setting, steps), group in settled.items():
        left = [task for task in group if task.id in left_ids]
        trainings = [costs[task.id] for task in left if task.id in new]
        seconds = sum(once + steps * per_step for once, per_step, _ in trainings) + len(left) * scoring
        counts = len(group), len(left), len(trainings)
        rows.append(Row(family, setting, *counts, steps, *costs[group[0].id][1:], seconds))
    at_once = max(1, min(room, len(groups) + len(left_ids - new)))
    per_process = max((memory for memory in used if memory is not None), default=None)
    return Estimate(
        rows, at_once, per_process, per_process and per_process * at_once, disk,
        _assumed(at_once, on_cpu, executor), load,
    )  # fmt: skip


@contextmanager
def _place(
    executor: str,
    tasks: Sequence[Task],
    datasets: Mapping[str, FactorDataset],
    device: str,
    options: Mapping[str, Any],
) -> Iterator[Place]:
    if executor == "ray" and tasks:
        with probe_cluster(tasks, datasets, **options) as (room, together, call):
            yield device == "cpu", room, together, call
        return
    EXECUTORS[executor](tasks, datasets, **options)  # says what it cannot do, and begins nothing
    on_cpu, processes = choose_device(device).type == "cpu", options.get("processes")
    devices = 1 if processes == 0 else max(1, len(visible_devices()))
    room = (n_cores() if processes is None else processes) if on_cpu else devices

    def grouped(waiting: Sequence[Task]) -> list[list[Task]]:
        return [[task] for task in waiting] if on_cpu else spread(waiting, devices, options.get("pack", PACK))

    yield on_cpu, room, grouped, lambda function, *arguments: function(*arguments)


def _measured(
    tasks: Sequence[Task], datasets: Mapping[str, FactorDataset], on_cpu: bool
) -> tuple[tuple[float, float], int | None, tuple[float, float]]:
    """Costs of runs, as `_cost`; the bytes needed to measure them; the seconds it took by clock and processor."""
    if not on_cpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    clock, processor = perf_counter(), process_time()
    cost = _cost(tasks, datasets)
    seconds = perf_counter() - clock, process_time() - processor
    memory = _memory(on_cpu)
    if not on_cpu:
        torch.cuda.empty_cache()  # others will train there
    return cost, memory, seconds


def _assumed(processes: int, on_cpu: bool, executor: str) -> str:
    where = counted(processes, "core") if on_cpu else "an accelerator"
    if executor == "ray":
        where = f"{counted(processes, 'place')} of the cluster"
    return (
        f"{where} that nothing else uses; the speed of a few steps of each kind of run, measured just now; what "
        "checkpoints hold already is not subtracted"
    )


def _cost(tasks: Sequence[Task], datasets: Mapping[str, FactorDataset]) -> tuple[float, float]:
    """Per run: seconds of one-off work, whatever the number of steps, and seconds of one step.

    On a CPU they are those of the processor, which a run has to itself, and not of the clock of a busy machine. A
    family that is fitted at once has no steps: its whole time is spread over those of its run.
    """
    plans, members = zip(*(training_of(task.config) for task in tasks), strict=True)
    plan, dataset = plans[0], datasets[tasks[0].dataset]
    kind = "cpu" if choose_device(plan.device).type == "cpu" else "cuda"
    warm = WARM_STEPS[kind]

    def seconds(steps: int) -> float:
        began = process_time()
        trained = train_here(replace(plan, steps=steps), members, dataset)
        return (process_time() - began if kind == "cpu" else trained[0].seconds) / len(members)

    seconds(warm)  # what is compiled is compiled once, whatever the number of runs
    short = seconds(warm)
    if find_family(plan.family).fit is not None:
        return 0.0, short / plan.steps
    longer, steps = 0.0, 1
    for steps in MORE_STEPS[kind]:
        longer = max(seconds(warm + steps) - short, 0.0)
        if longer * len(members) > SECONDS[kind]:
            break
    per_step = longer / steps
    return max(short - warm * per_step, 0.0), per_step


def _seconds_of_scoring(task: Task, datasets: Mapping[str, FactorDataset], on_cpu: bool) -> float:
    if not task.metrics:
        return 0.0
    dataset = datasets[task.dataset]
    rng = np.random.default_rng(0)
    index = np.sort(rng.choice(len(dataset), min(N_CODES, len(dataset)), replace=False))
    plan, member = training_of(task.config)
    family = find_family(plan.family)
    parts = code_parts(family, structural_settings(family, [member], dataset.space))
    shape = (len(index), sum(part.size for part in parts))
    codes = Representation(
        rng.normal(size=shape).astype(np.float32),
        dataset.space.factors(index),
        log_variances=np.full(shape, -1.0, dtype=np.float32),
        names=dataset.space.names,
        kinds=dataset.space.kinds,
        sizes=dataset.space.sizes,
        levels=level_names(dataset.space),
    )
    few = np.linspace(0, len(codes) - 1, min(COMPILING, len(codes))).astype(int)  # neighbours may share levels
    clock = process_time if on_cpu else perf_counter  # beside a GPU all cores score one run after the other
    began = clock()
    for representation in (codes.keep_rows(few), codes):
        began = clock()
        for name, result in score_each(representation, choose(task.metrics), held_out=task.held_out):
            if representation is codes and isinstance(result, Exception) and not isinstance(result, NotDefined):
                raise ValueError(f"metric {name} fails on random codes: {result}") from result
    return clock() - began


def _memory(on_cpu: bool) -> int | None:
    """Peak memory of this process, which has done a worker's job; None on Windows."""
    if not on_cpu:
        return torch.cuda.max_memory_reserved()
    if sys.platform == "win32":
        return None
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
