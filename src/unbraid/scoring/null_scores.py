"""Score the rows of a card again with codes and factors moved against each other, for its null distribution."""

import inspect
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Event
from typing import NamedTuple, TypeAlias

import numpy as np

from unbraid.base.threads import go_on, map_ordered, n_cores
from unbraid.base.types import FloatArray
from unbraid.data import Representation
from unbraid.files.score_file import storable
from unbraid.metrics import Metric, NotDefined
from unbraid.metrics._shared.compiled import interruptible
from unbraid.metrics._shared.sharing import sharing_of_codes
from unbraid.scoring.card_memory import scores_at_a_time
from unbraid.scoring.engine import (
    Gap,
    ScoreSettings,
    context_of,
    gap_of_rows,
    inputs_of,
    metric_list,
    of_no_metric,
    score_each,
)
from unbraid.scoring.null import IN_WORDS, Moved, Null, Shuffle, null_of
from unbraid.scoring.scored import Scored

ORDERED = 1_000_000  # levels in all orders that `of_shuffles` is given at once

Pair: TypeAlias = tuple[float, FloatArray]  # a headline, and (n_factors,) or (0,) what the metric says of each factor


class _Source(NamedTuple):
    """What is moved, how, for which metrics, and what `zero_shot` holds out of it."""

    representation: Representation
    shuffle: Shuffle
    names: list[str]
    held_out: Gap | None


def with_nulls(
    representation: Representation, scored: Mapping[str, Scored], shuffle: Shuffle, settings: ScoreSettings
) -> dict[str, Scored]:
    """The same with the null of each metric that looks at factors, or the reason why it has none."""
    metrics = {name: each.metric for name, each in scored.items() if each.metric.needs_factors}
    objects = {name: each.objects for name, each in scored.items() if name in metrics and each.objects is not None}
    moves_rows = shuffle.moved == "rows" and representation.weights is None
    on_rows = {name: row for name, row in metrics.items() if name not in objects}
    together = {name: row for name, row in on_rows.items() if moves_rows and row.of_shuffles is not None}
    on_rows = {name: row for name, row in on_rows.items() if name not in together}
    # A user's function is never called in two threads.
    own = [name for name, row in on_rows.items() if row.own or callable(settings.held_out)]
    builtin = [name for name in on_rows if name not in own]
    representation = replace(representation, codes=inputs_of(representation).stored)  # as metrics read them, made once
    at_once = scores_at_a_time(scored, representation.codes, len(representation.names))
    scores = _NullScores(scored, shuffle, settings, {name: _pair(scored[name]) for name in metrics})

    if shuffle.moved == "shift":
        scores.compare_with_middle(representation, on_rows)
    for name, outcome in _of_shuffles(representation, together, shuffle, settings, at_once).items():
        if isinstance(outcome, Exception):
            scores.missing[name] = settings.failure(name, outcome).reason
        else:
            scores.compared[name], *scores.drawn[name] = outcome
    # Whole objects were encoded for a metric: no trial and no series.
    on_objects = [_Source(each, Shuffle("rows", 1), [name], None) for name, each in objects.items()]
    with sharing_of_codes() if moves_rows else nullcontext():
        scores.add_shuffles([_Source(representation, shuffle, builtin, settings.held_out), *on_objects], at_once)
    scores.add_shuffles([_Source(representation, shuffle, own, settings.held_out)], 1)

    nulls = {
        name: scores.null(name, "rows" if name in objects else shuffle.moved)
        for name in metrics
        if name not in scores.missing
    }
    missing = scores.missing
    return {name: replace(each, null=nulls.get(name), no_null=missing.get(name, "")) for name, each in scored.items()}


@dataclass
class _NullScores:
    """What metrics score on moved rows, and what these scores are compared with."""

    scored: Mapping[str, Scored]
    shuffle: Shuffle
    settings: ScoreSettings
    compared: dict[str, Pair]
    drawn: dict[str, list[Pair]] = field(init=False)
    missing: dict[str, str] = field(default_factory=dict)  # why a metric has no null

    def __post_init__(self) -> None:
        self.drawn = {name: [] for name in self.compared}

    def compare_with_middle(self, representation: Representation, metrics: Mapping[str, Metric]) -> None:
        """Compares scores of shifted rows with that of the middle half, which they are as long as."""
        rows = self.shuffle.labels(representation.groups, len(representation), self.settings.seed, 0)
        gap = gap_of_rows(self.settings.held_out, len(representation), rows)
        middle = self.shuffle.unmoved(representation)
        results = score_each(middle, metrics, seed=self.settings.seed, held_out=gap, with_chance=False)
        self.compared |= self._pairs(dict(results))

    def add_shuffles(self, sources: Sequence[_Source], at_once: int) -> None:
        names = [name for source in sources for name in source.names]
        if not names:
            return
        times, step = self.shuffle.times, f"{metric_list(names)}, {IN_WORDS[self.shuffle.moved]}"
        once = sum(self.scored[name].seconds for name in names)
        self.settings.expect([once / min(at_once, n_cores())] * times)
        self.settings.tell(step, 0, times)
        with closing(map_ordered(partial(self._of_shuffle, sources), range(times), at_once)) as shuffles:
            for done, results in shuffles:
                for name, pair in self._pairs(results).items():
                    self.drawn[name].append(pair)
                self.settings.tell(step, done + 1, times)

    def _of_shuffle(self, sources: Sequence[_Source], number: int, stopped: Event) -> dict[str, Scored | Exception]:
        seed, results = self.settings.seed, dict[str, Scored | Exception]()
        for representation, shuffle, names, held_out in sources:
            n_samples = len(representation)
            gap = gap_of_rows(held_out, n_samples, shuffle.labels(representation.groups, n_samples, seed, number))
            metrics = {name: self.scored[name].metric for name in names if name not in self.missing}
            results |= score_each(
                shuffle.apply(representation, seed, number), metrics, seed=seed, held_out=gap, with_chance=False,
                progress=lambda *_: go_on(stopped),
            )  # fmt: skip
        return results

    def _pairs(self, results: Mapping[str, Scored | Exception]) -> dict[str, Pair]:
        """Of the metrics that gave a score; of another, its first reason is noted."""
        for name, each in results.items():
            if isinstance(each, Exception) and name not in self.missing:
                failed = not isinstance(each, NotDefined)
                self.missing[name] = self.settings.failure(name, each).reason if failed else storable(each)
        return {name: _pair(each) for name, each in results.items() if isinstance(each, Scored)}

    def null(self, name: str, moved: Moved) -> Null:
        headline, per_factor = self.compared[name]
        headlines, of_factors = zip(*self.drawn[name], strict=True)
        factor_scores = (per_factor, np.array(of_factors)) if len(per_factor) else None
        return null_of(self.scored[name].metric, headline, np.array(headlines), moved, factor_scores)


def _of_shuffles(
    representation: Representation, metrics: Mapping[str, Metric], shuffle: Shuffle, settings: ScoreSettings, most: int
) -> dict[str, list[Pair] | Exception]:
    """Of each metric the headline and what it says of each factor: of the rows as they are, and of each shuffle."""
    inputs, n_samples = inputs_of(representation), len(representation)
    context = context_of(representation, settings.seed, settings.held_out)
    at_once = max(1, ORDERED // (n_samples * max(1, inputs.n_factors)))
    firsts = (None, *range(0, shuffle.times, at_once))
    by_metric: dict[str, list[Pair] | Exception] = {name: [] for name in metrics}

    def scores(task: tuple[str, int | None], _: object) -> list[Pair] | Exception:
        name, first = task
        orders = [np.arange(n_samples)]
        if first is not None:
            which = range(first, min(first + at_once, shuffle.times))
            orders = [shuffle.rows(None, n_samples, settings.seed, number)[1] for number in which]
        assert (of_shuffles := metrics[name].of_shuffles) is not None
        parameters = inspect.signature(of_shuffles).parameters
        try:
            with interruptible():
                arguments = {name: value for name, value in context.items() if name in parameters}
                return of_shuffles(inputs, np.array(orders), **arguments)
        except Exception as error:
            if of_no_metric(error):
                raise
            return error

    tasks = [(name, first) for first in firsts for name in metrics]
    settings.tell(f"{metric_list(metrics)}, {IN_WORDS[shuffle.moved]}", 0, len(tasks))
    with closing(map_ordered(scores, tasks, most)) as done:
        for number, ((name, _), scored) in enumerate(done):
            own = by_metric[name]
            if isinstance(scored, Exception) or isinstance(own, Exception):
                by_metric[name] = own if isinstance(own, Exception) else scored
            else:
                own += scored
            settings.tell(f"{name}, {IN_WORDS[shuffle.moved]}", number + 1, len(tasks))
    return by_metric


def _pair(scored: Scored) -> Pair:
    return scored.headline, scored.numbers.per_factor
