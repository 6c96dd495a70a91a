"""A function of the user's own as a metric."""

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

from unbraid.base.arguments import check_choice
from unbraid.metrics._shared.metric import Metric
from unbraid.metrics._shared.resampling import Resampling

PARTS = Resampling(times=20, checked=False)  # which may take long


def custom_metric(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    direction: Literal["higher", "lower"] = "higher",
    range: Sequence[float] = (-math.inf, math.inf),  # noqa: A002 (as the rows of the table call it)
) -> Metric:
    """A function of your own as a metric, as in `unbraid.score(metrics=["mig", custom_metric(f)])`.

    The function itself can be given there as well; higher is then better.

    Args:
        function: takes codes (n_samples, n_codes) and factors (n_samples, n_factors), float64 and read-only, and
            returns a number, or a dataclass with a float `score`. It is also given `kinds`, `sizes`, `log_variances`,
            `weights`, `groups`, `held_out` and `seed` where it has arguments of these names.
        name: by which it stands on cards. Default: that of the function.
        direction: which way is better, "higher" or "lower".
        range: (lowest, highest) value; infinite where there is no end.

    Raises:
        ValueError: the name is no identifier, as that of a lambda; the direction or the range is none; its arguments
            are (factors, codes).
        TypeError: it cannot be called.

    Example:
        >>> from unbraid import score
        >>> def spread(codes, factors):
        ...     return float(codes.std())
        >>> grid = np.repeat(FactorSpace(("a", "b"), (2, 2), ("ordinal", "ordinal")).grid(), 2, axis=0)
        >>> metric = custom_metric(spread, direction="lower", range=(0, np.inf))
        >>> score(grid, grid, metrics=[metric], kinds=["ordinal"] * 2)["spread"].score
        0.5
    """
    if not callable(function):
        raise TypeError(f"a metric of your own is a function of codes and factors; got {type(function).__name__}")
    chosen_name = _name_of(function) if name is None else name
    if not chosen_name.isidentifier():
        hint = "give one, such as unbraid.metrics.custom_metric(function, name='my_metric')"
        raise ValueError(f"{chosen_name or 'a partial'!r} is no name for a metric: {hint}")
    check_choice("direction", direction, ("higher", "lower"))
    if not isinstance(range, Sequence) or len(range) != 2 or not range[0] < range[1]:
        raise ValueError(f"range must be (lowest, highest); got {range!r}")
    return row_of(
        function, chosen_name, higher_is_better=direction == "higher", limits=(float(range[0]), float(range[1]))
    )


def row_of(
    function: Callable[..., Any],
    name: str,
    *,
    higher_is_better: bool = True,
    limits: tuple[float, float] = (-math.inf, math.inf),
) -> Metric:
    """The row of a function, or the row that the user made of one by `custom_metric`, under this name."""
    if isinstance(function, Metric):
        upward = function.higher_is_better and higher_is_better
        return replace(function, title=name, source=name, higher_is_better=upward) if function.own else function
    _check_order(function, name)
    return Metric(
        function,
        title=name,
        headline="score",
        best=math.nan,
        higher_is_better=higher_is_better,
        range=limits,
        summary=(inspect.getdoc(function) or "A metric of your own.").splitlines()[0],
        limitations="",
        source=name,
        interval=PARTS,
        own=True,
    )


def _check_order(function: Callable[..., Any], name: str) -> None:
    """Refuse one that calls its arguments the other way round: it would take codes for factors unseen."""
    try:
        arguments = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # of C, which says nothing of its arguments
        return
    if arguments[:2] == ["factors", "codes"]:
        raise ValueError(f"metric {name!r} takes (factors, codes), and is given codes first: make it (codes, factors)")


def _name_of(function: Callable[..., Any]) -> str:
    while not hasattr(function, "__name__") and hasattr(function, "func"):  # a partial
        function = function.func  # pyright: ignore[reportFunctionMemberAccess]
    return getattr(function, "__name__", type(function).__name__)
