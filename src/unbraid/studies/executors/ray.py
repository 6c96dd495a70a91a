"""Runs of a study as the tasks of a Ray cluster."""

import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from unbraid.base.arguments import check_whole
from unbraid.base.cluster import join, leave
from unbraid.base.optional import require
from unbraid.base.threads import worker_variables
from unbraid.base.version import VERSION
from unbraid.data.image_dataset import FactorDataset
from unbraid.files.remote import address_of, mirror_of
from unbraid.files.sync import pull
from unbraid.files.whole_files import atomic_write, below, write_text
from unbraid.studies.executors.local import PACK, TRIES, check_memory, spread
from unbraid.studies.executors.node import MARK, Answer, Files, Order, unpack, work
from unbraid.studies.executors.node import pack as pack_files
from unbraid.studies.executors.work import DiskFull, Outcome, Task, TaskProgress, died, explain, out_of_time

POLL_SECONDS = 0.5
GRACE_SECONDS = 60.0  # for runs to finish their step and save
VISIBLE_SECONDS = 90.0  # until shared storage shows the driver what a node wrote; NFS may take a minute


def run(
    tasks: Sequence[Task],
    datasets: Mapping[str, FactorDataset],
    *,
    report: Callable[[TaskProgress], None] | None = None,
    address: str = "auto",
    gpus_per_run: float | None = None,
    pack: int = PACK,
) -> Iterator[Outcome]:
    """Runs of a study on the nodes of a Ray cluster, one task with one core for each.

    Those that have a GPU for themselves are trained stacked, as the executor "local" stacks them, in packs that leave
    one for each GPU of the cluster, and are scored by tasks without a GPU. Those with a `time_limit` stay alone.

    A run whose node or process dies is begun again elsewhere: from its last checkpoint where the folder of the runs is
    on storage that the nodes share, or mirrors an object store; else from the start, and its files come back by Ray.

    Args:
        tasks, datasets, report: see `unbraid.studies.executors`.
        address: of the cluster: "auto" for the one that this machine is part of, or host:port.
        gpus_per_run: share of a GPU that a run asks for, so that 0.25 puts four on each; by default 1 for runs whose
            device is "cuda", none for others.
        pack: largest number of stacked runs on a GPU.

    Raises:
        ValueError: no cluster answers at the address, or none of its nodes has what a run asks for.
        ImportError: ray is not installed.
        DiskFull: no room for results.
    """
    check_whole("pack", pack, 1)
    ray, shares = _library(tasks, gpus_per_run)
    if not tasks:
        return (outcome for outcome in ())
    shares |= {task.id: 0.0 for task in tasks if task.target.exists()}  # to be scored, for which a core is enough
    joined = join(ray, address)
    try:
        nodes = _checked_nodes(ray, tasks, datasets, address, shares)
    except ValueError:
        leave(ray, joined)
        raise
    return _run(ray, joined, _groups(tasks, shares, nodes, pack), datasets, report or (lambda _: None), shares)


def _groups(
    tasks: Sequence[Task], shares: Mapping[str, float], nodes: Sequence[Mapping[str, float]], pack: int
) -> list[list[Task]]:
    """Tasks grouped as they are submitted: those with a whole GPU in packs, the others alone."""
    packed = {task.id for task in tasks if _on_whole_gpu(task, shares[task.id])}
    whole = [task for task in tasks if task.id in packed]
    return spread(whole, _places(nodes, 1.0), pack) + [[task] for task in tasks if task.id not in packed]


def _on_whole_gpu(task: Task, share: float) -> bool:
    return share == 1 and task.time_limit is None


def _places(nodes: Sequence[Mapping[str, float]], share: float) -> int:
    """How many tasks with one core and this share of a GPU the nodes do at once."""
    room = [min(node.get("CPU", 0), node.get("GPU", 0) / share + 1e-9 if share else sys.maxsize) for node in nodes]
    return sum(map(int, room))


@contextmanager
def probe_cluster(
    tasks: Sequence[Task],
    datasets: Mapping[str, FactorDataset],
    *,
    address: str = "auto",
    gpus_per_run: float | None = None,
    pack: int = PACK,
) -> Iterator[tuple[int, Callable[[Sequence[Task]], list[list[Task]]], Callable[..., Any]]]:
    """How the cluster would run the tasks: how many at once, how they are grouped, and a caller.

    The caller runs a function on a node, with the resources of a run.

    Args:
        tasks, datasets, address, gpus_per_run, pack: as for `run`; there is a task.

    Raises:
        ValueError, ImportError: as `run`.
    """
    ray, shares = _library(tasks, gpus_per_run)
    joined = join(ray, address)
    try:
        nodes, share = _checked_nodes(ray, tasks, datasets, address, shares), max(shares.values())
        environment = {"env_vars": worker_variables()}

        def call(function: Callable[..., Any], *arguments: Any) -> Any:
            remote = ray.remote(num_cpus=1, num_gpus=share, max_retries=0, runtime_env=environment)(function)
            try:
                return ray.get(remote.remote(*arguments))
            except ray.exceptions.RayTaskError as error:
                raise error.cause from None

        yield _places(nodes, share), lambda waiting: _groups(waiting, shares, nodes, pack), call
    finally:
        leave(ray, joined)


def _library(tasks: Sequence[Task], gpus_per_run: float | None) -> tuple[Any, dict[str, float]]:
    """Ray, and the share of a GPU that each task asks for."""
    ray = require("ray", "ray", "the executor ray")
    if gpus_per_run is not None and not 0 < gpus_per_run <= 1:
        raise ValueError(f"gpus_per_run must be more than 0 and at most 1; got {gpus_per_run:g}")
    return ray, {task.id: _gpus(task, gpus_per_run) for task in tasks}


def _checked_nodes(
    ray: Any,
    tasks: Sequence[Task],
    datasets: Mapping[str, FactorDataset],
    address: str,
    shares: Mapping[str, float],
) -> list[Mapping[str, float]]:
    """The resources of each node, after checking that they suffice."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    gpus = max(shares.values())
    if not any(node.get("CPU", 0) >= 1 and node.get("GPU", 0) >= gpus for node in nodes):  # tasks would wait forever
        needed = "one core" + (f" and {gpus:g} GPU" if gpus else "")
        raise ValueError(f"address {address}: no node of the cluster offers {needed} for a run; see `ray status`")
    check_memory(tasks, datasets, {"cpu": int(max(node.get("memory", 0) for node in nodes)), "cuda": sys.maxsize})
    return nodes


def _gpus(task: Task, share: float | None) -> float:
    device = task.config["device"]
    if device not in ("cpu", "cuda"):
        raise ValueError(
            f"device {device!r} cannot be asked of a cluster: write cpu, or cuda for the GPU a run is given"
        )
    return share if share is not None else float(device == "cuda")


def _run(
    ray: Any,
    joined: bool,
    groups: Sequence[Sequence[Task]],
    datasets: Mapping[str, FactorDataset],
    report: Callable[[TaskProgress], None],
    shares: Mapping[str, float],
) -> Iterator[Outcome]:
    submitted = _Submitted(ray, datasets, shares)
    try:
        for tasks in groups:
            submitted.submit(tasks)
        while submitted.running:
            ended = submitted.ended()
            for step in submitted.steps():
                report(step)
            submitted.end_stragglers()
            yield from submitted.outcomes(ended)
    finally:
        submitted.stop()
        leave(ray, joined)


class _Submitted:
    """The tasks that Ray has been given."""

    def __init__(self, ray: Any, datasets: Mapping[str, FactorDataset], shares: Mapping[str, float]) -> None:
        self.ray, self.shares = ray, shares
        self.datasets = ray.put(dict(datasets))
        self.board = _board(ray)
        self.mark = secrets.token_hex(8)
        self.marked: set[Path] = set()
        self.running: dict[Any, tuple[Sequence[Task], bool]] = {}  # by the reference to the answer; see Order.scored
        self.tries: dict[str, int] = {}
        self.began: dict[str, float] = {}  # by task, time of its first report
        self.over: set[str] = set()  # tasks that were ended by their time limit
        environment = {"env_vars": worker_variables()}
        self.remote = ray.remote(num_cpus=1, max_retries=0, runtime_env=environment)(_on_node)

    def submit(self, tasks: Sequence[Task], files: Files | None = None, *, trained: bool = False) -> None:
        """Give tasks to the cluster; with a GPU for themselves they are trained there, and scored once `trained`."""
        folder, share = Path(tasks[0].folder), 0.0 if trained else self.shares[tasks[0].id]
        scored = trained or not _on_whole_gpu(tasks[0], share)
        if folder not in self.marked:
            folder.mkdir(parents=True, exist_ok=True)
            write_text(folder / MARK, self.mark)
            self.marked.add(folder)
        if files is None and not any(path.exists() for task in tasks for path in (task.target, task.working)):
            files = {}
        order = Order(tuple(tasks), self.mark, address_of(folder.parent), files, VERSION, scored)
        on_node = self.remote.options(num_gpus=share)
        self.running[on_node.remote(order, self.datasets, self.board)] = tasks, scored

    def ended(self) -> list[Any]:
        """References to answers that are there within POLL_SECONDS."""
        return self.ray.wait(list(self.running), timeout=POLL_SECONDS)[0]

    def steps(self) -> Iterator[TaskProgress]:
        """Progress of running tasks since the last call."""
        at_work = {task.id for tasks, _ in self.running.values() for task in tasks}
        for name, latest in self.ray.get(self.board.take.remote()).items():
            if name in at_work:
                self.began.setdefault(name, time.monotonic())
                yield TaskProgress(name, *latest)

    def end_stragglers(self) -> None:
        """End tasks that have exceeded their time limit, and free their slots."""
        for reference, ((task, *_), _) in self.running.items():  # those with a limit are alone
            limit, began = task.time_limit, self.began.get(task.id)
            if limit is not None and began is not None and time.monotonic() - began > limit:
                self.over.add(task.id)
                self.ray.cancel(reference, force=True)

    def outcomes(self, ended: Iterable[Any]) -> Iterator[Outcome]:
        for reference in ended:
            tasks, scored = self.running.pop(reference)
            yield from self._outcomes(tasks, scored, reference)

    def _outcomes(self, tasks: Sequence[Task], scored: bool, reference: Any) -> Iterator[Outcome]:
        """Outcomes of the tasks that were not submitted again."""
        errors = self.ray.exceptions
        try:
            answer: Answer = self.ray.get(reference)
        except errors.RayTaskError as error:
            if isinstance(error.cause, DiskFull):
                raise error.cause from None
            for task in tasks:
                yield Outcome(task.id, "failed", explain(error.cause), error.traceback_str)
        except errors.RayError as error:  # a node or process that died
            for task in tasks:  # of a pack, each continues alone: one of them may have brought down all
                yield from self._died(task, error, trained=scored and self.splits(task))
        else:
            if answer.outcomes is None:
                paths = [path for task in tasks for path in (task.target, task.working)]
                return self.submit(tasks, pack_files(*paths), trained=scored and self.splits(tasks[0]))
            for task in tasks:
                outcome = answer.outcomes.get(task.id)
                _fetch(task, answer.files, failed=outcome is not None and outcome.state == "failed")
                if outcome is None:
                    self.submit([task], trained=True)
                else:
                    yield outcome

    def splits(self, task: Task) -> bool:
        """Whether it is trained with a GPU first, and scored without."""
        return _on_whole_gpu(task, self.shares[task.id])

    def _died(self, task: Task, error: Exception, *, trained: bool) -> Iterator[Outcome]:
        if task.id in self.over:
            yield Outcome(task.id, "failed", out_of_time(f"it took longer than {task.time_limit:g} s"))
            return
        self.began.pop(task.id, None)
        self.tries[task.id] = self.tries.get(task.id, 0) + 1
        if self.tries[task.id] < TRIES:
            self.submit([task], trained=trained)
            return
        reason = str(error).partition(". ")[0].strip()
        yield Outcome(task.id, "failed", died(f"{type(error).__name__}: {reason}", TRIES))

    def stop(self) -> None:
        """Cancel running tasks, and wait for their checkpoints."""
        for reference in self.running:
            self.ray.cancel(reference)
        if self.running:
            self.ray.wait(list(self.running), num_returns=len(self.running), timeout=GRACE_SECONDS)
        self.ray.kill(self.board)
        for folder in self.marked:
            (folder / MARK).unlink(missing_ok=True)


def _board(ray: Any) -> Any:
    """An actor on the driver's node to which nodes post progress; only the latest of each run is kept."""

    class Board:
        def __init__(self) -> None:
            self.latest: dict[str, tuple[Any, ...]] = {}

        def post(self, name: str, latest: tuple[Any, ...]) -> None:
            self.latest[name] = latest

        def take(self) -> dict[str, tuple[Any, ...]]:
            latest, self.latest = self.latest, {}
            return latest

    node = ray.get_runtime_context().get_node_id()
    near = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=False)
    return ray.remote(num_cpus=0, scheduling_strategy=near)(Board).remote()


def _on_node(order: Order, datasets: Mapping[str, FactorDataset], board: Any) -> Answer:
    import ray

    last: list[Any] = []

    def tell(step: TaskProgress) -> None:
        last[:] = [board.post.remote(step.id, (step.step, dict(step.logs), step.doing))]

    for task in order.tasks:
        tell(TaskProgress(task.id, 0))  # it has left the queue: its time limit starts now
    answer = work(order, datasets, tell)
    ray.get(last)  # the last progress report arrives before the answer
    return answer


def _fetch(task: Task, files: Files, *, failed: bool) -> None:
    """Bring the files of the run to the driver's folder."""
    own = {name: content for name, content in files.items() if name.startswith(f"{task.id}/")}
    if own:
        _receive(task, own)
    elif mirror := mirror_of(Path(task.folder).parent):
        names = [path.relative_to(mirror.folder).as_posix() for path in (task.target, task.working)]
        pull(mirror, *names)
    elif not failed:
        _wait_for(task.target)


def _receive(task: Task, files: Files) -> None:
    """Place the folder of a run that came by Ray, whole."""
    if task.target.exists():
        had = pack_files(task.target)
        for name, content in files.items():
            if had.get(name) != content:
                with atomic_write(below(task.target.parent, name)) as temporary:
                    temporary.write_bytes(content)
        return
    arriving = Path(tempfile.mkdtemp(dir=task.folder, prefix=f".{task.id}."))
    unpack(files, arriving)
    (arriving / task.id).rename(task.target)
    arriving.rmdir()
    shutil.rmtree(task.working, ignore_errors=True)


def _wait_for(target: Path) -> None:
    until = time.monotonic() + VISIBLE_SECONDS
    while not target.exists():
        if time.monotonic() > until:
            raise OSError(f"{target}: a node wrote it, and it is not to be seen here")
        time.sleep(1)
