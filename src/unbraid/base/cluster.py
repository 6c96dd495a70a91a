"""A Ray cluster: to join one, and to share work out among its cores."""

import logging
import os
import socket
import tempfile
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from unbraid.base.current_folder import importable
from unbraid.base.optional import require
from unbraid.base.threads import Work, one_blas_thread, sharing, worker_variables
from unbraid.base.version import VERSION

ANSWER_SECONDS = 5.0  # for the cluster to accept a connection
TRIES = 3  # of a task whose node or process dies
AHEAD = 1.25  # tasks that are given to the cluster for each of its cores, so that none waits for the next


@contextmanager
def on_cluster(address: str = "auto") -> Iterator[None]:
    """While the block runs, `shared_out` gives its tasks to the cores of a Ray cluster, one each, in one thread.

    So results have the same bits as on this machine, if processors are of the same kind.

    Args:
        address: of the cluster: "auto" for the one that this machine is part of, or host:port.

    Raises:
        ValueError: no cluster answers at the address, or it has no core.
        ImportError: ray is not installed.
        ChildProcessError: a task's node or process died again and again.
    """
    ray = require("ray", "ray", "the executor ray")
    joined = join(ray, address)
    try:
        if _n_cores(ray) < 1:
            raise ValueError(f"address {address}: no node of the cluster offers a core; see `ray status`")
        with sharing(partial(_shared_out, ray)):
            yield
    finally:
        leave(ray, joined)


def join(ray: Any, address: str) -> bool:
    """Whether this process joined the cluster here; False where it was part of one already.

    Raises:
        ValueError: no cluster answers at the address.
    """
    if ray.is_initialized():
        return False
    silent = f"address {address}: no Ray cluster answers there; `ray start --head` starts one"
    if address.startswith("ray://"):
        raise ValueError(f"address {address}: Ray's client is not supported; start this on a node of the cluster")
    host, _, port = _recorded(address).rpartition(":")
    if port.isdigit():
        # Ray itself would try for minutes, and then end this process.
        try:
            socket.create_connection((host, int(port)), ANSWER_SECONDS).close()
        except OSError as error:
            raise ValueError(f"{silent} ({error})") from None
    elif address != "auto":
        raise ValueError(f"address {address}: write auto, or host:port")
    try:
        ray.init(address=address, job_config=_job(ray), log_to_driver=False, logging_level=logging.ERROR)
    except ConnectionError:
        raise ValueError(silent) from None
    except RuntimeError as error:  # such as another version of Ray or Python
        raise ValueError(f"address {address}: {' '.join(str(error).split())}") from None
    return True


def leave(ray: Any, joined: bool) -> None:
    """Leave the cluster if `join` said that it joined it."""
    if joined:
        ray.shutdown()


def _job(ray: Any) -> Any:
    """A job whose tasks import from no folder that this process does not import from.

    Ray would have them look first of all in the current folder, where a stranger's `queue.py` may lie.
    """

    class Known(list[str]):
        def extend(self, folders: Iterable[str]) -> None:
            super().extend(folder for folder in folders if folder in importable())

    job = ray.job_config.JobConfig()
    job._py_driver_sys_path = Known()
    return job


def _recorded(address: str) -> str:
    """What "auto" stands for, as far as that is written down; Ray finds others by looking at the processes here."""
    if address != "auto":
        return address
    record = Path(os.environ.get("RAY_TMPDIR", tempfile.gettempdir())) / "ray" / "ray_current_cluster"
    return os.environ.get("RAY_ADDRESS") or (record.read_text(encoding="utf-8") if record.is_file() else "")


def _n_cores(ray: Any) -> int:
    return int(sum(node["Resources"].get("CPU", 0) // 1 for node in ray.nodes() if node["Alive"]))


def _shared_out(
    ray: Any, work: Work, tasks: Iterable[tuple[Any, ...]]
) -> Generator[tuple[tuple[Any, ...], Any], None, None]:
    remote = ray.remote(num_cpus=1, max_retries=TRIES, runtime_env={"env_vars": worker_variables()})(_on_node)
    running: dict[Any, tuple[Any, ...]] = {}
    sent: list[tuple[Any, Any]] = []
    try:
        for task in tasks:
            # What the task before had too is sent once.
            before = {id(part): reference for part, reference in sent}
            sent = [(part, before.get(id(part)) or ray.put(part)) for part in task]
            running[remote.remote(work, VERSION, *(reference for _, reference in sent))] = task
            while len(running) > AHEAD * _n_cores(ray):
                yield from _done(ray, running)
        while running:
            yield from _done(ray, running)
    finally:
        for reference in running:
            ray.cancel(reference, force=True)


def _done(ray: Any, running: dict[Any, tuple[Any, ...]]) -> Generator[tuple[tuple[Any, ...], Any], None, None]:
    for reference in ray.wait(list(running))[0]:
        task = running.pop(reference)
        try:
            result = ray.get(reference)
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except ray.exceptions.RayError as error:
            reason = str(error).partition(". ")[0].strip()
            raise ChildProcessError(f"a node or process of the cluster died {TRIES + 1} times ({reason})") from None
        yield task, result


def _on_node(work: Callable[[Any, threading.Event], Any], version: str, *parts: Any) -> Any:
    if version != VERSION:
        raise ValueError(
            f"{socket.gethostname()} has unbraid {VERSION}, the machine that asks has {version}; all need the same"
        )
    with one_blas_thread():
        return work(parts, threading.Event())
