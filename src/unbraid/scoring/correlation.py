"""How sure a correlation is, and the difference of two."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations
from typing import Literal, get_args

import numpy as np

from unbraid.base.arguments import check_number
from unbraid.base.types import ArrayLike, FloatArray, IntArray

__all__ = ["Difference", "correlation", "correlation_difference", "correlation_interval", "holm"]

Method = Literal["spearman", "pearson"]
Test = Literal["dependent", "independent", "paper"]
EXACT = 8  # runs up to which every order is gone through
ROUNDING = 2e-13  # of the largest value: less than half of what is called constant


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's correction: any of them below alpha by luck happens with a probability of at most alpha.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    steps = np.arange(len(order), 0, -1) * np.asarray(p_values, dtype=float)[order]
    corrected = np.empty(len(order))
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return corrected.tolist()


def t_value(correlation: float, n: int) -> float:
    """r sqrt(n - 2) / sqrt(1 - r^2), Student's t with n - 2 degrees of freedom where there is no correlation.

    Infinite for a correlation of 1 or -1.

    Raises:
        ValueError: n is below 3 or the correlation outside [-1, 1].

    Reference:
        Mahon et al. 2023 (SNC/NK), appendix E.

    Example:
        >>> round(t_value(0.85, 18), 2), round(t_value(0.85, 6), 2)
        (6.45, 3.23)
    """
    _check(correlation, n, 3)
    rest = 1 - correlation**2
    return float(correlation * np.sqrt((n - 2) / rest)) if rest > 0 else float(np.copysign(np.inf, correlation))


def p_value(correlation: float, n: int) -> float:
    """Two-sided, by `t_value`: how often samples of n without correlation give one at least as strong."""
    from scipy.special import stdtr

    return float(2 * stdtr(n - 2, -abs(t_value(correlation, n))))


def p_of_few(correlation: float, n: int) -> float:
    """`p_value`, for few samples no smaller than the share of all orders of n ranks that agree as well.

    Student's t takes a perfect agreement of three for certain, which one order in three has by luck.
    """
    if n > EXACT:
        return p_value(correlation, n)
    ranks = _unit(np.arange(n, dtype=float))
    exact = float((np.abs(ranks[_orders(n)] @ ranks) >= abs(correlation) - 1e-9).mean())
    return max(exact, p_value(correlation, n))


def correlation(first: ArrayLike, second: ArrayLike, method: Method = "spearman") -> tuple[float, float]:
    """Correlation of two columns without gaps, and its two-sided p value.

    Args:
        first: (n,) real, not constant; n >= 3.
        second: (n,).
        method: "spearman", of ranks, equals sharing their mean; "pearson", of values.

    Returns:
        The correlation in [-1, 1], and p by Student's t as in `scipy.stats`. For ranks of at most 8 runs, where that
        is far too small, p is exact: the share of all orders with a correlation at least as strong.
    """
    if method not in get_args(Method):
        raise ValueError(f"method must be one of {', '.join(get_args(Method))}; got {method!r}")
    x, y = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if method == "spearman":
        x, y = ranks(x), ranks(y)
    x, y = _unit(x), _unit(y)
    value = _cosine(x, y)
    if method == "spearman" and len(x) <= EXACT:
        _check(value, len(x), 3)
        # Sums of the same numbers in another order differ in the last place.
        return value, float((np.abs(x[_orders(len(x))] @ y) >= abs(value) - 1e-9).mean())
    return value, p_value(value, len(x))


def ranks(values: FloatArray) -> FloatArray:
    """(n,) from 1; equals share their mean rank, and so does what differs by no more than rounding, 1 and 1 - 1e-16."""
    from scipy.stats import rankdata

    in_unit = np.ldexp(values, -np.frexp(np.abs(values).max(initial=0.0))[1])
    return rankdata(np.rint(in_unit / ROUNDING))


def correlation_interval(
    value: float, n: int, confidence: float = 0.95, method: Method = "spearman"
) -> tuple[float, float]:
    """Ends of the interval of a correlation, by Fisher's transformation z(r) = artanh r.

    The variance of z is 1 / (n - 3), for ranks (1 + r^2 / 2) / (n - 3). Three runs tell nothing: -1 to 1. A perfect
    order of ranks, which has no transform, is taken as half a swap of neighbours short of perfect, 1 - 6 / (n^3 - n); a
    perfect line is its own interval.

    Args:
        value: in [-1, 1].
        n: runs behind it, at least 3, which must not depend on each other.
        confidence: in (0, 1).
        method: as for `correlation`.

    Raises:
        ValueError: an argument is outside its range.

    Reference:
        Fisher 1921; Bonett & Wright 2000, "Sample size requirements for estimating Pearson, Kendall and Spearman
        correlations", eq. 4 for ranks.

    Example:
        >>> low, high = correlation_interval(0.5, 28, method="pearson")
        >>> round(low, 3), round(high, 3)
        (0.156, 0.736)
    """
    from scipy.special import ndtri

    _check(value, n, 3)
    check_number("confidence", confidence, above=0, below=1)
    if n == 3:
        return -1.0, 1.0
    ranks = method == "spearman"
    if abs(value) == 1 and not ranks:
        return value, value
    inside = np.clip(value, -1 + 6 / (n**3 - n), 1 - 6 / (n**3 - n)) if ranks else value
    half = ndtri((1 + confidence) / 2) * np.sqrt((1 + ranks * inside**2 / 2) / (n - 3))
    low, high = np.tanh(np.arctanh(inside) + np.array([-half, half]))
    return float(min(low, value)), float(max(high, value))


@dataclass(frozen=True)
class Difference:
    """How sure it is that the first correlation is the stronger one."""

    z: float  # standard normal where the two are equal
    p: float  # one-sided: of a difference at least so far in favour of the first
    test: Test


def correlation_difference(
    first: float, second: float, n: int, *, between: float | None = None, test: Test = "dependent"
) -> Difference:
    """Whether one correlation with a target exceeds another, by Fisher's transformation z(r) = artanh r.

    Args:
        first: correlation of a metric with the target, inside (-1, 1).
        second: correlation of another metric with it.
        n: runs behind each, at least 4.
        between: correlation of the two metrics with each other; "dependent" needs it.
        test: "dependent", for two metrics on the same runs: (z1 - z2) sqrt((n - 3) / (2 (1 - r) h)), r = `between`.
            "independent", for runs that have nothing to do with each other: (z1 - z2) / sqrt(2 / (n - 3)).
            "paper": (z1 - z2) sqrt(n - 3), as if the second were known without error. It gives the significance that
            SNC/NK section 5.3 reports from its table 4 (p < .01 for SNC over all but NK, and NK over IRS; none on
            3dshapes), which "independent" does not; too bold by a factor sqrt(2) where metrics do not correlate.

    Returns:
        Difference, with p one-sided as in the paper's figures 15 and 16.

    Raises:
        ValueError: a correlation is not inside (-1, 1), n is below 4, `between` is missing.

    Reference:
        Meng, Rosenthal & Rubin 1992, "Comparing correlated correlation coefficients", eq. 1-3; Fisher 1921;
        Mahon et al. 2023 (SNC/NK), section 5.3 and appendix I. Made for Pearson's correlations; for ranks, whose
        variance is about 6 % larger, a good approximation.

    Example:
        >>> correlation_difference(0.85, 0.716, 18, test="paper").p < 0.05
        False
        >>> correlation_difference(0.85, 0.571, 18, test="paper").p < 0.01
        True
    """
    from scipy.stats import norm

    if test not in get_args(Test):
        raise ValueError(f"test must be one of {', '.join(get_args(Test))}; got {test!r}")
    for value in (first, second):
        _check(value, n, 4)
        if abs(value) == 1:
            raise ValueError(f"a correlation of {value:g} has no Fisher transform")
    distance = np.arctanh(first) - np.arctanh(second)
    if test == "independent":
        z = distance / np.sqrt(2 / (n - 3))
    elif test == "paper":
        z = distance * np.sqrt(n - 3)
    else:
        z = distance * np.sqrt((n - 3) / _spread(first, second, between))
    return Difference(float(z), float(norm.sf(z)), test)


def _spread(first: float, second: float, between: float | None) -> float:
    if between is None:
        raise ValueError("test 'dependent' needs the correlation `between` the two metrics")
    if not -1 <= between < 1:
        raise ValueError(f"the correlation between the two metrics must be in [-1, 1); got {between}")
    mean_square = (first**2 + second**2) / 2
    f = min((1 - between) / (2 * (1 - mean_square)), 1.0)
    h = (1 - f * mean_square) / (1 - mean_square)
    return 2 * (1 - between) * h


def _check(correlation: float, n: int, least: int) -> None:
    if n < least:
        raise ValueError(f"needs at least {least} runs; got {n}")
    if not -1 <= correlation <= 1:
        raise ValueError(f"a correlation is between -1 and 1; got {correlation}")


def _cosine(x: FloatArray, y: FloatArray) -> float:
    """x . y of unit vectors, exactly 1 or -1 where they differ by no more than rounding.

    From |x - y|^2 = 2 - 2 x . y, or |x + y|^2 where they oppose each other: the errors of the vectors enter squared.
    The sum of products itself ends at 1 or a few units in the last place below, by the processor's kernel.
    """
    sign = np.copysign(1.0, x @ y)
    difference = x - sign * y
    return float(sign * (1.0 - 0.5 * (difference @ difference)))


def _unit(values: FloatArray) -> FloatArray:
    # By a power of two, which changes no digit: the squares of 1e200 are infinite, those of 1e-200 are zero.
    scaled = np.ldexp(values, -np.frexp(np.abs(values).max())[1])
    centred = scaled - scaled.mean()
    return centred / np.sqrt(centred @ centred)


@lru_cache(maxsize=EXACT)
def _orders(n: int) -> IntArray:
    return np.array(list(permutations(range(n))))
