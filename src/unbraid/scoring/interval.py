"""How far a score may lie from what fresh samples of as many rows from the same source score on average."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from unbraid.base.types import FloatArray
from unbraid.metrics._shared.resampling import Resampling

FEWEST_ROWS = 40  # below which parts of the rows say nothing
FEWEST_GROUPS = 10  # likewise of whole groups of rows
MOST_SHRUNK = 1e9  # times that an interval may have to become shorter; beyond that any number of rows is too few


class Interval(NamedTuple):
    """Of one number of a metric.

    `low` and `high` hold the mean of that number over fresh samples of as many rows from the same source, with the
    confidence asked for; `deviation` is the standard deviation from one such sample to another. `bias` is how far
    that mean lies from the number of infinitely many rows, if it falls off as 1 / n_samples: no part of the interval,
    and never subtracted. None of metrics of which no simulation has shown that it does. `degrees` of freedom are those
    of Student's t, by which the deviation was multiplied.
    """

    low: float
    high: float
    deviation: float
    bias: float | None = None
    degrees: float | None = None  # None in files of before it was kept

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2


@dataclass(frozen=True, eq=False)
class Intervals:
    """Of all numbers of a metric, by the names of its values, and one per factor."""

    confidence: float
    times: int  # how many parts of the rows were scored
    values: Mapping[str, Interval]
    per_factor: tuple[Interval, ...] | None = None
    # Of a metric that draws, which share of each value's variance another seed makes on the same rows, from 0 to 1.
    by_seed: Mapping[str, float] | None = None

    def to_dict(self, factors: Sequence[str]) -> dict[str, Any]:
        """As the JSON file has it."""
        own = None if self.per_factor is None else zip(factors, self.per_factor, strict=True)
        return {
            "confidence": self.confidence,
            "times": self.times,
            "values": {name: each._asdict() for name, each in self.values.items()},
            **({} if self.by_seed is None else {"by_seed": dict(self.by_seed)}),
            **({} if own is None else {"per_factor": {name: each._asdict() for name, each in own}}),
        }


def rows_needed(deviation: float, n_samples: int, confidence: float, half_width: float, degrees: float) -> int:
    """How many rows make an interval reach `half_width` to either side, if deviations fall as 1 / sqrt(n_samples).

    `deviation` is that from one sample of `n_samples` to another, and `degrees` are those of freedom of Student's t.
    """
    reach = float(student(confidence, degrees)) * deviation
    shrunk = min(reach / half_width, MOST_SHRUNK)
    return max(FEWEST_ROWS, int(np.ceil(n_samples * shrunk**2)))


def student(confidence: float, degrees: FloatArray | float) -> FloatArray:
    """How many deviations an interval by Student's t reaches to either side, for each number of degrees of freedom."""
    from scipy.special import stdtrit  # scipy.stats, which calls it too, takes half a second to import

    return stdtrit(degrees, (1 + confidence) / 2)


def intervals(
    numbers: FloatArray,
    resampled: FloatArray,
    span: tuple[FloatArray, FloatArray],
    method: Resampling,
    confidence: float,
) -> list[Interval]:
    """One for each number.

    Args:
        numbers: (n_numbers,) of all rows.
        resampled: (n_parts, n_numbers) of parts of the rows, at least two.
        span: (n_numbers,) each, the least and the greatest that the numbers can be.
        method: which parts these are.
        confidence: in (0, 1).

    Reference:
        Shao & Wu 1989, "A General Theory for Jackknife Variance Estimation", for what is left out without replacement.
    """
    deviation = np.sqrt(method.variance(resampled))
    bias, degrees = method.bias(resampled, numbers), method.degrees(resampled)
    half = student(confidence, degrees) * deviation
    low = np.minimum(np.maximum(numbers - half, span[0]), numbers)
    high = np.maximum(np.minimum(numbers + half, span[1]), numbers)
    made = [Interval(*map(float, row)) for row in zip(low, high, deviation, bias, degrees, strict=True)]
    return made if method.bias_checked else [each._replace(bias=None) for each in made]
