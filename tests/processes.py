"""Other processes of a test, none of which outlives it."""

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import TextIOWrapper
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
IMPORTED = "tests.studies.test_study", "unbraid.cli.app", "unbraid.studies.study_report"


@contextmanager
def started(*arguments: str, env: Mapping[str, str] | None = None, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Python with these arguments, which may import tests; killed with all that it started when the block ends."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    environment = {**os.environ, "PYTHONPATH": path, **(env or {})}
    command = [sys.executable, *arguments]
    with subprocess.Popen(command, text=True, start_new_session=True, env=environment, **options) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


WHO_HOLDS = """
import sys
from pathlib import Path
from unbraid.files.locks import Held, is_held, locked
for path in map(Path, sys.argv[1:]):
    seen = is_held(path)
    try:
        with locked(path):
            print("free")
        assert not seen
    except Held as error:
        assert seen
        print(error.by)
"""


def holder_elsewhere(*locks: Path) -> str:
    """Who holds each lock, as another process finds it; or "free"."""
    command = [sys.executable, "-c", WHO_HOLDS, *map(str, locks)]
    return ", ".join(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines())


def forkserver() -> ForkServerContext:
    """Makes processes that begin with everything imported, of one that has no threads."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*IMPORTED])
    return context


@dataclass
class Forked:
    """As much of `subprocess.Popen` as tests need."""

    process: ForkServerProcess
    stdout: TextIOWrapper
    stderr: TextIOWrapper

    @property
    def returncode(self) -> int | None:
        return self.process.exitcode

    def send_signal(self, number: int) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, number)

    def communicate(self) -> tuple[str, str]:
        """What is left to read, which must be little, once it has ended."""
        said = self.stdout.read(), self.stderr.read()
        self.process.join()
        return said


@contextmanager
def forked(script: str, *arguments: str) -> Iterator[Forked]:
    """Python with this script, killed with all that it started when the block ends.

    Unlike one that is `started`, it does not spend seconds on imports.
    """
    ends = [multiprocessing.Pipe(duplex=False) for _ in range(2)]
    given = script, arguments, dict(os.environ), os.getcwd(), *(end for _, end in ends)
    process = forkserver().Process(target=_run, args=given)
    process.start()
    assert process.pid is not None
    for _, end in ends:
        end.close()
    out, err = (os.fdopen(os.dup(end.fileno()), encoding="utf-8") for end, _ in ends)
    with out, err:
        try:
            yield Forked(process, out, err)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.join()
            for end, _ in ends:
                end.close()


def _run(
    script: str, arguments: tuple[str, ...], environment: dict[str, str], folder: str, out: Connection, err: Connection
) -> None:
    os.setsid()
    for number, end in ((1, out), (2, err)):
        os.dup2(end.fileno(), number)
        end.close()
    sys.stdout, sys.stderr = (os.fdopen(number, "w", encoding="utf-8", closefd=False) for number in (1, 2))
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["-c", *arguments]
    exec(compile(script, "<script>", "exec"), {"__name__": "script"})


def workers_of(process: int) -> list[int]:
    """Process ids of those that train and score for it, and of no other that it has started."""
    found = []
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        found += [int(pid) for pid in task.read_text().split()]
    return [pid for pid in found if b"unbraid.training.workers" in Path(f"/proc/{pid}/cmdline").read_bytes()]
