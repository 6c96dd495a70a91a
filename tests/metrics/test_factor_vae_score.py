"""FactorVAE score against disentanglement_lib, a vote counted by hand, and the traps of dead codes."""

import numpy as np
import pytest

from tests.examples import entangled_codes, grid_factors, perfect_codes, random_codes
from tests.metrics.test_beta_vae_score import SPACE, mixed_codes
from unbraid.factors import FactorSpace
from unbraid.metrics import factor_vae_score

FACTORS = grid_factors()


def test_agrees_with_disentanglement_lib() -> None:
    """Its compute_factor_vae (86a644d; 64, 10 000, 5 000, threshold .05) on these codes: .7933, spread .0049."""
    scores = [
        factor_vae_score(mixed_codes(), SPACE.grid(), seed=seed, variance_threshold=0.0025).score for seed in range(4)
    ]
    assert np.mean(scores) == pytest.approx(0.7933, abs=0.008)


def test_votes_by_hand() -> None:
    """Code 0 is factor 0, code 1 is noise of the least spread: with factor 0 fixed code 0 varies 0 and gets the vote.

    With factor 1 fixed neither stands still. Code 0, on two equally likely levels, has normalised variance near 1 in a
    large batch with little spread; the noise, Gaussian, spreads more about 1, so each wins about half of those votes.
    Code 0 then stands for factor 0 and code 1 for factor 1: right are all votes of factor 0 and half of the others.
    """
    grid = np.tile(FactorSpace(("a", "b"), (2, 2), ("ordinal", "ordinal")).grid(), (500, 1))
    codes = np.column_stack([grid[:, 0] * 2.0, 0.3 * np.random.default_rng(0).standard_normal(len(grid))])
    result = factor_vae_score(codes, grid)
    assert result.votes.sum() == 10_000
    assert result.votes[1, 0] == 0
    assert result.votes[:, 0].sum() == pytest.approx(5000, abs=200)
    assert result.code_factor.tolist() == [0, 1]
    share = result.votes[1, 1] / result.votes[:, 1].sum()
    assert 0.3 < share < 0.7
    np.testing.assert_allclose(result.per_factor, [1.0, share], atol=0.03)
    assert result.score == pytest.approx((1 + share) / 2, abs=0.02)
    np.testing.assert_allclose(result.variances, codes.var(axis=0, ddof=1))


def test_variance_is_normalised_by_that_of_all_rows() -> None:
    """A factor's own code keeps the vote although another code is a hundred times smaller."""
    codes = perfect_codes(FACTORS) * [100.0, 1.0, 1.0]
    assert factor_vae_score(codes, FACTORS).score == 1.0


@pytest.mark.parametrize("dead", [0.0, 0.5, 0.1 + 1e-17])
def test_constant_codes_never_win(dead: float) -> None:
    """Kept, 0/0 wins every vote and this perfect code scores 1/3 (in an implementation with five factors, .22)."""
    codes = np.column_stack([np.full(len(FACTORS), dead), perfect_codes(FACTORS)])
    result = factor_vae_score(codes, FACTORS, variance_threshold=0.0)
    assert result.score == 1.0
    assert result.code_factor[0] == -1
    assert not result.votes[0].any()


def test_codes_constant_up_to_rounding_never_win() -> None:
    rounding = 0.1 + 1e-17 * np.arange(len(FACTORS)) % 3 * 1e-16
    codes = np.column_stack([rounding, perfect_codes(FACTORS)])
    assert factor_vae_score(codes, FACTORS, variance_threshold=0.0).score == 1.0


def test_threshold_is_of_the_variance_and_absolute() -> None:
    codes = perfect_codes(FACTORS)  # variance 1
    assert factor_vae_score(codes * 0.23, FACTORS).notes == ()  # 0.0529
    dropped = factor_vae_score(codes * [1.0, 1.0, 0.22], FACTORS)  # 0.0484
    assert dropped.notes == ("1 of 3 codes have variance below 0.05 and are dropped",)
    assert dropped.score < 0.95
    assert factor_vae_score(codes * [1.0, 1.0, 0.22], FACTORS, variance_threshold=0.04).score == 1.0


def test_all_codes_dropped_scores_zero_with_a_note() -> None:
    result = factor_vae_score(1e-3 * perfect_codes(FACTORS), FACTORS)
    assert result.score == 0.0
    assert not result.votes.any()
    assert "nothing votes" in result.notes[-1]


def test_score_is_of_test_votes() -> None:
    """Noise with one training vote a code: training is all right, the test at chance."""
    codes = np.random.default_rng(0).standard_normal((len(FACTORS), 60))
    result = factor_vae_score(codes, FACTORS, n_train=20, n_test=6000)
    assert result.train_accuracy > 0.7
    assert result.score == pytest.approx(1 / 3, abs=0.06)


def test_votes_and_per_factor_are_consistent() -> None:
    result = factor_vae_score(entangled_codes(FACTORS) @ np.array([[1, 1], [0.4, -1], [1, 0]]), FACTORS, n_test=20_000)
    assert result.train_accuracy == result.votes.max(axis=1).sum() / 10_000
    assert result.per_factor.mean() == pytest.approx(result.score, abs=0.01)
    assert result.per_factor.std() > 0.05


def test_noise_is_near_chance() -> None:
    assert factor_vae_score(random_codes(FACTORS), FACTORS).score == pytest.approx(1 / 3, abs=0.04)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch_size": 1}, "batch_size must be a whole number, 2 or more"),
        ({"n_train": 0}, "n_train must be a whole number, 1 or more"),
        ({"n_test": 0}, "n_test must be a whole number, 1 or more"),
        ({"variance_threshold": -1.0}, "variance_threshold must be a finite number, at least 0"),
        ({"variance_threshold": float("nan")}, "variance_threshold must be a finite number, at least 0"),
    ],
)
def test_unsound_arguments_are_refused(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        factor_vae_score(perfect_codes(FACTORS), FACTORS, **arguments)
