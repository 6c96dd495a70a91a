"""The Amari distance of matrices by hand and by loops."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.examples import entangled_codes, grid_factors, perfect_codes
from unbraid.base.types import FloatArray
from unbraid.metrics import amari, amari_from_importance, dci_boosted, dci_forest, dci_lasso
from unbraid.metrics.amari import Predictor
from unbraid.metrics.dci import DCI


def eq_1(matrix: FloatArray) -> float:
    """Equation 1 of the DCI paper."""
    error = 0.0
    for row in matrix:
        error += sum(abs(p) / max(abs(q) for q in row) for p in row) - 1
    for column in matrix.T:
        error += sum(abs(p) / max(abs(q) for q in column) for p in column) - 1
    return error


@pytest.mark.parametrize("shape", [(3, 3), (7, 3), (2, 2)])
def test_equation_1(shape: tuple[int, int]) -> None:
    matrix = np.random.default_rng(1).standard_normal(shape)
    distance = amari_from_importance(matrix)
    assert distance.error == pytest.approx(eq_1(matrix), abs=1e-12)
    n_codes, n_factors = shape
    assert distance.score == pytest.approx(eq_1(matrix) / eq_1(np.ones(shape)), abs=1e-12)
    assert eq_1(np.ones(shape)) == n_codes * (n_factors - 1) + n_factors * (n_codes - 1)


def test_by_hand() -> None:
    """Rows: 1/2 and 1/3. Columns: (4 + 1)/4 - 1 = 1/4 and (2 + 3)/3 - 1 = 2/3. Greatest: 2 + 2."""
    distance = amari_from_importance([[4.0, 2.0], [1.0, 3.0]])
    assert distance.error == pytest.approx(1 / 2 + 1 / 3 + 1 / 4 + 2 / 3)
    assert distance.score == pytest.approx((1 / 2 + 1 / 3 + 1 / 4 + 2 / 3) / 4)


@pytest.mark.parametrize("n_dead", [0, 3])
def test_a_monomial_matrix_with_dead_codes_is_at_no_distance(n_dead: int) -> None:
    matrix = np.vstack([np.diag([0.1, -5.0, 2.0])[[2, 0, 1]], np.zeros((n_dead, 3))])
    distance = amari_from_importance(matrix)
    assert (distance.score, distance.error, distance.notes) == (0.0, 0.0, ())


def test_an_even_matrix_is_farthest() -> None:
    assert amari_from_importance(np.full((5, 3), 0.2)).score == 1.0


@pytest.mark.parametrize("seed", range(3))
def test_dead_codes_change_nothing(seed: int) -> None:
    matrix = np.random.default_rng(seed).random((4, 3))
    more = np.insert(matrix, [0, 2, 4], 0.0, axis=0)
    assert amari_from_importance(more).score == amari_from_importance(matrix).score
    assert amari_from_importance(more).error == amari_from_importance(matrix).error


def test_a_factor_that_no_code_captures() -> None:
    """Its column counts as even: 3 live rows add 2. Greatest: 3 * 1 + 2 * 2."""
    distance = amari_from_importance([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    assert distance.error == 2.0 + 2.0
    assert distance.score == pytest.approx(4 / 7)
    assert distance.notes == ("factor 1: no code is important for it",)


def test_fewer_live_codes_than_factors() -> None:
    """[1, 0] leaves the second factor without a code: an even column, 1, and an even row, 1, of 4."""
    for matrix in ([[1.0, 0.0]], [[1.0, 0.0], [0.0, 0.0]]):
        distance = amari_from_importance(matrix)
        assert (distance.error, distance.score) == (1.0, 0.5)
        assert "fewer live codes (1) than factors (2): no permutation is possible" in distance.notes


def test_degenerate_matrices() -> None:
    assert amari_from_importance(np.zeros((4, 3))).score == 1.0
    assert amari_from_importance([[2.0]]).score == 0.0
    assert amari_from_importance([[0.0]]).score == 1.0
    assert amari_from_importance([[2.0], [2.0]]).score == 1.0
    assert amari_from_importance([[2.0], [0.5]]).score == pytest.approx(0.25)
    with pytest.raises(ValueError, match="importance must be finite"):
        amari_from_importance([[np.nan]])


@pytest.mark.parametrize(
    ("importance", "metric"), [("lasso", dci_lasso), ("forest", dci_forest), ("boosted", dci_boosted)]
)
def test_importances_are_those_of_dci(importance: Predictor, metric: Callable[..., DCI]) -> None:
    factors = grid_factors(3)
    result = amari(entangled_codes(factors), factors, importance=importance, seed=2)
    expected = metric(entangled_codes(factors), factors, seed=2)
    np.testing.assert_array_equal(result.importance, expected.importance)
    assert result.score == amari_from_importance(result.importance).score
    assert result.notes[0] == expected.notes[0]
    assert amari(perfect_codes(factors), factors, importance=importance).score == pytest.approx(0.0, abs=1e-9)
