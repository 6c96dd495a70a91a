"""Other processes of a test, none of which outlives it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


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
