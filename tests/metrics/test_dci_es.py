"""DCI-ES against worked examples, scikit-learn's forests and what it must say of noise."""

import numpy as np
import pytest
from scipy.integrate import trapezoid
from sklearn.ensemble import RandomForestRegressor

from tests.examples import grid_factors, noisy_codes, perfect_codes, random_codes, rotated_codes
from unbraid.metrics import dci_es, dci_from_importance, explicitness_from_curve
from unbraid.metrics._inputs import split_rows
from unbraid.metrics.dci_es import DEPTHS

FACTORS = grid_factors(6)


def test_worked_examples() -> None:
    assert explicitness_from_curve([1, 2, 3], [0.5, 0.25, 0.0]) == pytest.approx(0.5)
    assert explicitness_from_curve([1, 2, 3], [1.0, 1.0, 1.0]) == pytest.approx(1.0)
    assert explicitness_from_curve([1, 2, 3], [1.0, 1.0, 0.0]) == pytest.approx(-0.5)


def test_the_least_loss_so_far_counts_over_uneven_capacities() -> None:
    x, losses = np.array([1.0, 2.0, 5.0, 6.0]), np.array([0.6, 0.2, 0.4, 0.1])
    least = np.array([0.6, 0.2, 0.2, 0.1])
    expected = 1 - 2 * trapezoid(least - 0.1, x) / (5 * 0.75)
    assert explicitness_from_curve(x, losses, 0.75) == pytest.approx(expected)


def test_curves_are_those_of_scikit_learn() -> None:
    """The mean curve of forests that are each grown to one depth; draws differ, and so does the third digit."""
    codes = rotated_codes(FACTORS, noise=0.3)
    train, test = split_rows(len(FACTORS), (0.8, 0.2), 0)
    result = dci_es(codes, FACTORS, n_trees=60)
    for place, depth in ((0, 1), (2, 3), (4, 8)):
        known = RandomForestRegressor(60, max_depth=depth, random_state=0)
        known.fit(codes[train], FACTORS[train, 2])
        loss = 1 - known.score(codes[test], FACTORS[test, 2])
        assert result.curves[place, 2] == pytest.approx(loss, abs=0.02)
    assert (np.diff(result.curves, axis=0) <= 0).all()


def test_parts_follow_from_curves_and_importance() -> None:
    result = dci_es(noisy_codes(FACTORS), FACTORS, kinds=["categorical", "ordinal", "ordinal"], n_trees=10)
    expected = [explicitness_from_curve(DEPTHS, result.curves[:, k], (2 / 3, 1, 1)[k]) for k in range(3)]
    np.testing.assert_allclose(result.per_factor, expected)
    assert result.explicitness == pytest.approx(np.mean(expected)) == pytest.approx(result.explicitness_published)
    dci = dci_from_importance(result.importance)
    assert (result.disentanglement, result.completeness) == (dci.disentanglement, dci.completeness)
    assert result.size == 1.0
    best = 1 - result.curves[-1] / [2 / 3, 1, 1]
    np.testing.assert_allclose(result.informativeness_per_factor, best)


def test_noise_is_not_explicit_though_its_curve_is_flat() -> None:
    perfect, noise = (dci_es(each(FACTORS), FACTORS, n_trees=20) for each in (perfect_codes, random_codes))
    assert noise.explicitness_published > 0.9
    assert noise.explicitness == noise.disentanglement == 0.0
    assert "no depth tells it" in noise.notes[0]
    assert perfect.explicitness > 0.97
    assert perfect.informativeness > 0.99


def test_what_takes_depth_is_less_explicit() -> None:
    rng = np.random.default_rng(0)
    factors = rng.integers(0, 16, (1_000, 1))
    easy, hard = factors * 1.0, (factors * 7) % 16 + 0.0  # the same levels in an order that takes many cuts
    assert dci_es(hard, factors, n_trees=10).explicitness < dci_es(easy, factors, n_trees=10).explicitness - 0.02


def test_rows_of_ones_own_are_tested_on() -> None:
    rows = np.random.default_rng(0).permutation(len(FACTORS))
    codes, known, other = noisy_codes(FACTORS), rows[:400], rows[400:]
    given = dci_es(codes[known], FACTORS[known], n_trees=10, test_codes=codes[other], test_factors=FACTORS[other])
    assert 0 < given.explicitness <= 1


@pytest.mark.parametrize(
    ("capacities", "losses"), [([1], [0.5]), ([2, 1], [0.5, 0.1]), ([1, 2], [0.5]), ([1, 2], [0.5, np.nan])]
)
def test_curves_that_cannot_be_are_refused(capacities: list[float], losses: list[float]) -> None:
    with pytest.raises(ValueError, match="capacities must ascend"):
        explicitness_from_curve(capacities, losses)
