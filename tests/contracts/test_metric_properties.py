"""How codes and levels are held and called changes no number."""

import numpy as np
import pytest

from unbraid.base.types import FloatArray
from unbraid.metrics import METRICS

PLAIN = sorted(name for name, metric in METRICS.items() if not metric.needs)


def sample(seed: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    factors = rng.integers(0, 3, (60, 2)).astype(float)
    return rng.standard_normal((60, 4)) + factors[:, :1], factors


@pytest.mark.parametrize("name", PLAIN)
def test_dtype_and_memory_order_change_nothing(name: str) -> None:
    codes, factors = sample(3)
    codes = codes.astype(np.float32)
    expected = getattr(METRICS[name].function(codes.astype(float), factors.astype(int)), METRICS[name].headline)
    others = codes, np.asfortranarray(codes), codes.tolist(), np.repeat(codes, 2, axis=0)[::2]
    for other, levels in (
        *((other, factors) for other in others),
        *((codes, levels) for levels in (factors.astype(np.uint8), np.asfortranarray(factors))),
    ):
        assert getattr(METRICS[name].function(other, levels), METRICS[name].headline) == expected


@pytest.mark.parametrize("name", PLAIN)
def test_levels_may_be_any_whole_numbers(name: str) -> None:
    """Categorical labels such as 10, 20, 30 are as good as 0, 1, 2."""
    codes, factors = sample(4)
    function, headline = METRICS[name].function, METRICS[name].headline
    plain = getattr(function(codes, factors, kinds=["categorical"] * 2), headline)
    assert getattr(function(codes, factors * 10 + 10, kinds=["categorical"] * 2), headline) == pytest.approx(plain)


@pytest.mark.parametrize("name", [name for name in PLAIN if not METRICS[name].stochastic])
def test_sums_in_another_order_change_nothing_but_their_rounding(name: str) -> None:
    """Without random draws the order of rows changes the rounding of their sums alone."""
    codes, factors = sample(5)
    rows = np.random.default_rng(0).permutation(len(codes))
    function, headline = METRICS[name].function, METRICS[name].headline
    rounding = 100 * len(codes) * np.finfo(float).eps
    expected = getattr(function(codes, factors), headline)
    assert getattr(function(codes[rows], factors[rows]), headline) == pytest.approx(expected, abs=rounding)
