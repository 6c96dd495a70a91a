"""Score the rows of a card again: shuffled, for what luck would score, and in parts, for how sure a score is."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from unbraid._interval import Intervals, intervals
from unbraid._null import null_of, shuffled
from unbraid._score_each import Gap, score_each
from unbraid.metrics import Metric
from unbraid.metrics.resampling import Resampling, part_of_rows
from unbraid.representation import Representation
from unbraid.scorecard import Scored
from unbraid.types import FloatArray, Progress


def with_nulls(
    representation: Representation,
    scored: Mapping[str, Scored],
    n_shuffles: int,
    seed: int,
    gap: Gap | None,
    progress: Progress | None,
) -> dict[str, Scored]:
    """The same with the null of each metric that looks at factors."""
    draws: dict[str, list[float]] = {name: [] for name, each in scored.items() if each.metric.needs_factors}
    apart = [name for name in draws if scored[name].objects is not None]
    sources = [(representation, [name for name in draws if name not in apart], gap)]
    sources += [(held, [name], None) for name in apart if (held := scored[name].objects) is not None]
    for done in range(n_shuffles):
        told = _telling(progress, "shuffled", done, n_shuffles)
        for held, names, its_gap in sources:
            rows = {name: scored[name].metric for name in names}
            moved = shuffled(held, [seed, done])
            for name, each in score_each(moved, rows, seed=seed, gap=its_gap, noise=False, progress=told):
                if isinstance(each, Exception):
                    raise each
                draws[name].append(each.headline)
    nulls = {name: null_of(scored[name].metric, scored[name].headline, np.array(each)) for name, each in draws.items()}
    return {name: replace(each, null=nulls.get(name)) for name, each in scored.items()}


def with_intervals(
    representation: Representation,
    scored: Mapping[str, Scored],
    confidence: float,
    times: int | None,
    seed: int,
    gap: Gap | None,
    progress: Progress | None,
) -> dict[str, Scored]:
    """The same with an interval for every number of each metric, or the reason why it has none."""
    found: dict[str, Scored] = {}
    for method, names in _by_method(scored).items():
        if isinstance(method, str):
            found |= {name: replace(scored[name], no_interval=method) for name in names}
            continue
        method = method if times is None else replace(method, times=times)
        parts, missing = scores_of_parts(
            representation, {name: scored[name].metric for name in names}, method, seed, gap, progress
        )
        for name in names:
            if name in missing:
                found[name] = replace(scored[name], no_interval=missing[name])
            else:
                found[name] = replace(scored[name], intervals=_intervals(scored[name], parts[name], method, confidence))
    return {name: found[name] for name in scored}


def scores_of_parts(
    representation: Representation,
    rows: Mapping[str, Metric],
    method: Resampling,
    seed: int,
    gap: Gap | None,
    progress: Progress | None,
) -> tuple[dict[str, list[Scored]], dict[str, str]]:
    """Each metric of each part of the rows, and of the metrics that a part cannot be scored by, why not."""
    parts: dict[str, list[Scored]] = {name: [] for name in rows}
    missing: dict[str, str] = {}
    for done in range(method.times):
        draw = np.random.default_rng([seed, method.one_in, done])
        part = part_of_rows(len(representation), method.one_in, seed, draw)
        left = {name: metric for name, metric in rows.items() if name not in missing}
        told = _telling(progress, "rows drawn anew", done, method.times)
        its_gap = gap[part] if isinstance(gap, np.ndarray) else gap
        rows_left = representation.keep_rows(part)
        try:
            for name, each in score_each(rows_left, left, seed=seed, gap=its_gap, noise=False, progress=told):
                if isinstance(each, ValueError):
                    missing[name] = f"part of the rows cannot be scored: {each}"
                elif isinstance(each, Exception):
                    raise each
                else:
                    parts[name].append(each)
        except ValueError as error:  # of all metrics: a factor that has one level left
            return {}, dict.fromkeys(rows, f"part of the rows cannot be scored: {error}")
        if len(missing) == len(rows):
            break
    return parts, missing


def numbers_of(scored: Scored) -> tuple[dict[str, float], FloatArray]:
    """Its values, and one number per factor or none."""
    return scored.values, np.asarray(getattr(scored.result, "per_factor", ()), dtype=float)


def _intervals(scored: Scored, parts: Sequence[Scored], method: Resampling, confidence: float) -> Intervals:
    values, per_factor = numbers_of(scored)
    known = [numbers_of(each) for each in parts]
    names = [name for name in values if all(name in own for own, _ in known)]
    whole = np.array([*(values[name] for name in names), *per_factor])
    resampled = np.array([[*(own[name] for name in names), *of_factors] for own, of_factors in known])
    bounded = [name == scored.metric.headline for name in names] + [True] * len(per_factor)
    low, high = (
        np.where(bounded, end, other) for end, other in zip(scored.metric.range, (-np.inf, np.inf), strict=True)
    )
    made = intervals(whole, resampled, (low, high), method, confidence)
    of_factors = tuple(made[len(names) :]) if len(per_factor) else None
    return Intervals(confidence, method.times, dict(zip(names, made, strict=False)), of_factors)


def _by_method(scored: Mapping[str, Scored]) -> dict[Resampling | str, list[str]]:
    """Metrics by how their interval is found, or why they have none."""
    found: dict[Resampling | str, list[str]] = {}
    for name, each in scored.items():
        found.setdefault(each.metric.interval, []).append(name)
    return found


def _telling(progress: Progress | None, what: str, done: int, total: int) -> Progress | None:
    """Tells of rounds over all metrics in place of metrics."""
    return None if progress is None else lambda name, _, __: progress(f"{name}, {what}", done, total)
