"""Random forests against scikit-learn's trees and forests."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from tests.examples import SPACE, entangled_codes, grid_factors, noisy_codes, perfect_codes, rotated_codes
from unbraid.metrics import dci_forest
from unbraid.metrics._shared.inputs import split_rows
from unbraid.metrics._solvers.forest import fit_forest, sorted_codes

FACTORS = grid_factors()


def drawn(seed: int, n: int) -> np.ndarray:
    """The rows that the one tree of a forest sees."""
    return np.random.default_rng(seed).integers(0, n, n)


# In nodes of a few rows several codes may split equally well, and chance decides: deep trees have one code here.
@pytest.mark.parametrize(
    ("depth", "n_codes", "n"), [(1, 5, 3000), (2, 5, 3000), (3, 5, 3000), (4, 1, 300), (12, 1, 300), (40, 1, 300)]
)
@pytest.mark.parametrize("classes", [0, 4])
def test_one_tree_is_scikit_learns_at_every_depth(depth: int, n_codes: int, n: int, classes: int) -> None:
    rng = np.random.default_rng(depth)
    codes, others = rng.standard_normal((n, n_codes)), rng.standard_normal((200, n_codes))
    target = codes[:, 0] * codes[:, n_codes // 4] + codes[:, n_codes // 2] + 0.5 * rng.standard_normal(n)
    rows = drawn(7, n)
    if classes:
        labels = np.digitize(target, np.quantile(target, [0.2, 0.4, 0.7]))
        forest = fit_forest(sorted_codes(codes, others), labels, classify=True, n_trees=1, seed=7)
        tree = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(codes[rows], labels[rows])
        expected = tree.predict_proba(others)
    else:
        forest = fit_forest(sorted_codes(codes, others), target, classify=False, n_trees=1, seed=7)
        tree = DecisionTreeRegressor(max_depth=depth, random_state=0).fit(codes[rows], target[rows])
        expected = tree.predict(others)[:, None]
    np.testing.assert_allclose(forest.predictions[depth - 1], expected, atol=1e-9)
    np.testing.assert_allclose(forest.importance[depth - 1], tree.feature_importances_, atol=1e-9)


def test_each_tree_has_an_equal_say() -> None:
    """Importances are the mean of those of each tree, each summing to 1, however much its rows vary."""
    rng = np.random.default_rng(0)
    codes = rng.standard_normal((400, 3))
    target = codes[:, 0] + rng.standard_t(1.5, 400)
    forest = fit_forest(sorted_codes(codes, codes[:1]), target, classify=False, n_trees=5, seed=7)
    stream, importances, total = np.random.default_rng(7), [], []
    for _ in range(5):
        rows = stream.integers(0, 400, 400)
        stream.integers(0, 2**63, size=1)
        tree = DecisionTreeRegressor(max_depth=2, random_state=0).fit(codes[rows], target[rows])
        importances.append(tree.feature_importances_)
        total.append(tree.tree_.compute_feature_importances(normalize=False))
    np.testing.assert_allclose(forest.importance[1], np.mean(importances, axis=0), atol=1e-9)
    assert np.abs(np.sum(total, axis=0) / np.sum(total) - forest.importance[1]).max() > 0.02


def test_shares_of_splits_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    codes = rng.standard_normal((3000, 4))
    target = codes[:, 0] + 0.3 * rng.standard_normal(3000)
    forest = fit_forest(sorted_codes(codes, codes[:1]), target, classify=False, n_trees=1, seed=7, by="splits")
    rows = drawn(7, 3000)
    for depth in (1, 4):
        splits = DecisionTreeRegressor(max_depth=depth, random_state=0).fit(codes[rows], target[rows]).tree_.feature
        counts = np.bincount(splits[splits >= 0], minlength=4)
        np.testing.assert_allclose(forest.importance[depth - 1], counts / counts.sum(), atol=1e-12)


@pytest.mark.parametrize("codes", [noisy_codes(FACTORS), rotated_codes(FACTORS, noise=0.3), entangled_codes(FACTORS)])
@pytest.mark.parametrize("kinds", [("ordinal",) * 3, SPACE.kinds])
def test_forests_of_scikit_learn_come_near(codes: np.ndarray, kinds: tuple) -> None:
    result = dci_forest(codes, FACTORS, kinds=kinds, seed=2)
    train, _, test = split_rows(len(codes), (0.8, 0.1, 0.1), 2)
    for column, kind in enumerate(kinds):
        values, depth = FACTORS[:, column], int(result.tuned[column])
        if kind == "categorical":
            forest = RandomForestClassifier(10, max_depth=depth, max_features=None, random_state=0)
            missed = forest.fit(codes[train], values[train]).predict(codes[test]) != values[test]
            error = missed.mean()
        else:
            forest = RandomForestRegressor(10, max_depth=depth, random_state=0).fit(codes[train], values[train])
            missed = forest.predict(codes[test]) - values[test]
            error = np.sqrt(np.mean(missed**2)) / values[train].std()
        np.testing.assert_allclose(result.importance[:, column], forest.feature_importances_, atol=0.06)
        assert result.errors[column] == pytest.approx(error, abs=0.03)


def test_the_depth_is_the_one_that_validates_best() -> None:
    codes = rotated_codes(FACTORS, noise=0.6)
    result = dci_forest(codes, FACTORS, seed=4)
    train, valid, test = split_rows(len(codes), (0.8, 0.1, 0.1), 4)
    for column in range(3):
        values = FACTORS[:, column].astype(float)
        forest = fit_forest(sorted_codes(codes[train], codes), values[train], classify=False, n_trees=10, seed=4)
        squared = (forest.predictions[:, :, 0] - values) ** 2
        best = squared[:, valid].mean(axis=1).argmin()
        assert 1 < best + 1 == result.tuned[column] < 40
        np.testing.assert_array_equal(result.importance[:, column], forest.importance[best])
        expected = np.sqrt(squared[best, test].mean()) / values[train].std()
        assert result.errors[column] == pytest.approx(expected, rel=1e-12)


def test_errors_of_each_sort_are_reported_apart() -> None:
    result = dci_forest(noisy_codes(FACTORS), FACTORS, kinds=SPACE.kinds)
    assert result.error_rate == result.errors[0]
    assert result.nrmse == pytest.approx(result.errors[1:].mean())
    assert result.informativeness == pytest.approx(result.errors.mean())
    assert dci_forest(noisy_codes(FACTORS), FACTORS).error_rate is None
    assert dci_forest(noisy_codes(FACTORS), FACTORS, kinds=("categorical",) * 3).nrmse is None


def test_perfect_codes_by_either_importance() -> None:
    for importance in ("impurity", "splits"):
        result = dci_forest(perfect_codes(FACTORS), FACTORS, importance=importance)
        assert (result.disentanglement, result.completeness, result.informativeness) == (1.0, 1.0, 0.0)


def test_counting_splits_is_another_number() -> None:
    impurity, splits = (dci_forest(noisy_codes(FACTORS), FACTORS, importance=i) for i in ("impurity", "splits"))
    assert impurity.disentanglement > splits.disentanglement + 0.1
    assert "share of splits" in splits.notes[0]


def test_identical_codes_share_their_importance() -> None:
    codes = perfect_codes(FACTORS)
    result = dci_forest(np.column_stack([codes, -codes[:, 0]]), FACTORS, importance="splits")
    assert result.importance[0, 2] == pytest.approx(0.5, abs=0.2)
    assert result.importance[[0, 3], 2].sum() == pytest.approx(1.0)


def test_dead_codes_predict_the_mean() -> None:
    result = dci_forest(np.zeros((len(FACTORS), 2)), FACTORS, kinds=SPACE.kinds)
    assert not result.importance.any()
    assert result.errors == pytest.approx([2 / 3, 1.0, 1.0], abs=0.08)


def test_values_far_from_zero_are_no_obstacle() -> None:
    factors = FACTORS + np.random.default_rng(0).random(FACTORS.shape) * 0.5
    codes = entangled_codes(FACTORS)
    far = factors * 1e-6 + 1e3
    # Beside a thousand seven digits are lost, and of depths that are nearly as good another wins: what is left, less
    # the offset, is exact, so that the offset is all that differs.
    shifted, plain = dci_forest(codes, far), dci_forest(codes, far - 1e3)
    assert shifted.disentanglement == pytest.approx(plain.disentanglement, abs=1e-6)
    np.testing.assert_allclose(shifted.errors, plain.errors, rtol=1e-6)
