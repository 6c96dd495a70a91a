"""Score models on as many rows each, since what a metric scores on average depends on the number of rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from unbraid.base.types import FloatArray, IntArray
from unbraid.data import Representation
from unbraid.files.score_file import storable
from unbraid.metrics import Metric
from unbraid.metrics._shared.resampling import Resampling, permutation
from unbraid.scoring.engine import ScoreSettings, gap_of_rows, score_each
from unbraid.scoring.interval import FEWEST_ROWS
from unbraid.scoring.result_columns import AS_MANY
from unbraid.scoring.score import FEWEST_PARTS
from unbraid.scoring.scored import Scored
from unbraid.scoring.uncertainty import Parts, scores_of_parts, seconds_of_parts, why_constant, with_interval

MOST_SUBSETS = 10  # more would shrink the deviation of a difference by less than 5 %


def subsets_of(models: Mapping[str, Representation], seed: int) -> dict[str, list[IntArray]]:
    """Disjoint subsets of the rows of each model, as large as the smallest model; all rows where it is that small.

    With weights rows count as Kish's effective number of them, on which the variance of shares depends, and so the bias
    of whatever is estimated from shares.
    """
    fewest = min(effective_rows(model) for model in models.values())
    return {name: subsets(model, fewest, seed, least=FEWEST_ROWS) for name, model in models.items()}


def subsets(representation: Representation, fewest: float, seed: int, *, least: int = 2) -> list[IntArray]:
    """As many rows as `fewest`, and no fewer than `least`: some disjoint subsets of these, or all rows."""
    n_all, effective = len(representation), effective_rows(representation)
    n_rows = max(least, round(n_all * fewest / effective))
    if effective <= AS_MANY * fewest or n_rows >= n_all:
        return [np.arange(n_all)]
    n_subsets = min(MOST_SUBSETS, n_all // n_rows)
    return list(permutation(n_all, seed)[: n_rows * n_subsets].reshape(n_subsets, n_rows))


def subsets_of_groups(models: Mapping[str, Representation], seed: int) -> dict[str, list[IntArray]]:
    """Rows of disjoint subsets of the groups of each model, as many groups as the model with the fewest has.

    Of a model with more rows per group than that with the fewest has on average, the same share of the rows of each
    group is drawn. All rows where neither is needed.
    """
    n_groups = {name: int(_groups(model).max()) + 1 for name, model in models.items()}
    rows_per_group = {name: effective_rows(model) / n_groups[name] for name, model in models.items()}
    fewest, least = min(n_groups.values()), min(rows_per_group.values())
    by_model = {}
    for name, model in models.items():
        share = least / rows_per_group[name]
        share = 1.0 if AS_MANY * share >= 1 else share
        n_chosen = n_groups[name] if n_groups[name] <= AS_MANY * fewest else fewest
        n_subsets = min(MOST_SUBSETS, n_groups[name] // n_chosen)
        chosen = permutation(n_groups[name], seed)[: n_chosen * n_subsets].reshape(n_subsets, n_chosen)
        groups = _groups(model)
        rows = _some_of_each_group(groups, share, seed)
        by_model[name] = [rows[np.isin(groups[rows], own)] for own in chosen]
    return by_model


def _groups(representation: Representation) -> IntArray:
    """(n_samples,); each row is a group where none are known."""
    return np.arange(len(representation)) if representation.groups is None else representation.groups


def _some_of_each_group(groups: IntArray, share: float, seed: int) -> IntArray:
    """Rows in their order: of each group this share, and at least one."""
    order = permutation(len(groups), seed)
    order = order[np.argsort(groups[order], kind="stable")]
    sizes = np.bincount(groups)
    place = np.arange(len(groups)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    n_drawn = np.maximum(1, np.rint(share * sizes))
    return np.sort(order[place < np.repeat(n_drawn, sizes)])


def effective_rows(representation: Representation) -> float:
    """How many rows of equal weight tell a share as exactly as these.

    Reference:
        Kish 1965, "Survey Sampling".
    """
    if (weights := representation.weights) is None:
        return float(len(representation))
    return float(weights.sum() ** 2 / np.sum(weights**2))


def notes_on_subsets(models: Mapping[str, Representation], subsets: Mapping[str, Sequence[IntArray]]) -> list[str]:
    """A note on each model of which not all rows are scored at once."""
    notes = []
    for name, own in subsets.items():
        n_rows, n_all, groups = len(own[0]), len(models[name]), models[name].groups
        if n_rows < n_all:
            several = f"{len(own)} disjoint subsets of " if len(own) > 1 else ""
            if groups is not None:
                several += f"{len(np.unique(groups[own[0]])):,} of its {groups.max() + 1:,} groups, "
            notes.append(
                f"scores depend on the number of rows: {name} is scored on {several}{n_rows:,} of its {n_all:,} rows, "
                "drawn with the seed, which count as much as those of the smallest model"
            )
    return notes


@dataclass(frozen=True, eq=False)
class Sampled:
    """A metric's headline of each subset of the rows of a model, and of parts of these."""

    method: Resampling
    scores: list[float]
    parts: list[FloatArray]  # of each subset, (n_parts,)

    @classmethod
    def from_subsets(cls, subsets: Sequence[tuple[Scored, Parts]]) -> "Sampled":
        headline = subsets[0][0].metric.headline
        parts = [each.values[headline] for _, each in subsets]
        return cls(subsets[0][1].method, [scored.headline for scored, _ in subsets], parts)

    @property
    def score(self) -> float:
        return float(np.mean(self.scores))

    @property
    def variance(self) -> float:
        """Of `score` from sample to sample: that of one subset, by its parts, over the number of subsets.

        Subsets share no rows, so that their scores are independent.
        """
        return float(np.mean([self.method.variance(each) for each in self.parts]) / len(self.parts))

    @property
    def degrees(self) -> float:
        """Of freedom of `variance`."""
        return float(sum(self.method.degrees(each) for each in self.parts))


def sampled(
    representation: Representation,
    scored: Mapping[str, Scored],
    subsets: Sequence[IntArray],
    confidence: float,
    n_parts: int | None,
    settings: ScoreSettings,
) -> tuple[dict[str, Scored], dict[str, Sampled]]:
    """The scores, with intervals where a subset is all rows; and each metric on subsets of the rows.

    Args:
        representation: that was scored.
        scored: whose metrics are taken.
        subsets: as `subsets_of` gives them.
        confidence: of the intervals.
        n_parts: parts in all, shared among subsets; default what the table of metrics says.
        settings: of the scoring.
    """
    if len(subsets[0]) == len(representation):
        parts, missing = scores_of_parts(representation, scored, n_parts, settings)
        intervals = {
            name: with_interval(each, parts.get(name), missing.get(name, ""), confidence)
            for name, each in scored.items()
        }
        return intervals, {name: Sampled.from_subsets([(scored[name], each)]) for name, each in parts.items()}
    rows = {name: _with_parts(each.metric, n_parts, len(subsets)) for name, each in scored.items()}
    missing = {name: row.interval for name, row in rows.items() if isinstance(row.interval, str)}
    by_metric: dict[str, list[tuple[Scored, Parts]]] = {name: [] for name in rows}
    share = len(subsets[0]) / len(representation)
    costs = {name: share * each.seconds for name, each in scored.items()}
    for done, subset in enumerate(subsets, start=1):
        left = {name: row for name, row in rows.items() if name not in missing}
        of_parts = sum(seconds_of_parts(left, costs, None).values())
        following = settings.followed_by((len(subsets) - done) * (sum(costs[name] for name in left) + of_parts))
        following.expect([costs[name] for name in left], of_parts)
        its_own = replace(following, held_out=gap_of_rows(settings.held_out, len(representation), subset))
        made, unable = _with_its_parts(representation, subset, left, its_own)
        missing |= unable
        for name, pair in made.items():
            by_metric[name].append(pair)
    reason = f"compared on {len(subsets)} × {len(subsets[0]):,} of these rows"
    without = {name: replace(each, no_interval=missing.get(name, reason)) for name, each in scored.items()}
    return without, {name: Sampled.from_subsets(each) for name, each in by_metric.items() if name not in missing}


def _with_parts(metric: Metric, n_parts: int | None, n_subsets: int) -> Metric:
    """The same with its parts of the rows shared among subsets."""
    if isinstance(method := metric.interval, str):
        return metric
    its_own = max(FEWEST_PARTS, -(-(n_parts or method.n_parts) // n_subsets))
    return replace(metric, interval=method.of_parts(its_own))


def _with_its_parts(
    whole: Representation, subset_rows: IntArray, rows: Mapping[str, Metric], settings: ScoreSettings
) -> tuple[dict[str, tuple[Scored, Parts]], dict[str, str]]:
    """Each metric of a subset and of its parts, and of those that cannot be scored there, why not."""
    subset = whole.keep_rows(subset_rows)
    few = f"{len(subset):,} of the rows cannot be scored"
    try:
        results = dict(
            score_each(
                subset, rows, seed=settings.seed, held_out=settings.held_out, with_chance=False,
                progress=settings.progress,
            )
        )  # fmt: skip
    except ValueError as error:  # of all metrics: a factor that has one level left
        reason = why_constant(whole, subset_rows) or error
        return {}, dict.fromkeys(rows, f"{few}: {reason}")
    scored = {name: each for name, each in results.items() if isinstance(each, Scored)}
    unable = {name: f"{few}: {storable(each)}" for name, each in results.items() if isinstance(each, Exception)}
    parts, missing = scores_of_parts(subset, scored, None, settings)
    return {name: (scored[name], each) for name, each in parts.items()}, unable | missing
