"""Consistency over runs against scikit-learn's regression, in sample as cebra counts and on rows kept out."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from unbraid.metrics import run_consistency
from unbraid.metrics._shared.inputs import split_rows

RNG = np.random.default_rng(0)
SHARED = RNG.standard_normal((120, 3))
RUNS = [
    SHARED + 0.5 * RNG.standard_normal((120, 3)),
    SHARED @ RNG.standard_normal((3, 4)) + RNG.standard_normal((120, 4)),
    np.tanh(SHARED),
]


def test_in_sample_it_is_what_cebra_counts() -> None:
    """Its `_consistency_scores` are `LinearRegression().fit(i, j).score(i, j)` of every ordered pair."""
    result = run_consistency(RUNS, fit="all")
    for i, one in enumerate(RUNS):
        for j, other in enumerate(RUNS):
            expected = LinearRegression().fit(one, other).score(one, other) if i != j else 1.0
            assert result.per_pair[i, j] == pytest.approx(expected, abs=1e-10)
    assert result.score == pytest.approx(result.per_pair[~np.eye(3, dtype=bool)].mean())
    assert "noise would score 0.03" in result.notes[0]


def test_cebra_prints_as_much_for_noise() -> None:
    """0.429 and 0.431, by cebra 0.6.1 `consistency_score([one, other], between="runs")`; D / (n - 1) is .428."""
    one, other = np.random.default_rng(0).standard_normal((2, 300, 128))
    result = run_consistency([one, other], fit="all")
    assert sorted(result.per_pair[[0, 1], [1, 0]]) == pytest.approx([0.429, 0.431], abs=6e-4)
    assert run_consistency([one, other]).score < 0.0
    narrow = np.column_stack([other[:, :2], np.ones(300), other[:, :1]])
    result = run_consistency([one, narrow], fit="all")
    assert result.score == pytest.approx((128 + 2) / 2 / 299, abs=0.02)
    assert "noise would score 0.22" in result.notes[0], "of runs of 128 codes and of two that vary for themselves"


@pytest.mark.parametrize("groups", [None, np.repeat(np.arange(12), 10)])
def test_on_rows_kept_out_it_is_scikit_learns_regression_both_ways(groups) -> None:
    result = run_consistency(RUNS, groups=groups, seed=3)
    halves = split_rows(120, (0.5, 0.5), 3, groups)
    for i, j in ((0, 1), (1, 0), (2, 1)):
        expected = [
            LinearRegression().fit(RUNS[i][known], RUNS[j][known]).score(RUNS[i][judged], RUNS[j][judged])
            for known, judged in (halves, halves[::-1])
        ]
        assert result.per_pair[i, j] == pytest.approx(np.mean(expected), abs=1e-10)
    if groups is not None:
        assert not set(groups[halves[0]]) & set(groups[halves[1]])


def test_turned_codes_are_consistent_and_constant_ones_are_left_out() -> None:
    turn = np.linalg.qr(RNG.standard_normal((3, 3)))[0]
    dead = np.hstack([SHARED, np.ones((120, 1))])
    assert run_consistency([SHARED, SHARED @ turn]).score == pytest.approx(1.0)
    assert run_consistency([SHARED, dead]).score == pytest.approx(1.0)
    assert run_consistency([SHARED, np.ones((120, 2))]).per_pair[0, 1] == 0.0


def test_a_code_that_only_rounding_varies_is_a_constant_one() -> None:
    flat = 0.1 + np.spacing(0.1) * RNG.integers(0, 2, (120, 1))
    assert np.ptp(flat) > 0
    assert run_consistency([SHARED, np.hstack([SHARED, flat])]).score == pytest.approx(1.0)
    assert run_consistency([SHARED, flat]).per_pair[0, 1] == 0.0


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(ValueError, match="at least two runs"):
        run_consistency([SHARED])
    with pytest.raises(ValueError, match=r"same rows; runs\[0\] has 120, runs\[1\] 60"):
        run_consistency([SHARED, SHARED[:60]])
    with pytest.raises(ValueError, match="groups must be one label per row"):
        run_consistency([SHARED, SHARED], groups=[0, 1])


@pytest.mark.parametrize("scale", [1.0, 1e-8, 1e-13, 1e-30, 1e90])
def test_each_code_counts_the_same_whatever_its_scale(scale: float) -> None:
    codes = np.random.default_rng(0).standard_normal((200, 3))
    found = run_consistency([codes, codes * [scale, 1.0, 1.0]])
    assert found.per_pair == pytest.approx(np.ones((2, 2)), abs=1e-9)


def test_every_row_has_a_group() -> None:
    codes = np.random.default_rng(0).standard_normal((200, 3))
    with pytest.raises(ValueError, match="groups must have a label in every row; row 0 has none"):
        run_consistency([codes, codes], groups=np.r_[np.full(100, np.nan), np.zeros(100)])
