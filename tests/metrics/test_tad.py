"""TAD against a worked example, scikit-learn's areas and plain loops."""

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score, roc_auc_score

from unbraid.base.types import FloatArray, IntArray
from unbraid.metrics import NotDefined, tad
from unbraid.metrics._shared.inputs import check_inputs
from unbraid.metrics.tad import tad_of_noise

RNG = np.random.default_rng(0)
BITS = RNG.integers(0, 2, (600, 4))


def by_hand(codes: FloatArray, bits: IntArray) -> tuple[float, int]:
    total, captured = 0.0, 0
    for k, own in enumerate(bits.T):
        share = own.mean()
        entropy = -share * np.log(share) - (1 - share) * np.log(1 - share)
        if max(mutual_info_score(own, other) for j, other in enumerate(bits.T) if j != k) > 0.2 * entropy:
            continue
        areas = sorted(max(area, 1 - area) for area in (roc_auc_score(own, z) for z in codes.T))
        if areas[-1] >= 0.75:
            total, captured = total + areas[-1] - areas[-2], captured + 1
    return total, captured


def test_worked_example() -> None:
    bits = np.tile([[0, 0], [0, 1], [1, 0], [1, 1]], (5, 1))
    result = tad(bits, bits)
    assert (result.score, result.n_captured, result.mean_gap) == pytest.approx((1.0, 2.0, 0.5))


@pytest.mark.parametrize("noise", [0.2, 0.6, 2.0])
def test_areas_are_those_of_scikit_learn(noise: float) -> None:
    codes = BITS[:, ::-1] * [1.0, -2.0, 0.5, 1.0] + noise * RNG.standard_normal(BITS.shape)
    codes[:, 3] += codes[:, 0]
    result = tad(codes, BITS)
    assert (result.score, result.n_captured) == pytest.approx(by_hand(codes, BITS), abs=1e-12)
    assert result.per_factor.sum() == pytest.approx(result.score)


def test_attributes_that_tell_of_each_other_drop_out() -> None:
    twice = BITS[:, [0, 1, 0]]
    result = tad(BITS, twice)
    assert result.n_captured == 1.0
    np.testing.assert_allclose(result.shared_entropy[[0, 2]], 1.0)
    assert "factor 0: another attribute removes 100% of its entropy" in result.notes[0]
    copied = np.where(RNG.random(600) < 0.1, 1 - BITS[:, 0], BITS[:, 0])
    leaky = np.column_stack([BITS, copied])
    assert tad(BITS, leaky).score == pytest.approx(by_hand(BITS.astype(float), leaky)[0])
    assert tad(BITS, leaky, most_shared=1.0).n_captured == 5


def test_what_is_removed_is_a_share_of_an_attributes_own_entropy() -> None:
    rare = (BITS[:, 0] == 1) & (RNG.random(600) < 0.2)
    nested = np.column_stack([BITS[:, 0], rare, BITS[:, 1]])
    entropies = [mutual_info_score(own, own) for own in nested.T]
    told = [
        max(mutual_info_score(own, other) for j, other in enumerate(nested.T) if j != k) / entropies[k]
        for k, own in enumerate(nested.T)
    ]
    assert told[1] > 2 * told[0]
    np.testing.assert_allclose(tad(BITS, nested).shared_entropy, told, atol=1e-12)


def test_redundant_codes_count_nothing_and_a_single_code_is_compared_with_a_guess() -> None:
    assert tad(np.hstack([BITS, -BITS]), BITS).score == pytest.approx(0.0)
    assert tad(BITS[:, :1], BITS[:, :1]).score == pytest.approx(0.5)
    assert tad(np.zeros((600, 2)), BITS).score == 0.0


@pytest.mark.parametrize(("n_samples", "n_rare"), [(30, 3), (60, 8), (500, 4), (900, 400)])
def test_noise_scores_what_is_stated(n_samples: int, n_rare: int) -> None:
    """Against shuffled rows, of codes with ties: a value of few rows is told by some code, by luck."""
    rng = np.random.default_rng(n_samples)
    codes = np.rint(3 * rng.standard_normal((n_samples, 3)))
    factors = np.zeros((n_samples, 2), dtype=int)
    factors[:n_rare, 0] = factors[-n_rare:, 1] = 1
    stated = tad_of_noise(check_inputs(codes, factors))
    scores = [tad(rng.permutation(codes), factors).score for _ in range(60)]
    assert stated.score == pytest.approx(np.mean(scores), abs=0.03)
    assert stated.spread == pytest.approx(np.std(scores), abs=0.03)
    assert (stated.score == 0.0) == (n_rare == 400)


def test_other_than_two_values_are_refused() -> None:
    with pytest.raises(NotDefined, match="needs binary factors, and factor 1 has 3 values"):
        tad(BITS, np.column_stack([BITS[:, 0], np.arange(600) % 3]))
    assert tad(BITS, BITS * 0.5 - 1).score == pytest.approx(tad(BITS, BITS).score)
