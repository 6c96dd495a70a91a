"""The table of metrics: the one source for the command line, the JSON, the documentation and the tests."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from unbraid.metrics.mig import mig


@dataclass(frozen=True)
class Metric:
    """One row: how to call a metric, how to read its headline value, and which laws it obeys."""

    function: Callable[..., Any]
    title: str
    headline: str  # the field of the Result that is quoted
    best: float  # the headline value of a perfect code
    higher_is_better: bool
    range: tuple[float, float]  # of the headline; infinities where it is unbounded
    chance: float | None  # headline on codes that are independent noise; None where it depends on the factors
    means: str  # one line: what the number says
    misses: str  # one line: what it does not see
    source: str  # paper and equation
    version: int = 1  # raised whenever the same input gives another number
    needs: str = ""  # what it needs beyond codes and factors, as a phrase for "skipped"
    stochastic: bool = False  # depends on the seed
    invariant_to: frozenset[str] = frozenset({"permute", "flip", "scale"})
    tolerance: float = 1e-9  # of those invariances; for trained probes their seed spread
    aligned: bool = True  # claims axis alignment: perfect > noisy > rotated > random
    linear: bool = True  # cost grows linearly with the number of samples


METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        "mig": Metric(
            mig,
            title="Mutual information gap",
            headline="score",
            best=1.0,
            higher_is_better=True,
            range=(0.0, 1.0),
            chance=0.0,
            means="How much more the best code knows about a factor than the second best does.",
            misses="Cannot see information that only several codes carry together; two factors may share one code.",
            source="Chen et al. 2018, eq. 4; Duan et al. 2020 (UDR), eq. 14",
        ),
    }
)
