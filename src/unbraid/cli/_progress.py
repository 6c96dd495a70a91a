"""What the terminal says while work goes on."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, TypeAlias

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from unbraid.base.printable import printable
from unbraid.base.signals import Terminated
from unbraid.cli.show_command import say

PLAIN_SECONDS = 30.0  # between two lines where there is no terminal to draw a bar on
# Show (what is done, done, all, what else is known), such as ("scoring", 3, 20, "3/20 mig").
Show: TypeAlias = Callable[[str, int, int, str], None]


class Interrupted(Exception):
    """Stopped by the user or a scheduler; the message says what becomes of the work."""

    def __init__(self, message: str, code: int = 130) -> None:
        super().__init__(message)
        self.code = code


@contextmanager
def continuing() -> Iterator[None]:
    """Around work that the same command takes up where it was stopped.

    Raises:
        Interrupted: stopped.
    """
    with interruptible("the same command continues", "stopped"):
        yield


@contextmanager
def interruptible(outcome: str, by_key: str) -> Iterator[None]:
    """
    Raises:
        Interrupted: stopped by SIGTERM or Ctrl-C; the message ends in the outcome.
    """
    try:
        yield
    except Terminated:
        raise Interrupted(f"stopped by SIGTERM; {outcome}", 143) from None
    except KeyboardInterrupt:
        raise Interrupted(f"{by_key}; {outcome}") from None


@contextmanager
def progress_bar(what: str, *, left: bool = False) -> Iterator[Show]:
    """A bar on stderr, gone when the work is done; where that is no terminal, a line now and then.

    `left` adds the time that is left, for work whose parts take about as long as each other.
    """
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.fields[what]}", markup=False), BarColumn(),
        TextColumn("{task.description}", markup=False), TimeElapsedColumn(),
        *([TextColumn("left"), TimeRemainingColumn()] if left else []),
    )  # fmt: skip
    bar = Progress(*columns, console=console, transient=True)
    with bar if console.is_terminal else nullcontext():  # older Rich ends it by an empty line
        task = bar.add_task("starting", total=None, what=printable(what))
        last_line = time.monotonic()

        def show(what: str, done: int, total: int, more: str) -> None:
            nonlocal last_line
            bar.update(task, what=printable(what), description=printable(more), completed=done, total=total)
            if not console.is_terminal and time.monotonic() - last_line > PLAIN_SECONDS:
                last_line = time.monotonic()
                say(f"{what}, {done / max(total, 1):.0%}{more and f': {more}'}", err=True)

        yield show


@contextmanager
def metric_progress(what: str = "scoring", metrics: Collection[str] = ()) -> Iterator[Callable[[str, int, int], None]]:
    """A bar for what has a name while it is done, such as metrics; it says so where numba compiles one.

    The kernels of `metrics` are compiled by a second process meanwhile.
    """
    from numba.core.event import Listener, install_listener  # what is scored needs numba as well

    from unbraid.cli._ahead import compiled_ahead

    at = "", 0, 0

    class Compiling(Listener):
        def on_start(self, event: object) -> None:  # noqa: ARG002
            name, done, total = at
            show(what, done, total, f"{done}/{total} {name}, compiled once")

        def on_end(self, event: object) -> None:
            pass

    with progress_bar(what, left=True) as show:

        def progress(name: str, done: int, total: int) -> None:
            nonlocal at
            at = name, done, total
            show(what, done, total, f"{done}/{total} {name}")
            wait(name)

        with install_listener("numba:compile", Compiling()), compiled_ahead(metrics) as wait:
            yield progress


@contextmanager
def stage_progress(first: str) -> Iterator[Callable[[str, int, int], None]]:
    """A bar for one kind of work after the other, told (what is done, done, all)."""
    with progress_bar(first) as show:
        yield lambda what, done, total: show(what, done, total, f"{done}/{total}")


@contextmanager
def reading_progress(what: str, *, megabytes: bool = False) -> Iterator[Callable[[int, int], None]]:
    """A bar for what is counted: images, or bytes in megabytes."""
    with progress_bar(what, left=True) as show:
        if megabytes:
            yield lambda done, total: show(what, done, total, f"{done / 1e6:,.1f}/{total / 1e6:,.1f} MB")
        else:
            yield lambda done, total: show(what, done, total, f"{done:,}/{total:,}")


# Estimates of the beta-TCVAE from one batch: their bias is log n_train for each latent, so that only the sum is a KL.
KL_PARTS = ("index_code_information", "total_correlation", "dimension_wise_kl")


def readable(logs: Mapping[str, float]) -> dict[str, float]:
    """The numbers that say something by themselves; the curves of a run hold all."""
    biased = KL_PARTS if "dimension_wise_kl" in logs else ()
    return {name: value for name, value in logs.items() if name not in biased}


class Pace:
    """Steps per second of this session, of all runs together; what checkpoints held does not count."""

    def __init__(self) -> None:
        self.done = 0
        self._first: dict[int | str, int] = {}
        self._gained: dict[int | str, int] = {}
        self._began = 0.0

    def line(
        self,
        done: int,
        total: int,
        steps: Mapping[Any, int],
        logs: Mapping[str, float],
        activities: Iterable[str] = (),
    ) -> str:
        """Such as "51.2 steps/s, 0:12:03 left, loss/vae 41.3, kl 12.0"; no time once all steps are taken."""
        now = time.monotonic()
        for run, step in steps.items():
            self._began = self._began or now
            self._gained[run] = step - self._first.setdefault(run, step)
        self.done = done + sum(steps.values())
        gained, seconds = sum(self._gained.values()), now - self._began
        parts = []
        if gained and seconds and self.done < total:
            minutes, rest = divmod(round((total - self.done) * seconds / gained), 60)
            parts += [f"{gained / seconds:.1f} steps/s", f"{minutes // 60}:{minutes % 60:02}:{rest:02} left"]
        parts += [f"{name} {value:.4g}" for name, value in readable(logs).items()]
        parts += activities
        return ", ".join(parts) or "starting"
