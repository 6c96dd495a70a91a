"""JEMMIG, DCIMIG and MIG-sup against worked examples and plain loops over tables of counts."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

from tests.examples import entangled_codes, grid_factors, perfect_codes, random_codes
from unbraid.base.types import FloatArray, IntArray
from unbraid.metrics import dcimig, jemmig, mig, mig_sup
from unbraid.metrics._shared.bins import bin_equal_width
from unbraid.metrics._shared.inputs import check_inputs
from unbraid.metrics.dcimig import dcimig_of_noise

FACTORS = grid_factors(4)
GRID = np.array([(a, b) for a in range(4) for b in range(2)])
TURNED = np.column_stack([GRID.sum(axis=1), GRID[:, 0] - GRID[:, 1]])


def entropy(*columns: IntArray) -> float:
    counts = np.unique(np.column_stack(columns), axis=0, return_counts=True)[1]
    return float(-(counts / counts.sum() * np.log(counts / counts.sum())).sum())


def by_hand(codes: FloatArray, factors: IntArray, bins: int = 20) -> tuple[IntArray, FloatArray]:
    """Bins, and information by scikit-learn."""
    binned = bin_equal_width(codes, bins)
    return binned, np.array([[mutual_info_score(z, v) for v in factors.T] for z in binned.T])


def test_worked_examples_of_jemmig() -> None:
    assert jemmig(GRID, GRID, bins=4).score == pytest.approx(1.0)
    assert jemmig(TURNED, GRID, bins=5).score == pytest.approx(0.201388, abs=1e-6)


@pytest.mark.parametrize("normalise", ["bins", "entropy"])
def test_jemmig_in_plain_loops(normalise: Any) -> None:
    codes = np.column_stack([entangled_codes(FACTORS), random_codes(FACTORS)[:, :1]])
    binned, information = by_hand(codes, FACTORS)
    expected = []
    for factor, levels in enumerate(FACTORS.T):
        first, second = np.argsort(-information[:, factor])[:2]
        joint, held, own = entropy(binned[:, first], levels), entropy(binned[:, first]), entropy(levels)
        scale = own + (np.log(20) if normalise == "bins" else held)
        expected.append(1 - (joint - information[first, factor] + information[second, factor]) / scale)
    result = jemmig(codes, FACTORS, normalise=normalise)
    np.testing.assert_allclose(result.per_factor, expected, atol=1e-12)
    assert result.score == pytest.approx(np.mean(expected))


def test_dcimig_in_plain_loops() -> None:
    codes = np.column_stack([entangled_codes(FACTORS), random_codes(FACTORS)[:, :2]])
    information, given = by_hand(codes, FACTORS)[1], np.zeros(3)
    for row in information:
        order = np.argsort(-row)
        given[order[0]] = max(given[order[0]], row[order[0]] - row[order[1]])
    result = dcimig(codes, FACTORS)
    assert result.score == pytest.approx(given.sum() / sum(entropy(levels) for levels in FACTORS.T), abs=1e-12)
    np.testing.assert_allclose(result.per_factor, given / [entropy(levels) for levels in FACTORS.T], atol=1e-12)


@pytest.mark.parametrize("normalise", ["code", "factor"])
@pytest.mark.parametrize("weighting", ["codes", "active", "information"])
def test_mig_sup_in_plain_loops(normalise: Any, weighting: Any) -> None:
    codes = np.column_stack([entangled_codes(FACTORS), 0.05 * random_codes(FACTORS)[:, :1]])
    binned, information = by_hand(codes, FACTORS)
    gaps, weights = [], []
    for code, row in enumerate(information):
        units = [entropy(binned[:, code]) if normalise == "code" else entropy(levels) for levels in FACTORS.T]
        first, second = sorted(row / units)[:-3:-1]
        gaps.append(first - second)
        weights.append({"codes": 1.0, "active": float(codes[:, code].var() > 0.01), "information": max(row)}[weighting])
    result = mig_sup(codes, FACTORS, normalise=normalise, weighting=weighting)
    assert result.score == pytest.approx(np.average(gaps, weights=weights), abs=1e-12)


def test_idle_codes_halve_the_plain_mean_alone() -> None:
    perfect = perfect_codes(FACTORS)
    codes = np.column_stack([perfect, np.zeros_like(perfect)])
    assert mig_sup(codes, FACTORS).score == pytest.approx(0.5)
    assert mig_sup(codes, FACTORS, weighting="active").score == pytest.approx(1.0)
    assert mig_sup(codes, FACTORS, weighting="information").score == pytest.approx(1.0)
    dead = mig_sup(np.zeros_like(perfect), FACTORS, weighting="active")
    assert dead.score == 0.0
    assert "no code has a variance above .01" in dead.notes[-1]


def test_redundancy_costs_mig_and_jemmig_and_not_dcimig() -> None:
    twice = np.hstack([perfect_codes(FACTORS)] * 2)
    assert mig(twice, FACTORS).score == pytest.approx(0.0)
    assert dcimig(twice, FACTORS).score == pytest.approx(1.0)
    assert jemmig(twice, FACTORS, normalise="entropy").score == pytest.approx(0.5)


def test_the_floor_of_jemmig_rises_as_codes_fill_fewer_bins() -> None:
    rng = np.random.default_rng(0)
    factors = rng.integers(0, 20, (20_000, 2))
    normal = rng.standard_normal((20_000, 3))
    rare = np.where(rng.random((20_000, 3)) < 1e-3, 1.0, 0.0)
    normal_score, sign_score, rare_score = (jemmig(z, factors).score for z in (normal, np.sign(normal), rare))
    assert normal_score < 0.2 < sign_score < 0.4 < rare_score
    assert jemmig(normal, factors, normalise="entropy").score < 0.02
    assert jemmig(np.sign(normal), factors, normalise="entropy").score < 0.02


@pytest.mark.parametrize("function", [jemmig, dcimig, mig_sup])
def test_factors_may_be_cut_as_peers_cut_them(function: Callable[..., Any]) -> None:
    coarse = bin_equal_width(FACTORS.astype(float), 3)
    codes = entangled_codes(FACTORS)
    assert function(codes, FACTORS, factor_bins=3).score == pytest.approx(function(codes, coarse).score)
    assert function(codes, FACTORS, factor_bins=8).score == pytest.approx(function(codes, FACTORS).score)
    with pytest.raises(ValueError, match="factor_bins must be"):
        function(codes, FACTORS, factor_bins=1)


@pytest.mark.parametrize("function", [jemmig, dcimig, mig_sup])
def test_an_arc_is_cut_alike_wherever_on_the_circle_it_lies(function: Callable[..., Any]) -> None:
    arc, other = GRID[:, 0].repeat(50), GRID[:, 1].repeat(50)
    codes = np.column_stack([arc, other + 0.3 * arc]) + 0.1 * np.random.default_rng(0).standard_normal((400, 2))
    expected = function(codes, np.column_stack([arc // 2, other])).score
    for turned in (arc, (arc + 18) % 20, np.radians(18 * (arc + 18.5) % 360)):
        factors = np.column_stack([turned, other])
        kinds = ("cyclic", "ordinal")
        found = function(codes, factors, kinds=kinds, factor_bins=2).score
        assert found == pytest.approx(expected)


def test_chance_of_dcimig_counts_every_factor() -> None:
    rng = np.random.default_rng(0)
    factors, codes = rng.integers(0, 4, (150, 4)), rng.standard_normal((150, 12))
    scores = [dcimig(rng.permutation(codes), factors).score for _ in range(200)]
    stated = dcimig_of_noise(check_inputs(codes, factors))
    error = np.sqrt(np.var(scores) / 200 + stated.spread**2 / 10)  # what is stated is a mean of ten draws itself
    assert stated.score == pytest.approx(np.mean(scores), abs=3 * error)
    assert stated.score > 0.02


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_of_codes_that_know_all_of_a_factor_jemmig_takes_the_one_that_knows_nothing_else(order: list[int]) -> None:
    """1 - (H(z) + H(v) - 2 I(z; v) + I of the runner-up) / (H(v) + log 20), where I = H(v) of both codes."""
    codes = np.column_stack([GRID[:, 0], 2 * GRID[:, 0] + GRID[:, 1]])[:, order]
    result = jemmig(codes, GRID[:, :1])
    assert result.best_code[0] == order.index(0)
    assert result.per_factor[0] == pytest.approx(1 - np.log(4) / (np.log(4) + np.log(20)))
