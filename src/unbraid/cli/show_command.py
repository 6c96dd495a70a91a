"""Where commands show what they found: on the terminal, and in the files of --csv, --latex, --markdown and --json."""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table as RichTable
from rich.text import Text

from unbraid.base.printable import printable
from unbraid.cli._options import STDOUT, Files
from unbraid.files.table_formats import Table, is_bold, json_text, plain, table_text
from unbraid.files.whole_files import write_text

UNCUT = 10_000  # characters of a line that goes into a pipe or a file
BREAKABLE = 28  # characters of a text that is never broken
BETWEEN = 3  # characters between two columns


def show(
    shown: Table | Sequence[Table | str],
    files: Files,
    *,
    content: Any = None,
    rows: Table | None = None,
    paper: Table | None = None,
    html: str | None = None,
) -> None:
    """Write the files that are asked for, and print tables and lines; if one of the files is -, that alone.

    Args:
        shown: what a reader of the terminal sees, in this order.
        files: what the options name.
        content: everything known, for --json; default the rows.
        rows: for --csv; default the first table.
        paper: for --latex and --markdown; default the first table.
        html: a page.
    """
    parts = [shown] if isinstance(shown, Table) else list(shown)
    first = next((part for part in parts if isinstance(part, Table)), Table([], []))
    texts: dict[Path, str] = {}  # all are made before the first is written, so that what fails leaves none
    for suffix, path in files.by_suffix.items():
        if suffix == ".html":
            texts[path] = html or ""
        elif suffix == ".json" and content is not None:
            texts[path] = json_text(content)
        else:
            texts[path] = table_text((rows if suffix in (".csv", ".json") else paper) or first, suffix)
    for path, text in texts.items():
        if path == STDOUT:
            say(text.rstrip("\n"))
            continue
        write_text(path, text)
    if not files.printed:
        for part in parts:
            print_table(part) if isinstance(part, Table) else print_line(part)
    for path in texts:
        if path != STDOUT:
            say(f"wrote {path}", err=True)


def say(text: object = "", *, err: bool = False) -> None:
    """Print a text; what would steer the terminal is written out."""
    typer.echo(printable(str(text), keep="\n\t"), err=err)


def print_line(line: str, console: Console | None = None) -> None:
    """Print a line as long as it is."""
    (console or Terminal()).print(printable(line), markup=False, highlight=False, soft_wrap=True)


def print_table(table: Table, console: Console | None = None) -> None:
    """Print a table with its notes; columns that do not fit stand in further tables below."""
    console = console or Terminal()
    heads, *rows = table.texts
    columns = list(zip(heads, *rows, strict=True))
    least = [_least(column, table.sides[place], place < table.keys) for place, column in enumerate(columns)]
    blocks = list(_blocks(least, table.keys, console.width))
    for number, block in enumerate(blocks if table.all_columns else blocks[:1]):
        title = table.title if number == 0 else ""
        shown = RichTable(
            box=SIMPLE_HEAD, pad_edge=False, title=title or None, title_justify="left", title_style="bold"
        )
        widths = _widths([columns[place] for place in block], [least[place] for place in block], console.width)
        for place, wide in zip(block, widths, strict=True):
            right = table.sides[place] == "r"
            shown.add_column(_styled(heads[place]), justify="right" if right else "left", overflow="fold", width=wide)
        shown_rows = [row for row in rows if number == 0 or any(row[place] for place in block[table.keys :])]
        for row in shown_rows:
            shown.add_row(*(_styled(row[place]) for place in block))
        if shown_rows or number == 0:
            console.print(shown)
    notes = [f"note: {note}" for note in table.notes]
    if not table.all_columns and (left := [heads[place] for block in blocks[1:] for place in block[table.keys :]]):
        notes.append(f"not shown: {', '.join(left)}; a wider terminal or --csv FILE has them")
    for note in notes:
        print_line(note, console)


def _widths(columns: Sequence[Sequence[str]], least: Sequence[int], room: int) -> list[int]:
    """As wide as its longest cell, or the widest columns narrower until all fit."""
    widths = [max(map(_longest, column)) for column in columns]
    places = range(len(widths))
    while _width(widths, places) > room:
        loose = [place for place in places if widths[place] > least[place]] or list(places)
        widest = max(loose, key=lambda place: widths[place])
        if widths[widest] <= 1:
            break
        widths[widest] -= 1
    return widths


def _blocks(least: Sequence[int], n_keys: int, room: int) -> Iterator[list[int]]:
    """Columns that fit beside each other, the keys before each."""
    keys, block = list(range(n_keys)), []
    for column in range(n_keys, len(least)):
        if block and _width(least, [*keys, *block, column]) > room:
            yield [*keys, *block]
            block = []
        block.append(column)
    yield [*keys, *block]


def _width(widths: Sequence[int], places: Sequence[int]) -> int:
    return sum(widths[place] for place in places) + BETWEEN * (len(places) - 1) + 2


def _longest(cell: str) -> int:
    return max(map(cell_len, cell.split("\n")))


def _least(column: Sequence[str], side: str, key: bool) -> int:
    """How narrow a column may be: numbers and short keys stay on one line, other texts are broken between words."""
    if side == "r":
        return max(1, *map(_longest, column[1:]), *map(cell_len, column[0].split()))
    if key and (whole := max(map(_longest, column))) <= BREAKABLE:
        return max(whole, 1)
    return min(BREAKABLE, max((cell_len(word) for cell in column for word in cell.split()), default=1))


def _styled(cell: str) -> Text:
    return Text(plain(cell), style="bold" if is_bold(cell) else "")


class Terminal(Console):
    """The terminal; a pipe or a file, which has no width of its own unless COLUMNS gives it one, cuts nothing."""

    def __init__(self, **options: Any) -> None:
        piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
        super().__init__(**{"markup": False, "emoji": False, **({"width": UNCUT} if piped else {}), **options})

    def print(self, *objects: Any, **options: Any) -> None:
        """As rich does, with what controls a terminal as text."""
        shown = [printable(part, keep="\n") if isinstance(part, str) else _Printable(part) for part in objects]
        # What marks numbers and paths takes minutes where a word has a million letters.
        if any(isinstance(part, str) and len(part) > UNCUT for part in shown):
            options["highlight"] = False
        super().print(*shown, **options)


class _Printable:
    def __init__(self, inner: RenderableType) -> None:
        self.inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for segment in console.render(self.inner, options):
            yield segment if segment.control else Segment(printable(segment.text, keep="\n"), segment.style)
