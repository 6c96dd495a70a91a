"""IRS against plain loops, disentanglement_lib on the shipped codes, and hand-worked cases."""

import numpy as np
import pytest

from tests.examples import entangled_codes, grid_factors, perfect_codes, random_codes
from unbraid import Representation
from unbraid.base.types import FloatArray, IntArray
from unbraid.metrics import irs
from unbraid.metrics._shared.inputs import check_inputs
from unbraid.metrics.irs import irs_of_noise

FACTORS = grid_factors(4)


def brute_force(codes: FloatArray, factors: IntArray, quantile: float) -> tuple[float, FloatArray]:
    """Plain loops over codes, factors and levels."""
    robustness = np.zeros((codes.shape[1], factors.shape[1]))
    weights = []
    for code in range(codes.shape[1]):
        values = codes[:, code]
        weights.append(max(abs(v - values.mean()) for v in values))
        for factor in range(factors.shape[1]):
            deviations = []
            for level in sorted(set(factors[:, factor])):
                part = values[factors[:, factor] == level]
                deviations.append(np.percentile(abs(part - part.mean()), 100 * quantile))
            robustness[code, factor] = 1 - np.mean(deviations) / weights[-1]
    return float(np.average(robustness.max(axis=1), weights=weights)), robustness


@pytest.mark.parametrize("quantile", [0.5, 0.9, 0.99, 1.0])
def test_is_what_plain_loops_give(quantile: float) -> None:
    codes = entangled_codes(FACTORS) * [1.0, 5.0, 0.2]
    score, robustness = brute_force(codes, FACTORS, quantile)
    result = irs(codes, FACTORS, quantile=quantile)
    assert result.score == pytest.approx(score, abs=1e-12)
    np.testing.assert_allclose(result.robustness, robustness, atol=1e-12)
    np.testing.assert_array_equal(result.code_factor, robustness.argmax(axis=1))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, 0.5518474649610648),
        ({"factor_bins": None}, 0.5691129087707356),
        ({"quantile": 1.0}, 0.4892391642768986),
        ({"quantile": 1.0, "factor_bins": None}, 0.5177001483710587),
    ],
)
def test_agrees_with_disentanglement_lib(arguments: dict, expected: float) -> None:
    """Its scalable_disentanglement_score (86a644d) on the shipped codes, factors binned by its discretizer or not."""
    example = Representation.example()
    result = irs(example.codes, example.factors, kinds=example.kinds, **arguments)
    assert result.score == pytest.approx(expected, abs=1e-12)


def test_by_hand() -> None:
    """z = (0, 1, 3, 4) over a = (0, 0, 1, 1), b = (0, 1, 0, 1); mean 2, largest deviation 2.

    Within a: means .5 and 3.5, deviations .5: robustness 1 - .5/2 = .75. Within b: means 1.5 and 2.5, deviations 1.5:
    .25. Score .75. A second code w = 10 b, robust for b alone, weighs 5: (2 * .75 + 5 * 1) / 7.
    """
    factors = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    code = np.array([0.0, 1.0, 3.0, 4.0])
    result = irs(code[:, None], factors)
    np.testing.assert_allclose(result.robustness, [[0.75, 0.25]])
    assert result.score == 0.75
    both = irs(np.column_stack([code, 10.0 * factors[:, 1]]), factors)
    assert both.score == pytest.approx((2 * 0.75 + 5) / 7)
    assert both.weights.tolist() == [2.0, 5.0]
    assert both.code_factor.tolist() == [0, 1]


def test_constant_codes_score_0_by_themselves_and_together() -> None:
    result = irs(np.full((6, 2), 3.0), np.arange(6)[:, None] % 2)
    assert result.score == 0
    assert result.per_code.tolist() == [0, 0]
    assert result.code_factor.tolist() == [-1, -1]


def test_can_be_negative() -> None:
    """Two levels of three rows at -5 or 5: the level means lie off the mean of all, 0, towards the majority.

    At level 0 the mean is -5/3, and the point at 5 is 20/3 away; at level 1 likewise; no point is more than 5 from 0.
    """
    factors = np.array([[0, 0], [0, 1], [0, 0], [1, 1], [1, 0], [1, 1]])
    codes = np.array([-5.0, -5.0, 5.0, 5.0, 5.0, -5.0])[:, None]
    result = irs(codes, factors[:, :1], quantile=1.0)
    assert result.score == pytest.approx(1 - (20 / 3) / 5)
    assert result.score < 0


def test_bins_merge_levels_beyond_their_number() -> None:
    levels = np.repeat(np.arange(40), 5)
    factors = np.column_stack([levels, np.tile(np.arange(5), 40)])
    codes = levels[:, None].astype(float)
    assert irs(codes, factors, factor_bins=None).score == 1.0
    merged = irs(codes, factors, quantile=1.0)
    assert merged.notes == ("factor 0 is of many levels: merged into 20 bins",)
    assert merged.score == pytest.approx(1 - 0.5 / 19.5)  # two levels in each bin, .5 from their mean


@pytest.mark.parametrize("turn", [np.pi, -0.3, -0.001])
def test_an_arc_scores_alike_wherever_on_the_circle_it_lies(turn: float) -> None:
    """Cut from its least to its largest value, an arc across angle 0 came to two bins, and .77 to .03."""
    rng = np.random.default_rng(0)
    arc, other = rng.uniform(0, 0.6, 600), rng.integers(0, 3, 600)
    codes = np.column_stack([arc, other]) + 0.01 * rng.standard_normal((600, 2))
    expected = irs(codes, np.column_stack([arc, other]), kinds=("continuous", "ordinal")).score
    turned = np.column_stack([arc + turn, other])
    result = irs(codes, turned, kinds=("cyclic", "ordinal"))
    assert result.score == pytest.approx(expected, abs=1e-12)
    assert result.notes == ("factor 0 is an angle: cut into 20 bins of equal width",)


@pytest.mark.parametrize("first", [0, 100, 330])
def test_levels_on_an_arc_are_merged_alike_wherever_it_lies(first: int) -> None:
    """60 of 360 levels around, three in each bin: 1 from their mean, of 29.5 at most."""
    arc = np.repeat(np.arange(60), 5)
    around = (arc + first) % 360
    factors = np.column_stack([around, np.tile(np.arange(5), 60)])
    result = irs(arc[:, None], factors, kinds=("cyclic", "ordinal"), quantile=1.0)
    assert result.score == pytest.approx(1 - 1 / 29.5)


@pytest.mark.parametrize("n_levels", [3, 41])
def test_labels_of_categories_are_no_numbers(n_levels: int) -> None:
    """{0, 1, 2} called {0, 1, 1000} moved .699 to .583; more labels than bins are not merged with their neighbours."""
    rng = np.random.default_rng(0)
    factors = rng.integers(0, n_levels, (3000, 2))
    codes = factors + rng.standard_normal((3000, 2))
    names = rng.permutation(n_levels**2)[:n_levels] ** 2
    kinds = ("categorical", "categorical")
    expected = irs(codes, factors, kinds=kinds, factor_bins=None)
    assert irs(codes, factors, kinds=kinds).score == expected.score
    assert irs(codes, names[factors], kinds=kinds).score == pytest.approx(expected.score, abs=1e-12)


def test_unevenly_spaced_levels_stand_by_themselves() -> None:
    factors = np.tile([[0], [1], [1000]], (20, 1))
    codes = np.random.default_rng(0).standard_normal((60, 2))
    assert irs(codes, factors).score == irs(codes, factors % 997).score


def test_continuous_factors_are_binned_either_way() -> None:
    rng = np.random.default_rng(0)
    factors = np.column_stack([rng.random(400), rng.integers(3, size=400)])
    kinds = ("continuous", "ordinal")
    assert irs(factors, factors, kinds=kinds).score == irs(factors, factors, kinds=kinds, factor_bins=None).score


def test_a_level_of_one_row_is_named() -> None:
    factors = FACTORS.copy()
    factors[0, 1] = 7
    assert "factor 1 has levels of a single row" in irs(perfect_codes(FACTORS), factors).notes[-1]


@pytest.mark.parametrize("tail", [False, True])
def test_noise_scores_what_shuffled_rows_do(tail: bool) -> None:
    factors = grid_factors(100)
    codes = random_codes(factors) ** (3 if tail else 1)
    rng = np.random.default_rng(0)
    shuffled = [irs(rng.permutation(codes), factors).score for _ in range(20)]
    expected = irs_of_noise(check_inputs(codes, factors))
    assert expected.score == pytest.approx(np.mean(shuffled), abs=0.02)
    assert expected.score == pytest.approx(0.75 if tail else 0.34, abs=0.03)
