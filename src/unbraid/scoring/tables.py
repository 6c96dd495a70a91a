"""Scores of one or several models as a table for a paper: LaTeX, Markdown or CSV."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from unbraid._utils.repr import WITHIN
from unbraid._version import VERSION
from unbraid.confidence.baselines import MARK, no_better
from unbraid.storage.files import atomic_write

if TYPE_CHECKING:
    from unbraid.scoring.card import ScoreCard, Scored

Rows = Sequence[Sequence[str]]
FORMATS = (".tex", ".md", ".csv")
WITHIN_NULL = "°"  # beside a score that is not told from those of shuffled rows
ESCAPED = str.maketrans(
    {each: f"\\{each}" for each in "&%$#_{}"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}
)
SYMBOLS = {
    "↑": r"$\uparrow$", "↓": r"$\downarrow$", "±": r"$\pm$", "−": "$-$", "β": r"$\beta$", "Δ": r"$\Delta$",
    "°": r"$^\circ$", "†": r"$^\dagger$", "×": r"$\times$",
}  # fmt: skip


def compare(cards: "Mapping[str, ScoreCard]", *, digits: int = 3) -> tuple[list[str], list[list[str]]]:
    """Headlines side by side: a row for each metric, a column for each model, and their mean ± standard deviation.

    Args:
        cards: by the name of the model.
        digits: after the point.

    Returns:
        The head and the rows, as text. The deviation is that of a sample (divided by n - 1), over the models that have
        the metric; what a model lacks is "-". Arrows say which way is better. A score that has an interval is given
        ± half of it, and one that is not told from its null, or no
        better than its best baseline, has a mark; `footnote` explains all of it.
    """
    metrics = list(dict.fromkeys(name for card in cards.values() for name in card))
    rows = []
    for name in metrics:
        scored = [card.scored.get(name) for card in cards.values()]
        numbers = [each.headline for each in scored if each is not None]
        better = next(each.metric.higher_is_better for each in scored if each is not None)
        row = [f"{name} {'↑' if better else '↓'}"]
        row += ["-" if each is None else _score(each, digits) for each in scored]
        if len(cards) > 1:
            spread = f" ± {np.std(numbers, ddof=1):.{digits}f}" if len(numbers) > 1 else ""
            row.append(f"{np.mean(numbers):.{digits}f}{spread}")
        rows.append(row)
    return ["metric", *cards, *(["mean ± sd"] if len(cards) > 1 else [])], rows


def _score(scored: "Scored", digits: int) -> str:
    known = scored.intervals and scored.intervals.values.get(scored.metric.headline)
    reach = f" ± {known.half_width:.{digits}f}" if known else ""
    within = scored.null is not None and scored.null.p > WITHIN
    marks = WITHIN_NULL if within else ""
    marks += MARK if no_better(scored.metric.higher_is_better, scored.headline, scored.baselines) else ""
    return f"{scored.headline:.{digits}f}{reach}{marks}"


def footnote(cards: "Mapping[str, ScoreCard]") -> str:
    """What a reader of the table of `compare` must know: rows, seed, version, and what its marks say."""
    scored = [each for card in cards.values() for each in card.scored.values()]
    rows = sorted({card.n_samples for card in cards.values()})
    seeds = sorted({card.seed for card in cards.values()})
    said = [f"{' or '.join(f'{size:,}' for size in rows)} rows"]
    confidences = sorted({each.intervals.confidence for each in scored if each.intervals is not None})
    if confidences:
        percent = " or ".join(f"{100 * each:g}" for each in confidences)
        said.append(f"± half of the {percent} % interval for the mean on fresh rows, as many")
    said += unchecked(cards)
    if nulls := dict.fromkeys(each.null.of_what for each in scored if each.null is not None):
        said.append(f"{WITHIN_NULL} not told from {' or '.join(nulls)} (p > {WITHIN:g})")
    if beside := dict.fromkeys(name for each in scored for name in each.baselines):
        said.append(f"{MARK} no better than the best of {', '.join(beside)}")
    said.append(f"seed {', '.join(map(str, seeds))} of the metrics")
    return f"{'; '.join(said)}; unbraid {VERSION}."


def unchecked(cards: "Mapping[str, ScoreCard]") -> list[str]:
    """What a table of intervals has to say of those that no simulation has checked; nothing where there are none."""
    names = dict.fromkeys(name for card in cards.values() for name, each in card.scored.items() if each.unchecked)
    return [f"intervals not validated: {', '.join(names)}"] if names else []


def save_table(path: str | Path, head: Sequence[str], rows: Rows, *, foot: str = "") -> None:
    """Write a table; the suffix decides: .tex (booktabs), .md or .csv. Whole or not at all.

    Cells between ** are set in bold; `foot` stands below the table. Neither is for .csv.

    Raises:
        ValueError: the suffix is another.
        FileNotFoundError: the folder does not exist.
    """
    text = table_text(path, head, rows, foot=foot)
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def table_text(path: str | Path, head: Sequence[str], rows: Rows, *, foot: str = "") -> str:
    """What `save_table` writes to a file of this name, or a ValueError where the suffix is another."""
    write = {".tex": latex, ".md": markdown, ".csv": comma_separated}.get(Path(path).suffix)
    if write is None:
        raise ValueError(f"{path}: a table is saved as {', '.join(FORMATS)}")
    return write(head, rows) if write is comma_separated else write(head, rows, foot)


def latex(head: Sequence[str], rows: Rows, foot: str = "") -> str:
    """A tabular environment that needs the package booktabs."""
    lines = [" & ".join(_escaped(cell) for cell in row) + r" \\" for row in (head, *rows)]
    columns = "l" + "r" * (len(head) - 1)
    body = "\n".join(lines[1:])
    below = f"\\multicolumn{{{len(head)}}}{{l}}{{\\footnotesize {_escaped(foot)}}} \\\\\n" if foot else ""
    return (
        f"\\begin{{tabular}}{{{columns}}}\n\\toprule\n{lines[0]}\n\\midrule\n{body}\n\\bottomrule\n{below}"
        "\\end{tabular}\n"
    )


def markdown(head: Sequence[str], rows: Rows, foot: str = "") -> str:
    """A table as GitHub and most editors read it."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "".join(
        "| " + " | ".join(_one_line(cell).replace("|", r"\|") for cell in row) + " |\n" for row in (head, rule, *rows)
    ) + (f"\n{_one_line(foot)}\n" if foot else "")


def comma_separated(head: Sequence[str], rows: Rows) -> str:
    """Comma-separated values with a head."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([head, *([plain(cell) for cell in row] for row in rows)])
    return text.getvalue()


def plain(cell: str) -> str:
    """A cell without the marks of bold."""
    return cell[2:-2] if is_bold(cell) else cell


def is_bold(cell: str) -> bool:
    """Whether a cell is marked to be set in bold."""
    return len(cell) > 4 and cell.startswith("**") and cell.endswith("**")


def _escaped(cell: str) -> str:
    if is_bold(cell):
        return f"\\textbf{{{_escaped(plain(cell))}}}"
    text = _one_line(cell).translate(ESCAPED)
    for symbol, command in SYMBOLS.items():
        text = text.replace(symbol, command)
    return text


def _one_line(cell: str) -> str:
    return " ".join(cell.split())
