"""Scoring that a page asked for: one run at a time, in the background."""

import queue
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal


@dataclass(frozen=True)
class Job:
    """`state`: "waiting", "working", "done", or "failed" with a `reason`."""

    run: str
    metric: str
    state: Literal["waiting", "working", "done", "failed"] = "waiting"
    reason: str = ""


class Jobs:
    """A queue that one thread works off; the thread ends with the program."""

    def __init__(self, work: Callable[[str, str], str]) -> None:
        """`work(run, metric)` returns a remark, such as why the metric is not defined there, or nothing."""
        self._work, self._queue = work, queue.Queue[tuple[str, str]]()
        self._jobs: dict[tuple[str, str], Job] = {}
        threading.Thread(target=self._run, daemon=True).start()

    def add(self, run: str, metric: str) -> None:
        """Ask for a score; what waits or is at work already is not asked for twice."""
        job = self._jobs.get((run, metric))
        if job is None or job.state in {"done", "failed"}:
            self._jobs[run, metric] = Job(run, metric)
            self._queue.put((run, metric))

    def listed(self) -> list[dict[str, Any]]:
        return [asdict(job) for job in list(self._jobs.values())]

    def join(self) -> None:
        """Wait until all that was asked for is done."""
        self._queue.join()

    def _run(self) -> None:
        while True:
            key = self._queue.get()
            self._jobs[key] = replace(self._jobs[key], state="working")
            try:
                remark = self._work(*key)
            except Exception as error:  # told to the reader who asked; the next in the queue goes on
                self._jobs[key] = replace(self._jobs[key], state="failed", reason=f"{error}")
            else:
                self._jobs[key] = replace(self._jobs[key], state="done", reason=remark)
            self._queue.task_done()
