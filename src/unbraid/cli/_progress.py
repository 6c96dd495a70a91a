"""What the terminal says while work goes on."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from unbraid.base.progress_bar import ProgressBar, progress_bar, shown
from unbraid.base.signals import Terminated, saving

COMPILED = ", compiled once"


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
    with saving(), interruptible("the same command continues", "stopped"):
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
def metric_progress(title: str = "scoring", metrics: Collection[str] = ()) -> Iterator[ProgressBar]:
    """A bar for what has a name while it is done, such as metrics; it says so where numba compiles one.

    The kernels of `metrics` are compiled by a second process meanwhile.
    """
    from unbraid.cli._ahead import compile_seconds, compiled_ahead
    from unbraid.metrics._shared.compiled import before_compiling

    def compiling() -> None:
        if not bar.detail.endswith(COMPILED):
            bar.detail += COMPILED

    class MetricBar(ProgressBar):
        def __call__(self, *report: Any) -> None:
            super().__call__(*report)
            wait(report[0])

        def expect(self, costs: Sequence[float], later: float = 0.0) -> None:
            if len(costs) == len(metrics):
                costs = [sum(seconds) for seconds in zip(costs, compile_seconds(metrics), strict=True)]
            super().expect(costs, later)

    bar = MetricBar(title)
    with shown(bar), compiled_ahead(metrics) as wait:
        before_compiling.append(compiling)
        try:
            yield bar
        finally:
            before_compiling.remove(compiling)


@contextmanager
def stage_progress(first: str) -> Iterator[Callable[[str, int, int], None]]:
    """A bar for one kind of work after the other, told (what is done, done, all)."""
    with progress_bar(first) as bar:
        yield lambda what, done, total: bar.show(what, done, total, f"{done}/{total}")


@contextmanager
def megabytes_progress(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar for what is counted in bytes."""
    with progress_bar(title) as bar:
        yield lambda done, total: bar.show(title, done, total, f"{done / 1e6:,.1f}/{total / 1e6:,.1f} MB")
