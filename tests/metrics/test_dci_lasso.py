"""DCI by lasso against scikit-learn's Lasso and against cases known by hand."""

import math
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from tests.examples import entangled_codes, grid_factors, noisy_codes, perfect_codes
from unbraid.metrics import amari, dci_lasso, zero_shot
from unbraid.metrics._shared.inputs import check_inputs, part_of, split_rows
from unbraid.metrics._solvers.lasso import lasso_path, validated_lasso
from unbraid.metrics.dci_lasso import dci_lasso_of_parts

FACTORS = grid_factors(12)


def correlated(n_codes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    codes = rng.standard_normal((300, n_codes)) @ rng.standard_normal((n_codes, n_codes))
    codes = (codes - codes.mean(axis=0)) / codes.std(axis=0)
    target = codes @ rng.standard_normal(n_codes) + rng.standard_normal(300)
    return codes, (target - target.mean()) / target.std()


@pytest.mark.parametrize("n_codes", [1, 5, 12])
def test_the_path_is_scikit_learns_at_each_penalty(n_codes: int) -> None:
    codes, target = correlated(n_codes)
    largest = np.abs(codes.T @ target / 300).max()
    penalties = largest * np.array([1.0, 0.3, 0.1, 0.01, 1e-4])
    path, missed = lasso_path(codes.T @ codes / 300, codes.T @ target / 300, penalties)
    assert not path[0].any()
    assert missed.max() < 1e-9
    for penalty, weights in zip(penalties[1:], path[1:], strict=True):
        expected = Lasso(alpha=penalty, fit_intercept=False, tol=1e-12, max_iter=200_000).fit(codes, target).coef_
        np.testing.assert_allclose(weights, expected, atol=1e-6)


def like_neurons(n_codes: int) -> tuple[np.ndarray, np.ndarray]:
    """Many codes that follow few numbers, each in its own curved way: all are nearly combinations of others."""
    rng = np.random.default_rng(0)
    targets = rng.standard_normal((600, 3))
    codes = np.tanh(targets @ rng.standard_normal((3, n_codes)) / 2 + rng.standard_normal(n_codes))
    codes += 1e-3 * rng.standard_normal(codes.shape)
    return (codes - codes.mean(axis=0)) / codes.std(axis=0), targets[:, 0]


def test_the_path_reaches_the_optimum_where_codes_are_alike() -> None:
    """Coordinate descent needs tens of thousands of sweeps here, and more from another order of columns."""
    codes, target = like_neurons(100)
    gram, moments = codes.T @ codes / len(codes), codes.T @ target / len(codes)
    penalties = np.abs(moments).max() * np.geomspace(1, 1e-4, 20)
    path, missed = lasso_path(gram, moments, penalties)
    assert missed.max() < 1e-12
    for penalty, weights in zip(penalties, path, strict=True):
        slopes = moments - gram @ weights
        assert np.abs(slopes).max() <= penalty * (1 + 1e-6)
        np.testing.assert_allclose(slopes[weights != 0], penalty * np.sign(weights[weights != 0]), rtol=1e-6)
    order = np.random.default_rng(1).permutation(100)
    again, _ = lasso_path(gram[np.ix_(order, order)], moments[order], penalties)
    np.testing.assert_allclose(again, path[:, order], atol=1e-9)


def test_codes_of_which_one_is_a_combination_of_others() -> None:
    """Shares that sum to 1: the objective is that of scikit-learn, whose weights need not be the same."""
    rng = np.random.default_rng(0)
    codes = rng.dirichlet(np.ones(6), 300)
    codes = (codes - codes.mean(axis=0)) / codes.std(axis=0)
    target = codes[:, 0] - codes[:, 3] + rng.standard_normal(300)
    penalties = np.array([0.3, 0.1, 0.01, 1e-3])
    path, missed = lasso_path(codes.T @ codes / 300, codes.T @ target / 300, penalties)
    assert missed.max() < 1e-9
    for penalty, weights in zip(penalties, path, strict=True):
        peer = Lasso(alpha=penalty, fit_intercept=False, tol=1e-12, max_iter=200_000).fit(codes, target).coef_
        own, other = (((target - codes @ w) ** 2).mean() / 2 + penalty * np.abs(w).sum() for w in (weights, peer))
        assert own == pytest.approx(other, rel=1e-9)


def test_no_penalty_is_least_squares() -> None:
    codes, target = correlated(5)
    path, _ = lasso_path(codes.T @ codes / 300, codes.T @ target / 300, np.array([0.0]))
    np.testing.assert_allclose(path[0], np.linalg.lstsq(codes, target)[0], atol=1e-9)


@pytest.mark.parametrize("difference", [1e-4, 1e-2])
def test_nearly_equal_codes_of_one_factor_share_its_weight(difference: float) -> None:
    """The factor plus and less the same small number: neither code has a claim that the other has not."""
    factors = np.tile(FACTORS, (2, 1))
    apart = difference * np.repeat([1.0, -1.0], len(FACTORS))
    codes = perfect_codes(factors)
    result = dci_lasso(np.column_stack([codes[:, 0] + apart, codes[:, 0] - apart, codes[:, 1:]]), factors)
    assert result.importance[0, 2] == pytest.approx(result.importance[1, 2], rel=0.02)
    assert result.importance[:2, 2].sum() == pytest.approx(1.0, abs=0.01)


def test_what_has_not_converged_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*arguments: Any) -> tuple[np.ndarray, float, float]:
        weights, penalty, missed = validated_lasso(*arguments)
        return 0.9 * weights, penalty, missed + 0.1

    monkeypatch.setattr(import_module("unbraid.metrics.dci_lasso"), "validated_lasso", stopped)
    codes, note = entangled_codes(FACTORS), "factor 1: the lasso has not converged (off by 1e-01)"
    for result in (
        dci_lasso(codes, FACTORS), amari(codes, FACTORS),
        zero_shot(codes, FACTORS, held_out=lambda v: v.sum(axis=1) > 8),
    ):  # fmt: skip
        assert note in result.notes


def test_a_path_that_ends_early_has_the_best_penalty_of_the_whole() -> None:
    codes, target = correlated(30)
    train, valid = slice(200), slice(200, None)
    gram, moments = codes[train].T @ codes[train] / 200, codes[train].T @ target[train] / 200
    penalties = np.abs(moments).max() * np.geomspace(1, 1e-4, 100)
    n_tried = []

    def errors(path: np.ndarray) -> np.ndarray:
        n_tried.append(len(path))
        return ((target[valid, None] - codes[valid] @ path.T) ** 2).mean(axis=0)

    whole = validated_lasso(gram, moments, penalties, errors, None)
    assert n_tried == [100]
    weights, penalty, _ = validated_lasso(gram, moments, penalties, errors, 10)
    np.testing.assert_array_equal(weights, whole[0])
    best = int(np.flatnonzero(penalties == penalty)[0])
    assert penalty == whole[1]
    assert len(n_tried) == 1 + best + 11 < 100


@pytest.mark.parametrize("seed", [0, 1])
def test_twin_built_on_scikit_learn(seed: int) -> None:
    """Split, standardise by the training rows, pick the penalty on the validation rows, test on the rest."""
    codes = entangled_codes(FACTORS) * [1.0, 5.0, 0.2] + [3.0, 0.0, -1.0]
    result = dci_lasso(codes, FACTORS, seed=seed)
    train, valid, test = split_rows(len(codes), (0.8, 0.1, 0.1), seed)
    scaled = (codes - codes[train].mean(axis=0)) / codes[train].std(axis=0)
    for column in range(3):
        target = FACTORS[:, column]
        target = (target - target[train].mean()) / target[train].std()
        largest = np.abs(scaled[train].T @ target[train] / len(train)).max()
        fits = [
            Lasso(alpha=largest * 10 ** (-4 * step / 99), tol=1e-8).fit(scaled[train], target[train])
            for step in range(100)
        ]
        best = min(fits[1:], key=lambda fit: np.mean((fit.predict(scaled[valid]) - target[valid]) ** 2))
        np.testing.assert_allclose(result.importance[:, column], np.abs(best.coef_), atol=1e-5)
        assert result.tuned[column] == pytest.approx(best.alpha)
        error = np.sqrt(np.mean((best.predict(scaled[test]) - target[test]) ** 2))
        assert result.errors[column] == pytest.approx(error, abs=1e-5)
    assert result.nrmse == result.informativeness
    assert result.error_rate is None


@pytest.mark.parametrize("dead", [(), (0,)])
def test_parts_score_as_their_rows_do_alone(dead: tuple[int, ...]) -> None:
    """By products of columns that are standardised once, unless a code is constant within the part, below its mean."""
    codes, rows = noisy_codes(FACTORS), np.random.default_rng(0).permutation(len(FACTORS))[:300]
    codes[np.ix_(rows, dead)] = -5.0
    whole = check_inputs(codes, FACTORS)
    found = dci_lasso_of_parts(whole, 3)(part_of(whole, None, rows))
    alone = dci_lasso(codes[rows], FACTORS[rows], seed=3)
    for name in ("disentanglement", "completeness", "informativeness", "nrmse"):
        assert found.values[name] == pytest.approx(getattr(alone, name), abs=1e-9)
    assert found.per_factor == pytest.approx(alone.per_factor, abs=1e-9)


def test_an_error_of_one_is_that_of_the_mean() -> None:
    """On test rows that have the training rows' mean and deviation, dead codes leave just the mean."""
    result = dci_lasso(np.zeros((len(FACTORS), 2)), FACTORS, test_codes=np.zeros((96, 2)), test_factors=FACTORS[:96])
    assert result.errors == pytest.approx([1.0, 1.0, 1.0], abs=0.01)
    np.testing.assert_allclose(result.baseline, result.errors, rtol=1e-12)


@pytest.mark.parametrize("copy", [1.0, -2.5])
def test_identical_codes_share_their_weight(copy: float) -> None:
    codes = perfect_codes(FACTORS)
    result = dci_lasso(np.column_stack([codes, copy * codes[:, 0]]), FACTORS)
    np.testing.assert_allclose(result.importance[0], result.importance[3], rtol=1e-9)
    assert result.per_factor == pytest.approx([1.0, 1.0, 1 - math.log(2, 4)], abs=1e-9)
    assert result.disentanglement == pytest.approx(1.0)
    assert result.errors == pytest.approx(dci_lasso(codes, FACTORS).errors)


def test_codes_that_only_together_explain_a_factor_are_not_screened_out() -> None:
    rng = np.random.default_rng(0)
    common = rng.standard_normal(len(FACTORS)) * 100
    codes = np.column_stack([common, common + perfect_codes(FACTORS)[:, 0]])
    result = dci_lasso(codes, FACTORS, seed=1)
    assert result.importance[:, 2].all()


def test_a_factor_that_is_constant_in_training() -> None:
    factors = np.zeros((40, 2))
    factors[:, 0] = np.arange(40) % 4
    train, _, test = split_rows(40, (0.8, 0.1, 0.1), 0)
    factors[test[0], 1] = 1
    assert np.ptp(factors[train, 1]) == 0
    result = dci_lasso(factors, factors, seed=0)
    assert np.isfinite(result.errors).all()
    assert not result.importance[:, 1].any()
