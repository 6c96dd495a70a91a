"""Score the rows of a card again: shuffled, for its null distribution, and in parts, for its confidence intervals."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from threading import Event
from typing import TypeAlias

import numpy as np

from unbraid.base.threads import go_on, map_ordered
from unbraid.base.types import FloatArray, IntArray, Progress
from unbraid.data import Representation
from unbraid.files.score_file import storable
from unbraid.metrics import Metric, NotDefined
from unbraid.metrics._shared.compiled import interruptible
from unbraid.metrics._shared.inputs import Inputs, OfParts, Part, levels_by_value, part_of
from unbraid.metrics._shared.resampling import Numbers, Resampling, draw_part
from unbraid.metrics._shared.sharing import Store, sharing
from unbraid.scoring.baselines import Baseline
from unbraid.scoring.card import Scored
from unbraid.scoring.card_memory import scores_at_a_time
from unbraid.scoring.engine import (
    Gap,
    ScoreSettings,
    call,
    context_of,
    gap_of_rows,
    inputs_of,
    of_no_metric,
    score_each,
    validate,
)
from unbraid.scoring.interval import Intervals, intervals, shares_of_seeds
from unbraid.scoring.null import IN_WORDS, Null, Shuffle, null_of

ORDERED = 1_000_000  # levels in all orders that `of_shuffles` is given at once
SEEDS = 5  # under which a metric that draws is scored, to say how much its own luck moves it


PartScorer = Callable[[IntArray, Iterable[str]], dict[str, Numbers | Exception]]
# What is moved, how, for which metrics, and what `zero_shot` holds out of it.
_Source: TypeAlias = tuple[Representation, Shuffle, list[str], Gap | None]


@dataclass(frozen=True)
class Parts:
    """A metric's numbers on parts of the rows: the same parts for every representation of as many rows and groups."""

    method: Resampling
    values: Mapping[str, FloatArray]  # (n_parts,) of those that all parts have
    per_factor: FloatArray  # (n_parts, n_factors), or (n_parts, 0)


def with_nulls(
    representation: Representation, scored: Mapping[str, Scored], shuffle: Shuffle, settings: ScoreSettings
) -> dict[str, Scored]:
    """The same with the null of each metric that looks at factors, or the reason why it has none."""
    draws: dict[str, list[float]] = {name: [] for name, each in scored.items() if each.metric.needs_factors}
    of_factors: dict[str, list[FloatArray]] = {name: [] for name in draws}
    missing: dict[str, str] = {}
    held_against = {name: _to_be_moved(scored[name]) for name in draws}
    on_objects = [name for name in draws if scored[name].objects is not None]
    groups, n_samples = representation.groups, len(representation)
    plain = shuffle.moved == "rows" and representation.weights is None
    together = [
        name for name in draws if plain and name not in on_objects and scored[name].metric.of_shuffles is not None
    ]
    on_rows = [name for name in draws if name not in (*on_objects, *together)]
    representation = replace(representation, codes=inputs_of(representation).stored)  # as metrics read them, made once
    # A user's function is never called in two threads.
    own = [name for name in on_rows if scored[name].metric.own or callable(settings.held_out)]
    builtin = [name for name in on_rows if name not in own]
    # Whole objects were encoded for it: no trial and no series.
    objects = [
        (encoded, Shuffle("rows", 1), [name], None)
        for name in on_objects
        if (encoded := scored[name].objects) is not None
    ]
    most = scores_at_a_time(scored, representation.codes, len(representation.names))

    def again(
        source: Representation, names: list[str], held_out: Gap | None, progress: Progress | None
    ) -> dict[str, Scored | Exception]:
        rows = {name: scored[name].metric for name in names if name not in missing}
        return dict(
            score_each(source, rows, seed=settings.seed, held_out=held_out, with_chance=False, progress=progress)
        )

    def collect(results: Mapping[str, Scored | Exception]) -> dict[str, tuple[float, FloatArray]]:
        for name, each in results.items():
            if isinstance(each, Exception) and name not in missing:
                missing[name] = storable(each) if isinstance(each, NotDefined) else settings.failure(name, each).reason
        return {name: _to_be_moved(each) for name, each in results.items() if isinstance(each, Scored)}

    def score_shuffles(sources: list[_Source], at_once: int) -> None:
        listed = ", ".join(name for _, _, names, _ in sources for name in names)

        def scores(done: int, stopped: Event) -> dict[str, Scored | Exception]:
            # Of several at once the caller's thread tells the progress.
            alone = settings.telling(IN_WORDS[shuffle.moved], done, shuffle.times)
            report = alone if at_once == 1 else lambda *_: go_on(stopped)
            results: dict[str, Scored | Exception] = {}
            for source, moving, names, held_out in sources:
                gap = gap_of_rows(held_out, len(source), moving.labels(source.groups, len(source), settings.seed, done))
                results |= again(moving.apply(source, settings.seed, done), names, gap, report)
            return results

        settings.tell(f"{listed}, {IN_WORDS[shuffle.moved]}", 0, shuffle.times if listed else 0)
        with closing(map_ordered(scores, range(shuffle.times) if listed else (), at_once)) as shuffles:
            for done, results in shuffles:
                for name, (headline, per_factor) in collect(results).items():
                    draws[name].append(headline)
                    of_factors[name].append(per_factor)
                if at_once > 1:
                    settings.tell(f"{listed}, {IN_WORDS[shuffle.moved]}", done + 1, shuffle.times)

    if shuffle.moved == "shift":
        middle = shuffle.unmoved(representation)
        gap = gap_of_rows(settings.held_out, n_samples, shuffle.labels(groups, n_samples, settings.seed, 0))
        held_against |= collect(again(middle, on_rows, gap, settings.telling("middle half of the rows", 0, 1)))
    rows = {name: scored[name].metric for name in together}
    for name, outcome in _of_shuffles(representation, rows, shuffle, settings, most).items():
        if isinstance(outcome, Exception):
            missing[name] = settings.failure(name, outcome).reason
        else:
            held_against[name], *moved = outcome
            draws[name], of_factors[name] = [each for each, _ in moved], [each for _, each in moved]
    score_shuffles([(representation, shuffle, builtin, settings.held_out), *objects], most)
    score_shuffles([(representation, shuffle, own, settings.held_out)], 1)
    nulls: dict[str, Null] = {}
    for name, each in draws.items():
        if name not in missing:
            headline, own = held_against[name]
            moved = "rows" if name in on_objects else shuffle.moved
            factor_scores = (own, np.array(of_factors[name])) if len(own) else None
            nulls[name] = null_of(scored[name].metric, headline, np.array(each), moved, factor_scores)
    return {name: replace(each, null=nulls.get(name), no_null=missing.get(name, "")) for name, each in scored.items()}


def _of_shuffles(
    representation: Representation, metrics: Mapping[str, Metric], shuffle: Shuffle, settings: ScoreSettings, most: int
) -> dict[str, list[tuple[float, FloatArray]] | Exception]:
    """Of each metric the headline and what it says of each factor: of the rows as they are, and of each shuffle."""
    inputs, n_samples = inputs_of(representation), len(representation)
    context = context_of(representation, settings.seed, settings.held_out)
    at_once = max(1, ORDERED // (n_samples * max(1, inputs.n_factors)))
    firsts = (None, *range(0, shuffle.times, at_once))
    by_metric: dict[str, list[tuple[float, FloatArray]] | Exception] = {name: [] for name in metrics}

    def scores(task: tuple[str, int | None], _: object) -> list[tuple[float, FloatArray]] | Exception:
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

    tasks = [(name, first) for name in metrics for first in firsts]
    settings.tell(f"{', '.join(metrics)}, {IN_WORDS[shuffle.moved]}", 0, len(tasks))
    with closing(map_ordered(scores, tasks, most)) as done:
        for number, ((name, _), scored) in enumerate(done):
            own = by_metric[name]
            if isinstance(scored, Exception) or isinstance(own, Exception):
                by_metric[name] = own if isinstance(own, Exception) else scored
            else:
                own += scored
            settings.tell(f"{name}, {IN_WORDS[shuffle.moved]}", number + 1, len(tasks))
    return by_metric


def _to_be_moved(scored: Scored) -> tuple[float, FloatArray]:
    """The headline, and (n_factors,) or (0,) what the metric says of each factor."""
    return scored.headline, numbers_of(scored).per_factor


def with_baselines(
    scored: Mapping[str, Scored], baselines: Mapping[str, Baseline], settings: ScoreSettings
) -> dict[str, Scored]:
    """The same with what baselines score by each metric that is defined for them."""
    rows = {name: each.metric for name, each in scored.items()}
    headlines: dict[str, dict[str, float]] = {name: {} for name in scored}
    missing: dict[str, dict[str, str]] = {name: {} for name in scored}
    for done, (title, (representation, objects)) in enumerate(baselines.items()):
        progress = settings.telling(title, done, len(baselines))
        for name, each in score_each(
            representation,
            rows,
            seed=settings.seed,
            held_out=settings.held_out,
            objects=objects,
            with_chance=False,
            progress=progress,
        ):
            if isinstance(each, Scored):
                headlines[name][title] = each.headline
            elif not isinstance(each, NotDefined):
                missing[name][title] = settings.failure(name, each).reason
    return {name: replace(each, baselines=headlines[name], no_baselines=missing[name]) for name, each in scored.items()}


def with_intervals(
    representation: Representation,
    scored: Mapping[str, Scored],
    confidence: float,
    times: int | None,
    settings: ScoreSettings,
) -> dict[str, Scored]:
    """The same with an interval for every number of each metric, or the reason why it has none."""
    parts, missing = scores_of_parts(representation, scored, times, settings)
    made = {
        name: with_interval(each, parts.get(name), missing.get(name, ""), confidence) for name, each in scored.items()
    }
    for name, variances in _variances_of_seeds(representation, made, settings).items():
        if (known := made[name].intervals) is not None:
            made[name] = replace(made[name], intervals=replace(known, by_seed=shares_of_seeds(known, variances)))
    return made


def _variances_of_seeds(
    representation: Representation, scored: Mapping[str, Scored], settings: ScoreSettings
) -> dict[str, dict[str, float]]:
    """The variance over seeds of each value, all rows as they are, of metrics that draw and have intervals."""
    rows = {name: each.metric for name, each in scored.items() if each.metric.stochastic and each.intervals is not None}
    by_seed, known = {name: [dict(scored[name].values)] for name in rows}, {}
    for done in range(1, SEEDS if rows else 0):
        if settings.progress is not None:
            settings.progress(f"{', '.join(rows)}, another seed", done - 1, SEEDS - 1)
        scorer = part_scorer(representation, rows, settings.seed + done, settings.held_out, known)
        for name, each in scorer(np.arange(len(representation)), list(rows)).items():
            if isinstance(each, Exception):  # what another seed cannot score has no share
                by_seed.pop(name, None)
            elif name in by_seed:
                by_seed[name].append(dict(each.values))
    return {
        name: {value: float(np.var([each[value] for each in draws], ddof=1)) for value in draws[0]}
        for name, draws in by_seed.items()
    }


def with_interval(scored: Scored, parts: Parts | None, missing: str, confidence: float) -> Scored:
    """The same with its intervals, or the reason why it has none."""
    if parts is None:
        return replace(scored, no_interval=missing)
    return replace(scored, intervals=_intervals(scored, parts, confidence))


def scores_of_parts(
    representation: Representation, scored: Mapping[str, Scored], times: int | None, settings: ScoreSettings
) -> tuple[dict[str, Parts], dict[str, str]]:
    """Each metric of parts of the rows, and of those that have no interval, why not."""
    scored_parts: dict[str, Parts] = {}
    missing = {
        name: reason
        for name, each in scored.items()
        if each.metric.no_interval is not None and (reason := each.metric.no_interval(inputs_of(representation)))
    }
    for method, names in _by_method({name: each for name, each in scored.items() if name not in missing}).items():
        if isinstance(method, str):
            missing |= dict.fromkeys(names, method)
            continue
        method = method if times is None else method.of_parts(times)
        groups = representation.groups
        method = method.on(len(representation), None if groups is None else int(groups.max()) + 1)
        rows = {name: scored[name].metric for name in names}
        parts, unscored = _scores_by(method, representation, rows, settings)
        missing |= unscored
        scored_parts |= {name: _together(method, parts[name]) for name in names if name not in unscored}
    return scored_parts, missing


def _scores_by(
    method: Resampling, representation: Representation, rows: Mapping[str, Metric], settings: ScoreSettings
) -> tuple[dict[str, list[Numbers]], dict[str, str]]:
    """Each metric of each part of the rows, and of the metrics that a part cannot be scored by, why not."""
    parts: dict[str, list[Numbers]] = {name: [] for name in rows}
    missing: dict[str, str] = {}
    scorer = part_scorer(representation, rows, settings.seed, settings.held_out)
    # A user's function is never called in two threads.
    own = [name for name, metric in rows.items() if metric.own or callable(settings.held_out)]
    most = scores_at_a_time(rows, representation.codes, len(representation.names))

    def score_parts(names: list[str], at_once: int) -> None:
        def scores(done: int, stopped: Event) -> dict[str, Numbers | Exception]:
            part = draw_part(len(representation), representation.groups, method, settings.seed, done)
            left = [name for name in names if name not in missing]
            try:
                return scorer(part, (name for name in left if not stopped.is_set()))
            except ValueError as error:  # of all metrics: a factor that has one level left
                return dict.fromkeys(left, why_constant(representation, part) or error)

        settings.tell(f"{', '.join(names)}, resampled rows", 0, method.n_parts if names else 0)
        with closing(map_ordered(scores, range(method.n_parts) if names else (), at_once)) as results_of_parts:
            for done, results in results_of_parts:
                for name, each in results.items():
                    if isinstance(each, Exception):
                        reason = str(each) if isinstance(each, ValueError) else settings.failure(name, each).reason
                        missing.setdefault(name, f"part of the rows cannot be scored: {reason}")
                    else:
                        parts[name].append(each)
                if not (left := [name for name in names if name not in missing]):
                    break
                settings.tell(f"{', '.join(left)}, resampled rows", done + 1, method.n_parts)

    score_parts([name for name in rows if name not in own], most)
    score_parts(own, 1)
    return parts, missing


def why_constant(representation: Representation, rows: IntArray) -> ValueError | None:
    """That a factor with few rows off its commonest level is constant on a part of the rows, if one is."""
    for column, values in enumerate(representation.factors.T):
        if (values[rows] == (level := values[rows[0]])).all():
            n_others, levels = int((values != level).sum()), representation.levels[column : column + 1]
            level_name = levels[0][int(level)] if levels and levels[0] else f"{level:g}"
            have = f"{n_others} of {len(values):,} rows {'has' if n_others == 1 else 'have'}"
            return ValueError(
                f"only {have} another {representation.names[column]} than {level_name}: too few to resample"
            )
    return None


def _together(method: Resampling, numbers: list[Numbers]) -> Parts:
    names = [name for name in numbers[0].values if all(name in each.values for each in numbers)]
    values = {name: np.array([each.values[name] for each in numbers]) for name in names}
    return Parts(method, values, np.array([each.per_factor for each in numbers]))


def _intervals(scored: Scored, parts: Parts, confidence: float) -> Intervals:
    values, per_factor = numbers_of(scored)
    names = [name for name in values if name in parts.values]
    whole = np.array([*(values[name] for name in names), *per_factor])
    resampled = np.column_stack([*(parts.values[name] for name in names), parts.per_factor])
    ranges = [*map(scored.metric.range_of, names), *[scored.metric.range] * len(per_factor)]
    low, high = np.array(ranges).reshape(-1, 2).T
    made = intervals(whole, resampled, (low, high), parts.method, confidence)
    of_factors = tuple(made[len(names) :]) if len(per_factor) else None
    return Intervals(confidence, len(resampled), dict(zip(names, made, strict=False)), of_factors)


def _by_method(scored: Mapping[str, Scored]) -> dict[Resampling | str, list[str]]:
    """Metrics by how their interval is found, or why they have none."""
    names_by_method: dict[Resampling | str, list[str]] = {}
    for name, each in scored.items():
        names_by_method.setdefault(each.metric.interval, []).append(name)
    return names_by_method


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
    levels = levels_by_value(whole)
    parameters = {name for metric in chosen.values() for name in inspect.signature(metric.function).parameters}
    by_row = [
        name for name, value in context.items() if isinstance(value, np.ndarray) and name in parameters - {"groups"}
    ]

    def scored(rows: IntArray, names: Iterable[str]) -> dict[str, Numbers | Exception]:
        store: Store = {}
        with sharing(store):
            part = part_of(whole, levels, rows)
        its_own = context | {name: context[name][rows] for name in by_row}
        its_own |= {} if part.inputs.groups is None else {"groups": part.inputs.groups}
        results: dict[str, Numbers | Exception] = {}
        for name in names:
            try:
                with sharing(store):
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
