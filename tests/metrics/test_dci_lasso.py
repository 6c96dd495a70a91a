"""DCI by lasso against scikit-learn's Lasso and against cases known by hand."""

import math

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from tests.examples import entangled_codes, grid_factors, noisy_codes, perfect_codes, random_codes
from unbraid.metrics import dci_lasso
from unbraid.metrics._inputs import split_rows
from unbraid.metrics.dci_lasso import lasso_path

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
    path = lasso_path(codes.T @ codes / 300, codes.T @ target / 300, penalties)
    assert not path[0].any()
    for penalty, weights in zip(penalties[1:], path[1:], strict=True):
        expected = Lasso(alpha=penalty, fit_intercept=False, tol=1e-12, max_iter=200_000).fit(codes, target).coef_
        np.testing.assert_allclose(weights, expected, atol=1e-6)


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


def test_an_error_of_one_is_that_of_the_mean() -> None:
    """On test rows that have the training rows' mean and deviation, dead codes leave just the mean."""
    result = dci_lasso(np.zeros((len(FACTORS), 2)), FACTORS, test_codes=np.zeros((96, 2)), test_factors=FACTORS[:96])
    assert result.errors == pytest.approx([1.0, 1.0, 1.0], abs=0.01)


@pytest.mark.parametrize("copy", [1.0, -2.5])
def test_identical_codes_share_their_weight(copy: float) -> None:
    codes = perfect_codes(FACTORS)
    result = dci_lasso(np.column_stack([codes, copy * codes[:, 0]]), FACTORS)
    np.testing.assert_allclose(result.importance[0], result.importance[3], rtol=1e-9)
    assert result.per_factor == pytest.approx([1.0, 1.0, 1 - math.log(2, 4)], abs=1e-9)
    assert result.disentanglement == pytest.approx(1.0)
    assert result.errors == pytest.approx(dci_lasso(codes, FACTORS).errors)


@pytest.mark.parametrize("seed", range(5))
def test_noise_has_no_importance(seed: int) -> None:
    codes = random_codes(FACTORS, seed=seed)
    result = dci_lasso(codes, FACTORS, seed=seed)
    assert result.disentanglement == result.completeness == 0.0
    assert "factor 2: no linear relation to the codes beyond chance" in result.notes
    # As the paper has it, whatever small weights validation happens to keep are divided by each other.
    assert any(dci_lasso(random_codes(FACTORS, seed=s), FACTORS, significance=1.0).importance.any() for s in range(3))


def test_a_weak_relation_is_still_one() -> None:
    """A code of correlation .1 with one factor, among 2304 rows: three times what chance reaches."""
    factors = grid_factors()
    noise = random_codes(factors)
    noise[:, 1] += 0.1 * perfect_codes(factors)[:, 2]
    result = dci_lasso(noise, factors)
    assert result.importance[1, 0] > 0.05
    assert not result.importance[:, 1:].any()


def test_codes_that_only_together_explain_a_factor_are_not_screened_out() -> None:
    rng = np.random.default_rng(0)
    common = rng.standard_normal(len(FACTORS)) * 100
    codes = np.column_stack([common, common + perfect_codes(FACTORS)[:, 0]])
    result = dci_lasso(codes, FACTORS, seed=1)
    assert not any(note.startswith("factor 2: no linear") for note in result.notes)


def test_kinds_are_noted() -> None:
    notes = dci_lasso(noisy_codes(FACTORS), FACTORS, kinds=("categorical", "ordinal", "cyclic")).notes
    assert notes[1:] == (
        "factor 0 is categorical: its levels are read as numbers",
        "factor 2 is cyclic: its levels are read as numbers",
    )


def test_a_factor_that_is_constant_in_training() -> None:
    factors = np.zeros((40, 2))
    factors[:, 0] = np.arange(40) % 4
    train, _, test = split_rows(40, (0.8, 0.1, 0.1), 0)
    factors[test[0], 1] = 1
    assert np.ptp(factors[train, 1]) == 0
    result = dci_lasso(factors, factors, seed=0)
    assert np.isfinite(result.errors).all()
    assert not result.importance[:, 1].any()


@pytest.mark.parametrize("significance", [0.0, 1.5])
def test_significance_is_a_share(significance: float) -> None:
    with pytest.raises(ValueError, match="significance must be above 0 and at most 1"):
        dci_lasso(perfect_codes(FACTORS), FACTORS, significance=significance)
