"""A score card as text: the answer, then one line per metric, and below them what changes how a number is read."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from unbraid.base.repr import WITHIN, p_text
from unbraid.metrics import by_question
from unbraid.scoring.baselines import NO_BETTER, baseline_notes, no_better
from unbraid.scoring.diagnosis import wrapped
from unbraid.scoring.scored import Scored

ScoreCard: TypeAlias = Any  # `unbraid.scoring.card` imports this file


def card_text(card: ScoreCard, *, details: bool = False, half_width: float | None = None) -> str:
    """The diagnosis, the table of metrics and numbered footnotes.

    Args:
        card: of scores.
        details: the questions that metrics answer as headings, and below each metric its other values and all notes.
        half_width: of an interval; each line ends with the rows that it takes.
    """
    needed = {} if half_width is None else card.rows_needed(half_width)
    rows = {name: _cells(card, scored) for name, scored in card.scored.items()}
    footnotes, numbers_of = ([], {}) if details else _footnotes(card)
    for name, numbers in numbers_of.items():
        rows[name][-1] += "  " + " ".join(f"[{number}]" for number in numbers)
    for name, count in needed.items():
        rows[name][-1] += f"  {count:,} rows for ± {half_width:g}"
    lines = [] if card.diagnosis is None else [str(card.diagnosis), ""]
    if details:
        factors = zip(card.representation.names, card.representation.kinds, strict=True)
        lines = [*wrapped(f"factors: {', '.join(f'{name} ({kind})' for name, kind in factors)}", 4), *lines]
    lines += _table(card, rows, details=details) if rows else []
    lines += [*_marks(card), *_without_score(card)]
    lines += [line for number, note in enumerate(footnotes, 1) for line in wrapped(f"[{number}] {note}", 4)]
    lines += [line for note in (card.note_lines() if details else card.notes) for line in wrapped(f"note: {note}", 6)]
    return "\n".join(lines)


def _cells(card: ScoreCard, scored: Scored) -> list[str]:
    """One line of the table, cell by cell."""
    metric, interval, null = scored.metric, None, scored.null
    if scored.intervals is not None:
        interval = scored.intervals.values.get(metric.headline)
    cells = [f"{scored.headline:z.3f}"]
    if any(each.intervals is not None for each in card.scored.values()):
        cells.append("" if interval is None else f"{interval.low:z.3f} to {interval.high:z.3f}")
    if any(each.null is not None for each in card.scored.values()):
        cells += ["", "", ""] if null is None else [
            f"{null.mean:z.3f} ± {null.spread:z.3f}", "-" if null.above is None else f"{null.above:z.3f}",
            p_text(null.p) + (" !" if null.p > WITHIN else "  "),
        ]  # fmt: skip
    for name in _baselines(card):
        score = scored.baselines.get(name)
        mark = " !" if no_better(metric.higher_is_better, scored.headline, scored.baselines) else "  "
        cells.append("" if score is None else f"{score:z.3f}{mark}")
    span = "{:g} to {:g}".format(*metric.range).replace("inf", "∞")
    return [*cells, "higher" if metric.higher_is_better else "lower", span]


def _marks(card: ScoreCard) -> list[str]:
    """What "!" means, where a line has one."""
    scored = card.scored.values()
    lines = []
    if any(each.null is not None and each.null.p > WITHIN for each in scored):
        lines.append(f"! after p: not significant (p > {WITHIN:g})")
    if any(no_better(each.metric.higher_is_better, each.headline, each.baselines) for each in scored):
        lines.append(f"! after a baseline: {NO_BETTER}")
    return lines


def _baselines(card: ScoreCard) -> list[str]:
    return list(dict.fromkeys(name for scored in card.scored.values() for name in scored.baselines))


def _heads(card: ScoreCard) -> list[str]:
    heads = ["score"]
    confidences = [each.intervals.confidence for each in card.scored.values() if each.intervals is not None]
    nulls = [each.null for each in card.scored.values() if each.null is not None]
    heads += [f"{100 * confidences[0]:g} % between"] if confidences else []
    heads += ["shifted" if nulls[0].moved == "shift" else "shuffled", "above", "p  "] if nulls else []
    return [*heads, *_baselines(card), "better", "range"]


def _table(card: ScoreCard, rows: dict[str, list[str]], *, details: bool) -> list[str]:
    heads = _heads(card)
    widths = [
        max(len(cells[column].split("  [")[0]) for cells in [heads, *rows.values()]) for column in range(len(heads))
    ]
    first = max(map(len, ["metric", *rows]))

    def line(name: str, cells: Sequence[str]) -> str:
        numbers = [f"{cell:>{width}}" for cell, width in zip(cells[:-2], widths, strict=False)]
        return "   ".join([f"{name:<{first}}", *numbers, f"{cells[-2]:<6}", cells[-1]]).rstrip()

    lines, notes = [line("metric", heads)], card.row_notes()
    for question, _, names in by_question({name: card.scored[name].metric for name in rows}):
        lines += ["", question] if details else []
        for name in names:
            lines.append(line(name, rows[name]))
            lines += _details(card.scored[name], notes[name]) if details else []
    return lines


def _details(scored: Scored, notes: Sequence[str]) -> list[str]:
    """Its other values and notes, indented; what stands in columns of its own is left out."""
    intervals = {} if scored.intervals is None else scored.intervals.values
    values = []
    for name, number in scored.values.items():
        if name != scored.metric.headline:
            ends = intervals.get(name)
            values.append(f"{name} {number:z.3f}" + ("" if ends is None else f" ({ends.low:z.3f} to {ends.high:z.3f})"))
    if scored.null is not None and scored.null.moved == "shift":
        values.append(f"middle half of the rows, which shifts are compared with, {scored.null.score:z.3f}")
    columns = {*baseline_notes(scored.metric.higher_is_better, scored.headline, scored.baselines)}
    columns |= set() if scored.null is None else {scored.null.note}
    texts = ([", ".join(values)] if values else []) + [note for note in notes if note not in columns]
    return [line for text in texts for line in wrapped(f"    {text}", 4)]


def _footnotes(card: ScoreCard) -> tuple[list[str], dict[str, list[int]]]:
    """What changes how a number is read, once each, and the numbers of those of each metric."""
    notes: dict[str, list[str]] = {}
    for name, scored in card.scored.items():
        for warning in scored.warnings:
            notes.setdefault(warning, []).append(name)
    numbers = {name: [] for name in card.scored}
    for number, metrics in enumerate(notes.values(), 1):
        for name in metrics:
            numbers[name].append(number)
    return list(notes), {name: own for name, own in numbers.items() if own}


def _without_score(card: ScoreCard) -> list[str]:
    lines = []
    for reason, names in card.skipped_by_reason().items():
        lines += wrapped(f"{', '.join(names)}   not defined here: {reason}", 4)
    for name, failure in card.failed.items():
        lines += wrapped(f"{name}   failed: {failure.reason}", 4)
    return lines
