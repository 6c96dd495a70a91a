"""Score the rows of a card again: shuffled, for what luck would score, and in parts, for how sure a score is."""

import inspect
from collections.abc import Mapping
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from threading import Event
from typing import TypeAlias

import numpy as np

from unbraid.base.threads import go_on, in_order
from unbraid.base.types import FloatArray, IntArray, Progress
from unbraid.data import Representation
from unbraid.files.score_file import storable
from unbraid.metrics import Metric, NotDefined
from unbraid.metrics._shared.compiled import interruptible
from unbraid.metrics._shared.resampling import Numbers, Resampling, draw_part
from unbraid.metrics._shared.sharing import same_codes
from unbraid.scoring.baselines import Baseline
from unbraid.scoring.card import OnError, Scored, kept
from unbraid.scoring.card_memory import scores_at_a_time
from unbraid.scoring.engine import Gap, context_of, gap_of_rows, inputs_of, of_no_metric, score_each
from unbraid.scoring.interval import Intervals, intervals, shares_of_seeds
from unbraid.scoring.null import IN_WORDS, Null, Shuffle, null_of
from unbraid.scoring.resampled import numbers_of, part_scorer

ORDERED = 1_000_000  # levels in all orders that `of_shuffles` is given at once
SEEDS = 5  # under which a metric that draws is scored, to say how much its own luck moves it


@dataclass(frozen=True)
class Again:
    """How the metrics of a card are scored again."""

    seed: int
    held_out: Gap | None = None
    progress: Progress | None = None
    on_error: OnError = kept

    def tell(self, what: str, done: int, total: int) -> None:
        if self.progress is not None and done < total:
            self.progress(what, done, total)

    def telling(self, what: str, done: int, total: int) -> Progress | None:
        """Tells of rounds over all metrics in place of metrics."""
        tell = self.progress
        return None if tell is None else lambda name, _, __: tell(f"{name}, {what}", done, total)


# What is moved, how, for which metrics, and what `zero_shot` holds out of it.
_Source: TypeAlias = tuple[Representation, Shuffle, list[str], Gap | None]


@dataclass(frozen=True)
class Parts:
    """A metric's numbers on parts of the rows: the same parts for every representation of as many rows and groups."""

    method: Resampling
    values: Mapping[str, FloatArray]  # (n_parts,) of those that all parts have
    per_factor: FloatArray  # (n_parts, n_factors), or (n_parts, 0)


def with_nulls(
    representation: Representation, scored: Mapping[str, Scored], shuffle: Shuffle, how: Again
) -> dict[str, Scored]:
    """The same with the null of each metric that looks at factors, or the reason why it has none."""
    draws: dict[str, list[float]] = {name: [] for name, each in scored.items() if each.metric.needs_factors}
    of_factors: dict[str, list[FloatArray]] = {name: [] for name in draws}
    missing: dict[str, str] = {}
    held_against = {name: _to_be_moved(scored[name]) for name in draws}
    apart = [name for name in draws if scored[name].objects is not None]
    groups, n_samples = representation.groups, len(representation)
    plain = shuffle.moved == "rows" and representation.weights is None
    together = [name for name in draws if plain and name not in apart and scored[name].metric.of_shuffles is not None]
    others = [name for name in draws if name not in (*apart, *together)]
    representation = replace(representation, codes=inputs_of(representation).held)  # as metrics read them, made once
    # A user's function is never called in two threads.
    own = [name for name in others if scored[name].metric.own or callable(how.held_out)]
    builtin = [name for name in others if name not in own]
    # Whole objects were encoded for it: no trial and no series.
    objects = [(held, Shuffle("rows", 1), [name], None) for name in apart if (held := scored[name].objects) is not None]
    most = scores_at_a_time(scored, representation.codes, len(representation.names))

    def again(
        held: Representation, names: list[str], held_out: Gap | None, progress: Progress | None
    ) -> dict[str, Scored | Exception]:
        rows = {name: scored[name].metric for name in names if name not in missing}
        return dict(score_each(held, rows, seed=how.seed, held_out=held_out, with_chance=False, progress=progress))

    def taken(found: Mapping[str, Scored | Exception]) -> dict[str, tuple[float, FloatArray]]:
        for name, each in found.items():
            if isinstance(each, Exception) and name not in missing:
                missing[name] = storable(each) if isinstance(each, NotDefined) else how.on_error(name, each).reason
        return {name: _to_be_moved(each) for name, each in found.items() if isinstance(each, Scored)}

    def score_shuffles(sources: list[_Source], at_once: int) -> None:
        asked = ", ".join(name for _, _, names, _ in sources for name in names)

        def scores(done: int, stopped: Event) -> dict[str, Scored | Exception]:
            # Of several at once the caller's thread tells the progress.
            alone = how.telling(IN_WORDS[shuffle.moved], done, shuffle.times)
            told = alone if at_once == 1 else lambda *_: go_on(stopped)
            found: dict[str, Scored | Exception] = {}
            for held, moving, names, held_out in sources:
                gap = gap_of_rows(held_out, len(held), moving.labels(held.groups, len(held), how.seed, done))
                found |= again(moving.of(held, how.seed, done), names, gap, told)
            return found

        how.tell(f"{asked}, {IN_WORDS[shuffle.moved]}", 0, shuffle.times if asked else 0)
        with closing(in_order(scores, range(shuffle.times) if asked else (), at_once)) as shuffles:
            for done, found in shuffles:
                for name, (headline, per_factor) in taken(found).items():
                    draws[name].append(headline)
                    of_factors[name].append(per_factor)
                if at_once > 1:
                    how.tell(f"{asked}, {IN_WORDS[shuffle.moved]}", done + 1, shuffle.times)

    if shuffle.moved == "shift":
        middle = shuffle.unmoved(representation)
        gap = gap_of_rows(how.held_out, n_samples, shuffle.labels(groups, n_samples, how.seed, 0))
        held_against |= taken(again(middle, others, gap, how.telling("middle half of the rows", 0, 1)))
    with same_codes() if shuffle.moved == "rows" else nullcontext():
        rows = {name: scored[name].metric for name in together}
        for name, found in _of_shuffles(representation, rows, shuffle, how, most).items():
            if isinstance(found, Exception):
                missing[name] = how.on_error(name, found).reason
            else:
                held_against[name], *moved = found
                draws[name], of_factors[name] = [each for each, _ in moved], [each for _, each in moved]
        score_shuffles([(representation, shuffle, builtin, how.held_out), *objects], most)
        score_shuffles([(representation, shuffle, own, how.held_out)], 1)
    nulls: dict[str, Null] = {}
    for name, each in draws.items():
        if name not in missing:
            headline, own = held_against[name]
            moved = "rows" if name in apart else shuffle.moved
            beside = (own, np.array(of_factors[name])) if len(own) else None
            nulls[name] = null_of(scored[name].metric, headline, np.array(each), moved, beside)
    return {name: replace(each, null=nulls.get(name), no_null=missing.get(name, "")) for name, each in scored.items()}


def _of_shuffles(
    representation: Representation, metrics: Mapping[str, Metric], shuffle: Shuffle, how: Again, most: int
) -> dict[str, list[tuple[float, FloatArray]] | Exception]:
    """Of each metric the headline and what it says of each factor: of the rows as they are, and of each shuffle."""
    inputs, n_samples = inputs_of(representation), len(representation)
    context = context_of(representation, how.seed, how.held_out)
    at_once = max(1, ORDERED // (n_samples * max(1, inputs.n_factors)))
    firsts = (None, *range(0, shuffle.times, at_once))
    found: dict[str, list[tuple[float, FloatArray]] | Exception] = {name: [] for name in metrics}

    def scores(task: tuple[str, int | None], _: object) -> list[tuple[float, FloatArray]] | Exception:
        name, first = task
        orders = [np.arange(n_samples)]
        if first is not None:
            which = range(first, min(first + at_once, shuffle.times))
            orders = [shuffle.rows(None, n_samples, how.seed, number)[1] for number in which]
        assert (of_shuffles := metrics[name].of_shuffles) is not None
        asked = inspect.signature(of_shuffles).parameters
        try:
            with interruptible():
                given = {name: value for name, value in context.items() if name in asked}
                return of_shuffles(inputs, np.array(orders), **given)
        except Exception as error:
            if of_no_metric(error):
                raise
            return error

    tasks = [(name, first) for name in metrics for first in firsts]
    how.tell(f"{', '.join(metrics)}, {IN_WORDS[shuffle.moved]}", 0, len(tasks))
    with closing(in_order(scores, tasks, most)) as done:
        for number, ((name, _), scored) in enumerate(done):
            own = found[name]
            if isinstance(scored, Exception) or isinstance(own, Exception):
                found[name] = own if isinstance(own, Exception) else scored
            else:
                own += scored
            how.tell(f"{name}, {IN_WORDS[shuffle.moved]}", number + 1, len(tasks))
    return found


def _to_be_moved(scored: Scored) -> tuple[float, FloatArray]:
    """The headline, and (n_factors,) or (0,) what the metric says of each factor."""
    return scored.headline, numbers_of(scored).per_factor


def with_baselines(scored: Mapping[str, Scored], baselines: Mapping[str, Baseline], how: Again) -> dict[str, Scored]:
    """The same with what baselines score by each metric that is defined for them."""
    rows = {name: each.metric for name, each in scored.items()}
    found: dict[str, dict[str, float]] = {name: {} for name in scored}
    missing: dict[str, dict[str, str]] = {name: {} for name in scored}
    for done, (title, (held, objects)) in enumerate(baselines.items()):
        told = how.telling(title, done, len(baselines))
        for name, each in score_each(
            held, rows, seed=how.seed, held_out=how.held_out, objects=objects, with_chance=False, progress=told
        ):
            if isinstance(each, Scored):
                found[name][title] = each.headline
            elif not isinstance(each, NotDefined):
                missing[name][title] = how.on_error(name, each).reason
    return {name: replace(each, baselines=found[name], no_baselines=missing[name]) for name, each in scored.items()}


def with_intervals(
    representation: Representation, scored: Mapping[str, Scored], confidence: float, times: int | None, how: Again
) -> dict[str, Scored]:
    """The same with an interval for every number of each metric, or the reason why it has none."""
    parts, missing = scores_of_parts(representation, scored, times, how)
    made = {
        name: with_interval(each, parts.get(name), missing.get(name, ""), confidence) for name, each in scored.items()
    }
    for name, variances in _variances_of_seeds(representation, made, how).items():
        if (known := made[name].intervals) is not None:
            made[name] = replace(made[name], intervals=replace(known, by_seed=shares_of_seeds(known, variances)))
    return made


def _variances_of_seeds(
    representation: Representation, scored: Mapping[str, Scored], how: Again
) -> dict[str, dict[str, float]]:
    """The variance over seeds of each value, all rows as they are, of metrics that draw and have intervals."""
    rows = {name: each.metric for name, each in scored.items() if each.metric.stochastic and each.intervals is not None}
    found, known = {name: [dict(scored[name].values)] for name in rows}, {}
    for done in range(1, SEEDS if rows else 0):
        if how.progress is not None:
            how.progress(f"{', '.join(rows)}, another seed", done - 1, SEEDS - 1)
        scorer = part_scorer(representation, rows, how.seed + done, how.held_out, known)
        for name, each in scorer(np.arange(len(representation)), list(rows)).items():
            if isinstance(each, Exception):  # what another seed cannot score has no share
                found.pop(name, None)
            elif name in found:
                found[name].append(dict(each.values))
    return {
        name: {value: float(np.var([each[value] for each in draws], ddof=1)) for value in draws[0]}
        for name, draws in found.items()
    }


def with_interval(scored: Scored, parts: Parts | None, missing: str, confidence: float) -> Scored:
    """The same with its intervals, or the reason why it has none."""
    if parts is None:
        return replace(scored, no_interval=missing)
    return replace(scored, intervals=_intervals(scored, parts, confidence))


def scores_of_parts(
    representation: Representation, scored: Mapping[str, Scored], times: int | None, how: Again
) -> tuple[dict[str, Parts], dict[str, str]]:
    """Each metric of parts of the rows, and of those that have no interval, why not."""
    found: dict[str, Parts] = {}
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
        parts, unscored = _scores_by(method, representation, rows, how)
        missing |= unscored
        found |= {name: _together(method, parts[name]) for name in names if name not in unscored}
    return found, missing


def _scores_by(
    method: Resampling, representation: Representation, rows: Mapping[str, Metric], how: Again
) -> tuple[dict[str, list[Numbers]], dict[str, str]]:
    """Each metric of each part of the rows, and of the metrics that a part cannot be scored by, why not."""
    parts: dict[str, list[Numbers]] = {name: [] for name in rows}
    missing: dict[str, str] = {}
    scorer = part_scorer(representation, rows, how.seed, how.held_out)
    # A user's function is never called in two threads.
    own = [name for name, metric in rows.items() if metric.own or callable(how.held_out)]
    most = scores_at_a_time(rows, representation.codes, len(representation.names))

    def score_parts(names: list[str], at_once: int) -> None:
        def scores(done: int, stopped: Event) -> dict[str, Numbers | Exception]:
            part = draw_part(len(representation), representation.groups, method, how.seed, done)
            left = [name for name in names if name not in missing]
            try:
                return scorer(part, (name for name in left if not stopped.is_set()))
            except ValueError as error:  # of all metrics: a factor that has one level left
                return dict.fromkeys(left, why_constant(representation, part) or error)

        how.tell(f"{', '.join(names)}, resampled rows", 0, method.n_parts if names else 0)
        with closing(in_order(scores, range(method.n_parts) if names else (), at_once)) as found_of_parts:
            for done, found in found_of_parts:
                for name, each in found.items():
                    if isinstance(each, Exception):
                        reason = str(each) if isinstance(each, ValueError) else how.on_error(name, each).reason
                        missing.setdefault(name, f"part of the rows cannot be scored: {reason}")
                    else:
                        parts[name].append(each)
                if not (left := [name for name in names if name not in missing]):
                    break
                how.tell(f"{', '.join(left)}, resampled rows", done + 1, method.n_parts)

    score_parts([name for name in rows if name not in own], most)
    score_parts(own, 1)
    return parts, missing


def why_constant(representation: Representation, rows: IntArray) -> ValueError | None:
    """That a factor with few rows off its commonest level is constant on a part of the rows, if one is."""
    for column, values in enumerate(representation.factors.T):
        if (values[rows] == (level := values[rows[0]])).all():
            n_others, levels = int((values != level).sum()), representation.levels[column : column + 1]
            called = levels[0][int(level)] if levels and levels[0] else f"{level:g}"
            have = f"{n_others} of {len(values):,} rows {'has' if n_others == 1 else 'have'}"
            return ValueError(f"only {have} another {representation.names[column]} than {called}: too few to resample")
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
    found: dict[Resampling | str, list[str]] = {}
    for name, each in scored.items():
        found.setdefault(each.metric.interval, []).append(name)
    return found
