"""One number of one metric, which is all that scorers and streaming metrics of other libraries hold."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unbraid.base.suggest import suggestion
from unbraid.base.types import Kind
from unbraid.files.trust import trusting
from unbraid.metrics import Metric
from unbraid.metrics._shared.metric_arguments import values_of
from unbraid.scoring.score import Named, choose, score

Kinds = Mapping[str, Kind] | Sequence[Kind]


@dataclass(frozen=True)
class Number:
    """What is computed, and how it is read."""

    metric: Named
    kinds: Kinds | None
    sizes: Sequence[int] | None
    value: str | None  # default the headline
    seed: int

    @property
    def row(self) -> Metric:
        return next(iter(choose(trusting(self.metric)).values()))

    @property
    def higher_is_better(self) -> bool:
        """Which way is better.

        Raises:
            ValueError: neither is.
        """
        upward = self.row.direction(self.value or self.row.headline)
        if upward is None:
            raise ValueError(
                f"neither more nor less of {self.value!r} is better; name another value of {self.row.name}"
            )
        return upward

    def compute(self, codes: Any, factors: Any) -> float:
        """The number itself.

        Raises:
            ValueError: unsound input, no meaning on it, or no such value.
        """
        options = {"kinds": self.kinds, "sizes": self.sizes}
        card = score(codes, factors, metrics=[self.metric], seed=self.seed, on_error="raise", **options)
        ((name, scored),) = card.scored.items()
        value = self.value or scored.metric.headline
        _check_value(name, value, scored.values)
        return scored.values[value]


def number(
    name: Named,
    kinds: Kinds | None,
    sizes: Sequence[int] | None,
    value: str | None,
    seed: int,
    params: Mapping[str, Any],
) -> Number:
    """The number asked for.

    Raises:
        ValueError: an unknown metric, several of them, or an argument or a value that it does not have.
    """
    if params and not isinstance(name, str):
        raise ValueError(f"{', '.join(params)}: a function of your own takes no arguments here; give a partial of it")
    spec = f"{name}({', '.join(f'{option}={argument}' for option, argument in params.items())})" if params else name
    rows = choose(trusting(spec))
    if len(rows) > 1:
        raise ValueError(f"{spec} is several metrics, {', '.join(rows)}; name one")
    ((metric, row),) = rows.items()
    if value is not None and not row.own:  # what a function of the user's returns is known once it has run
        _check_value(metric, value, values_of(row))
    return Number(spec, kinds, sizes, value, seed)


def _check_value(metric: str, value: str, known: Iterable[str]) -> None:
    if value not in known:
        raise ValueError(f"{metric} has no value {value!r}; {suggestion(value, known)}")
