"""Tables as files for papers and programs: LaTeX, Markdown, CSV, JSON and Parquet."""

import csv
import io
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from unbraid.base.printable import printable
from unbraid.files.whole_files import atomic_write, write_text

if TYPE_CHECKING:
    from unbraid.base.types import DataFrame

FORMATS = (".tex", ".md", ".csv", ".json")
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


class Cell(NamedTuple):
    """What is shown in other words than a program reads it, such as "0.31 ± 0.02" for .312345."""

    text: str
    value: Any = None


@dataclass(frozen=True)
class Table:
    """Rows under headings. Cells and headings are text, numbers, None or a `Cell`; text between ** is bold.

    Readers see three digits of a number, programs all of them.
    """

    heads: Sequence[Any]
    rows: Sequence[Sequence[Any]]
    align: str = ""  # "l" or "r" for each column; default: the first to the left, the others to the right
    title: str = ""
    notes: Sequence[str] = ()  # below it
    keys: int = 1  # leading columns that say what a row is of
    all_columns: bool = True  # whether a narrow terminal shows them all, some below the others

    @property
    def sides(self) -> str:
        """`align`, with its default."""
        return self.align or "l" + "r" * (len(self.heads) - 1)

    @property
    def texts(self) -> list[list[str]]:
        """The headings and the rows as a reader sees them."""
        return [[text_of(cell) for cell in row] for row in (self.heads, *self.rows)]

    @property
    def values(self) -> list[list[Any]]:
        """The headings and the rows as a program reads them; None where there is nothing."""
        return [[value_of(cell) for cell in row] for row in (self.heads, *self.rows)]

    def first(self, n_rows: int | None) -> "Table":
        """The first rows alone, and a note on how many there are."""
        if n_rows is None or len(self.rows) <= n_rows:
            return self
        more = f"{len(self.rows) - n_rows} more; --rows {len(self.rows)} shows all"
        return replace(self, rows=self.rows[:n_rows], notes=(*self.notes, more))

    @property
    def records(self) -> list[dict[str, Any]]:
        """A dictionary for each row."""
        heads, *rows = self.values
        return [dict(zip(heads, row, strict=True)) for row in rows]


def table_of(frame: "DataFrame") -> Table:
    """A pandas DataFrame without its index."""
    cells = frame.astype(object).where(frame.notna(), None)
    return Table([str(name) for name in frame.columns], cells.to_numpy().tolist())


def text_of(cell: Any) -> str:
    """A cell as a reader sees it."""
    if isinstance(cell, Cell):
        return cell.text
    if isinstance(cell, float) and math.isfinite(cell):
        return f"{cell:z.3f}"
    return "-" if value_of(cell) is None else str(cell)


def value_of(cell: Any) -> Any:
    """A cell as a program reads it: numbers in full, no bold, None for what is not finite."""
    value = cell.value if isinstance(cell, Cell) else cell
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return plain(value) if isinstance(value, str) else value


def save_table(path: str | Path, table: Table) -> None:
    """Write a table; the suffix decides: .tex (booktabs), .md, .csv or .json. Whole or not at all.

    Raises:
        ValueError: the suffix is another.
        FileNotFoundError: the folder does not exist.
    """
    write_text(path, table_text(table, Path(path).suffix, path))


def save_frame(frame: "DataFrame", path: Path) -> None:
    """Write a pandas DataFrame as .csv or .parquet, every number in full; whole or not at all.

    Raises:
        ValueError: the suffix is another.
        FileNotFoundError: the folder does not exist.
    """
    if path.suffix not in (".csv", ".parquet"):
        raise ValueError(f"{path}: results are written as .csv or .parquet")
    with atomic_write(path) as temporary:
        if path.suffix == ".csv":
            temporary.write_text(comma_separated(table_of(frame)), encoding="utf-8")
        else:
            from unbraid.files.tables import write_parquet  # brings numpy, which a command that prints needs not

            write_parquet(frame, temporary)


def table_text(table: Table, suffix: str, path: str | Path = "") -> str:
    """The table in the format of a suffix, or a ValueError that names the path where there is no such format."""
    if suffix not in FORMATS:
        raise ValueError(f"{path}: a table is saved as {', '.join(FORMATS)}")
    return {".tex": latex, ".md": markdown, ".csv": comma_separated, ".json": json_records}[suffix](table)


# LaTeX

ESCAPED = str.maketrans(
    {character: f"\\{character}" for character in "&%$#_{}"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
)
SYMBOLS = {
    "↑": r"$\uparrow$", "↓": r"$\downarrow$", "±": r"$\pm$", "−": "$-$", "β": r"$\beta$", "Δ": r"$\Delta$",
    "°": r"$^\circ$", "†": r"$^\dagger$", "×": r"$\times$", "∞": r"$\infty$",
}  # fmt: skip


def latex(table: Table) -> str:
    """A tabular environment, its notes wrapped below it; needs the packages booktabs and adjustbox.

    A table wider than the text is scaled down to its width.
    """
    named = [head.replace("_", " ") for head in table.texts[0]]
    heads, *rows = [_begun(" & ".join(map(_escaped, row))) + r" \\" for row in (named, *table.texts[1:])]
    lines = [r"\begin{adjustbox}{max width=\linewidth}", f"\\begin{{tabular}}{{{table.sides}}}", r"\toprule"]
    lines += [heads, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}", r"\end{adjustbox}"]
    if table.notes:
        notes = r" \\ ".join(_begun(_escaped(note)) for note in table.notes)
        lines += ["", rf"\smallskip\noindent\parbox{{\linewidth}}{{\raggedright\footnotesize {notes}}}"]
    return "\n".join(lines) + "\n"


def _begun(row: str) -> str:
    r"""A row whose first letter is not read as an argument of the \\, \toprule or \midrule before it."""
    return f"{{{row[0]}}}{row[1:]}" if row.startswith(("[", "*")) else row


def _escaped(cell: str) -> str:
    if is_bold(cell):
        return f"\\textbf{{{_escaped(plain(cell))}}}"
    text = _one_line(cell).translate(ESCAPED)
    for symbol, command in SYMBOLS.items():
        text = text.replace(symbol, command)
    return text


# Markdown, CSV, JSON

# What a name may have that reads as markup, and no more of it, since tables are read as they are, too: not the _ within
# a word, nor a < before a number.
MARKUP = re.compile(
    r"[`|]|\\(?=[^\w\s]|$)|\*(?=\S)|(?<!\w)_+(?=\S)|<(?=[a-zA-Z/!?])|\[(?=[^]]*\]\()|&(?=#?\w+;)|~(?=~)"
)
ESCAPES = {"<": "&lt;"}  # some readers of Markdown take \< for a backslash before a tag


def markdown(table: Table) -> str:
    """A table as GitHub and most editors read it."""
    rule = ["---:" if side == "r" else "---" for side in table.sides]
    heads, *rows = [list(map(_marked_up, row)) for row in table.texts]
    lines = ["| " + " | ".join(row) + " |" for row in (heads, rule, *rows)]
    return "\n".join([*lines, *(f"\n{_marked_up(note)}" for note in table.notes)]) + "\n"


def _marked_up(text: str) -> str:
    if is_bold(text):
        return f"**{_marked_up(plain(text))}**"
    return MARKUP.sub(
        lambda match: ESCAPES.get(match[0]) or "".join(f"\\{character}" for character in match[0]), _one_line(text)
    )


def comma_separated(table: Table) -> str:
    """Comma-separated values with a heading; an empty cell where there is nothing.

    Text that a spreadsheet would run as a formula begins with ', which spreadsheets do not show.
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([map(_not_run, row) for row in table.values])
    return printable(text.getvalue(), keep="\n")


def _not_run(value: Any) -> Any:
    formula = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{value}" if formula and not NUMBER.fullmatch(value) else value


def json_records(table: Table) -> str:
    """A list with an object for each row."""
    return json_text(table.records)


def json_text(content: Any) -> str:
    """Indented JSON, every number finite."""
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def plain(cell: str) -> str:
    """A cell without the marks of bold."""
    return cell[2:-2] if is_bold(cell) else cell


def is_bold(cell: str) -> bool:
    """Whether a cell is marked to be set in bold."""
    return len(cell) > 4 and cell.startswith("**") and cell.endswith("**")


def _one_line(cell: str) -> str:
    return printable(" ".join(cell.split()))
