"""How long work still takes: on a bar in a terminal, on one line in a notebook, in a line now and then in a log."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from unbraid.base.printable import printable

LOG_SECONDS = 10.0  # between two lines where there is no terminal to draw a bar on
NOTEBOOK_SECONDS = 1.0
TRUST = 0.05  # share of all expected seconds that count as if they had passed as expected: first steps may be slow


class Forecast:
    """Time left of a round of steps, by its own pace, and of what is expected to follow it at the same pace."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = self._reported = clock()
        self._done = self._skipped = self._total = 0
        self._costs: Sequence[float] = ()
        self._later = 0.0

    def expect(self, costs: Sequence[float], later: float = 0.0) -> None:
        """A new round: seconds that its steps may take, and those of all that follows it."""
        self._begin(0, len(costs))
        self._reported = self._began
        self._costs, self._later = costs, later

    def update(self, done: int, total: int, skipped: int | None = None) -> None:
        """So many steps are done, of which some were done before the work began; fewer, or of another total: a new
        round.
        """
        if total != self._total or done < self._done:
            self._begin(done, total, known=skipped is not None)
        if skipped is not None:
            self._skipped = skipped
        self._done, self._reported = done, self._clock()

    def _begin(self, done: int, total: int, *, known: bool = False) -> None:
        if known or self._total or not done:  # else all this was done since the bar was made
            self._began, self._skipped = self._clock(), done
        self._done, self._total = done, total
        self._costs, self._later = (), 0.0

    @property
    def seconds(self) -> float | None:
        """Time left now; None where it is not known."""
        spent = self._reported - self._began
        if self._costs:
            gained, rest = sum(self._costs[: self._done]), sum(self._costs[self._done :]) + self._later
            trust = TRUST * (gained + rest)
        else:
            gained, rest, trust = self._done - self._skipped, self._total - self._done, 0.0
        if not gained + trust:
            return None
        left = rest * (spent + trust) / (gained + trust) - (self._clock() - self._reported)
        return left if left > 0 else None

    @property
    def text(self) -> str:
        """Such as "0:12:03 left"; nothing where it is not known."""
        if (seconds := self.seconds) is None:
            return ""
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes // 60}:{minutes % 60:02}:{rest:02} left"


class Pace:
    """Steps per second of this session, of all runs together; what checkpoints held does not count."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._first: dict[int | str, int] = {}
        self._gained: dict[int | str, int] = {}
        self._began = 0.0

    def report(
        self, done: int, total: int, steps: Mapping[Any, int], logs: Mapping[str, float], activities: Iterable[str] = ()
    ) -> tuple[int, int, str, int]:
        """Steps done, in all and before this session, and such as "51.2 steps/s, loss/vae 41.3, kl 12.0".

        Until a first step is reported none are known of.
        """
        now = self._clock()
        for run, step in steps.items():
            self._began = self._began or now
            self._gained[run] = step - self._first.setdefault(run, step)
        done += sum(steps.values())
        gained, seconds = sum(self._gained.values()), now - self._began
        parts = [f"{gained / seconds:.1f} steps/s"] if gained and seconds and done < total else []
        parts += [*(f"{name} {value:.4g}" for name, value in logs.items()), *activities]
        return done, total if self._began else 0, ", ".join(parts) or "starting", done - gained


class ProgressBar:
    """What is going on, for a bar or a line; `progress=` of every function of this package takes one."""

    def __init__(self, title: str) -> None:
        self.title = self.what = title
        self.detail, self.done, self.total = "starting", 0, 0
        self.forecast, self.pace = Forecast(), Pace()
        self.draw: Callable[[], None] | None = None

    def __call__(self, *report: Any) -> None:
        """(name, done, total), (done, total), or how far a training or a study is."""
        if len(report) == 1:
            report[0].show_on(self)
        else:
            *names, done, total = report
            self.show(self.title, done, total, " ".join([f"{done:,}/{total:,}", *names]))

    def expect(self, costs: Sequence[float], later: float = 0.0) -> None:
        """Seconds that the steps to come may take, and those of all that follows them."""
        self.forecast.expect(costs, later)

    def show(self, what: str, done: int, total: int, detail: str, skipped: int | None = None) -> None:
        """What is done, how much of it, in all, what else is known, and what was done before."""
        self.what, self.done, self.total, self.detail = printable(what), done, total, printable(detail)
        self.forecast.update(done, total, skipped)
        if self.draw is not None:
            self.draw()

    @property
    def line(self) -> str:
        """Such as "scoring, 15%, 0:01:10 left: 3/20 sap"."""
        share = f"{self.done / self.total:.0%}" if self.total else ""
        known = ", ".join(filter(None, (self.what, share, self.forecast.text)))
        return f"{known}: {self.detail}" if self.detail else known


class _Left(ProgressColumn):
    def __init__(self, forecast: Forecast) -> None:
        super().__init__()
        self._forecast = forecast

    def render(self, task: Task) -> Text:  # noqa: ARG002
        return Text(self._forecast.text)


@contextmanager
def shown(bar: ProgressBar) -> Iterator[None]:
    """On stderr: a bar that is gone when the work is done, one line of a notebook, or every ten seconds a line."""
    console = Console(stderr=True)
    if console.is_terminal and not console.is_jupyter:
        columns = (
            TextColumn("{task.fields[what]}", markup=False), BarColumn(),
            TextColumn("{task.description}", markup=False), TimeElapsedColumn(), _Left(bar.forecast),
        )  # fmt: skip
        with Progress(*columns, console=console, transient=True) as terminal:
            task = terminal.add_task(bar.detail, total=None, what=bar.what)

            def draw() -> None:
                total = bar.total or None
                terminal.update(task, what=bar.what, description=bar.detail, completed=bar.done, total=total)

            bar.draw = draw
            yield
        return
    seconds, begin, end = (NOTEBOOK_SECONDS, "\r", " " * 40) if console.is_jupyter else (LOG_SECONDS, "", "\n")
    ended = Event()

    def write_lines() -> None:
        while not ended.wait(seconds):
            print(begin + bar.line, end=end, file=sys.stderr, flush=True)

    writing = Thread(target=write_lines, daemon=True)
    writing.start()
    try:
        yield
    finally:
        ended.set()
        writing.join()


@contextmanager
def progress_bar(title: str) -> Iterator[ProgressBar]:
    """Show how long work still takes, on stderr: a bar in a terminal, a line in a notebook, or one in ten seconds.

    Args:
        title: what is going on.

    Yields:
        what `progress=` of the functions of this package takes.

    Example:
        >>> with progress_bar("scoring") as progress:
        ...     progress("mig", 0, 4)
        >>> progress.line
        'scoring, 0%: 0/4 mig'
    """
    bar = ProgressBar(title)
    with shown(bar):
        yield bar
