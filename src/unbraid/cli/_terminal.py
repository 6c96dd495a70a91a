"""Where commands print: nothing is cut in a pipe, and no text of a file steers the terminal."""

import os
import sys
from collections.abc import Iterator
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from unbraid._utils.repr import printable

UNCUT = 10_000  # characters of a line that goes into a pipe or a file


class Terminal(Console):
    """The terminal; a pipe or a file, which has no width of its own unless COLUMNS gives it one, cuts nothing."""

    def __init__(self, **options: Any) -> None:
        piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
        super().__init__(**{"markup": False, **({"width": UNCUT} if piped else {}), **options})

    def print(self, *objects: Any, **options: Any) -> None:
        """As rich does, with what controls a terminal as text."""
        shown = [printable(each, keep="\n") if isinstance(each, str) else _Printable(each) for each in objects]
        # What marks numbers and paths takes minutes where a word has a million letters.
        if any(isinstance(each, str) and len(each) > UNCUT for each in shown):
            options["highlight"] = False
        super().print(*shown, **options)


class _Printable:
    def __init__(self, inner: RenderableType) -> None:
        self.inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for segment in console.render(self.inner, options):
            yield segment if segment.control else Segment(printable(segment.text, keep="\n"), segment.style)
