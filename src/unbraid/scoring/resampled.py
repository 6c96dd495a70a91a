"""Compute the numbers of metrics on parts of the rows, without doing again what was done for all of them."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import cache

import numpy as np

from unbraid.base.types import IntArray
from unbraid.data import Representation
from unbraid.metrics import Metric
from unbraid.metrics._shared.inputs import Inputs, OfParts, Part, levels_by_value
from unbraid.metrics._shared.resampling import Numbers
from unbraid.metrics._shared.sharing import Store, notes_unread, sharing
from unbraid.scoring.card import Scored
from unbraid.scoring.engine import Gap, call, context_of, inputs_of, validate

PartScorer = Callable[[IntArray, Iterable[str]], dict[str, Numbers | Exception]]


def part_scorer(
    representation: Representation,
    chosen: Mapping[str, Metric],
    seed: int,
    held_out: Gap | None,
    shared: Store | None = None,
) -> PartScorer:
    """A function of rows and names of metrics: the numbers of each on these rows, or why it has none there.

    It raises ValueError where none of them can be scored, since a factor is constant there. Arguments are as for
    `score_each`; `shared` holds what is computed of all rows, for scorers of the same metrics with other seeds.
    """
    context = context_of(representation, seed, held_out)
    if (sizes := representation.known_sizes()) is not None:
        context["sizes"] = sizes
    with sharing(shared):
        whole = inputs_of(representation)
        quick = {
            name: _quick(metric.of_parts, whole, context)
            for name, metric in chosen.items()
            if metric.of_parts is not None and representation.weights is None
        }
    levels = cache(lambda: levels_by_value(whole))
    parameters = {name for metric in chosen.values() for name in inspect.signature(metric.function).parameters}
    by_row = [
        name for name, value in context.items() if isinstance(value, np.ndarray) and name in parameters - {"groups"}
    ]

    def scored(rows: IntArray, names: Iterable[str]) -> dict[str, Numbers | Exception]:
        store: Store = {}
        part = Part(whole, levels, rows)
        its_own = context | {name: context[name][rows] for name in by_row}
        its_own |= {} if part.groups is None else {"groups": part.groups}
        results: dict[str, Numbers | Exception] = {}
        for name in names:
            try:
                with notes_unread(), sharing(store):
                    results[name] = quick[name](part) if name in quick else _numbers(name, part.inputs, its_own, store)
            except Exception as error:
                results[name] = error
        return results

    def _numbers(name: str, part: Inputs, context: Mapping[str, object], store: Store) -> Numbers:
        each = Scored(chosen[name], call(chosen[name], part, context, store), 0.0)
        validate(name, each, part.n_factors)
        return numbers_of(each)

    return scored


def _quick(of_parts: OfParts, whole: Inputs, context: Mapping[str, object]) -> Callable[[Part], Numbers]:
    """What the metric says of parts; it raises for each part what it raises for all rows."""
    parameters = inspect.signature(of_parts).parameters
    try:
        return of_parts(whole, **{name: value for name, value in context.items() if name in parameters})
    except Exception as error:
        reason = error

        def failing(_part: Part) -> Numbers:
            raise reason

        return failing


def numbers_of(scored: Scored) -> Numbers:
    """Of a metric on a card."""
    return Numbers(scored.values, np.asarray(getattr(scored.result, "per_factor", ()), dtype=float))
