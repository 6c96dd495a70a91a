"""The models on which two metrics disagree most."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from unbraid._utils.optional import require
from unbraid.analysis.columns import check_columns, higher_is_better, numbers
from unbraid.analysis.correlation import ranks
from unbraid.types import DataFrame

__all__ = ["Controversial", "Controversy", "controversial"]


@dataclass(frozen=True)
class Controversial:
    run: str
    family: str
    setting: str
    first: float  # value of the first metric
    second: float
    first_rank: float  # 1 for the worst model, n for the best
    second_rank: float
    above_first: float  # share of the other models, in [0, 1], that the first metric calls worse
    above_second: float

    @property
    def disagreement(self) -> float:
        """How many places higher the first metric ranks the model."""
        return self.first_rank - self.second_rank


@dataclass(frozen=True)
class Controversy:
    """Models that `first` believes to be disentangled and `second` does not, the most controversial first."""

    first: str
    second: str
    n: int  # runs that have both
    models: tuple[Controversial, ...]

    def to_frame(self) -> DataFrame:
        """A pandas DataFrame, one row per model."""
        pandas = require("pandas", "table", "to_frame")
        names = [*Controversial.__annotations__, "disagreement"]
        return pandas.DataFrame([asdict(each) | {"disagreement": each.disagreement} for each in self.models])[names]

    def to_dict(self) -> dict[str, Any]:
        return {"first": self.first, "second": self.second, "n": self.n, "models": self.to_frame().to_dict("records")}


def controversial(frame: DataFrame, first: str, second: str, *, top: int = 5) -> Controversy:
    """The models with the largest R(model; first) - R(model; second), R the place of the model among all.

    A higher place implies more disentanglement: metrics that are better when lower are turned round. Models that a
    metric cannot tell apart share the mean of their places. Exchange the two metrics for the opposite disagreement.

    Args:
        frame: the results of a study: run, family, setting and the two columns.
        first: column of the metric that may be too optimistic; in the paper beta_vae_score.score.
        second: column of the other; in the paper mig.score.
        top: models returned.

    Raises:
        ValueError: a column is unknown or does not hold numbers; `top` is below 1; no two runs have both.

    Reference:
        Chen et al. 2018 (β-TCVAE), section 5.10.1.
    """
    if top < 1:
        raise ValueError(f"top must be at least 1; got {top}")
    check_columns(frame, ["run", "family", "setting"])
    x, y = numbers(frame, first), numbers(frame, second)
    both = np.isfinite(x) & np.isfinite(y)
    n = int(both.sum())
    if n < 2:
        raise ValueError(f"{first} and {second} are both known of {n} runs; two are needed to disagree")
    ranked = [
        ranks(-values[both] if higher_is_better(name) is False else values[both])
        for name, values in ((first, x), (second, y))
    ]
    places = np.flatnonzero(both)
    order = np.argsort(-(ranked[0] - ranked[1]), kind="stable")[:top]
    models = []
    for each in order:
        row = frame.iloc[places[each]]
        high, low = float(ranked[0][each]), float(ranked[1][each])
        models.append(
            Controversial(
                str(row["run"]), str(row["family"]), str(row["setting"]),
                float(x[places[each]]), float(y[places[each]]),
                high, low, (high - 1) / (n - 1), (low - 1) / (n - 1),
            )
        )  # fmt: skip
    return Controversy(first, second, n, tuple(models))
