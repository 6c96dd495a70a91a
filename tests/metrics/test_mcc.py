"""MCC against worked examples, SciPy's correlations, brute force over permutations and measured noise."""

import sys
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score

from tests.examples import entangled_codes, grid_factors, noisy_codes, perfect_codes, rotated_codes
from unbraid.base.types import Kind
from unbraid.metrics import mcc
from unbraid.metrics._shared.inputs import check_inputs, split_rows
from unbraid.metrics.mcc import Correlation, Fit, mcc_of_noise

FACTORS = grid_factors(6)
GRID = np.array([(a, b) for a in range(4) for b in range(2)])
TURNED = np.column_stack([GRID.sum(axis=1), GRID[:, 0] - GRID[:, 1]])
BY_SCIPY = {"pearson": pearsonr, "spearman": spearmanr}


@pytest.mark.parametrize("correlation", ["pearson", "spearman"])
def test_halves_are_brute_force_over_permutations(correlation: Correlation) -> None:
    rng = np.random.default_rng(0)
    codes = np.column_stack([-entangled_codes(FACTORS), rng.standard_normal((len(FACTORS), 2))])
    halves, found = split_rows(len(FACTORS), (0.5, 0.5), 4), []
    for known, judged in (halves, halves[::-1]):
        r, other = (
            np.array([[BY_SCIPY[correlation](z[rows], v[rows])[0] for v in FACTORS.T] for z in codes.T])
            for rows in (known, judged)
        )
        best = max(permutations(range(5), 3), key=lambda order: sum(abs(r[z, k]) for k, z in enumerate(order)))
        found.append([np.sign(r[z, k]) * other[z, k] for k, z in enumerate(best)])
    result = mcc(codes, FACTORS, seed=4, correlation=correlation)
    np.testing.assert_allclose(result.per_factor, np.mean(found, axis=0), atol=1e-12)
    assert result.score == pytest.approx(np.mean(found), abs=1e-12)


@pytest.mark.parametrize("correlation", ["pearson", "spearman"])
def test_correlations_are_those_of_scipy(correlation: Correlation) -> None:
    codes = entangled_codes(FACTORS) ** 3
    result = mcc(codes, FACTORS, correlation=correlation, fit="all")
    expected = [[BY_SCIPY[correlation](z, v)[0] for v in FACTORS.T] for z in codes.T]
    np.testing.assert_allclose(result.correlation, expected, atol=1e-12)


def test_worked_examples() -> None:
    assert mcc(TURNED, GRID, fit="all").score == pytest.approx(0.660560, abs=1e-6)
    assert mcc(TURNED, GRID, fit="all", alignment="linear").score == pytest.approx(1.0)
    assert mcc(GRID[:, :1], GRID, fit="all").score == pytest.approx(0.5)
    assert mcc(GRID[:, :1], GRID, fit="all", unmatched="drop").score == pytest.approx(1.0)


def test_more_factors_than_codes() -> None:
    codes = perfect_codes(FACTORS)[:, :2]
    lost, dropped = mcc(codes, FACTORS), mcc(codes, FACTORS, unmatched="drop")
    assert lost.score == pytest.approx(2 / 3)
    assert lost.ceiling == pytest.approx(2 / 3)
    assert dropped.score == pytest.approx(1.0)
    assert (lost.alignment == [-1, 1, 0]).all()
    assert "1 of them without a code" in lost.notes[-1]


@pytest.mark.parametrize("seed", range(6))
def test_halves_that_leave_out_other_factors_are_dropped_each_by_itself(seed: int) -> None:
    """One code tells two factors equally well, so that luck decides which of them each half matches."""
    factors = np.random.default_rng(seed).standard_normal((400, 2))
    codes = factors.sum(axis=1, keepdims=True)
    told = []
    for known, judged in permutations(split_rows(400, (0.5, 0.5), seed)):
        signed = [pearsonr(codes[known, 0], column[known])[0] for column in factors.T]
        own = int(np.argmax(np.abs(signed)))
        told.append(np.sign(signed[own]) * pearsonr(codes[judged, 0], factors[judged, own])[0])
    result = mcc(codes, factors, unmatched="drop", seed=seed)
    assert result.score == pytest.approx(np.mean(told), abs=1e-12)
    assert result.ceiling == 1.0


def test_a_sign_that_does_not_hold_elsewhere_counts_against() -> None:
    """A code that follows its factor on one half of the rows and mirrors it on the other: r = -1 both ways."""
    one, other = split_rows(len(FACTORS), (0.5, 0.5), 0)
    codes = FACTORS[:, 2:].astype(float)
    codes[other] *= -1
    assert mcc(codes, FACTORS[:, 2:]).score == pytest.approx(-1.0)
    assert mcc(codes[one], FACTORS[one, 2:], test_codes=codes[other], test_factors=FACTORS[other, 2:]).score == (
        pytest.approx(-1.0)
    )
    assert mcc(codes, FACTORS[:, 2:], fit="all").score >= 0.0


@pytest.mark.parametrize("kind", ["cyclic", "categorical", "ordinal"])
def test_ranks_of_mirrored_codes_are_mirrored_in_halves_of_unequal_size(kind: Kind) -> None:
    rng = np.random.default_rng(1)
    levels = rng.integers(0, 3, (29, 1))
    codes = levels + 0.2 * rng.standard_normal((29, 1))
    plain = mcc(codes, levels, kinds=[kind], correlation="spearman").score
    assert 0.3 < plain < 0.98
    assert mcc(-codes, levels, kinds=[kind], correlation="spearman").score == pytest.approx(plain, abs=1e-12)


def test_constant_codes_correlate_with_nothing() -> None:
    codes = np.column_stack([np.full(len(FACTORS), 0.1), perfect_codes(FACTORS)])
    assert mcc(codes, FACTORS).score == pytest.approx(1.0)
    assert mcc(np.full((len(FACTORS), 3), 0.1), FACTORS).score == 0.0
    assert mcc(np.full((len(FACTORS), 3), 0.1), FACTORS, alignment="linear").score == 0.0


@pytest.mark.parametrize(("kind", "block"), [("cyclic", "circle"), ("categorical", "one-hot")])
def test_factors_without_order_are_read_as_blocks(kind: Kind, block: str) -> None:
    """Against scikit-learn's line from one code to cosine and sine, or to indicators, and R^2 weighted by variance."""
    levels = FACTORS[:, 2:]
    angle = 2 * np.pi * levels / 8
    columns = np.hstack([np.cos(angle), np.sin(angle)]) if block == "circle" else (levels == np.arange(8)).astype(float)
    codes = np.cos(angle) + 0.2 * np.random.default_rng(1).standard_normal(levels.shape)
    halves, found = split_rows(len(levels), (0.5, 0.5), 0), []
    for known, judged in (halves, halves[::-1]):
        predicted = LinearRegression().fit(codes[known], columns[known]).predict(codes[judged])
        explained = r2_score(columns[judged], predicted, multioutput="raw_values")
        weights = columns[judged].var(axis=0)
        found.append(np.sqrt(max(0.0, (explained * weights).sum() / weights.sum())))
    result = mcc(codes, levels, kinds=[kind])
    assert result.score == pytest.approx(np.mean(found), abs=1e-12)
    assert mcc(codes, levels, kinds=[kind], correlation="spearman").score > 0.3


def test_a_cosine_is_half_of_its_circle_and_no_relabelling_moves_classes() -> None:
    angle = 2 * np.pi * FACTORS[:, 2:] / 8
    result = mcc(np.cos(angle), FACTORS[:, 2:], kinds=["cyclic"], fit="all")
    assert result.score**2 == pytest.approx(0.5)
    assert result.ceiling == pytest.approx(np.sqrt(0.5))
    assert mcc(
        np.hstack([np.cos(angle), np.sin(angle)]), FACTORS[:, 2:], kinds=["cyclic"], alignment="linear"
    ).score == (pytest.approx(1.0))
    half = mcc(np.cos(angle / 2), FACTORS[:, 2:], kinds=["cyclic"], sizes=[16], fit="all")
    by_hand = LinearRegression().fit(np.cos(angle / 2), columns := np.hstack([np.cos(angle / 2), np.sin(angle / 2)]))
    missed = ((columns - by_hand.predict(np.cos(angle / 2))) ** 2).sum()
    assert half.score**2 == pytest.approx(1 - missed / ((columns - columns.mean(axis=0)) ** 2).sum())
    codes, names = entangled_codes(FACTORS), np.array([5, 70, 3])
    classes = FACTORS[:, :1]
    first, second = (mcc(codes, each, kinds=["categorical"], fit="all") for each in (classes, names[classes]))
    assert first.score == pytest.approx(second.score, abs=1e-12)
    assert first.ceiling == pytest.approx(np.sqrt(1 / 2))


def test_linear_alignment_is_blind_to_rotation_and_takes_an_intercept() -> None:
    codes = rotated_codes(FACTORS)
    assert mcc(codes, FACTORS).score < 0.9
    assert mcc(codes + 5.0, FACTORS, alignment="linear").score == pytest.approx(1.0)
    noisy = noisy_codes(FACTORS)
    known = LinearRegression().fit(noisy, FACTORS)
    expected = np.mean(np.sqrt(r2_score(FACTORS, known.predict(noisy), multioutput="raw_values")))
    assert mcc(noisy, FACTORS, alignment="linear", fit="all").score == pytest.approx(expected)


@pytest.mark.parametrize("shape", [(200, 10, 3), (60, 20, 3), (200, 1, 1)])
@pytest.mark.parametrize("fit", ["halves", "all"])
def test_chance_is_what_noise_scores(shape: tuple[int, int, int], fit: Fit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["unbraid.metrics.mcc"], "_notes_on_fit", lambda *_: ())  # it draws noise, too
    n_samples, n_codes, n_factors = shape
    rng = np.random.default_rng(0)
    factors = rng.integers(0, 4, (n_samples, n_factors))
    every: tuple[Kind, ...] = ("ordinal", "cyclic", "categorical")
    kinds = every[:n_factors]
    scores = [
        mcc(rng.standard_normal((n_samples, n_codes)), factors, kinds=kinds, fit=fit, seed=seed).score
        for seed in range(40)
    ]
    stated = mcc_of_noise(check_inputs(np.zeros((n_samples, n_codes)), factors, kinds), fit=fit)
    assert np.mean(scores) == pytest.approx(stated.score, abs=0.02)
    assert np.std(scores) == pytest.approx(stated.spread, rel=0.4)


def test_chance_on_few_rows_is_what_noise_of_circles_scores() -> None:
    """Where every term of the estimate matters: .009 +- .002 was measured, without one of them it says .02 or 0."""
    factors = np.random.default_rng(0).integers(0, 4, (24, 3))
    kinds: tuple[Kind, ...] = ("cyclic",) * 3
    codes = [np.random.default_rng(seed).standard_normal((24, 5)) for seed in range(200)]
    scores = [mcc(each, factors, kinds=kinds, seed=seed).score for seed, each in enumerate(codes)]
    assert mcc_of_noise(check_inputs(codes[0], factors, kinds)).score == pytest.approx(np.mean(scores), abs=0.005)


def test_matching_in_sample_rewards_noise_and_says_so() -> None:
    rng = np.random.default_rng(0)
    codes, factors = rng.standard_normal((200, 10)), rng.standard_normal((200, 5))
    result = mcc(codes, factors, fit="all")
    assert result.score == pytest.approx(0.13, abs=0.02)
    assert "noise would score 0.13" in result.notes[-1]
    assert abs(mcc(codes, factors).score) < 0.06


def test_a_factor_that_one_half_does_not_vary_is_doubted() -> None:
    factors = np.zeros((40, 1))
    factors[3] = 1.0
    result = mcc(np.random.default_rng(0).standard_normal((40, 2)), factors)
    assert result.score == 0.0
    assert "constant on a part of the rows" in result.notes[-1]


def test_all_rows_are_not_scored_beside_rows_to_test_on() -> None:
    with pytest.raises(ValueError, match="give either fit=.all. or test_codes"):
        mcc(FACTORS, FACTORS, test_codes=FACTORS, test_factors=FACTORS, fit="all")


def test_canonical_pairs_tell_whether_the_spans_agree() -> None:
    """Of codes that share rho of a factor each, and are then turned, the canonical correlations are these rho."""
    rng, n = np.random.default_rng(0), 20_000
    factors = rng.standard_normal((n, 3))
    shared = np.array([0.9, 0.6, 0.3])
    codes = shared * factors + np.sqrt(1 - shared**2) * rng.standard_normal((n, 3))
    turned = mcc(codes @ rng.standard_normal((3, 3)) + 5.0, factors, alignment="cca")
    np.testing.assert_allclose(turned.per_factor, shared, atol=0.02)
    assert turned.score == pytest.approx(shared.mean(), abs=0.01)
    narrow = factors @ rng.standard_normal((3, 2))  # two codes that are blind to one direction of three
    assert mcc(narrow, factors, alignment="cca").score == pytest.approx(2 / 3, abs=1e-9)
    assert mcc(narrow, factors, alignment="cca", unmatched="drop").score == pytest.approx(1.0, abs=1e-9)
    assert mcc(factors @ rng.standard_normal((3, 5)), factors, alignment="cca").score == pytest.approx(1.0, abs=1e-9)
    assert abs(mcc(rng.standard_normal((n, 4)), factors, alignment="cca").score) < 0.05
    idle = np.column_stack([codes, np.full(n, 0.7)])
    assert mcc(idle, factors, alignment="cca").score == pytest.approx(
        mcc(codes, factors, alignment="cca").score, abs=1e-9
    )
    with pytest.raises(ValueError, match="reads factors as one number each; factor 0 is cyclic"):
        mcc(codes[:60], np.arange(60)[:, None] % 5, kinds=["cyclic"], alignment="cca")
