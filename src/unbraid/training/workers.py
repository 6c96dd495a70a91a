"""Jobs in worker processes of one thread each, mainly members of a CPU population."""

import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np

from unbraid.base.current_folder import importable
from unbraid.base.device import choose_device
from unbraid.base.signals import Terminated
from unbraid.base.threads import n_cores, worker_environment
from unbraid.data.image_dataset import FactorDataset
from unbraid.families.building import Member, structural_settings
from unbraid.families.family_table import find_family
from unbraid.training.loop import Plan, Report, Trained, renumbered, train_here

PACK = 64  # members that are stacked on an accelerator, at the most
GRACE_SECONDS = 60.0  # for a worker to finish its step and save
LARGE = 1 << 20  # bytes: larger arrays are memory-mapped by all workers instead of copied into each
STARTS = 3  # attempts to start a worker before giving up
# A worker has this process's import path, and imports nothing else from the current folder.
START = (
    "import sys; sys.path[:] = {}; from unbraid.base.current_folder import ignore_settings; ignore_settings(); "
    "from unbraid.training.workers import main; main()"
)

Shipped: TypeAlias = tuple[bytes, list[bytes | int]]


class WorkerDied(ChildProcessError):
    """A worker process ended without a result, killed from outside or out of memory."""


class TookTooLong(ChildProcessError):
    """A job was ended because it exceeded its time limit."""


def train_members(
    plan: Plan,
    members: Sequence[Member],
    dataset: FactorDataset,
    *,
    folders: Sequence[Path | None] | None = None,
    report: Callable[[Report], None] | None = None,
    processes: int | None = None,
) -> Generator[tuple[int, Trained], None, None]:
    """Train any number of members in the fastest way for the device; yield each with its position when it is done.

    On a CPU members are trained one after the other by one single-threaded process per core, on an accelerator stacked
    in this process. Members share only the plan; those that differ in structural hyperparameters are not stacked
    together.

    Args:
        plan, members, dataset, folders, report: as for `unbraid.training.loop.train_here`.
        processes: on a CPU; by default one per core, 0 to train in this process.

    Raises:
        Everything that `train_here` raises, and WorkerDied.
    """
    plan = plan.resolved()
    folders = list(folders or [None] * len(members))
    if choose_device(plan.device).type != "cpu":
        packs = _packs(plan, members)
    else:
        packs = [[number] for number in range(len(members))]
        n_workers = min(n_cores() if processes is None else processes, len(members))
        jobs = list(zip(members, folders, strict=True))
        if n_workers and can_leave((plan, dataset), jobs):
            sent = report and (lambda number, sent: report(replace(sent, members=(number,))))
            for number, result in run_jobs(_train, jobs, (plan, dataset), n_workers=n_workers, tries=1, report=sent):
                if isinstance(result, Exception):
                    raise result
                yield number, result
            return
    for numbers in packs:
        chosen = [members[number] for number in numbers]
        done = train_here(
            plan, chosen, dataset, folders=[folders[number] for number in numbers], report=renumbered(report, numbers)
        )
        yield from zip(numbers, done, strict=True)


def _train(
    shared: tuple[Plan, FactorDataset], job: tuple[Member, Path | None], report: Callable[[Report], None]
) -> Trained:
    (plan, dataset), (member, folder) = shared, job
    return train_here(plan, [member], dataset, folders=[folder], report=report)[0]


def _packs(plan: Plan, members: Sequence[Member]) -> list[list[int]]:
    family, groups = find_family(plan.family), dict[str, list[int]]()
    packs: list[list[int]] = []
    for number, member in enumerate(members):
        fixed = structural_settings(family, [member])
        if family.stacks(plan.precision, member.hyper):
            groups.setdefault(repr(sorted(fixed.items())), []).append(number)
        else:
            packs.append([number])
    return packs + [group[start : start + PACK] for group in groups.values() for start in range(0, len(group), PACK)]


def can_leave(*values: Any) -> bool:
    """Whether these can be sent to another process; it cannot import what a script or notebook defines itself."""
    try:
        # Arrays are skipped: pickling them would copy them.
        data = pickle.dumps(values, protocol=5, buffer_callback=lambda _: None)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
    return b"__main__" not in data


def run_jobs(
    function: Callable[[Any, Any, Callable[[Any], None]], Any],
    jobs: Sequence[Any],
    shared: Any,
    *,
    n_workers: int,
    tries: int,
    report: Callable[[int, Any], None] | None = None,
    limit: float | None = None,
    variables: Sequence[Mapping[str, str]] = ({},),
) -> Generator[tuple[int, Any], None, None]:
    """Call function(shared, job, report) for each job in worker processes, which receive `shared` once.

    Args:
        function: importable under its name by another process.
        jobs: taken one by one, in this order, by whichever worker is free.
        shared: sent to each worker once; its large arrays are mapped and not copied.
        n_workers: processes, each with one thread; no more than there are jobs.
        report: called as report(position of the job, content that the job sent), from the thread that iterates.
        tries: number of attempts for a job whose process dies.
        limit: seconds that a job may take; then its process is killed and replaced.
        variables: environment variables of each worker in turn, such as its visible device.

    Yields:
        (position, result) as they are done; the result is an exception if the job raised one, WorkerDied if its
        process ended, TookTooLong if it exceeded the limit.

    Raises:
        WorkerDied: workers cannot even start.

    If closed before the end, it interrupts running jobs, gives them time to save, and leaves no process behind.
    Workers exit at once when this process is killed.
    """
    if not jobs:
        return
    with ExitStack() as files:
        workers = _Workers(function, jobs, _shipped(shared, files), report, tries, limit)
        yield from workers.run([variables[number % len(variables)] for number in range(min(n_workers, len(jobs)))])


def _shipped(shared: Any, files: ExitStack) -> Shipped:
    """Pickled for other processes, with large arrays as descriptors of files to map."""
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(shared, protocol=5, buffer_callback=buffers.append)
    pieces: list[bytes | int] = []
    for buffer in buffers:
        raw = buffer.raw()
        if raw.nbytes >= LARGE:
            # The file is unnamed, so nothing remains if this process is killed.
            file = files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
            file.write(raw)
            file.flush()
            pieces.append(file.fileno())
        else:
            pieces.append(bytes(raw))
    return data, pieces


class _Workers:
    def __init__(
        self,
        function: Callable[..., Any],
        jobs: Sequence[Any],
        shipped: Shipped,
        report: Callable[[int, Any], None] | None,
        tries: int,
        limit: float | None,
    ) -> None:
        self.function, self.jobs, self.shipped, self.report = function, jobs, shipped, report
        self.limit = limit
        self.tries = [tries] * len(jobs)  # remaining
        self.waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
        self.inbox: queue.SimpleQueue[tuple[str, int, Any]] = queue.SimpleQueue()
        self.running: list[subprocess.Popen[bytes]] = []
        self.ready: set[int] = set()  # ids of processes that handle an interrupt
        self.leaving: set[int] = set()  # ids of processes without further jobs
        self.stopping = False
        self.starting = threading.Lock()

    def run(self, workers: Sequence[Mapping[str, str]]) -> Iterator[tuple[int, Any]]:
        """Runs one worker per mapping of environment variables."""
        for number in range(len(self.jobs)):
            self.waiting.put(number)
        threads = [threading.Thread(target=self._drive, args=(mapping,), daemon=True) for mapping in workers]
        for thread in threads:
            thread.start()
        left = len(self.jobs)
        try:
            while left:
                kind, number, content = self.inbox.get()
                if kind == "report":
                    if self.report:
                        self.report(number, content)
                elif kind == "fatal":
                    raise content
                else:
                    left -= 1
                    yield number, content
        finally:
            self._stop()
            for thread in threads:
                thread.join()
            self._close()

    def _drive(self, variables: Mapping[str, str]) -> None:
        """Keep one worker running, restarted when it dies, until no job is waiting."""
        failed = 0
        while not self.waiting.empty():
            try:
                process = self._start(variables)
            except OSError as error:  # too many processes or no memory: raised by the iterating thread
                self.inbox.put(("fatal", -1, WorkerDied(f"no process for training could start: {error}")))
                return
            if process is None:
                return
            if self._greeted(process):
                failed = 0
                self._serve(process)
                continue
            failed += 1
            if failed == STARTS:
                self.inbox.put(("fatal", -1, WorkerDied(f"no process for training could start: {_end(process)}")))
                return

    def _start(self, variables: Mapping[str, str]) -> subprocess.Popen[bytes] | None:
        with self.starting:
            if self.stopping:
                return None
            # Its own session: an interrupt typed at the terminal reaches this process only, which forwards it once.
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", START.format(importable())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**worker_environment(), **variables},
                start_new_session=True,
                pass_fds=[item for item in self.shipped[1] if isinstance(item, int)],
            )
            self.running.append(process)
        return process

    def _greeted(self, process: subprocess.Popen[bytes]) -> bool:
        assert process.stdin
        assert process.stdout
        try:
            _send(process.stdin, (self.function, *self.shipped))
            pickle.load(process.stdout)
        except (EOFError, OSError, pickle.UnpicklingError):
            return False
        self.ready.add(process.pid)
        return True

    def _serve(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin
        assert process.stdout
        while not self.stopping:
            try:
                number = self.waiting.get_nowait()
            except queue.Empty:
                break
            self.tries[number] -= 1
            began = time.monotonic()
            alarm = threading.Timer(self.limit or threading.TIMEOUT_MAX, process.kill)
            alarm.daemon = True
            alarm.start()
            try:
                _send(process.stdin, self.jobs[number])
                kind = "report"
                while kind == "report":
                    kind, content = pickle.load(process.stdout)
                    self.inbox.put((kind, number, content))
            except (EOFError, OSError, pickle.UnpicklingError):
                if self.limit and time.monotonic() - began >= self.limit:
                    self.inbox.put(("error", number, TookTooLong(f"it took longer than {self.limit:g} s")))
                elif self.tries[number] > 0 and not self.stopping:
                    self.waiting.put(number)
                else:
                    self.inbox.put(("error", number, WorkerDied(f"its process {_end(process)}")))
                return
            finally:
                alarm.cancel()
        self.ready.discard(process.pid)
        self.leaving.add(process.pid)
        with suppress(BrokenPipeError):
            process.stdin.close()

    def _stop(self) -> None:
        with self.starting:
            self.stopping = True
        for process in self.running:
            if process.poll() is None and process.pid not in self.leaving:
                process.send_signal(signal.SIGINT if process.pid in self.ready else signal.SIGKILL)
        for process in self.running:
            try:
                process.wait(GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()

    def _close(self) -> None:
        for process in self.running:
            with suppress(BrokenPipeError), process:  # closes its pipes, what could not be sent included
                pass


def _end(process: subprocess.Popen[bytes]) -> str:
    code = process.wait()
    if code == -signal.SIGKILL:
        return "was killed (signal 9), as happens where memory runs out; fewer at a time need less of it"
    return f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"


def _send(stream: IO[bytes], content: Any) -> None:
    pickle.dump(content, stream)
    stream.flush()


def main() -> None:
    """Do the jobs that come in on standard input; a process started by `run_jobs`."""
    outbox = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not end up among the results
    function, data, pieces = pickle.load(sys.stdin.buffer)
    buffers = [np.memmap(os.fdopen(item, "rb"), mode="r") if isinstance(item, int) else item for item in pieces]
    shared = pickle.loads(data, buffers=buffers)
    inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
    try:
        _send(outbox, "ready")
        threading.Thread(target=_receive, args=(inbox,), daemon=True).start()
        while True:
            _send(outbox, _answer(function, shared, inbox.get(), lambda sent: _send(outbox, ("report", sent))))
    except (KeyboardInterrupt, BrokenPipeError) as error:
        # Stopped, or the parent is gone; the last checkpoint is on disk. A regular exit of the interpreter takes longer
        # and may fail on another interrupt or the broken pipe.
        os._exit(128 + signal.SIGTERM if isinstance(error, Terminated) else 0)


def _receive(inbox: "queue.SimpleQueue[Any]") -> None:
    """Receive jobs; exit at once at end of input: all jobs are done, or the parent process is gone."""
    try:
        while True:
            inbox.put(pickle.load(sys.stdin.buffer))
    except EOFError:
        os._exit(0)


def _answer(function: Callable[..., Any], shared: Any, job: Any, report: Callable[[Any], None]) -> tuple[str, Any]:
    try:
        return "done", function(shared, job, report)
    except BrokenPipeError:
        raise
    except Exception as error:  # raised again by the process that asked
        sent = _portable(error)
        sent.add_note(traceback.format_exc())
        return "error", sent


def _portable(error: Exception) -> Exception:
    """The error, or a RuntimeError with its message if it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
