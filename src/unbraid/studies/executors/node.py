"""Runs on a node of a cluster: on storage shared with the driver, beside an object store, or far from both."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from unbraid.base.version import VERSION
from unbraid.data.image_dataset import FactorDataset
from unbraid.files.remote import carried
from unbraid.files.sync import Mirror, discard, pull
from unbraid.files.whole_files import below
from unbraid.studies.executors.work import Outcome, Task, TaskProgress, perform, train

MARK = ".driver"  # a file beside the runs; its content tells a node that it sees the same folder as the driver

Files: TypeAlias = Mapping[str, bytes]  # by name, such as "3f2a/config.json", beneath the folder of the runs


@dataclass(frozen=True)
class Order:
    """Tasks, and what a node must know to do them."""

    tasks: tuple[Task, ...]  # in one folder; several are trained stacked
    mark: str  # content of MARK
    store: str | None  # address of the study, where that is in an object store
    files: Files | None  # existing files of the runs; None: not sent, as a node that shares storage needs no copy
    version: str  # of unbraid, where the study was started
    scored: bool = True  # else they are trained only: what follows needs no accelerator


@dataclass(frozen=True)
class Answer:
    """What a node gives back."""

    # By task; where tasks are only trained, of those that failed. None: nothing was done, as `Order.files` are needed.
    outcomes: Mapping[str, Outcome] | None
    files: Files  # of the finished runs, where the driver has no other way to them


def work(order: Order, datasets: Mapping[str, FactorDataset], tell: Callable[[TaskProgress], None]) -> Answer:
    """Do the tasks of an order, continuing from what there is of them.

    Raises:
        DiskFull: no room for what has to be written.
        OSError: the object store cannot be reached from here.
        KeyboardInterrupt: cancelled; checkpoints are saved where they outlast this node.
    """
    if order.version != VERSION:
        reason = f"its node has unbraid {VERSION}, the study was started with {order.version}"
        return Answer({task.id: Outcome(task.id, "failed", reason) for task in order.tasks}, {})

    def do(tasks: Sequence[Task]) -> Mapping[str, Outcome]:
        if not order.scored:
            return train(datasets, tasks, tell)
        return {outcome.id: outcome for outcome in perform(datasets, tasks, tell)}

    if order.store is None and _shared(order):
        return Answer(do(order.tasks), {})
    if order.store is None and order.files is None:
        return Answer(None, {})
    with TemporaryDirectory(prefix="unbraid-") as scratch:
        folder = Path(scratch) / Path(order.tasks[0].folder).name
        local_tasks = [replace(task, folder=str(folder)) for task in order.tasks]
        if order.store is not None:
            names = [
                path.relative_to(scratch).as_posix() for task in local_tasks for path in (task.target, task.working)
            ]
            mirror = Mirror(order.store, Path(scratch))
            pull(mirror, *names)
            with carried(mirror, *names):
                outcomes = do(local_tasks)
                for task in local_tasks:
                    if task.target.exists():
                        discard(mirror, task.working.relative_to(scratch).as_posix())
            return Answer(outcomes, {})
        unpack(order.files or {}, folder)
        outcomes = do(local_tasks)
        return Answer(outcomes, pack(*(task.target for task in local_tasks)))


def _shared(order: Order) -> bool:
    mark = Path(order.tasks[0].folder) / MARK
    return mark.is_file() and mark.read_text(encoding="utf-8") == order.mark


def pack(*folders: Path) -> Files:
    """The files of run folders; those that do not exist have none."""
    listed = [path for folder in folders if folder.is_dir() for path in folder.iterdir() if path.is_file()]
    paths = [path for path in listed if not path.name.startswith(".")]  # those are of writes that were cut off
    return {f"{path.parent.name}/{path.name}": path.read_bytes() for path in paths}


def unpack(files: Files, folder: Path) -> None:
    """Write packed files beneath the folder of the runs.

    Raises:
        ValueError: a name leads out of it; what came before it is written.
    """
    for name, content in files.items():
        path = below(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
