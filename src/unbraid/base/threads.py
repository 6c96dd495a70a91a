"""The cores of this machine, and work that is shared out among them, or among those of others."""

import os
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, closing, contextmanager
from contextvars import ContextVar, copy_context
from functools import cache
from typing import Any, TypeAlias, TypeVar

from threadpoolctl import ThreadpoolController

Task = TypeVar("Task")
Result = TypeVar("Result")
Value = TypeVar("Value")
Work: TypeAlias = Callable[[Any, threading.Event], Any]
Sharing: TypeAlias = Callable[[Work, Iterable[Any]], Generator[tuple[Any, Any], None, None]]


def n_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def worker_environment() -> dict[str, str]:
    """The environment of this process, for one that is to have one thread."""
    return {**os.environ, **worker_variables()}


def worker_variables() -> dict[str, str]:
    """For a process with one thread whose allocator keeps its pages, which makes a step a third shorter."""
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    allocator = {"MALLOC_MMAP_THRESHOLD_": str(4 << 30), "MALLOC_TRIM_THRESHOLD_": str(8 << 30)}
    return {**dict.fromkeys(threads, "1"), **allocator}


def one_blas_thread() -> AbstractContextManager[object]:
    """Multiply matrices in one thread meanwhile: in the same order on any machine, other cores left to others."""
    return _libraries().limit(limits=1, user_api="blas")


@cache
def _libraries() -> ThreadpoolController:
    """Those of NumPy and SciPy, looked for once: to look through all that a process has loaded takes 10 ms."""
    import scipy.linalg  # noqa: F401

    return ThreadpoolController()


def in_threads(
    work: Callable[[Task, threading.Event], Result], tasks: Iterable[Task], most: int | None = None
) -> Generator[tuple[Task, Result], None, None]:
    """Each task with what `work` makes of it, in the order in which they are done, one thread on each core.

    At most `most` threads. Few tasks are taken ahead of what is done. Whoever stops before the end closes this; the
    event that `work` gets is set then, and what is under way is waited for. Context variables have in `work` the values
    that they have here, and what it shares out in turn stays in its thread.
    """
    stopped, threads = threading.Event(), min(n_cores(), most or n_cores())
    running: dict[Future[Result], Task] = {}
    context = copy_context()
    with one_blas_thread(), ThreadPoolExecutor(threads) as pool:
        try:
            for task in tasks:
                running[pool.submit(context.copy().run, _inside, work, task, stopped)] = task
                if len(running) > threads:
                    yield from _done(running)
            while running:
                yield from _done(running)
        finally:
            stopped.set()
            for future in running:
                future.cancel()


def at_once(
    work: Callable[[Task, threading.Event], Result], tasks: Sequence[Task], costs: Sequence[int]
) -> list[Result]:
    """What `work` makes of each task, in the order of the tasks; as `map_ordered`, the costliest first."""
    places = sorted(range(len(tasks)), key=lambda place: -costs[place])
    results = dict(map_ordered(lambda place, stopped: work(tasks[place], stopped), places))
    return [results[place] for place in range(len(tasks))]


def map_ordered(
    work: Callable[[Task, threading.Event], Result], tasks: Iterable[Task], most: int | None = None
) -> Generator[tuple[Task, Result], None, None]:
    """As `in_threads`, in the order of the tasks; with one thread, and within its work, in the caller's own thread."""
    if 1 in (n_cores(), most) or _WITHIN.get() is not None:
        with one_blas_thread():  # the same bits as in threads
            stopped = _WITHIN.get() or threading.Event()
            for task in tasks:
                go_on(stopped)
                yield task, work(task, stopped)
        return
    done, due = dict[int, tuple[Task, Result]](), 0
    numbered = enumerate(tasks)
    with closing(in_threads(lambda item, stopped: work(item[1], stopped), numbered, most)) as unordered:
        for (place, task), result in unordered:
            done[place] = task, result
            while due in done:
                yield done.pop(due)
                due += 1


def _inside(work: Callable[[Task, threading.Event], Result], task: Task, stopped: threading.Event) -> Result:
    with within(_WITHIN, stopped):
        return work(task, stopped)


class Stopped(Exception):
    """Nobody waits any longer for what a thread is at."""


def go_on(stopped: threading.Event) -> None:
    """
    Raises:
        Stopped: the event is set.
    """
    if stopped.is_set():
        raise Stopped


def shared_out(
    work: Callable[[Task, threading.Event], Result], tasks: Iterable[Task]
) -> Generator[tuple[Task, Result], None, None]:
    """As `in_threads`, unless `sharing` says how else; `work` is a function of a module, and tasks are tuples."""
    return _SHARING.get()(work, tasks)


@contextmanager
def within(variable: ContextVar[Value], value: Value) -> Iterator[None]:
    """While the block runs, the variable has this value."""
    before = variable.set(value)
    try:
        yield
    finally:
        variable.reset(before)


def sharing(share_out: Sharing) -> AbstractContextManager[None]:
    """While the block runs, `shared_out` shares work out in this way, such as among the nodes of a cluster."""
    return within(_SHARING, share_out)


_WITHIN: ContextVar[threading.Event | None] = ContextVar("stops_work_in_threads", default=None)
_SHARING: ContextVar[Sharing] = ContextVar("sharing", default=in_threads)


def _done(running: dict[Future[Result], Task]) -> Generator[tuple[Task, Result], None, None]:
    for future in wait(running, return_when=FIRST_COMPLETED).done:
        yield running.pop(future), future.result()
