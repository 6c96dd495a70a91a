"""How a score card is printed: a line for each metric, what else it says below."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.padding import Padding

from unbraid.base.counted import counted
from unbraid.base.repr import WITHIN, p_text
from unbraid.cli.show_command import Terminal, say
from unbraid.scoring.baselines import baseline_notes, no_better

if TYPE_CHECKING:
    from unbraid.scoring.card import ScoreCard, Scored


def print_card(card: "ScoreCard", half_width: float | None) -> None:
    """Print the card, and how many rows an interval of this half width takes."""
    from unbraid.metrics import by_question

    described = card.to_dict()["input"]
    factors = ", ".join(
        f"{factor['name']} ({factor['kind']}" + (f", {factor['size']})" if factor["size"] else ")")
        for factor in described["factors"]
    )
    console = Terminal()
    n_codes = described.get("of_codes") or described["n_codes"]
    size = f"{counted(described['n_samples'], 'sample')}, {counted(n_codes, 'code')}"
    console.print(f"{card.path}\n{size}; factors: {factors}\n")
    needed = {} if half_width is None else card.rows_needed(half_width)
    nulls = [scored.null for scored in card.scored.values() if scored.null is not None]
    confidence = next(
        (scored.intervals.confidence for scored in card.scored.values() if scored.intervals is not None), None
    )
    between = "{}" if confidence is None else "{:>18}   "
    row = "{:<22}{:>8}   " + between + ("{:>15}{:>8}{:>9}   " if nulls else "{}{}{}") + "{:<8}{}"
    heads = (
        "" if confidence is None else f"{100 * confidence:g} % between",
        *(("shifted" if nulls[0].moved == "shift" else "shuffled", "above", "p  ") if nulls else ("", "", "")),
    )
    console.print(row.format("metric", "score", *heads, "better", "range"), style="bold", highlight=False)
    notes = card.row_notes()
    groups = by_question({name: scored.metric for name, scored in card.scored.items()})
    for question, _, names in groups:
        if len(groups) > 1:
            console.print(f"\n{question}", style="bold", highlight=False)
        for name in names:
            _print_one(console, row, name, card.scored[name], notes[name], needed, half_width)
    if len(groups) > 1 and (card.skipped or card.failed):
        console.print()
    for reason, names in card.skipped_by_reason().items():
        if len(names) == 1:
            console.print(row.format(names[0], "-", "", "", "", "", "", f"not defined here: {reason}"), highlight=False)
        else:
            console.print(f"not defined here: {', '.join(names)}", highlight=False)
            console.print(Padding(reason, (0, 0, 0, 4), expand=False), highlight=False)
    for name, failure in card.failed.items():
        console.print(row.format(name, "-", "", "", "", "", "", f"failed: {failure.reason}"), highlight=False)
    for note in card.note_lines():
        say(f"note: {note}")


def _print_one(
    console: Terminal,
    row: str,
    name: str,
    scored: "Scored",
    notes: Sequence[str],
    needed: Mapping[str, int],
    half_width: float | None,
) -> None:
    metric = scored.metric
    better = "higher" if metric.higher_is_better else "lower"
    span = "{:g} to {:g}".format(*metric.range).replace("inf", "∞")
    numbers = (f"{scored.headline:z.3f}", _ends(scored, metric.headline), *_null(scored))
    console.print(row.format(name, *numbers, better, span), highlight=False)
    value_texts = [
        f"{value} {number:z.3f} {_ends(scored, value, '({})')}".rstrip()
        for value, number in scored.values.items()
        if value != metric.headline
    ]
    on_baselines = baseline_notes(metric.higher_is_better, scored.headline, scored.baselines)
    notes = [note for note in notes if (scored.null is None or note != scored.null.note) and note not in on_baselines]
    for line in on_baselines:
        mark = "! " if no_better(metric.higher_is_better, scored.headline, scored.baselines) else ""
        console.print(Padding(f"{mark}{line}", (0, 0, 0, 4), expand=False), highlight=False)
    if scored.null is not None and scored.null.moved == "shift":
        value_texts.append(f"middle half of the rows, which shifts are compared with, {scored.null.score:z.3f}")
    for line in ([", ".join(value_texts)] if value_texts else []) + notes:
        console.print(Padding(line, (0, 0, 0, 4), expand=False), style="dim", highlight=False)
    if name in needed:
        line = f"{needed[name]:,} rows for ± {half_width:g}"
        console.print(Padding(line, (0, 0, 0, 4), expand=False), highlight=False)


def _ends(scored: "Scored", value: str, around: str = "{}") -> str:
    """The interval of one of its values, "" where it has none."""
    interval = None if scored.intervals is None else scored.intervals.values.get(value)
    return "" if interval is None else around.format(f"{interval.low:z.3f} to {interval.high:z.3f}")


def _null(scored: "Scored") -> tuple[str, str, str]:
    """What moved rows score, how far above that it lies, and the p-value, marked where it is not told from them."""
    if scored.null is None:
        return "", "", ""
    null, mark = scored.null, "!" if scored.null.p > WITHIN else " "
    above = "-" if null.above is None else f"{null.above:z.3f}"
    return f"{null.mean:z.3f} ± {null.spread:z.3f}", above, f"{p_text(null.p)} {mark}"
