"""Score the rows of a card in parts, for its confidence intervals; and score its baselines."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from threading import Event

import numpy as np

from unbraid.base.threads import map_ordered, n_cores
from unbraid.base.types import FloatArray, IntArray
from unbraid.data import Representation
from unbraid.metrics import Metric, NotDefined
from unbraid.metrics._shared.inputs import Inputs, OfParts, Part, levels_by_value, part_of
from unbraid.metrics._shared.resampling import Numbers, Resampling, draw_part
from unbraid.metrics._shared.sharing import Store, sharing
from unbraid.scoring.baselines import Baseline
from unbraid.scoring.card_memory import scores_at_a_time
from unbraid.scoring.engine import (
    Gap,
    ScoreSettings,
    call,
    context_of,
    inputs_of,
    metric_list,
    score_each,
    seconds_of_half,
    validate,
)
from unbraid.scoring.interval import Intervals, intervals
from unbraid.scoring.scored import Scored

SEEDS = 5  # under which a metric that draws is scored, to say how much its own luck moves it


PartScorer = Callable[[IntArray, Iterable[str]], dict[str, Numbers | Exception]]


@dataclass(frozen=True)
class Parts:
    """A metric's numbers on parts of the rows: the same parts for every representation of as many rows and groups."""

    method: Resampling
    values: Mapping[str, FloatArray]  # (n_parts,) of those that all parts have
    per_factor: FloatArray  # (n_parts, n_factors), or (n_parts, 0)


def with_baselines(
    scored: Mapping[str, Scored], baselines: Mapping[str, Baseline], settings: ScoreSettings
) -> dict[str, Scored]:
    """The same with what baselines score by each metric that is defined for them."""
    rows = {name: each.metric for name, each in scored.items()}
    headlines: dict[str, dict[str, float]] = {name: {} for name in scored}
    missing: dict[str, dict[str, str]] = {name: {} for name in scored}
    settings.expect([sum(each.seconds for each in scored.values())] * len(baselines))
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
    rows = {name: each.metric for name, each in scored.items()}
    seeds = sum(scored[name].seconds for name in rows if rows[name].stochastic) * (SEEDS - 1)
    parts, missing = scores_of_parts(representation, scored, times, settings.followed_by(seeds))
    made = {
        name: with_interval(each, parts.get(name), missing.get(name, ""), confidence) for name, each in scored.items()
    }
    for name, variances in _variances_of_seeds(representation, made, settings).items():
        if (known := made[name].intervals) is not None:
            deviations = {value: each.deviation for value, each in known.values.items() if value in variances}
            shares = {
                value: min(1.0, variances[value] / deviation**2) if deviation > 0 else float(variances[value] > 0)
                for value, deviation in deviations.items()
            }
            made[name] = replace(made[name], intervals=replace(known, by_seed=shares))
    return made


def _variances_of_seeds(
    representation: Representation, scored: Mapping[str, Scored], settings: ScoreSettings
) -> dict[str, dict[str, float]]:
    """The variance over seeds of each value, all rows as they are, of metrics that draw and have intervals."""
    rows = {name: each.metric for name, each in scored.items() if each.metric.stochastic and each.intervals is not None}
    by_seed, known = {name: [dict(scored[name].values)] for name in rows}, {}
    settings.expect([sum(scored[name].seconds for name in rows)] * (SEEDS - 1))
    for done in range(1, SEEDS if rows else 0):
        if settings.progress is not None:
            settings.progress(f"{metric_list(rows)}, another seed", done - 1, SEEDS - 1)
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
    by_method: dict[Resampling | str, list[str]] = {}
    for name in (name for name in scored if name not in missing):
        by_method.setdefault(scored[name].metric.interval, []).append(name)
    seconds = seconds_of_parts(
        {name: scored[name].metric for names in by_method.values() for name in names},
        {name: each.seconds for name, each in scored.items()}, times,
    )  # fmt: skip
    for method, names in by_method.items():
        if isinstance(method, str):
            missing |= dict.fromkeys(names, method)
            continue
        method = method if times is None else method.of_parts(times)
        groups = representation.groups
        method = method.on(len(representation), None if groups is None else int(groups.max()) + 1)
        rows = {name: scored[name].metric for name in names}
        of_method = sum(seconds.pop(name) for name in names)
        following = settings.followed_by(sum(seconds.values()))
        following.expect([of_method / method.n_parts] * method.n_parts)
        parts, unscored = _scores_by(method, representation, rows, following)
        missing |= unscored
        scored_parts |= {name: _together(method, parts[name]) for name in names if name not in unscored}
    return scored_parts, missing


def seconds_of_parts(metrics: Mapping[str, Metric], costs: Mapping[str, float], times: int | None) -> dict[str, float]:
    """About how long the parts take of metrics that have some, where all rows take so many seconds."""
    methods = {name: metric.interval for name, metric in metrics.items()}
    return {
        name: costs[name] * seconds_of_half(name) * (times or method.n_parts) / n_cores()
        for name, method in methods.items()
        if not isinstance(method, str)
    }


def _scores_by(
    method: Resampling, representation: Representation, rows: Mapping[str, Metric], settings: ScoreSettings
) -> tuple[dict[str, list[Numbers]], dict[str, str]]:
    """Each metric of each part of the rows, and of the metrics that a part cannot be scored by, why not."""
    parts: dict[str, list[Numbers]] = {name: [] for name in rows}
    missing: dict[str, str] = {}
    scorer = part_scorer(representation, rows, settings.seed, settings.held_out)

    def score_parts(names: list[str], at_once: int) -> None:
        if not names:
            return

        def scores(done: int, stopped: Event) -> dict[str, Numbers | Exception]:
            part = draw_part(len(representation), representation.groups, method, settings.seed, done)
            left = [name for name in names if name not in missing]
            try:
                return scorer(part, (name for name in left if not stopped.is_set()))
            except ValueError as error:  # of all metrics: a factor that has one level left
                return dict.fromkeys(left, why_constant(representation, part) or error)

        settings.tell(f"{metric_list(names)}, resampled rows", 0, method.n_parts)
        with closing(map_ordered(scores, range(method.n_parts), at_once)) as results_of_parts:
            for done, results in results_of_parts:
                for name, each in results.items():
                    if isinstance(each, Exception):
                        reason = str(each) if isinstance(each, ValueError) else settings.failure(name, each).reason
                        missing.setdefault(name, f"part of the rows cannot be scored: {reason}")
                    else:
                        parts[name].append(each)
                if not (left := [name for name in names if name not in missing]):
                    break
                settings.tell(f"{metric_list(left)}, resampled rows", done + 1, method.n_parts)

    # A user's function is never called in two threads.
    own = [name for name, metric in rows.items() if metric.own or callable(settings.held_out)]
    most = scores_at_a_time(rows, representation.codes, len(representation.names))
    score_parts([name for name in rows if name not in own], most)
    score_parts(own, 1)
    return parts, missing


def why_constant(representation: Representation, rows: IntArray) -> ValueError | None:
    """That a factor is constant on a part of the rows, if one is."""
    for name, values in zip(representation.names, representation.factors.T, strict=True):
        if (values[rows] == values[rows[0]]).all():
            n_different = int((values != values[rows[0]]).sum())
            return ValueError(f"{name} differs in {n_different} of {len(values):,} rows: too few to resample")
    return None


def _together(method: Resampling, numbers: list[Numbers]) -> Parts:
    names = [name for name in numbers[0].values if all(name in each.values for each in numbers)]
    values = {name: np.array([each.values[name] for each in numbers]) for name in names}
    return Parts(method, values, np.array([each.per_factor for each in numbers]))


def _intervals(scored: Scored, parts: Parts, confidence: float) -> Intervals:
    values, per_factor = scored.numbers
    names = [name for name in values if name in parts.values]
    whole = np.array([*(values[name] for name in names), *per_factor])
    resampled = np.column_stack([*(parts.values[name] for name in names), parts.per_factor])
    ranges = [*map(scored.metric.range_of, names), *[scored.metric.range] * len(per_factor)]
    low, high = np.array(ranges).reshape(-1, 2).T
    made = intervals(whole, resampled, (low, high), parts.method, confidence)
    of_factors = tuple(made[len(names) :]) if len(per_factor) else None
    return Intervals(confidence, len(resampled), dict(zip(names, made, strict=False)), of_factors)


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
        return each.numbers

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
