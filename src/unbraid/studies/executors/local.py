"""Runs of a study on this machine: one process per core, or stacked on its accelerators."""

import os
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain
from math import ceil, prod
from typing import cast

import torch

from unbraid.base.arguments import check_whole
from unbraid.base.device import choose_device, visible_devices
from unbraid.base.threads import n_cores
from unbraid.data.image_dataset import FactorDataset
from unbraid.families import Family
from unbraid.families.building import Member, structural_settings
from unbraid.families.family_table import find_family
from unbraid.studies.executors.work import Outcome, Task, TaskProgress, died, out_of_time, perform, train
from unbraid.studies.expand import setting_text
from unbraid.training.train import training_of, weight_bytes
from unbraid.training.workers import TookTooLong, WorkerDied, can_leave, run_jobs

TRIES = 3  # of a run whose process dies, each continuing from its last checkpoint
PACK = 64  # largest number of stacked runs


def run(
    tasks: Sequence[Task],
    datasets: Mapping[str, FactorDataset],
    *,
    report: Callable[[TaskProgress], None] | None = None,
    processes: int | None = None,
    pack: int = PACK,
) -> Iterator[Outcome]:
    """Runs of a study on this machine.

    Args:
        tasks, datasets, report: see `unbraid.studies.executors`.
        processes: on a CPU; by default one per core, 0 to stay in this process.
        pack: largest number of stacked runs on an accelerator. Where there are several they share the runs: a process
            for each trains one pack after the other.

    Raises:
        DiskFull: no room for results.
        ValueError: the device of a task cannot be used here, or is too small for it.
    """
    if processes is not None:
        check_whole("processes", processes, 0)
    check_whole("pack", pack, 1)
    trained = {task.id for task in tasks if task.target.exists()}  # only to be scored, which needs no device
    new = [task for task in tasks if task.id not in trained]
    devices = {name: choose_device(name) for name in {task.config["device"] for task in new}}
    check_memory(new, datasets, {name: _memory(device) for name, device in devices.items()})
    on_cpu = [task for task in tasks if task.id in trained or devices[task.config["device"]].type == "cpu"]
    accelerated = [task for task in new if devices[task.config["device"]].type != "cpu"]
    anywhere = [task for task in accelerated if devices[task.config["device"]].type == "cuda"]
    n_workers = n_cores() if processes is None else processes
    device_names = visible_devices() if anywhere and n_workers and can_leave(datasets, anywhere) else []
    shared = spread(anywhere, len(device_names), pack) if len(device_names) > 1 else []
    shared_ids = {task.id for tasks in shared for task in tasks}
    stacked = packs([task for task in accelerated if task.id not in shared_ids], pack)
    return _run(on_cpu, stacked, shared, device_names, datasets, report or (lambda _: None), n_workers)


def _run(
    on_cpu: Sequence[Task],
    stacked: Sequence[Sequence[Task]],
    shared: Sequence[Sequence[Task]],
    device_names: Sequence[str],
    datasets: Mapping[str, FactorDataset],
    report: Callable[[TaskProgress], None],
    n_workers: int,
) -> Iterator[Outcome]:
    yield from _on_devices(shared, device_names, datasets, report, n_workers)
    workers = n_workers and can_leave(datasets, [*on_cpu, *chain(*stacked)])
    for tasks in stacked:
        failures = train(datasets, tasks, report)
        yield from failures.values()
        left = [task for task in tasks if task.id not in failures]
        # Trained by now, they are only scored: by all cores at once.
        yield from _in_workers(left, datasets, report, n_workers) if workers else perform(datasets, left, report)
    if workers:
        yield from _in_workers(on_cpu, datasets, report, n_workers)
    else:
        for task in on_cpu:
            yield from perform(datasets, [task], report)


def _on_devices(
    waiting: Sequence[Sequence[Task]],
    devices: Sequence[str],
    datasets: Mapping[str, FactorDataset],
    report: Callable[[TaskProgress], None],
    n_workers: int,
) -> Iterator[Outcome]:
    """Train packs by one process per device, which sees that device alone; then score them on all cores."""
    trained: list[Task] = []
    while waiting:
        alone: list[list[Task]] = []  # of a pack whose process died, each is tried by itself
        working = run_jobs(
            train, waiting, datasets, n_workers=len(devices), report=lambda _, step: report(step), tries=TRIES,
            variables=[{"CUDA_VISIBLE_DEVICES": name} for name in devices],
        )  # fmt: skip
        with closing(working) as results:
            for number, result in results:
                tasks = waiting[number]
                if isinstance(result, WorkerDied) and len(tasks) == 1:
                    yield Outcome(tasks[0].id, "failed", died(result, TRIES))
                elif isinstance(result, WorkerDied):
                    alone += [[task] for task in tasks]
                elif isinstance(result, Exception):
                    raise result
                else:
                    yield from result.values()
                    trained += [task for task in tasks if task.id not in result]
        waiting = alone
    yield from _in_workers(trained, datasets, report, n_workers)


def _in_workers(
    tasks: Sequence[Task], datasets: Mapping[str, FactorDataset], report: Callable[[TaskProgress], None], n_workers: int
) -> Iterator[Outcome]:
    working = run_jobs(
        perform, [[task] for task in tasks], datasets, n_workers=n_workers, report=lambda _, step: report(step),
        tries=TRIES, limit=tasks[0].time_limit if tasks else None,
    )  # fmt: skip
    with closing(cast(Generator[tuple[int, list[Outcome] | Exception], None, None], working)) as results:
        for number, result in results:
            if isinstance(result, TookTooLong):
                yield Outcome(tasks[number].id, "failed", out_of_time(result))
            elif isinstance(result, WorkerDied):
                yield Outcome(tasks[number].id, "failed", died(result, TRIES))
            elif isinstance(result, Exception):
                raise result
            else:
                yield from result


def kinds(tasks: Sequence[Task]) -> list[list[Task]]:
    """Tasks grouped by kind: same images, plan and structure, so that their steps take equally long."""
    groups: dict[str, list[Task]] = {}
    for task in tasks:
        plan, member = training_of(task.config)
        fixed = structural_settings(find_family(plan.family), [member])
        groups.setdefault(repr((task.dataset, plan, sorted(fixed.items()))), []).append(task)
    return list(groups.values())


def packs(tasks: Sequence[Task], size: int) -> list[list[Task]]:
    """Stacks of at most `size` tasks of one kind; tasks that cannot be stacked come first, each alone."""
    stacked = [task for task in tasks if _stacks(task)]
    groups = [group[start : start + size] for group in kinds(stacked) for start in range(0, len(group), size)]
    return [[task] for task in tasks if not _stacks(task)] + groups


def spread(tasks: Sequence[Task], devices: int, largest: int) -> list[list[Task]]:
    """`packs` that share the tasks evenly among devices, none larger than `largest`."""
    return packs(tasks, min(largest, max(1, ceil(len(tasks) / max(1, devices)))))


def _stacks(task: Task) -> bool:
    plan, member = training_of(task.config)
    return find_family(plan.family).stacks(plan.precision, member.hyper)


def check_memory(tasks: Sequence[Task], datasets: Mapping[str, FactorDataset], memory: Mapping[str, int]) -> None:
    """Raises ValueError for a run that cannot be trained in the memory (bytes) of its device, by the device's name."""
    seen: set[str] = set()
    for task in tasks:
        plan, member = training_of(task.config)
        row, dataset = find_family(plan.family), datasets[task.dataset]
        key = repr((plan, structural_settings(row, [member]), task.dataset))
        if key in seen:
            continue
        seen.add(key)
        # Weights, gradients and two moments; the batch, what the decoder makes of it, and the gradients of both.
        needed = 4 * weight_bytes(row, dataset, member) + 16 * plan.batch_size * prod(dataset.image_shape)
        if needed > memory[plan.device]:
            raise ValueError(
                f"{plan.family} with {_differing(row, member)} needs at least {needed / 1e9:.1f} GB, and the "
                f"{plan.device} has {memory[plan.device] / 1e9:.1f} GB"
            )


def _differing(row: Family, member: Member) -> str:
    changed = {name: value for name, value in member.hyper.items() if value != row.hyperparameters[name].default}
    return setting_text(changed, changed) or "its defaults"


def _memory(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else sys.maxsize
