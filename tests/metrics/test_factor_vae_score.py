"""FactorVAE score against disentanglement_lib, a vote counted by hand, and the traps of dead codes."""

import re

import numpy as np
import pytest

from tests.examples import entangled_codes, grid_factors, perfect_codes
from tests.metrics.test_beta_vae_score import SPACE, mixed_codes
from unbraid.base.types import FloatArray, IntArray
from unbraid.data import FactorSpace
from unbraid.metrics import factor_vae_score
from unbraid.metrics._shared.inputs import as_levels, check_inputs
from unbraid.metrics._shared.interventions import draw_batches, group_rows

FACTORS = grid_factors()


def test_agrees_with_disentanglement_lib() -> None:
    """Its compute_factor_vae (86a644d; 64, 10 000, 5 000, threshold .05) on these codes: .7933, spread .0049."""
    scores = [
        factor_vae_score(mixed_codes(), SPACE.grid(), seed=seed, variant="disentanglement_lib").score
        for seed in range(4)
    ]
    assert np.mean(scores) == pytest.approx(0.7933, abs=0.008)


@pytest.mark.parametrize("case", ["noisy", "spreads of .04 and .06", "half of another", "half before"])
def test_the_variant_is_its_vote_on_the_same_batches(case: str) -> None:
    """Codes of a standard deviation below .05 dropped; least variance over all rows', the first of equals; majority."""
    factors = np.random.RandomState(0).randint(1, 11, (3000, 3))
    codes = factors + 0.3 * np.random.default_rng(1).standard_normal(factors.shape)
    if case == "spreads of .04 and .06":
        codes *= [1.0, 0.04 / codes[:, 1].std(), 0.06 / codes[:, 2].std()]
    if case.startswith("half"):
        factors[:, 1] = factors[:, 0] // 2
        codes = factors[:, [1, 0, 2] if case == "half before" else [0, 1, 2]]
    rng, groups = np.random.default_rng(7), group_rows(as_levels(check_inputs(codes, factors)))
    spread = codes.std(axis=0, ddof=1)
    live = [code for code in range(codes.shape[1]) if spread[code] >= 0.05]
    votes = []
    for n_points in (1000, 600):
        votes.append(np.zeros((len(live), factors.shape[1])))
        for batch, fixed in zip(*draw_batches(groups, n_points, 5, rng), strict=True):
            relative = [round(codes[batch, code].var(ddof=1) / spread[code] ** 2, 12) for code in live]
            votes[-1][relative.index(min(relative)), fixed] += 1
    learnt, judged = votes
    right = sum(judged[code, list(row).index(max(row))] for code, row in enumerate(learnt))
    settings = {"batch_size": 5, "n_train": 1000, "n_test": 600, "seed": 7}
    result = factor_vae_score(codes, factors, variant="disentanglement_lib", **settings)
    assert result.score == pytest.approx(right / 600, abs=1e-9)
    plain = factor_vae_score(codes, factors, **settings)
    assert (abs(plain.score - result.score) < 0.05) == (case == "noisy")


def test_examples_of_disentanglement_lib() -> None:
    """Its tests (86a644d): ten factors of ten values, batches of 5; as they are .9 to 1, all zero 0 to .2."""
    factors = np.random.RandomState(0).randint(1, 11, (2500, 10))
    settings = {"batch_size": 5, "n_train": 3000, "n_test": 2000, "variant": "disentanglement_lib"}
    found = factor_vae_score(factors, factors, **settings)
    assert 0.9 <= found.score <= 1.0
    assert 0.9 <= found.train_accuracy <= 1.0
    dead = factor_vae_score(np.zeros(factors.shape), factors, **settings)
    assert 0.0 <= dead.score <= 0.2
    assert 0.0 <= dead.train_accuracy <= 0.2


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


@pytest.mark.parametrize("scales", [(1.0, 1.0), (1.0, -7.0), (1e-3, 1e3)])
def test_tied_votes_are_split_whatever_the_order_of_columns(scales: tuple[float, float]) -> None:
    """f and f // 2 as codes: with f fixed both stand still and share the vote, with f // 2 fixed only its own does.

    f's code stands for f, f // 2's for f // 2 (half as many votes for f): half of the votes with f fixed are right,
    and all others: .75. Where the first code won, it was 1, or .51 for the reversed columns.
    """
    f = np.tile(np.arange(8), 100)
    factors = np.column_stack([f, f // 2])
    codes = factors * np.array(scales)
    for columns in ([0, 1], [1, 0]):
        for order in ([0, 1], [1, 0]):
            result = factor_vae_score(codes[:, columns], factors[:, order], variance_threshold=0.0)
            assert result.score == pytest.approx(0.75, abs=0.01)
            np.testing.assert_allclose(result.per_factor[order], [0.5, 1.0])
            assert result.votes.sum() == pytest.approx(10_000)


def test_factors_with_equally_many_votes_share_a_code() -> None:
    """One code, one factor twice, one training vote for either: half of the answers for each are right."""
    f = np.tile(np.arange(4), 200)[:, None]
    result = factor_vae_score(f, np.hstack([f, f]), n_train=2, seed=1)
    assert result.votes.tolist() == [[1, 1]]
    assert result.per_factor.tolist() == [0.5, 0.5]
    assert result.score == 0.5
    theirs = factor_vae_score(f, np.hstack([f, f]), n_train=2, seed=1, variant="disentanglement_lib")
    assert theirs.per_factor.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("n_samples", [150, 1000])
def test_noise_remembers_few_rows_unless_others_are_held_out(n_samples: int) -> None:
    rng = np.random.default_rng(0)
    factors = rng.choice(4, (n_samples, 3), p=[0.6, 0.25, 0.1, 0.05])
    codes = rng.standard_normal((n_samples, 50))
    remembered, held_out = (factor_vae_score(codes, factors, separate_rows=choice) for choice in (False, True))
    assert remembered.score > 0.5
    assert "cannot be read at this size" in remembered.notes[-1]
    assert held_out.score == pytest.approx(1 / 3, abs=0.15)
    assert held_out.notes == ()


def by_hand(codes: FloatArray, factors: IntArray, n_votes: int, rng: np.random.Generator) -> float:
    """The score vote by vote: a factor, one of its levels, 64 of its rows, the code of least normalised variance."""

    def votes() -> FloatArray:
        found = np.zeros((codes.shape[1], factors.shape[1]))
        for _ in range(n_votes):
            k = rng.integers(factors.shape[1])
            rows = np.flatnonzero(factors[:, k] == rng.choice(np.unique(factors[:, k])))
            found[(codes[rng.choice(rows, 64)].var(axis=0) / codes.var(axis=0)).argmin(), k] += 1
        return found

    learnt, judged = votes(), votes()
    return float(judged[np.arange(len(judged)), learnt.argmax(axis=1)].sum() / n_votes)


def test_the_note_says_what_shuffled_codes_score() -> None:
    rng = np.random.default_rng(1)
    factors = rng.choice(4, (200, 2), p=[0.6, 0.25, 0.1, 0.05])
    codes = rng.standard_normal((200, 20))
    codes[:, :2] = factors + 0.1 * codes[:, :2]
    noise = [by_hand(rng.permuted(codes, axis=0), factors, 1000, rng) for _ in range(3)]
    found, shuffled = factor_vae_score(codes, factors), factor_vae_score(rng.permuted(codes, axis=0), factors)
    for notes in (found.notes, shuffled.notes):
        (said,) = re.findall(r"the same codes, shuffled, score (0\.\d\d) ± 0.\d\d where a guess has 0.50", notes[-1])
        assert float(said) == pytest.approx(np.mean(noise), abs=0.05)
    assert 0.6 < np.mean(noise) < found.score - 0.1
    assert "cannot be read" not in found.notes[-1]
    assert "cannot be read" in shuffled.notes[-1]


def test_few_rows_that_do_not_tell_levels_have_no_note() -> None:
    """150 rows of each level, of which a batch of 64 remembers something, and three codes too few to tell by that."""
    rng = np.random.default_rng(0)
    factors = np.array([(a, b) for a in range(5) for b in range(5)]).repeat(30, axis=0)
    codes = np.column_stack([factors + 0.3 * rng.standard_normal(factors.shape), rng.standard_normal(len(factors))])
    noise = [by_hand(rng.permuted(codes, axis=0), factors, 1000, rng) for _ in range(3)]
    assert np.mean(noise) == pytest.approx(0.5, abs=0.06)
    assert factor_vae_score(codes, factors).notes == ()


ROUNDING = 0.1 + 1e-16 * (np.arange(len(FACTORS)) % 3)


@pytest.mark.parametrize("dead", [0.0, 0.5, ROUNDING])
def test_constant_codes_never_win(dead: float | FloatArray) -> None:
    """Kept, 0/0 wins every vote and this perfect code scores 1/3 (in an implementation with five factors, .22)."""
    codes = np.column_stack([np.full(len(FACTORS), dead), perfect_codes(FACTORS)])
    result = factor_vae_score(codes, FACTORS, variance_threshold=0.0)
    assert result.score == 1.0
    assert result.code_factor[0] == -1
    assert not result.votes[0].any()


def test_threshold_is_of_the_variance_and_absolute() -> None:
    codes = perfect_codes(FACTORS)  # variance 1
    assert factor_vae_score(codes * 0.23, FACTORS).notes == ()  # 0.0529
    dropped = factor_vae_score(codes * [1.0, 1.0, 0.22], FACTORS)  # 0.0484
    assert dropped.notes == ("1 of 3 codes have variance below 0.05 and are dropped",)
    assert dropped.score < 0.95
    assert factor_vae_score(codes * [1.0, 1.0, 0.22], FACTORS, variance_threshold=0.04).score == 1.0
    for spread, dropped in ((0.051, 0), (0.049, 1)):
        theirs = factor_vae_score(codes * [1.0, 1.0, spread], FACTORS, variant="disentanglement_lib")
        assert len(theirs.notes) == dropped


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


@pytest.mark.parametrize("scale", [1e-20, 1e20])
def test_without_a_threshold_the_score_has_no_unit(scale: float) -> None:
    codes, settings = entangled_codes(FACTORS), {"n_train": 500, "n_test": 200, "variance_threshold": 0.0}
    plain, scaled = (factor_vae_score(codes * unit, FACTORS, **settings) for unit in (1.0, scale))
    assert scaled.score == plain.score
    assert scaled.variances == pytest.approx(plain.variances * scale**2)
