"""Scores of one or several models as tables."""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from unbraid.base.repr import WITHIN
from unbraid.base.suggest import suggestion
from unbraid.base.version import VERSION
from unbraid.files.table_formats import Cell, Table
from unbraid.scoring.baselines import MARK, no_better

if TYPE_CHECKING:
    from unbraid.metrics import Metric
    from unbraid.scoring.card import ScoreCard
    from unbraid.scoring.interval import Interval
    from unbraid.scoring.scored import Scored

NOTHING: Mapping[str, Mapping[str, Any]] = {}
WITHIN_NULL = "°"  # after a score that is not significantly better than those of shuffled rows


def score_table(
    cards: "Mapping[str, ScoreCard]", groups: Sequence[str] | None = None, *, by: str = "group",
    sort: str | None = None, extra_columns: Mapping[str, Mapping[str, Any]] = NOTHING,
) -> Table:  # fmt: skip
    """Headlines of models: a row for each, the best first, and their mean ± standard deviation; of one, a row a metric.

    Args:
        cards: by the name of the model.
        groups: of each model.
        by: what the groups are called.
        sort: metric to sort by; default the first.
        extra_columns: columns before the metrics, such as those of a config: value by column, by model.

    Returns:
        Table. Arrows say which way is better. The deviation is that of a sample (divided by n - 1), over the models
        that have the metric. A score that has an interval is given ± half of it, and one that is not told from its
        null, or no better than its best baseline, has a mark; the note explains all of it.

    Raises:
        ValueError: no model has the metric to sort by.
    """
    metrics, notes = _metrics(cards), (footnote(cards),)
    if len(cards) == 1 and groups is None:
        ((name, card),) = cards.items()
        rows = [[head, _cell(scored)] for head, scored in zip(_heads(metrics), card.scored.values(), strict=True)]
        return Table(["metric", name], rows, notes=notes)
    named, columns = dict(zip(cards, groups or [""] * len(cards), strict=True)), _columns(extra_columns)
    models = _best_first(cards, sort)
    scores = [
        _bold_best([_cell(cards[name].scored.get(metric)) for name in models], row) for metric, row in metrics.items()
    ]
    rows = [
        [
            name,
            *([named[name]] if groups else []),
            *(extra_columns.get(name, {}).get(column, "") for column in columns),
            *cells,
        ]
        for name, *cells in zip(models, *scores, strict=True)
    ]
    keys = 1 + bool(groups)
    heads = ["model", *([by] if groups else []), *columns, *_heads(metrics)]
    if metrics and not groups:
        rows.append(
            [
                "mean ± sd",
                *([""] * len(columns)),
                *(_spread(*_mean_and_sd(cards.values(), metric)) for metric in metrics),
            ]
        )
    return Table(heads, rows, "l" * (keys + len(columns)) + "r" * len(metrics), notes=notes, keys=keys)


def natural_order(name: str) -> list[tuple[float, str]]:
    """A key that sorts 2 before 10, and beta2 before beta10."""
    try:
        return [(float(name), "")]
    except ValueError:
        parts = re.split(r"(\d+(?:\.\d+)?)", name)
        return [(float(part), "") if number else (math.inf, part) for number, part in zip(cycle((0, 1)), parts)]


def _bold_best(cells: list[Cell], metric: "Metric") -> list[Cell]:
    """With the best of several scores in bold, and those that read the same."""
    shown = {f"{cell.value:z.3f}": cell.value for cell in cells if cell.value is not None}
    if len(shown) < 2:
        return cells
    best = (max if metric.higher_is_better else min)(shown, key=lambda text: shown[text])
    return [
        cell._replace(text=f"**{cell.text}**") if cell.value is not None and f"{cell.value:z.3f}" == best else cell
        for cell in cells
    ]


def _columns(extra_columns: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for columns in extra_columns.values() for name in columns))


def group_table(
    cards: "Mapping[str, ScoreCard]", groups: Sequence[str], *, by: str = "group", sort: str | None = None
) -> Table:
    """Mean ± standard deviation of each group of models, by their names or `sort`; arguments as for `score_table`."""
    metrics, means = _metrics(cards), group_rows(cards, groups, by=by, sort=sort)
    numbers = list(zip(*means.rows, strict=True))[2:]
    columns = [
        _bold_best([Cell(_spread(*pair), pair[0]) for pair in zip(own, deviations, strict=True)], metric)
        for own, deviations, metric in zip(numbers[::2], numbers[1::2], metrics.values(), strict=True)
    ]
    rows = [[*row[:2], *cells] for row, *cells in zip(means.rows, *columns, strict=True)]
    note = f"mean ± standard deviation of the models of each {by}"
    return Table([by, "models", *_heads(metrics)], rows, notes=(note, footnote(cards)), keys=2, title=f"means by {by}")


def group_rows(
    cards: "Mapping[str, ScoreCard]", groups: Sequence[str], *, by: str = "group", sort: str | None = None
) -> Table:
    """As `group_table`, for programs: means and standard deviations in columns of their own."""
    metrics = _metrics(cards)
    members: dict[str, list[ScoreCard]] = {}
    for card, group in zip(cards.values(), groups, strict=True):
        members.setdefault(group, []).append(card)
    rows = [
        [group, len(own), *(number for metric in metrics for number in _mean_and_sd(own, metric))]
        for group, own in members.items()
    ]
    if sort is None:
        rows.sort(key=lambda row: natural_order(row[0]))
    else:
        first = _sorted_by(cards, sort)
        place, upward = 2 + 2 * list(metrics).index(first), metrics[first].higher_is_better
        rows.sort(key=lambda row: _order(row[place], upward))
    return Table([by, "models", *(head for metric in metrics for head in (metric, f"{metric}.sd"))], rows)


def score_rows(
    cards: "Mapping[str, ScoreCard]", groups: Sequence[str] | None = None, *, by: str = "group",
    sort: str | None = None, extra_columns: Mapping[str, Mapping[str, Any]] = NOTHING,
) -> Table:  # fmt: skip
    """As `score_table`, for programs: a row for each model, the ends of its intervals beside its headlines."""
    named = dict(zip(cards, groups or [""] * len(cards), strict=True))
    models = _best_first(cards, sort)
    heads: list[str] = ["model", *([by] if groups else [])]
    columns: list[list[Any]] = [models, *([[named[name] for name in models]] if groups else [])]
    for name in _columns(extra_columns):
        heads.append(name)
        columns.append([extra_columns.get(model, {}).get(name) for model in models])
    for metric in _metrics(cards):
        scored = [cards[name].scored.get(metric) for name in models]
        intervals = [None if each is None else _interval(each) for each in scored]
        heads.append(metric)
        columns.append([None if each is None else each.headline for each in scored])
        if any(intervals):
            heads += [f"{metric}.low", f"{metric}.high"]
            columns += [[each and getattr(each, end) for each in intervals] for end in ("low", "high")]
    return Table(heads, list(zip(*columns, strict=True)))


def _metrics(cards: "Mapping[str, ScoreCard]") -> "dict[str, Metric]":
    return {name: each.metric for card in cards.values() for name, each in card.scored.items()}


def _best_first(cards: "Mapping[str, ScoreCard]", sort: str | None) -> list[str]:
    if sort is None and not _metrics(cards):
        return list(cards)
    first = _sorted_by(cards, sort)
    upward = _metrics(cards)[first].higher_is_better
    numbers = {name: card.scored[first].headline if first in card else None for name, card in cards.items()}
    return sorted(cards, key=lambda name: _order(numbers[name], upward))


def _sorted_by(cards: "Mapping[str, ScoreCard]", sort: str | None) -> str:
    metrics = _metrics(cards)
    sort = None if sort is None else spelled(sort, metrics)
    if sort is not None and sort not in metrics:
        raise ValueError(f"no model has the metric {sort!r} to sort by; {suggestion(sort, metrics)}")
    return sort or next(iter(metrics))


def spelled(name: str, metrics: Collection[str]) -> str:
    """A metric that somebody named as cards name it, such as "mig(bins=10)" for "mig(bins = 10)".

    Raises:
        ValueError: it has arguments that the metric does not take.
    """
    from unbraid.metrics._shared.metric_arguments import full_name

    return name if name in metrics else full_name(name)


def _order(number: float | None, upward: bool) -> tuple[bool, float]:
    """By which models are sorted: the best first, those without a number last."""
    return number is None, 0.0 if number is None else -number if upward else number


def _heads(metrics: "Mapping[str, Metric]") -> list[Cell]:
    return [Cell(f"{name} {'↑' if each.higher_is_better else '↓'}", name) for name, each in metrics.items()]


def _mean_and_sd(cards: "Collection[ScoreCard]", metric: str) -> tuple[float | None, float | None]:
    numbers = [card.scored[metric].headline for card in cards if metric in card.scored]
    mean = float(np.mean(numbers)) if numbers else None
    return mean, float(np.std(numbers, ddof=1)) if len(numbers) > 1 else None


def _spread(mean: float | None, deviation: float | None) -> str:
    if mean is None:
        return "-"
    return f"{mean:z.3f}" + ("" if deviation is None else f" ± {deviation:z.3f}")


def _cell(scored: "Scored | None") -> Cell:
    if scored is None:
        return Cell("-")
    interval = _interval(scored)
    reach = f" ± {interval.half_width:z.3f}" if interval else ""
    marks = WITHIN_NULL if scored.null is not None and scored.null.p > WITHIN else ""
    marks += MARK if no_better(scored.metric.higher_is_better, scored.headline, scored.baselines) else ""
    return Cell(f"{scored.headline:z.3f}{reach}{marks}", scored.headline)


def _interval(scored: "Scored") -> "Interval | None":
    return scored.intervals.values.get(scored.metric.headline) if scored.intervals else None


def footnote(cards: "Mapping[str, ScoreCard]") -> str:
    """What a reader of these tables must know: rows, seed, version, and what their marks say."""
    scored = [each for card in cards.values() for each in card.scored.values()]
    rows = sorted({card.n_samples for card in cards.values()})
    seeds = sorted({card.seed for card in cards.values()})
    notes = [f"{' or '.join(f'{size:,}' for size in rows)} rows"]
    confidences = sorted({each.intervals.confidence for each in scored if each.intervals is not None})
    if confidences:
        percent = " or ".join(f"{100 * each:g}" for each in confidences)
        notes.append(f"± half of the {percent} % interval for the mean on fresh rows, as many")
    notes += unchecked(cards)
    for unwanted, what in (
        (False, "not significantly better than {}"),
        (True, "of an unwanted factor: codes tell of it not significantly more than {}, as it should be"),
    ):
        matching = [each for each in scored if (each.metric.question == "unwanted") == unwanted]
        if nulls := dict.fromkeys(each.null.of_what for each in matching if each.null is not None):
            notes.append(f"{WITHIN_NULL} {what.format(' or '.join(nulls))} (p > {WITHIN:g})")
    if baselines := dict.fromkeys(name for each in scored for name in each.baselines):
        notes.append(f"{MARK} no better than the best of {', '.join(baselines)}")
    notes.append(f"seed {', '.join(map(str, seeds))} of the metrics")
    return f"{'; '.join(notes)}; unbraid {VERSION}."


def unchecked(cards: "Mapping[str, ScoreCard]") -> list[str]:
    """What a table of intervals has to say of those that no simulation has checked; nothing where there are none."""
    names = dict.fromkeys(name for card in cards.values() for name, each in card.scored.items() if each.unchecked)
    return [f"intervals not validated: {', '.join(names)}"] if names else []
