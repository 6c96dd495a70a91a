"""torchmetrics: metrics that are given batches of codes and factors, on one process or many."""

import math
from collections.abc import Sequence
from typing import Any

from unbraid.base.optional import require
from unbraid.integrations.single_metric import Kinds, number
from unbraid.scoring.score import Named

__all__ = ["CodeMetric"]

torch = require("torch", "lightning", "CodeMetric")
torchmetrics = require("torchmetrics", "lightning", "CodeMetric")


class CodeMetric(torchmetrics.Metric):
    """One metric of codes and factors, with the interface of torchmetrics.

    `update` keeps what it is given, for nearly every metric needs all rows at once; `compute` gathers the rows of all
    processes. Codes of 10 000 rows and ten numbers are 400 kB.

    Args:
        name: of the metric, or a function of your own, as `metrics` of `unbraid.score`.
        kinds: "categorical", "ordinal", "continuous" or "cyclic" per factor.
        sizes: number of levels of each factor, where a part of the rows may lack the last ones of a cyclic factor.
        value: number of the metric's result, such as "completeness"; default its headline.
        seed: of the metric.
        **params: arguments of the metric, such as bins=10, and those of `torchmetrics.Metric`, such as sync_on_compute.

    Raises:
        ImportError: torch or torchmetrics is not installed.
        ValueError: an unknown metric or argument; from `compute`, unsound input, by argument, row and column.
    """

    full_state_update = False
    is_differentiable = False
    codes: Any
    factors: Any

    def __init__(
        self,
        name: Named,
        *,
        kinds: Kinds | None = None,
        sizes: Sequence[int] | None = None,
        value: str | None = None,
        seed: int = 0,
        **params: Any,
    ) -> None:
        own = {name: params.pop(name) for name in list(params) if name in OF_TORCHMETRICS}
        super().__init__(**own)
        self._number = number(name, kinds, sizes, value, seed, params)
        self.add_state("codes", default=[], dist_reduce_fx="cat")
        self.add_state("factors", default=[], dist_reduce_fx="cat")

    def update(self, codes: Any, factors: Any) -> None:
        """Add rows: codes (n, n_codes), factors (n, n_factors) or (n,); tensors."""
        if len(codes) != len(factors):  # else later rows could be taken for each other's
            raise ValueError(f"codes and factors must have as many rows; got {len(codes)} and {len(factors)}")
        self.codes.append(codes.detach())
        self.factors.append((factors if factors.ndim == 2 else factors[:, None]).detach())

    def compute(self) -> Any:
        """The number of all rows, a tensor ()."""
        if not len(self.codes):
            raise ValueError("there are no rows yet: call update first")
        gathered = [torchmetrics.utilities.dim_zero_cat(batches) for batches in (self.codes, self.factors)]
        return torch.tensor(self._number.compute(*gathered), dtype=torch.float32, device=self.device)

    def plot(self, val: Any = None, ax: Any = None) -> tuple[Any, Any]:
        """Figure and axes of one value, by default that of now, or of several."""
        return self._plot(val, ax)

    @property
    def higher_is_better(self) -> bool:
        return self._number.higher_is_better

    @property
    def plot_lower_bound(self) -> float | None:
        return self._bound(0)

    @property
    def plot_upper_bound(self) -> float | None:
        return self._bound(1)

    def _bound(self, end: int) -> float | None:
        limit = self._number.row.range[end] if self._number.value is None else math.inf
        return limit if math.isfinite(limit) else None


# Arguments of every metric of torchmetrics.
OF_TORCHMETRICS = (
    "compute_on_cpu", "dist_sync_on_step", "process_group", "dist_sync_fn", "distributed_available_fn",
    "sync_on_compute", "compute_with_cache",
)  # fmt: skip
