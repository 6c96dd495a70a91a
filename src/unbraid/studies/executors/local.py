"""Runs of a study on this machine: one process per core, or stacked on its accelerator."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from typing import cast

from unbraid.datasets.base import FactorDataset
from unbraid.studies.executors.task import Outcome, Step, Task
from unbraid.studies.executors.work import perform, perform_alone
from unbraid.training.api import training_of
from unbraid.training.device import choose_device, n_cores
from unbraid.training.families import FAMILIES
from unbraid.training.population import structural_settings
from unbraid.training.workers import WorkerDied, can_leave, run_jobs

TRIES = 3  # of a run whose process dies, each continuing from its last checkpoint
PACK = 64  # largest number of stacked runs


def run(
    tasks: Sequence[Task],
    datasets: Mapping[str, FactorDataset],
    *,
    report: Callable[[Step], None] | None = None,
    processes: int | None = None,
    pack: int = PACK,
) -> Iterator[Outcome]:
    """Runs of a study on this machine.

    Args:
        tasks, datasets, report: see `unbraid.studies.executors`.
        processes: on a CPU; by default one per core, 0 to stay in this process.
        pack: largest number of stacked runs on an accelerator.

    Raises:
        DiskFull: no room for results.
        ValueError: the device of a task cannot be used here.
    """
    told = report or (lambda _: None)
    on_cpu = {device: choose_device(device).type == "cpu" for device in {task.config["device"] for task in tasks}}
    wanted = n_cores() if processes is None else processes
    packs = _packs([task for task in tasks if not on_cpu[task.config["device"]]], pack)
    single = [task for task in tasks if on_cpu[task.config["device"]]]
    if single and wanted and can_leave(datasets, single):
        yield from _in_workers(single, datasets, told, wanted)
    else:
        packs += [[task] for task in single]
    for each in packs:
        yield from perform(each, datasets, told)


def _in_workers(
    tasks: Sequence[Task], datasets: Mapping[str, FactorDataset], told: Callable[[Step], None], n_workers: int
) -> Iterator[Outcome]:
    working = run_jobs(
        perform_alone, tasks, datasets, n_workers=n_workers, report=lambda _, step: told(step), tries=TRIES
    )
    with closing(cast(Generator[tuple[int, Outcome | Exception], None, None], working)) as results:
        for number, result in results:
            if isinstance(result, WorkerDied):
                yield Outcome(tasks[number].id, "failed", f"{result} ({TRIES} times)")
            elif isinstance(result, Exception):
                raise result
            else:
                yield result


def _packs(tasks: Sequence[Task], size: int) -> list[list[Task]]:
    """Tasks that can be stacked, together: same images, plan and structure."""
    groups: dict[str, list[Task]] = {}
    for task in tasks:
        plan, member = training_of(task.config)
        fixed = structural_settings(FAMILIES[plan.family], [member])
        groups.setdefault(repr((task.dataset, plan, sorted(fixed.items()))), []).append(task)
    packs = []
    for group in groups.values():
        alone = FAMILIES[group[0].config["family"]].alone
        step = 1 if alone else size
        packs += [group[start : start + step] for start in range(0, len(group), step)]
    return packs
