"""Members of a CPU population in processes of their own, one thread each."""

import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from unbraid.datasets.base import FactorDataset
from unbraid.training.device import choose_device, n_cores, worker_environment
from unbraid.training.families import FAMILIES
from unbraid.training.loop import Plan, Report, Trained, train_here
from unbraid.training.population import Member, structural_settings

GRACE_SECONDS = 60.0  # for a worker to finish its step and save
LARGE = 1 << 20  # bytes: arrays from here on are mapped by all workers rather than copied into each


class WorkerDied(RuntimeError):
    """A worker process ended without a result, killed from outside or out of memory."""


def train_members(
    plan: Plan,
    members: Sequence[Member],
    dataset: FactorDataset,
    *,
    folders: Sequence[Path | None] | None = None,
    report: Callable[[Report], None] | None = None,
    processes: int | None = None,
    pack: int = 64,
) -> Generator[tuple[int, Trained], None, None]:
    """Train any number of members the way that is fastest on the device; give each by position when it is done.

    On a CPU that is one member after the other in one single-threaded process per core, on an accelerator stacked
    members in this process. Members may differ in everything but the plan; those that differ in structural
    hyperparameters are not stacked together.

    Args:
        plan, members, dataset, folders, report: as for `unbraid.training.loop.train_here`.
        processes: on a CPU; by default one per core, 0 to train in this process.
        pack: largest number of stacked members on an accelerator.

    Raises:
        Everything that `train_here` raises, and WorkerDied.
    """
    plan = plan.resolved()
    folders = list(folders or [None] * len(members))
    if choose_device(plan.device).type != "cpu":
        packs = _packs(plan, members, pack)
    else:
        packs = [[number] for number in range(len(members))]
        wanted = min(n_cores() if processes is None else processes, len(members))
        with ExitStack() as files:
            shipped = _shipped(dataset, members, files) if wanted else None
            if shipped is not None:
                yield from _Workers(plan, members, folders, shipped, report).run(wanted)
                return
    for numbers in packs:
        chosen = [members[number] for number in numbers]
        done = train_here(
            plan, chosen, dataset, folders=[folders[number] for number in numbers], report=_renumbered(report, numbers)
        )
        yield from zip(numbers, done, strict=True)


def _packs(plan: Plan, members: Sequence[Member], pack: int) -> list[list[int]]:
    groups: dict[str, list[int]] = {}
    for number, member in enumerate(members):
        fixed = structural_settings(FAMILIES[plan.family], [member])
        groups.setdefault(repr(sorted(fixed.items())), []).append(number)
    return [group[start : start + pack] for group in groups.values() for start in range(0, len(group), pack)]


def _renumbered(report: Callable[[Report], None] | None, numbers: Sequence[int]) -> Callable[[Report], None] | None:
    if report is None:
        return None
    return lambda sent: report(replace(sent, members=tuple(numbers[index] for index in sent.members)))


def _shipped(
    dataset: FactorDataset, members: Sequence[Member], files: ExitStack
) -> tuple[bytes, list[bytes | int]] | None:
    """The dataset for other processes, large arrays as descriptors of files to map; None where it cannot leave."""
    buffers: list[pickle.PickleBuffer] = []
    try:
        data = pickle.dumps(dataset, protocol=5, buffer_callback=buffers.append)
    except (pickle.PicklingError, AttributeError, TypeError):
        return None
    # What a script or notebook defines itself cannot be imported elsewhere.
    if b"__main__" in data or any("__main__" in str(value) for each in members for value in each.hyper.values()):
        return None
    kept: list[bytes | int] = []
    for buffer in buffers:
        raw = buffer.raw()
        if raw.nbytes >= LARGE:
            # It has no name, so nothing stays when this process is killed.
            file = files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
            file.write(raw)
            file.flush()
            kept.append(file.fileno())
        else:
            kept.append(bytes(raw))
    return data, kept


class _Workers:
    def __init__(
        self,
        plan: Plan,
        members: Sequence[Member],
        folders: Sequence[Path | None],
        shipped: tuple[bytes, list[bytes | int]],
        report: Callable[[Report], None] | None,
    ) -> None:
        self.plan, self.members, self.folders = plan, members, folders
        self.shipped, self.report = shipped, report
        self.waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
        self.inbox: queue.SimpleQueue[tuple[str, int, Any]] = queue.SimpleQueue()
        self.running: list[subprocess.Popen[bytes]] = []
        self.ready: set[int] = set()  # process ids of those that understand an interrupt
        self.leaving: set[int] = set()  # and of those with nothing left to do

    def run(self, n_workers: int) -> Iterator[tuple[int, Trained]]:
        for number in range(len(self.members)):
            self.waiting.put(number)
        threads = [threading.Thread(target=self._drive, args=(self._start(),), daemon=True) for _ in range(n_workers)]
        for thread in threads:
            thread.start()
        left = len(self.members)
        try:
            while left:
                kind, number, content = self.inbox.get()
                if kind == "report" and self.report:
                    self.report(replace(content, members=(number,)))
                elif kind == "error":
                    raise content
                elif kind == "done":
                    left -= 1
                    yield number, content
        finally:
            self._stop()
            for thread in threads:
                thread.join()
            self._close()

    def _start(self) -> subprocess.Popen[bytes]:
        # A session of its own: an interrupt typed at the terminal reaches this process only, which passes it on once.
        process = subprocess.Popen(
            [sys.executable, "-m", "unbraid.training.workers"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**worker_environment(), "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
            start_new_session=True,
            pass_fds=[item for item in self.shipped[1] if isinstance(item, int)],
        )
        self.running.append(process)
        return process

    def _drive(self, process: subprocess.Popen[bytes]) -> None:
        number = -1
        try:
            assert process.stdin
            assert process.stdout
            _send(process.stdin, (self.plan, *self.shipped))
            pickle.load(process.stdout)
            self.ready.add(process.pid)
            while True:
                try:
                    number = self.waiting.get_nowait()
                except queue.Empty:
                    break
                _send(process.stdin, (self.members[number], self.folders[number]))
                kind = "report"
                while kind == "report":
                    kind, content = pickle.load(process.stdout)
                    self.inbox.put((kind, number, content))
                if kind != "done":
                    return
            self.ready.discard(process.pid)
            self.leaving.add(process.pid)
            process.stdin.close()
        except (EOFError, OSError, pickle.UnpicklingError):
            code = process.wait()
            self.inbox.put(("error", number, WorkerDied(f"the process that trained member {number} ended ({code})")))

    def _stop(self) -> None:
        while not self.waiting.empty():
            self.waiting.get()
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
            with process, suppress(BrokenPipeError):  # closes its pipes, what could not be sent included
                pass


def _send(stream: IO[bytes], content: Any) -> None:
    pickle.dump(content, stream)
    stream.flush()


def main() -> None:
    """Train the members that come in on standard input; a process started by `train_members`."""
    inbox, outbox = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not end up among the results
    plan, data, kept = pickle.load(inbox)
    buffers = [np.memmap(os.fdopen(item, "rb"), mode="r") if isinstance(item, int) else item for item in kept]
    dataset = pickle.loads(data, buffers=buffers)
    try:
        _send(outbox, "ready")
        while True:
            member, folder = pickle.load(inbox)
            _send(outbox, _answer(plan, member, dataset, folder, lambda sent: _send(outbox, ("report", sent))))
    except (EOFError, KeyboardInterrupt, BrokenPipeError):
        # All done, stopped, or nobody waits for the result any more; the last checkpoint stands. Taking the
        # interpreter down in good order takes longer, and trips over another interrupt or the broken pipe.
        os._exit(0)


def _answer(
    plan: Plan, member: Member, dataset: FactorDataset, folder: Path | None, report: Callable[[Report], None]
) -> tuple[str, Any]:
    try:
        return "done", train_here(plan, [member], dataset, folders=[folder], report=report)[0]
    except BrokenPipeError:
        raise
    except Exception as error:  # raised again by the process that asked
        error.add_note(traceback.format_exc())
        return "error", error


if __name__ == "__main__":
    main()
