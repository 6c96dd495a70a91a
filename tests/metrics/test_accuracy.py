"""Head accuracies against scikit-learn, and the formula by hand."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from tests.examples import grid_factors, noisy_codes, perfect_codes, rotated_codes
from unbraid.metrics import linear_accuracy, mlp_accuracy
from unbraid.metrics._logistic import one_vs_rest_regression, softmax_regression
from unbraid.metrics._trial import adjusted, guessing, standardised_codes, trial

FACTORS = grid_factors(6)


@pytest.mark.parametrize("factor", [0, 2])
def test_softmax_regression_is_that_of_scikit_learn(factor: int) -> None:
    codes = noisy_codes(FACTORS)
    own = softmax_regression(codes, FACTORS[:, factor], FACTORS[:, factor].max() + 1)
    peer = LogisticRegression(solver="newton-cg", tol=1e-10, max_iter=1000).fit(codes, FACTORS[:, factor])
    np.testing.assert_allclose(own[:-1], peer.coef_.T, atol=2e-3)
    np.testing.assert_allclose(own[-1] - own[-1].mean(), peer.intercept_ - peer.intercept_.mean(), atol=2e-3)


def test_binary_regressions_are_those_of_scikit_learn() -> None:
    codes = noisy_codes(FACTORS)
    positive = np.column_stack([FACTORS == 0, FACTORS[:, 2] == 7, codes[:, 0] > 0])
    own = one_vs_rest_regression(codes, positive)
    for problem, target in enumerate(positive.T):
        peer = LogisticRegression(solver="newton-cg", tol=1e-10, max_iter=1000).fit(codes, target)
        np.testing.assert_allclose(own[:-1, problem], peer.coef_[0], atol=2e-3)
        np.testing.assert_allclose(own[-1, problem], peer.intercept_[0], atol=2e-3)


def test_linear_accuracy_is_the_test_accuracy_of_scikit_learn() -> None:
    codes = rotated_codes(FACTORS, noise=0.4)
    rows = trial(codes, FACTORS, None, 0)
    standard, levels = standardised_codes(rows), rows.levels.levels
    result = linear_accuracy(codes, FACTORS)
    for factor in range(3):
        peer = LogisticRegression(tol=1e-8, max_iter=5000).fit(standard[rows.train], levels[rows.train, factor])
        expected = peer.score(standard[rows.test], levels[rows.test, factor])
        assert result.accuracy[factor] == pytest.approx(expected, abs=1.5 / len(rows.test))
        share = [np.mean(levels[part, factor][:, None] == np.arange(9), axis=0) for part in (rows.train, rows.test)]
        chance = sum(a * b for a, b in zip(*share, strict=True))
        assert result.chance[factor] == pytest.approx(chance)
        assert result.per_factor[factor] == pytest.approx((result.accuracy[factor] - chance) / (1 - chance))
    assert result.score == pytest.approx(result.per_factor.mean())


def test_the_test_rows_are_not_those_trained_on() -> None:
    """Labels without meaning: a perceptron learns its training rows by heart and is no use on the others."""
    rng = np.random.default_rng(0)
    codes, factors = rng.standard_normal((300, 40)), rng.integers(0, 4, (300, 1))
    assert mlp_accuracy(codes, factors).score < 0.3
    assert mlp_accuracy(codes, factors, test_codes=codes, test_factors=factors).score > 0.6


def test_a_line_cannot_read_xor_and_a_perceptron_can() -> None:
    bits = np.random.default_rng(0).integers(0, 2, (800, 2))
    factors = bits[:, :1] ^ bits[:, 1:]
    assert linear_accuracy(bits, factors).accuracy[0] < 0.8
    assert mlp_accuracy(bits, factors).score == 1.0


def test_the_training_of_the_paper_stops_short_of_the_optimum() -> None:
    factors = grid_factors()
    codes = perfect_codes(factors)
    assert linear_accuracy(codes, factors).score == 1.0
    paper = linear_accuracy(codes, factors, training="paper")
    assert paper.accuracy[0] == 1.0
    assert 0.3 < paper.accuracy[2] < 0.7
    with pytest.raises(ValueError, match="training must be"):
        linear_accuracy(codes, factors, training="short")


def test_adjustment_by_hand() -> None:
    np.testing.assert_allclose(adjusted(np.array([0.75, 0.2, 1.0]), np.array([0.5, 0.25, 1.0])), [0.5, 0.0, 0.0])


def test_guessing_by_frequency_on_test_rows() -> None:
    codes, factors = np.arange(10.0)[:, None], np.repeat([0, 1], [7, 3])[:, None]
    rows = trial(codes, factors, None, 0, [[0.0], [1.0], [2.0], [3.0]], [[0], [1], [1], [1]])
    assert guessing(rows)[0] == pytest.approx(0.7 * 0.25 + 0.3 * 0.75)


def test_continuous_factors_are_cut_into_bins_and_said_so() -> None:
    values = np.random.default_rng(0).random((600, 1))
    result = linear_accuracy(values, values)
    assert "cut into 20 bins" in result.notes[0]
    assert result.score > 0.3
