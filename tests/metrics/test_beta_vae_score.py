"""Beta-VAE score against disentanglement_lib, scikit-learn and what it cannot see."""

from importlib import import_module

import numpy as np
import pytest

from tests.examples import entangled_codes, grid_factors, perfect_codes
from unbraid.base.types import FloatArray
from unbraid.data import FactorSpace
from unbraid.metrics import beta_vae_score
from unbraid.metrics._solvers.logistic import softmax
from unbraid.metrics.beta_vae_score import WIDE, logistic_regression

FACTORS = grid_factors()
SPACE = FactorSpace(("a", "b", "c", "d"), (3, 4, 6, 5), ("ordinal",) * 4)
MIXING = np.array([[1, 0.9, 0, 0.5], [0.8, 1, 0.6, 0], [0, 0.7, 0.8, 0.9], [0.2, 0.4, -0.7, 1]])


def mixed_codes() -> FloatArray:
    grid = SPACE.grid()
    return (grid - grid.mean(axis=0)) / grid.std(axis=0) @ MIXING


def test_agrees_with_disentanglement_lib() -> None:
    """Its compute_beta_vae_sklearn (86a644d; 64, 10 000, 5 000) on these codes: .9293, spread .0021 over 6 seeds."""
    scores = [beta_vae_score(mixed_codes(), SPACE.grid(), seed=seed).score for seed in range(4)]
    assert np.mean(scores) == pytest.approx(0.9293, abs=0.006)


@pytest.mark.parametrize("scale", [1.0, 0.01])
def test_classifier_is_that_of_scikit_learn_at_its_optimum(scale: float) -> None:
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    labels = rng.integers(4, size=400)
    points = scale * (rng.standard_normal((400, 3)) + labels[:, None] * [0.5, -0.2, 0.0] + [0.0, 50.0, 0.0])
    weights, intercepts, converged = logistic_regression(points, labels, 4)
    assert converged
    reference = LogisticRegression(solver="newton-cg", tol=1e-12, max_iter=1000).fit(points, labels)
    np.testing.assert_allclose(weights, reference.coef_.T, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        points @ weights + intercepts - intercepts.mean(),
        points @ reference.coef_.T + reference.intercept_ - reference.intercept_.mean(),
        atol=1e-4,
    )


def test_classifier_of_wide_codes_is_at_its_optimum() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=600)
    points = rng.uniform(size=(600, WIDE + 4)) + 0.1 * np.eye(3)[labels] @ rng.standard_normal((3, WIDE + 4))
    weights, intercepts, converged = logistic_regression(points, labels, 3)
    assert converged
    errors = softmax(points @ weights + intercepts) - np.eye(3)[labels]
    np.testing.assert_allclose(points.T @ errors + weights, 0.0, atol=1e-5)
    np.testing.assert_allclose(errors.sum(axis=0), 0.0, atol=1e-5)


def test_classifier_survives_separable_points_an_absent_class_and_a_constant_column() -> None:
    points = np.column_stack([np.repeat([0.0, 1e30], 10), np.ones(20)])
    labels = np.repeat([0, 2], 10)
    weights, intercepts, _ = logistic_regression(points, labels, 3)
    np.testing.assert_array_equal((points @ weights + intercepts).argmax(axis=1), labels)


def test_scored_on_points_that_were_not_trained_on() -> None:
    """Noise, few training points: these are learnt by heart, the test points stay at chance, 1/3."""
    codes = np.random.default_rng(0).standard_normal((len(FACTORS), 30))
    result = beta_vae_score(codes, FACTORS, n_train=30, n_test=3000)
    assert result.train_accuracy > 0.6
    assert result.score == pytest.approx(1 / 3, abs=0.05)


def test_per_factor_is_the_share_named_rightly() -> None:
    result = beta_vae_score(entangled_codes(FACTORS) @ [[1.0, 0.9], [0.1, 1.0], [1.0, 0.8]], FACTORS, n_test=20_000)
    assert result.per_factor.std() > 0.02
    assert result.per_factor.mean() == pytest.approx(result.score, abs=0.01)  # factors are fixed equally often


def test_a_factor_of_few_rows_a_level_is_not_told_by_rows_paired_with_themselves() -> None:
    """Levels of dSprites on 1 000 rows: a pair of a position is one row in 31, which gave noise .295 for 1 / 5."""
    rng = np.random.default_rng(0)
    factors = np.stack([rng.integers(0, size, 1000) for size in (3, 6, 40, 32, 32)], axis=1)
    assert beta_vae_score(rng.standard_normal((1000, 5)), factors).score == pytest.approx(0.2, abs=0.04)


def test_noise_remembers_few_rows_unless_others_are_held_out() -> None:
    rng = np.random.default_rng(0)
    factors = rng.choice(3, (300, 3), p=[0.85, 0.1, 0.05])
    codes = rng.standard_normal((300, 10))
    arguments = {"n_train": 2000, "n_test": 2000}
    remembered = beta_vae_score(codes, factors, **arguments)
    assert remembered.score > 0.6
    assert "cannot be read at this size" in remembered.notes[-1]
    held_out = [beta_vae_score(codes, factors, seed=seed, separate_rows=True, **arguments) for seed in range(6)]
    assert np.mean([each.score for each in held_out]) == pytest.approx(1 / 3, abs=0.1)
    assert held_out[0].notes == ()


def test_saturates_on_rotated_codes_and_on_codes_that_lack_a_factor() -> None:
    grid = FactorSpace(("a", "b"), (8, 8), ("ordinal", "ordinal")).grid()
    turn = np.array([[0.8, 0.6], [-0.6, 0.8]])
    assert beta_vae_score((grid - 3.5) @ turn, grid).score > 0.99
    assert beta_vae_score(perfect_codes(FACTORS)[:, 1:], FACTORS).score > 0.99


def test_a_classifier_that_has_not_converged_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"n_train": 500, "n_test": 100}
    assert "the classifier has not converged" not in beta_vae_score(perfect_codes(FACTORS), FACTORS, **settings).notes
    monkeypatch.setattr(import_module("unbraid.metrics.beta_vae_score"), "N_NEWTON", 2)
    assert "the classifier has not converged" in beta_vae_score(perfect_codes(FACTORS), FACTORS, **settings).notes


def test_the_penalty_leaves_nothing_of_tiny_codes_and_of_large_ones_all() -> None:
    """Large codes leave nothing of the penalty; of tiny ones it leaves no weight, which is to answer one factor."""
    codes, settings = entangled_codes(FACTORS), {"n_train": 500, "n_test": 200, "batch_size": 4}
    plain, *large = (beta_vae_score(codes * scale, FACTORS, **settings).score for scale in (1e6, 1e20, 1e90))
    assert large == pytest.approx([plain] * 2, abs=0.01)
    tiny = beta_vae_score(codes * 1e-90, FACTORS, **settings)
    assert sorted(tiny.per_factor) == pytest.approx([0.0, 0.0, 1.0])


def test_levels_of_few_rows_cannot_be_read_even_from_rows_held_out() -> None:
    """Of ten draws of noise .22 to .73: half of a level's four rows look alike by luck."""
    codes, settings = np.random.default_rng(0).standard_normal((400, 10)), {"n_train": 100, "n_test": 50}
    even = np.stack([np.arange(400) % 2, np.arange(400) // 2 % 3], axis=1)
    rare = np.where(np.arange(400)[:, None] < 4, [3, 0], even)
    assert not beta_vae_score(codes, even, separate_rows=True, **settings).notes
    notes = beta_vae_score(codes, rare, separate_rows=True, **settings).notes
    assert notes == ("cannot be read at this size: noise scores far from chance where levels have down to 4 rows",)
