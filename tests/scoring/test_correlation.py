"""Correlations and their p values against scipy, and the difference of two against the paper, cocor and simulation."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from unbraid.scoring.correlation import (
    correlation,
    correlation_difference,
    correlation_interval,
    p_value,
    ranks,
    t_value,
)

# SNC/NK, table 4: correlation of each metric with compositional generalisation.
METRICS = ("SNC", "NK", "MIG", "SAP", "IRS", "D", "C", "I", "DCI", "MED")
ALL_DATASETS = (0.850, 0.716, 0.571, 0.311, 0.106, 0.457, 0.414, 0.535, 0.493, 0.566)  # 18 models
SHAPES3D = (0.849, 0.710, 0.800, 0.726, 0.668, 0.472, 0.819, 0.740, 0.717, 0.785)  # 6 models


def test_t_values_of_the_paper() -> None:
    """Appendix E by hand: .85 * 4 / sqrt(1 - .7225) = 3.4 / .52678 = 6.454 for n = 18; .85 * 2 / .52678 for n = 6."""
    assert t_value(0.85, 18) == pytest.approx(6.4543, abs=1e-4)
    assert t_value(0.85, 6) == pytest.approx(3.2272, abs=1e-4)
    assert p_value(0.85, 18) < 1e-5
    assert 0.032 < p_value(0.85, 6) < 0.033
    assert t_value(-0.85, 6) == -t_value(0.85, 6)
    assert p_value(-0.85, 6) == p_value(0.85, 6)
    assert t_value(-1.0, 5) == -np.inf
    assert p_value(1.0, 5) == 0


def columns(n: int, seed: int = 0, ties: bool = False) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(n)
    y = x + rng.standard_normal(n) * 1.5
    return (np.round(x), np.round(y)) if ties else (x, y**3)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("n", [9, 12, 200])
def test_correlations_and_p_values_are_those_of_scipy(n: int, ties: bool) -> None:
    x, y = columns(n, n, ties)
    expected = stats.spearmanr(x, y)
    assert correlation(x, y) == pytest.approx(tuple(expected), rel=1e-9)
    assert correlation(x, y, "pearson") == pytest.approx(tuple(stats.pearsonr(x, y)), rel=1e-9)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("n", [3, 4, 6])
def test_p_of_few_ranks_is_that_of_scipys_exact_permutation_test(n: int, ties: bool) -> None:
    x, y = columns(n, 20 + n, ties)
    x[0], y[0] = 3.0, -3.0  # not constant
    exact = stats.permutation_test(
        (x,), lambda first: stats.spearmanr(first, y).statistic, permutation_type="pairings", n_resamples=np.inf
    )
    value, p = correlation(x, y)
    assert value == pytest.approx(stats.spearmanr(x, y).statistic)
    assert p == pytest.approx(exact.pvalue)


@pytest.mark.parametrize("unit", [1e-250, 1e-200, 1e200, 1e300])
def test_a_correlation_has_no_unit(unit: float) -> None:
    x, y = np.array([1.0, 2.0, 0.3, -4.0]), np.array([3.0, 1.0, 2.0, -1.0])
    expected = stats.pearsonr(x, y)
    assert correlation(x * unit, y, "pearson") == pytest.approx((expected.statistic, expected.pvalue), rel=1e-9)


def test_what_differs_by_rounding_alone_shares_a_rank() -> None:
    """Two of four models are perfect: which of them has the last digit less says nothing of their order."""
    scores = np.array([0.2, 1.0, 0.5, 1.0])
    rounded = scores - [0.0, 0.0, 0.0, 2e-16]
    assert ranks(rounded).tolist() == [1.0, 3.5, 2.0, 3.5]
    assert correlation(rounded, [1, 3, 2, 4]) == correlation(scores, [1, 3, 2, 4])
    assert ranks(1e-300 * rounded).tolist() == ranks(1e300 * rounded).tolist() == [1.0, 3.5, 2.0, 3.5]


def test_three_runs_in_order_prove_little() -> None:
    """Of 3! orders two are perfect; Student's t would say p = 0."""
    assert correlation([1, 2, 3], [10, 11, 90]) == (pytest.approx(1.0), pytest.approx(1 / 3))
    assert correlation([1, 2, 3, 4], [4, 3, 2, 1]) == (pytest.approx(-1.0), pytest.approx(2 / 24))


def significant(values: tuple[float, ...], n: int, test: str) -> set[tuple[str, str]]:
    return {
        (METRICS[i], METRICS[j])
        for i, first in enumerate(values)
        for j, second in enumerate(values)
        if i != j and correlation_difference(first, second, n, test=test).p < 0.01  # pyright: ignore[reportArgumentType]
    }


def test_the_papers_test_gives_the_significance_that_the_paper_reports() -> None:
    """Section 5.3: SNC over all metrics but NK, and NK over IRS; on 3dshapes none. As for two samples it would not."""
    reported = {("SNC", other) for other in METRICS[2:]} | {("NK", "IRS")}
    assert significant(ALL_DATASETS, 18, "paper") == reported
    assert significant(SHAPES3D, 6, "paper") == set()
    assert significant(ALL_DATASETS, 18, "independent") == {("SNC", "SAP"), ("SNC", "IRS")}


def test_fishers_test_by_hand() -> None:
    """artanh .85 = 1.25615, artanh .571 = .64901: .60715 * sqrt(15) = 2.3515; over sqrt(2 / 15): 1.6627."""
    assert correlation_difference(0.85, 0.571, 18, test="paper").z == pytest.approx(2.3515, abs=1e-4)
    assert correlation_difference(0.85, 0.571, 18, test="paper").p == pytest.approx(0.00934, abs=1e-5)
    assert correlation_difference(0.85, 0.571, 18, test="independent").z == pytest.approx(1.6627, abs=1e-4)
    assert correlation_difference(0.571, 0.85, 18, test="paper").p == pytest.approx(1 - 0.00934, abs=1e-5)


@pytest.mark.parametrize(
    ("first", "second", "between", "n", "z"),
    [
        (-0.1741, 0.2015, 0.3734, 646, -8.5080),  # meng1992 as the R package cocor prints it
        (0.1724, 0.1795, 0.5387, 646, -0.1909),
        (0.63, -0.03, -0.19, 15, 1.68),  # the worked example of Meng, Rosenthal & Rubin
    ],
)
def test_dependent_correlations_are_compared_as_by_cocor(
    first: float, second: float, between: float, n: int, z: float
) -> None:
    assert correlation_difference(first, second, n, between=between).z == pytest.approx(z, rel=2e-3, abs=2e-3)


def test_only_the_dependent_test_errs_as_often_as_it_says_for_metrics_that_correlate() -> None:
    """Two metrics that predict equally well and correlate by .7, on 18 runs: 5 % of p are to be below .05."""
    rng = np.random.default_rng(0)
    cholesky = np.linalg.cholesky([[1, 0.6, 0.6], [0.6, 1, 0.7], [0.6, 0.7, 1]])
    wrong = dict.fromkeys(("dependent", "independent", "paper"), 0)
    for _ in range(1500):
        r = np.corrcoef(rng.standard_normal((18, 3)) @ cholesky.T, rowvar=False)
        for test in wrong:
            wrong[test] += correlation_difference(r[0, 1], r[0, 2], 18, between=r[1, 2], test=test).p < 0.05
    assert 0.035 < wrong["dependent"] / 1500 < 0.065
    assert wrong["independent"] / 1500 < 0.01


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.5, 0.4, 3, {"test": "paper"}), "at least 4 runs; got 3"),
        ((1.0, 0.4, 9, {"test": "paper"}), "a correlation of 1 has no Fisher transform"),
        ((0.5, 1.4, 9, {"test": "paper"}), "between -1 and 1; got 1.4"),
    ],
)
def test_unsound_arguments_are_refused(arguments: tuple, message: str) -> None:
    first, second, n, options = arguments
    with pytest.raises(ValueError, match=message):
        correlation_difference(first, second, n, **options)


def test_too_few_runs_have_no_p_value() -> None:
    with pytest.raises(ValueError, match="at least 3 runs; got 2"):
        p_value(0.5, 2)
    with pytest.raises(ValueError, match="method must be one of spearman, pearson; got 'kendall'"):
        correlation([1, 2, 3], [1, 3, 2], "kendall")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("n", [4, 12, 60])
def test_intervals_of_straight_lines_are_those_of_scipy(n: int) -> None:
    x, y = columns(n)
    found: Any = stats.pearsonr(x, y)
    expected = found.confidence_interval(0.9)
    low, high = correlation_interval(float(found.statistic), n, 0.9, "pearson")
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_intervals_of_ranks_by_hand() -> None:
    """z = artanh .5 = .549306, deviation sqrt((1 + .125) / 25) = .212132, 1.959964 of which are .415771."""
    low, high = correlation_interval(0.5, 28)
    assert (low, high) == pytest.approx((np.tanh(0.133535), np.tanh(0.965077)), abs=1e-6)
    assert correlation_interval(-0.5, 28) == pytest.approx((-high, -low))
    assert correlation_interval(0.3, 3) == (-1.0, 1.0)


def test_few_runs_in_perfect_order_are_no_proof() -> None:
    low, high = correlation_interval(1.0, 5)
    inside = 1 - 6 / 120  # half a swap of neighbours short of perfect
    half = 1.959964 * np.sqrt((1 + inside**2 / 2) / 2)
    assert (low, high) == pytest.approx((np.tanh(np.arctanh(inside) - half), 1.0))
    assert correlation_interval(-1.0, 5)[0] == -1.0
    assert correlation_interval(1.0, 5, method="pearson") == (1.0, 1.0)


def test_intervals_of_ranks_hold_what_they_promise() -> None:
    rng = np.random.default_rng(0)
    true = 6 / np.pi * np.arcsin(0.7 / 2)  # Spearman's, of normal values that correlate by .7
    held = 0
    for _ in range(400):
        x = rng.standard_normal(20)
        y = 0.7 * x + np.sqrt(1 - 0.49) * rng.standard_normal(20)
        low, high = correlation_interval(correlation(x, y)[0], 20, 0.95)
        held += low <= true <= high
    assert 0.92 <= held / 400 <= 0.98
