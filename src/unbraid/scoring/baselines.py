"""Scores of baselines without training on the same images, and whether a score is better than these."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # half a second, which no command waits for in vain
    from unbraid.data import Representation

PROJECTION, COMPONENTS, UNTRAINED = "random projection", "PCA", "untrained encoder"
NO_BETTER, MARK = "no better than its best baseline", "†"  # beside a score that a baseline has as well
ABOVE = "above_baselines"  # the column of a study's results that says so of a run
ROUNDING = 1e-12  # of the larger score: a rotation of the same codes scores the same by many a metric, but for this


class Baseline(NamedTuple):
    """Codes of the images of a card, and of whole objects for the metrics that need these."""

    representation: "Representation"
    objects: "Callable[[], Representation] | None" = None

    def keep_factors(self, names: Sequence[str]) -> "Baseline":
        """The same with these factors alone."""
        objects = self.objects
        return Baseline(
            self.representation.keep_factors(names),
            None if objects is None else (lambda: objects().keep_factors(names)),
        )


def best_baseline(higher_is_better: bool, scores: Mapping[str, float]) -> float | None:
    """The best score of the baselines, by name, that a metric is defined for; None without any."""
    return (max if higher_is_better else min)(scores.values(), default=None)


def no_better(higher_is_better: bool, headline: float, scores: Mapping[str, float]) -> bool:
    """Whether one of the baselines scores as well."""
    best = best_baseline(higher_is_better, scores)
    if best is None:
        return False
    ahead = headline - best if higher_is_better else best - headline
    return ahead <= ROUNDING * max(abs(headline), abs(best))


def baseline_notes(higher_is_better: bool, headline: float, scores: Mapping[str, float]) -> tuple[str, ...]:
    """The note on a score; none without baselines."""
    if not scores:
        return ()
    listed = ", ".join(f"{name} {score:z.3f}" for name, score in scores.items())
    return (f"{NO_BETTER if no_better(higher_is_better, headline, scores) else 'baselines'}: {listed}",)
