"""Every law that a metric declares in METRICS, over the whole table, and how codes and levels may be stored."""

from collections.abc import Callable
from functools import cache
from inspect import signature
from typing import Any

import numpy as np
import pytest

from tests.examples import SPACE, entangled_codes, grid_factors, noisy_codes, perfect_codes, random_codes, rotated_codes
from unbraid.base.types import FloatArray, IntArray
from unbraid.metrics import METRICS, Metric, NotDefined

FACTORS = grid_factors()
CHANGES = {
    "permute": lambda z: z[:, ::-1],
    "flip": lambda z: -z,
    "scale": lambda z: z * [3.0, 0.5, 7.0],
    "tiny": lambda z: z * 1e-20,
    "huge": lambda z: z * 1e20,
    "dead": lambda z: np.column_stack([z[:, :1], np.full(len(z), 0.3), z[:, 1:]]),
}


def posteriors(codes: FloatArray) -> dict[str, Any]:
    """A fifth as wide as each code; of a code that does not vary, as the prior."""
    spread = codes.std(axis=0)
    return {"log_variances": np.tile(2 * np.log(np.where(spread > 0, 0.2 * spread, 1.0)), (len(codes), 1))}


# What metrics need beyond codes and any factors; udr and blocks have laws of their own beside their values.
NEEDY: dict[str, tuple[IntArray, Callable[[FloatArray], dict[str, Any]]]] = {
    "mig_exact": (grid_factors(8), posteriors),
    "elbo_terms": (grid_factors(4), posteriors),
    "zero_shot": (FACTORS, lambda _: {"held_out": lambda levels: (levels[:, 1] > 1) & (levels[:, 2] > 4)}),
    "d_lsbd": (SPACE.grid(), lambda _: {"kinds": ("cyclic",) * 3}),
    "independence_score": (SPACE.grid(), lambda _: {"kinds": ("cyclic",) * 3}),
    "omes": (SPACE.grid(), lambda _: {}),
    "tad": (FACTORS // [2, 2, 4], lambda _: {}),
}
PLAIN = sorted(name for name, metric in METRICS.items() if not metric.needs)
EVERY = sorted([*PLAIN, *NEEDY])


def cases(*rows: str | tuple[str, str]) -> list[Any]:
    """One test each; those of nk, eight seconds of perceptrons, are left to `make check`."""
    named = [(row,) if isinstance(row, str) else row for row in rows]
    return [pytest.param(*row, marks=pytest.mark.lengthy if row[0] == "nk" else ()) for row in named]


QUICK = {"n_trees": 10, "n_train": 2000, "n_test": 1000}


def factors_of(name: str) -> IntArray:
    return NEEDY[name][0] if name in NEEDY else FACTORS


def headline(name: str, codes: FloatArray, factors: IntArray | None = None, **arguments: Any) -> float:
    metric = METRICS[name]
    taken = signature(metric.function).parameters
    arguments |= {argument: value for argument, value in QUICK.items() if argument in taken}
    if name in NEEDY:
        arguments |= NEEDY[name][1](codes)
    return getattr(
        metric.function(codes, factors_of(name) if factors is None else factors, **arguments), metric.headline
    )


def changes(metric: Metric) -> list[str]:
    """Changes of codes that leave its score as it is; another unit, however far off, is one of them or is not."""
    units = ["tiny", "huge"] if "scale" in metric.invariant_to else []
    return sorted(metric.invariant_to) + units


@cache
def known(name: str) -> float:
    """Of the entangled codes, with the first seed."""
    return headline(name, entangled_codes(factors_of(name)))


# A line through one code cannot single out a middle level; batches of rows cannot show every combination; a code of its
# own for each level is more than one for each factor.
SHORT_OF_BEST = {"explicitness", "factorised_support", "latent_matching"}


@pytest.mark.parametrize("name", cases(*sorted(set(PLAIN) - SHORT_OF_BEST)))
def test_perfect_codes_reach_the_best_value(name: str) -> None:
    metric = METRICS[name]
    assert headline(name, perfect_codes(FACTORS)) == pytest.approx(metric.best, abs=metric.tolerance)


# Ratios of the few small weights that a lasso keeps for noise count as much as those of large ones.
BLIND_TO_SIZE = {"amari", "dci_lasso"}


@pytest.mark.parametrize("name", cases(*(name for name in EVERY if METRICS[name].aligned)))
def test_perfect_noisy_rotated_random_come_in_this_order(name: str) -> None:
    metric, factors = METRICS[name], factors_of(name)
    sign = 1 if metric.higher_is_better else -1
    perfect, noisy, rotated, random = (
        sign * headline(name, codes)
        for codes in (
            perfect_codes(factors),
            noisy_codes(factors),
            rotated_codes(factors, noise=0.3),
            random_codes(factors),
        )
    )
    assert perfect >= noisy - metric.tolerance
    assert noisy > rotated
    assert rotated > random or name in BLIND_TO_SIZE


@pytest.mark.parametrize(("name", "change"), cases(*((name, c) for name in EVERY for c in changes(METRICS[name]))))
def test_declared_invariance(name: str, change: str) -> None:
    codes = entangled_codes(factors_of(name))
    assert headline(name, CHANGES[change](codes)) == pytest.approx(known(name), abs=METRICS[name].tolerance)


@pytest.mark.parametrize("name", cases(*EVERY))
def test_same_seed_same_number_and_inputs_untouched(name: str) -> None:
    codes, factors = entangled_codes(factors_of(name)), factors_of(name).copy()
    kept = codes.copy()
    assert headline(name, codes, factors, seed=0) == known(name)
    np.testing.assert_array_equal(codes, kept)
    np.testing.assert_array_equal(factors, factors_of(name))


@pytest.mark.parametrize("name", [name for name in EVERY if not METRICS[name].stochastic])
def test_a_deterministic_metric_ignores_the_seed(name: str) -> None:
    assert headline(name, entangled_codes(factors_of(name)), seed=1) == known(name)


@pytest.mark.parametrize("name", cases(*PLAIN, "mig_exact", "elbo_terms"))
def test_one_code_and_one_factor_are_valid(name: str) -> None:
    low, high = METRICS[name].range
    codes, factors = entangled_codes(factors_of(name)), factors_of(name)
    for each, levels in ((codes[:, :1], factors), (codes, factors[:, :1]), (codes[:, :1], factors[:, :1])):
        value = headline(name, each, levels)
        assert np.isfinite(value)
        assert low - 1e-9 <= value <= high + 1e-9


@pytest.mark.parametrize("name", cases(*EVERY))
def test_dead_codes_give_a_finite_score(name: str) -> None:
    assert np.isfinite(headline(name, np.zeros(factors_of(name).shape)))
    if "dead" not in METRICS[name].invariant_to:
        assert np.isfinite(headline(name, CHANGES["dead"](entangled_codes(factors_of(name)))))


@pytest.mark.parametrize("name", ["mig_exact", "elbo_terms", "zero_shot", "d_lsbd"])
def test_without_what_it_needs_it_is_not_defined(name: str) -> None:
    with pytest.raises(NotDefined, match=METRICS[name].needs.partition(",")[0]):
        METRICS[name].function(FACTORS, FACTORS)


def _with(matrix: IntArray, value: float) -> FloatArray:
    changed = np.array(matrix, dtype=float)
    changed[5, 1] = value
    return changed


UNSOUND = [
    (_with(FACTORS, np.nan), FACTORS, "codes must be finite; row 5, column 1"),
    (_with(FACTORS, np.inf), FACTORS, "codes must be finite; row 5, column 1"),
    (_with(FACTORS, 1e101), FACTORS, r"codes must lie within -1e\+100 and 1e\+100; row 5, column 1 is 1e\+101"),
    (FACTORS * [1.0, 1e-101, 1.0], FACTORS, "codes column 1 varies by .*e-101, less than 1e-100: rescale it"),
    (FACTORS.T, FACTORS, "same number of rows"),
    (FACTORS[:1], FACTORS[:1], "at least 2 rows"),
    (FACTORS[:, :0], FACTORS, "codes has no columns"),
    (FACTORS, np.zeros_like(FACTORS), "factors column 0 is constant"),
    (FACTORS, _with(FACTORS, np.nan), "factors must be finite; row 5, column 1"),
]


@pytest.mark.parametrize("name", sorted(METRICS.keys() - {"udr"}))
def test_unsound_input_is_refused_by_name(name: str) -> None:
    for codes, factors, message in UNSOUND:
        with pytest.raises(ValueError, match=message):
            METRICS[name].function(codes, factors)


def sample(seed: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    factors = rng.integers(0, 3, (60, 2)).astype(float)
    return rng.standard_normal((60, 4)) + factors[:, :1], factors


@pytest.mark.parametrize("name", PLAIN)
def test_dtype_and_memory_order_change_nothing(name: str) -> None:
    codes, factors = sample(3)
    codes = codes.astype(np.float32)
    expected = headline(name, codes.astype(float), factors.astype(int))
    others = codes, np.asfortranarray(codes), codes.tolist(), np.repeat(codes, 2, axis=0)[::2]
    for other, levels in (
        *((other, factors) for other in others),
        *((codes, levels) for levels in (factors.astype(np.uint8), np.asfortranarray(factors))),
    ):
        assert headline(name, other, levels) == expected


DRAWN = ("beta_vae_score", "factor_vae_score")  # by level: other rows where levels come in another order


@pytest.mark.parametrize("name", [name for name in PLAIN if name not in ("amari", "dci_lasso")])  # which read numbers
def test_levels_may_be_any_whole_numbers(name: str) -> None:
    """Categorical labels such as 30, 10, 20 are as good as 0, 1, 2."""
    codes, factors = sample(4)
    labels, kinds = np.array([30, 10, 20])[factors.astype(int)], ["categorical"] * 2
    one, other = (headline(name, codes, levels, kinds=kinds) for levels in (factors, labels))
    assert other == pytest.approx(one, abs=0.01 if name in DRAWN else METRICS[name].tolerance)


@pytest.mark.parametrize("name", [name for name in PLAIN if not METRICS[name].stochastic])
def test_sums_in_another_order_change_nothing_but_their_rounding(name: str) -> None:
    """Without random draws the order of rows changes the rounding of their sums alone."""
    codes, factors = sample(5)
    rows = np.random.default_rng(0).permutation(len(codes))
    rounding = 100 * len(codes) * np.finfo(float).eps
    assert headline(name, codes[rows], factors[rows]) == pytest.approx(headline(name, codes, factors), abs=rounding)
