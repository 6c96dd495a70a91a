"""What a metric gives where codes and factors have nothing to do with each other: the same rows, shuffled."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from unbraid._shown import WITHIN
from unbraid.metrics import Metric
from unbraid.representation import POSTERIOR, Representation
from unbraid.types import FloatArray


@dataclass(frozen=True, eq=False)
class Null:
    """A headline beside those of shuffled rows.

    `scores` (n_shuffles,); `p` the share of shuffles that score at least as well, the unshuffled rows counted as one of
    them, so that it is never below 1 / (n_shuffles + 1); `above` (score - mean) / (best - mean), 1 for the best
    value of the metric and 0 for the mean of the null, None where the metric has no best value beyond that mean.
    """

    scores: FloatArray
    p: float
    above: float | None

    @property
    def mean(self) -> float:
        return float(self.scores.mean())

    @property
    def spread(self) -> float:
        """Standard deviation from one shuffle to another; 0 of a single one."""
        return float(self.scores.std(ddof=1)) if len(self.scores) > 1 else 0.0

    @property
    def note(self) -> str:
        within = "not told from its null: " if self.p > WITHIN else ""
        shuffled = f"with rows shuffled {self.mean:.3f} ± {self.spread:.3f}"
        return f"{within}{shuffled} ({len(self.scores)} times, p = {self.p:.2g})"

    def to_dict(self) -> dict[str, object]:
        """As the JSON file has it."""
        numbers = {name: getattr(self, name) for name in ("mean", "spread", "p", "above")}
        return {"scores": self.scores.tolist(), **numbers}


def shuffled(representation: Representation, seed: Sequence[int]) -> Representation:
    """The same codes, with their posteriors, beside factors of other rows; the same rows for the same seed."""
    rows = np.random.default_rng(seed).permutation(len(representation))
    moved = {name: getattr(representation, name) for name in ("codes", *POSTERIOR)}
    return replace(representation, **{name: array[rows] for name, array in moved.items() if array is not None})


def null_of(metric: Metric, headline: float, scores: FloatArray) -> Null:
    """Of the headline of a metric, and those of shuffled rows."""
    sign = 1 if metric.higher_is_better else -1
    as_good = int(np.sum(sign * scores >= sign * headline))
    room = metric.best - scores.mean()
    above = (headline - scores.mean()) / room if np.isfinite(room) and sign * room > 1e-9 else None
    return Null(scores, (1 + as_good) / (1 + len(scores)), None if above is None else float(above))
