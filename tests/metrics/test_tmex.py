"""T-MEX against worked examples and the test statistic step by step."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.linear_model import LinearRegression

from tests.examples import entangled_codes, grid_factors, perfect_codes, random_codes
from unbraid.metrics import tmex

FACTORS = grid_factors(6)
RNG = np.random.default_rng(0)
REAL = RNG.standard_normal((500, 3))


def test_worked_example() -> None:
    """W = [[1, 1], [0, 1]] where the identity is expected."""
    codes = REAL[:, :2] @ [[1, 0], [1, 1]]
    result = tmex(codes, REAL[:, :2], expected=np.eye(2))
    assert result.dependent.tolist() == [[1, 1], [0, 1]]
    assert result.score == 1.0


def test_the_test_step_by_step() -> None:
    codes = REAL @ RNG.standard_normal((3, 4)) * 0.1 + RNG.standard_normal((500, 4))
    found = tmex(codes, REAL, expected=np.zeros((4, 3))).p_values
    for i in range(4):
        for k in range(3):
            others = np.delete(REAL, k, axis=1)
            left = [y - LinearRegression().fit(others, y).predict(others) for y in (codes[:, i], REAL[:, k])]
            products = left[0] * left[1]
            t = np.sqrt(500) * products.mean() / products.std()
            assert found[i, k] == pytest.approx(2 * norm.sf(abs(t)), rel=1e-6, abs=1e-12)


def test_a_block_counts_by_its_least_p_value_times_its_columns() -> None:
    levels = FACTORS[:, 2:]
    codes = np.sin(2 * np.pi * levels / 8) + 6 * RNG.standard_normal(levels.shape)
    angle = 2 * np.pi * levels[:, 0] / 8
    real = {"kinds": ["continuous"], "expected": [[0]]}
    apart = [tmex(codes, column[:, None], **real).p_values[0, 0] for column in (np.cos(angle), np.sin(angle))]
    assert tmex(codes, levels, kinds=["cyclic"], expected=[[0]]).p_values[0, 0] == pytest.approx(2 * min(apart))


def test_expected_is_matched_on_other_rows() -> None:
    """As many cells as factors are lacking in noise; matched on the same rows it would have the most likely ones."""
    perfect, noise = tmex(perfect_codes(FACTORS), FACTORS), tmex(random_codes(FACTORS), FACTORS)
    assert perfect.score == 0.0
    np.testing.assert_array_equal(perfect.expected, np.eye(3)[:, ::-1])
    scores = [tmex(RNG.standard_normal((400, 6)), RNG.standard_normal((400, 3)), seed=seed).score for seed in range(40)]
    assert np.mean(scores) == pytest.approx(3 * 0.95 + 15 * 0.05, abs=0.6)
    assert noise.score >= 2.0
    assert perfect.n_rows == len(FACTORS) // 2


def test_luck_rejects_at_the_rate_asked_for() -> None:
    rates = [
        tmex(RNG.standard_normal((300, 20)), RNG.standard_normal((300, 5)), expected=np.zeros((20, 5)), alpha=0.1).score
        / 100
        for _ in range(20)
    ]
    assert np.mean(rates) == pytest.approx(0.1, abs=0.03)


def test_products_that_do_not_vary_are_certain() -> None:
    """A factor of two values that is its own code: every product is the same, and the deviation 0."""
    bits = np.tile([[0], [1]], (50, 1))
    assert tmex(bits, bits, expected=[[1]]).score == 0.0
    assert tmex(np.zeros((100, 1)), bits, expected=[[0]]).score == 0.0


def test_fewer_codes_than_factors_is_said() -> None:
    result = tmex(entangled_codes(FACTORS)[:, :1], FACTORS)
    assert result.expected.sum() == 1
    assert result.score >= 2.0
    assert "2 without one, counted as 1" in " ".join(result.notes)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alpha": 0.0}, "alpha must be"),
        ({"expected": np.eye(2)}, r"expected must be \(3, 3\)"),
        ({"expected": np.full((3, 3), 0.5)}, "of 0 and 1"),
    ],
)
def test_what_cannot_be_is_refused(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tmex(FACTORS, FACTORS, **arguments)


@pytest.mark.parametrize(("n_rows", "few"), [(29, True), (30, False)])
def test_fewer_than_ten_rows_a_column_are_said(n_rows: int, few: bool) -> None:
    """Two numbers are two columns, beside the intercept: thirty rows."""
    rng = np.random.default_rng(0)
    codes, factors = rng.standard_normal((2, n_rows, 2))
    notes = tmex(codes, factors, kinds=("continuous", "continuous"), expected=np.eye(2)).notes
    assert any("rows for least squares on 2 columns" in note for note in notes) == few
