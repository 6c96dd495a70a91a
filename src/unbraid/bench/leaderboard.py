"""The leaderboard of a suite, from the records of everybody."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from scipy.stats import rankdata

from unbraid.analysis.columns import higher_is_better
from unbraid.bench.shown import BASELINES, is_no_better
from unbraid.bench.suite import Suite
from unbraid.confidence.baselines import MARK
from unbraid.storage.table_formats import Cell, Table

CHANCE = "chance"


@dataclass(frozen=True)
class Standing:
    """One model, in one setting, as its newest record has it; of two records of one day, each."""

    model: str
    setting: str
    revision: str
    scores: Mapping[tuple[str, str], Mapping[str, Any]]  # what was measured, by set and column


def standings(contents: Iterable[Mapping[str, Any]], suite: Suite) -> list[Standing]:
    """All models of which there is a record of this suite, by name.

    Args:
        contents: of files of results.
        suite: of this version; records of others do not count.
    """
    newest: dict[tuple[str, str], tuple[str, list[Standing]]] = {}
    for content in contents:
        if content["study"] != suite.study:
            continue
        model, last = content["model"], content["history"][-1]["date"]
        for setting in {score["setting"]: None for score in content["scores"]}:
            scores = {
                (score["dataset"], score["metric"]): score["measured"]
                for score in content["scores"]
                if score["setting"] == setting
            }
            day = max(one.get("date", last) for one in scores.values())  # older records have one for all
            latest, known = newest.get((model, setting), ("", []))
            if day >= latest:
                one = Standing(model, setting, content["revision"], scores)
                newest[model, setting] = day, [*known, one] if day == latest else [one]
    return [each for _, (_, found) in sorted(newest.items()) for each in found]


def models(found: Sequence[Standing]) -> Table:
    """What was trained: settings, what a model was told, seconds of a training, and by which code."""
    rows = [
        [
            each.model, each.setting,
            "; ".join(dict.fromkeys(one["supervision"] for one in each.scores.values() if "supervision" in one)),
            Cell(f"{(took := fmean(one['seconds'] for one in each.scores.values())):.0f}", took),
            each.revision,
        ]
        for each in found
    ]  # fmt: skip
    return Table(["model", "setting", "was told", "seconds", "commit"], rows, "lllrl")


def of_set(found: Sequence[Standing], label: str, suite: Suite) -> Table:
    """A row for each model on one set, by the mean of its ranks; then chance and baselines, means over the models.

    Args:
        found: all models.
        label: of the set.
        suite: whose metrics are the columns.
    """
    there = [each for each in found if any(name == label for name, _ in each.scores)]
    names = [_name(each, found) for each in there]
    held = [[each.scores[label, column] for column in suite.columns] for each in there]
    signs = np.array([1 if higher_is_better(column) is not False else -1 for column in suite.columns])
    values = np.array([[one["value"] for one in row] for row in held]).reshape(len(held), len(suite.columns))
    ranks = rankdata(-signs * values, axis=0).mean(axis=1) if held else np.zeros(0)
    rows = [
        [names[place], Cell(f"{ranks[place]:.1f}", ranks[place]), *map(_cell, suite.columns, held[place])]
        for place in np.argsort(ranks, kind="stable")
    ]
    for title in (CHANCE, *BASELINES):
        beside = [[one["chance"] if title == CHANCE else one["baselines"].get(title) for one in row] for row in held]
        known = [row for row in beside if None not in row]
        if known:
            rows.append(
                [title, None, *(Cell(_short(fmean(column)), fmean(column)) for column in zip(*known, strict=True))]
            )
    return Table(["model", "mean rank", *suite.metrics], rows, title=label)


def _name(one: Standing, found: Sequence[Standing]) -> str:
    """A model, with what tells it from others of its name."""
    others = [each for each in found if each.model == one.model and each is not one]
    told = [one.setting] if any(each.setting != one.setting for each in others) else []
    told += [one.revision] if any(each.setting == one.setting for each in others) else []
    return f"{one.model} ({'; '.join(filter(None, told))})" if any(told) else one.model


def _cell(column: str, measured: Mapping[str, Any]) -> Cell:
    between = f" [{_short(measured['low'])}, {_short(measured['high'])}]" if "low" in measured else ""
    mark = f" {MARK}" if is_no_better(column, measured) else ""
    return Cell(f"{_short(measured['value'])}{between}{mark}", measured["value"])


def _short(value: float) -> str:
    """In two digits, as this field prints shares: .41."""
    text = f"{abs(value):.2f}"
    sign = "−" if value < 0 and float(text) else ""
    return f"{sign}{text.removeprefix('0') if text.startswith('0.') else text}"
