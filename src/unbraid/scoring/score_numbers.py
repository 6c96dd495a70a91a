"""The numbers of a score card, one by one: what every form in which they are shared begins with."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from unbraid.files.score_file import Decision, SavedInterval, SavedMetric, SavedScores
from unbraid.metrics import BLOCKED, Metric
from unbraid.metrics._shared.metric_arguments import find_metric

HEADS = ("metric", "value", "interval", "by chance", "better", "range")


@dataclass(frozen=True)
class Number:
    """A number of which one end is better."""

    metric: str
    name: str  # of the value, such as "completeness"
    value: float
    saved: SavedMetric
    known: Metric | None  # the row of the table; None of a metric of the user's own
    higher_is_better: bool
    decided: Decision  # what it depends on beside codes and factors

    @property
    def column(self) -> str:
        """What tables of results call it."""
        return f"{self.metric}.{self.name}"

    @property
    def title(self) -> str:
        title = self.metric if self.known is None else self.known.title
        return title if self.name == "score" else f"{title}, {self.name.replace('_', ' ')}"

    @property
    def is_headline(self) -> bool:
        return self.name == self.saved.headline

    @property
    def range(self) -> tuple[float, float]:
        """Its ends, infinite where they are unknown."""
        return self.known.range if self.known is not None and self.is_headline else (-math.inf, math.inf)

    @property
    def interval(self) -> SavedInterval | None:
        return None if self.saved.intervals is None else self.saved.intervals.values.get(self.name)

    @property
    def confidence(self) -> float | None:
        return None if self.saved.intervals is None else self.saved.intervals.confidence

    @property
    def by_chance(self) -> float | None:
        """What rows score that were moved, or else independent noise, where that is known of the headline."""
        if not self.is_headline:
            return None
        if self.saved.null is not None:
            return self.saved.null.mean
        return None if self.saved.chance is None else self.saved.chance.score


def numbers_of(scores: SavedScores) -> Iterator[Number]:
    """Every number of a card of which one end is better, the headline of each metric first.

    Raises:
        ValueError: no metric was scored.
    """
    if not scores.metrics:
        raise ValueError("no metric was scored, so that there is nothing to share")
    for metric, saved in scores.metrics.items():
        row = find_metric(metric) or BLOCKED.get(metric)
        row = row if row is not None and row.headline == saved.headline else None
        decided = scores.decisions().get(metric, {})
        for name in dict.fromkeys([saved.headline, *saved.values]):
            better = _better(row, saved, name)
            if better is not None:
                yield Number(metric, name, saved.values[name], saved, row, better, decided)


def _better(row: Metric | None, saved: SavedMetric, name: str) -> bool | None:
    if row is not None:
        return row.direction(name)
    return saved.higher_is_better if name == saved.headline else None


def score_table(numbers: Sequence[Number]) -> str:
    """A table of numbers in Markdown, ending with a line break."""
    return markdown_table(HEADS, [_row(each) for each in numbers])


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, whose cells are so already, ending with a line break."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _row(number: Number) -> list[str]:
    between, (low, high) = number.interval, number.range
    return [
        f"{in_markdown(number.title)} (`{number.column}`)",
        f"{number.value:z.3f}",
        "" if between is None else f"{between.low:z.3f} to {between.high:z.3f}",
        "" if number.by_chance is None else f"{number.by_chance:z.3f}",
        "higher" if number.higher_is_better else "lower",
        f"{low:g} to {high:g}" if math.isfinite(high - low) else "",
    ]


def in_markdown(text: Any) -> str:
    """A text of the user's on one line, in which nothing is markup."""
    return "".join(f"\\{each}" if each in "\\`*_[]<>|#" else each for each in " ".join(str(text).split()))


def slug(text: str) -> str:
    """A part of a path or an address, whatever a family or dataset is called."""
    return re.sub(r"[^A-Za-z0-9._+=-]+", "-", text).strip("-.")[:100] or "-"
