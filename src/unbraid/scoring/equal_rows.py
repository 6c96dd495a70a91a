"""Score models on as many rows each, since what a metric scores on average depends on the number of rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from unbraid.base.types import FloatArray, IntArray
from unbraid.data import Representation
from unbraid.files.score_file import storable
from unbraid.metrics import Metric
from unbraid.metrics._shared.resampling import Resampling, permutation
from unbraid.scoring.card import ScoreCard, Scored
from unbraid.scoring.comparable_runs import AS_MANY
from unbraid.scoring.engine import gap_of_rows, score_each
from unbraid.scoring.interval import FEWEST_ROWS
from unbraid.scoring.score import FEWEST_PARTS
from unbraid.scoring.uncertainty import Parts, ScoreSettings, scores_of_parts, why_constant, with_interval

MOST_SUBSETS = 10  # more would shrink the deviation of a difference by less than 5 %


def subsets_of(models: Mapping[str, Representation], seed: int) -> dict[str, list[IntArray]]:
    """Disjoint subsets of the rows of each model, as large as the smallest model; all rows where it is that small.

    With weights rows count as Kish's effective number of them, on which the variance of shares depends, and so the bias
    of whatever is estimated from shares.
    """
    fewest = min(effective_rows(each) for each in models.values())
    return {name: subsets(each, fewest, seed, least=FEWEST_ROWS) for name, each in models.items()}


def subsets(representation: Representation, fewest: float, seed: int, *, least: int = 2) -> list[IntArray]:
    """As many rows as `fewest`, and no fewer than `least`: some disjoint subsets of these, or all rows."""
    n_all, effective = len(representation), effective_rows(representation)
    n_rows = max(least, round(n_all * fewest / effective))
    if effective <= AS_MANY * fewest or n_rows >= n_all:
        return [np.arange(n_all)]
    n_subsets = min(MOST_SUBSETS, n_all // n_rows)
    return list(permutation(n_all, seed)[: n_rows * n_subsets].reshape(n_subsets, n_rows))


def effective_rows(representation: Representation) -> float:
    """How many rows of equal weight tell a share as exactly as these.

    Reference:
        Kish 1965, "Survey Sampling".
    """
    if (weights := representation.weights) is None:
        return float(len(representation))
    return float(weights.sum() ** 2 / np.sum(weights**2))


def why_fewer(models: Mapping[str, Representation], subsets: Mapping[str, Sequence[IntArray]]) -> list[str]:
    """A note on each model of which not all rows are scored at once."""
    notes = []
    smallest = min(models, key=lambda name: effective_rows(models[name]))
    for name, own in subsets.items():
        if (n_rows := len(own[0])) == len(models[name]):
            continue
        scope = f"{n_rows:,} of the {len(models[name]):,} rows of {name} are scored, drawn with the seed"
        if len(own) > 1:
            scope = (
                f"{name} is scored on {len(own)} disjoint subsets of {n_rows:,} of its {len(models[name]):,} rows, "
                "drawn with the seed, and its scores are means over them"
            )
        counted = "" if models[name].weights is None else ", as its weights count"
        notes.append(f"scores depend on the number of rows: {scope}, since {smallest} has as many{counted}")
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
    card: ScoreCard,
    subsets: Sequence[IntArray],
    confidence: float,
    n_parts: int | None,
    settings: ScoreSettings,
) -> tuple[ScoreCard, dict[str, Sampled]]:
    """Each metric of the card on subsets of the rows; and the card, with intervals where a subset is all rows.

    Args:
        representation: that of the card.
        card: whose metrics are taken.
        subsets: as `subsets_of` gives them.
        confidence: of the intervals.
        n_parts: parts in all, shared among subsets; default what the table of metrics says.
        settings: of the scoring.
    """
    if len(subsets[0]) == len(representation):
        parts, missing = scores_of_parts(representation, card.scored, n_parts, settings)
        scored = {
            name: with_interval(each, parts.get(name), missing.get(name, ""), confidence)
            for name, each in card.scored.items()
        }
        return replace(card, scored=scored), {
            name: Sampled.from_subsets([(scored[name], each)]) for name, each in parts.items()
        }
    rows = {name: _with_parts(each.metric, n_parts, len(subsets)) for name, each in card.scored.items()}
    missing = {name: row.interval for name, row in rows.items() if isinstance(row.interval, str)}
    by_metric: dict[str, list[tuple[Scored, Parts]]] = {name: [] for name in rows}
    for subset in subsets:
        left = {name: row for name, row in rows.items() if name not in missing}
        its_own = replace(settings, held_out=gap_of_rows(settings.held_out, len(representation), subset))
        made, unable = _with_its_parts(representation, subset, left, its_own)
        missing |= unable
        for name, each in made.items():
            by_metric[name].append(each)
    reason = f"compared on {len(subsets)} × {len(subsets[0]):,} of these rows"
    scored = {
        name: with_interval(each, None, missing.get(name, reason), confidence) for name, each in card.scored.items()
    }
    return replace(card, scored=scored), {
        name: Sampled.from_subsets(each) for name, each in by_metric.items() if name not in missing
    }


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
    scored: dict[str, Scored] = {}
    unable: dict[str, str] = {}
    few = f"{len(subset):,} of the rows cannot be scored"
    try:
        for name, each in score_each(
            subset, rows, seed=settings.seed, held_out=settings.held_out, with_chance=False, progress=settings.progress
        ):
            if isinstance(each, Scored):
                scored[name] = each
            else:
                unable[name] = f"{few}: {storable(each)}"
    except ValueError as error:  # of all metrics: a factor that has one level left
        reason = why_constant(whole, subset_rows) or error
        return {}, dict.fromkeys(rows, f"{few}: {reason}")
    parts, missing = scores_of_parts(subset, scored, None, settings)
    return {name: (scored[name], each) for name, each in parts.items()}, unable | missing
