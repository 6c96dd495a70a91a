"""Whatever sound input comes, every metric gives a finite number in its range, or one clear refusal."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbraid.metrics import METRICS, NotDefined
from unbraid.types import KINDS, FloatArray

PLAIN = sorted(name for name, metric in METRICS.items() if not metric.needs)

SHAPES = st.tuples(st.integers(24, 80), st.integers(1, 5), st.integers(1, 3))
DEGENERATE = ("none", "dead code", "twin codes", "tiny code", "huge code", "integer codes", "rare level")


def sample(seed: int, shape: tuple[int, int, int], kinds: list[str], degenerate: str) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    n_samples, n_codes, n_factors = shape
    factors = rng.integers(0, 3, (n_samples, n_factors)).astype(float)
    factors[:3] = np.arange(3)[:, None]
    for column, kind in enumerate(kinds):
        if kind == "continuous":
            factors[:, column] = rng.random(n_samples)
    codes = rng.standard_normal((n_samples, n_codes)) + factors[:, :1]
    if degenerate == "dead code":
        codes[:, 0] = 0.1
    elif degenerate == "twin codes":
        codes[:, -1] = codes[:, 0]
    elif degenerate == "tiny code":
        codes[:, 0] *= 1e-30
    elif degenerate == "huge code":
        codes[:, 0] *= 1e30
    elif degenerate == "integer codes":
        codes = np.rint(codes)
    elif degenerate == "rare level" and kinds[0] != "continuous":
        factors[0, 0] = 7
    return codes, factors


@pytest.mark.parametrize("name", PLAIN)
@settings(max_examples=8, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    shape=SHAPES,
    kinds=st.lists(st.sampled_from(KINDS), min_size=3, max_size=3),
    degenerate=st.sampled_from(DEGENERATE),
    dtype=st.sampled_from([np.float32, np.float64]),
    fortran=st.booleans(),
)
def test_a_finite_number_in_range_or_a_clear_refusal(
    name: str, seed: int, shape: tuple[int, int, int], kinds: list, degenerate: str, dtype: type, fortran: bool
) -> None:
    metric = METRICS[name]
    kinds = kinds[: shape[2]]
    codes, factors = sample(seed, shape, kinds, degenerate)
    codes = codes.astype(dtype)
    if fortran:
        codes, factors = np.asfortranarray(codes), np.asfortranarray(factors)
    try:
        result = metric.function(codes, factors, kinds=kinds)
    except NotDefined:
        return
    value = getattr(result, metric.headline)
    low, high = metric.range
    assert np.isfinite(value)
    assert low - 1e-9 <= value <= high + 1e-9
    per_factor = getattr(result, "per_factor", None)
    assert per_factor is None or (per_factor.shape == (shape[2],) and np.isfinite(per_factor).all())


@pytest.mark.parametrize("name", PLAIN)
def test_dtype_and_memory_order_change_nothing(name: str) -> None:
    codes, factors = sample(3, (60, 4, 2), ["ordinal", "ordinal"], "none")
    codes = codes.astype(np.float32)
    expected = getattr(METRICS[name].function(codes.astype(float), factors.astype(int)), METRICS[name].headline)
    for other in (codes, np.asfortranarray(codes), codes.tolist(), np.repeat(codes, 2, axis=0)[::2]):
        for levels in (factors, factors.astype(np.uint8), np.asfortranarray(factors)):
            got = getattr(METRICS[name].function(other, levels), METRICS[name].headline)
            assert got == expected


@pytest.mark.parametrize("name", PLAIN)
def test_levels_may_be_any_whole_numbers(name: str) -> None:
    """Categorical labels such as 10, 20, 30 are as good as 0, 1, 2."""
    codes, factors = sample(4, (60, 4, 2), ["categorical", "categorical"], "none")
    function, headline = METRICS[name].function, METRICS[name].headline
    plain = getattr(function(codes, factors, kinds=["categorical"] * 2), headline)
    assert getattr(function(codes, factors * 10 + 10, kinds=["categorical"] * 2), headline) == pytest.approx(plain)
