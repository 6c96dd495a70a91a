"""Modularity against a twin in plain loops, and the three phenomena that make its average mislead."""

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

from tests.examples import grid_factors, rotated_codes
from unbraid.base.types import FloatArray, IntArray
from unbraid.metrics import modularity
from unbraid.metrics._shared.inputs import check_inputs
from unbraid.metrics.modularity import Variant, modularity_of, modularity_of_noise


def modularity_by_loops(information: FloatArray, *, dead_as_zero: bool) -> float:
    scores = []
    for row in information:
        best = max(row)
        if best < 1e-12:
            scores += [0.0] if dead_as_zero else []
            continue
        at = list(row).index(best)
        template = [best if k == at else 0.0 for k in range(len(row))]
        deviation = sum((m - t) ** 2 for m, t in zip(row, template, strict=True)) / (best**2 * (len(row) - 1))
        scores.append(1 - deviation)
    return float(np.mean(scores))


def in_bins(code: FloatArray) -> IntArray:
    """As disentanglement_lib cuts codes: 20 bins of equal width, the highest value in the last."""
    return np.digitize(code, np.histogram(code, 20)[1][:-1])


def wide_factors(n_samples: int = 10_000, seed: int = 0) -> IntArray:
    """Five factors of 3, 6, 40, 32 and 32 levels, drawn independently: the shape of dSprites."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, size, n_samples) for size in (3, 6, 40, 32, 32)], axis=1)


def beside_noise(codes: FloatArray, seed: int = 1) -> FloatArray:
    return np.hstack([codes, np.random.default_rng(seed).standard_normal(codes.shape)])


@pytest.mark.parametrize("variant", ["unbraid", "disentanglement_lib"])
def test_twin_in_plain_loops(variant: Variant) -> None:
    factors = grid_factors()
    codes = np.column_stack([rotated_codes(factors, noise=0.3), np.full(len(factors), 3.0)])
    result = modularity(codes, factors, variant=variant)
    information = [[mutual_info_score(column, in_bins(code)) for column in factors.T] for code in codes.T]
    expected = modularity_by_loops(np.array(information), dead_as_zero=variant == "disentanglement_lib")
    assert 0.1 < expected < 0.9
    assert result.score == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("information", "expected"),
    [
        (5 * np.eye(5), 1.0),
        (np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]), 2 / 3),
        (np.zeros((10, 10)), 0.0),
        (5 * np.vstack([np.eye(5), np.eye(5)]), 1.0),
        (5 * np.eye(5)[:2], 1.0),
        (5 * np.hstack([np.eye(5), np.eye(5)]), 1 - 1 / 9),
    ],
)
def test_examples_of_disentanglement_lib(information: FloatArray, expected: float) -> None:
    """Its tests of `modularity` (86a644d)."""
    assert modularity_of(information, variant="disentanglement_lib").score == pytest.approx(expected, abs=1e-12)


def test_by_hand() -> None:
    """z1 copies a, z2 = 2a + b knows both binary factors fully: 1 and 0, so .5; z2 has twice the information: 1/3."""
    factors = np.tile([[0, 0], [0, 1], [1, 0], [1, 1]], (3, 1))
    codes = np.stack([factors[:, 0], 2 * factors[:, 0] + factors[:, 1]], axis=1)
    assert modularity(codes, factors).per_code == pytest.approx([1.0, 0.0], abs=1e-12)
    assert modularity(codes, factors).score == pytest.approx(0.5, abs=1e-12)
    assert modularity(codes, factors, weighting="information").score == pytest.approx(1 / 3, abs=1e-12)


def test_a_dead_code_is_left_out_or_counts_as_zero() -> None:
    factors = grid_factors()
    codes = np.column_stack([factors.astype(float), np.full(len(factors), -2.0)])
    ours = modularity(codes, factors)
    assert (ours.score, ours.mean_over) == (pytest.approx(1.0, abs=1e-12), "3 of 4 codes")
    assert modularity(factors, factors).mean_over == ""
    theirs = modularity(codes, factors, variant="disentanglement_lib")
    assert (theirs.score, theirs.mean_over) == (pytest.approx(0.75, abs=1e-12), "")
    assert "counted as 0: 1 code without information" in theirs.notes


@pytest.mark.parametrize("seed", range(8))
def test_a_constant_code_is_dead_however_its_information_rounds(seed: int) -> None:
    factors = np.random.default_rng(seed).integers(0, 7, (997, 3))
    codes = np.column_stack([factors.astype(float), np.full(len(factors), 0.1)])
    result = modularity(codes, factors)
    assert result.per_code[3] == 0.0
    assert result.weights.tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0.0])


def test_pure_noise_scores_far_above_zero() -> None:
    """The information of noise grows with a factor's levels, (19)(levels - 1) / 2N, which looks modular: about .6."""
    factors = wide_factors()
    noise = np.random.default_rng(2).standard_normal((len(factors), 10))
    spurious = np.array([2, 5, 39, 31, 31])
    expected = 1 - ((spurious / 39.0) ** 2)[[0, 1, 3, 4]].sum() / 4
    assert modularity(noise, factors).score == pytest.approx(expected, abs=0.06)
    assert modularity(noise, factors, weighting="information").score > 0.5


def test_noise_beside_a_perfect_code_lets_a_rotation_win_unless_weighted_by_information() -> None:
    factors = wide_factors()
    centred = (factors - factors.mean(axis=0)) / factors.std(axis=0)
    # A slight turn in a chain: each code mixes two factors.
    turn = np.eye(5)
    for axis in range(4):
        plane = np.eye(5)
        plane[axis : axis + 2, axis : axis + 2] = [[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]]
        turn = turn @ plane
    perfect, rotated = beside_noise(centred), centred @ turn
    assert modularity(perfect, factors).score < modularity(rotated, factors).score - 0.05
    weighted = [modularity(codes, factors, weighting="information").score for codes in (perfect, rotated)]
    assert weighted[0] > 0.98
    assert weighted[0] > weighted[1] + 0.02


def test_dead_codes_do_not_change_what_noise_is_expected_to_score() -> None:
    factors, rng = wide_factors(500), np.random.default_rng(0)
    codes = rng.standard_normal((500, 4))
    measured = [modularity(rng.permutation(codes), factors).score for _ in range(30)]
    for n_dead in (0, 4):
        stated = modularity_of_noise(check_inputs(np.hstack([codes, np.ones((500, n_dead))]), factors))
        assert stated.score == pytest.approx(np.mean(measured), abs=0.01)
