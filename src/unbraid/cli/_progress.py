"""What the terminal says while work goes on."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

PLAIN_SECONDS = 30.0  # between two lines where there is no terminal to draw a bar on
# Told (runs as text, steps of the runs that are done, steps in all, steps by run at work, latest means by name).
Told: TypeAlias = Callable[[str, int, int, Mapping[Any, int], Mapping[str, float]], None]


@contextmanager
def metric_progress(what: str = "scoring") -> Iterator[Callable[[str, int, int], None]]:
    """A bar on stderr, gone when the work is done; silent where stderr is no terminal."""
    console = Console(stderr=True)
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    silent = not console.is_terminal
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True, disable=silent) as bar:
        task = bar.add_task("", total=None)

        def at_work(name: str, done: int, total: int) -> None:
            bar.update(task, description=name, completed=done, total=total)

        yield at_work


@contextmanager
def steps_progress(what: str) -> Iterator[Told]:
    """A bar of training steps on stderr; where that is no terminal, a line now and then."""
    console = Console(stderr=True)
    pace = Pace()
    columns = (TextColumn("{task.fields[runs]}"), BarColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("starting", total=None, runs=what)
        said = time.monotonic()

        def told(runs: str, done: int, total: int, taken: Mapping[Any, int], logs: Mapping[str, float]) -> None:
            nonlocal said
            line = pace.line(done, total, taken, logs)
            bar.update(task, description=line, runs=runs, total=total, completed=pace.done)
            if not console.is_terminal and time.monotonic() - said > PLAIN_SECONDS:
                said = time.monotonic()
                typer.echo(f"{runs} runs, {pace.done / max(total, 1):.0%}: {line}", err=True)

        yield told


class Pace:
    """Steps per second of this session, of all runs together; what checkpoints held does not count."""

    def __init__(self) -> None:
        self.done = 0
        self._first: dict[int | str, int] = {}
        self._gained: dict[int | str, int] = {}
        self._began = 0.0

    def line(self, done: int, total: int, taken: Mapping[Any, int], logs: Mapping[str, float]) -> str:
        """Such as "51.2 steps/s, 0:12:03 left, loss/vae 41.3, kl 12.0"."""
        now = time.monotonic()
        for run, step in taken.items():
            self._began = self._began or now
            self._gained[run] = step - self._first.setdefault(run, step)
        self.done = done + sum(taken.values())
        gained, seconds = sum(self._gained.values()), now - self._began
        parts = []
        if gained and seconds:
            minutes, rest = divmod(round((total - self.done) * seconds / gained), 60)
            parts += [f"{gained / seconds:.1f} steps/s", f"{minutes // 60}:{minutes % 60:02}:{rest:02} left"]
        parts += [f"{name} {value:.4g}" for name, value in logs.items()]
        return ", ".join(parts) or "starting"
