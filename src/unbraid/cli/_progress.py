"""The line on the terminal that says which metric is at work."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


@contextmanager
def metric_progress() -> Iterator[Callable[[str, int, int], None]]:
    """A bar on stderr, gone when the work is done; silent where stderr is no terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("scoring"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    silent = not console.is_terminal
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True, disable=silent) as bar:
        task = bar.add_task("", total=None)

        def at_work(name: str, done: int, total: int) -> None:
            bar.update(task, description=name, completed=done, total=total)

        yield at_work
