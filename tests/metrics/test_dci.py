"""Disentanglement and completeness of given matrices, by hand and by loops."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestRegressor
from sklearn.linear_model import Lasso

from tests.examples import entangled_codes, grid_factors
from unbraid import Representation
from unbraid.base.types import FloatArray, IntArray
from unbraid.metrics import amari, amari_from_importance, dci_boosted, dci_forest, dci_from_importance, dci_lasso
from unbraid.metrics._shared.inputs import split_rows
from unbraid.metrics.dci import DCI
from unbraid.metrics.modularity import modularity_of


def dci_by_loops(matrix: FloatArray, weighted: bool) -> tuple[float, float]:
    """Section 2 of the paper, entry by entry."""
    n_codes, n_factors = matrix.shape
    total = matrix.sum()
    disentanglement = 0.0
    for i in range(n_codes):
        row = sum(matrix[i, j] for j in range(n_factors))
        entropy = 0.0
        for j in range(n_factors):
            if matrix[i, j] > 0:
                entropy -= matrix[i, j] / row * math.log(matrix[i, j] / row, n_factors)
        disentanglement += row / total * (1 - entropy)
    completeness = 0.0
    for j in range(n_factors):
        column = sum(matrix[i, j] for i in range(n_codes))
        entropy = 0.0
        for i in range(n_codes):
            if matrix[i, j] > 0:
                entropy -= matrix[i, j] / column * math.log(matrix[i, j] / column, n_codes)
        completeness += (column / total if weighted else 1 / n_factors) * (1 - entropy)
    return disentanglement, completeness


@pytest.mark.parametrize(
    ("matrix", "disentanglement", "weighted", "mean"),
    [
        ([[0.5, 0.5], [0, 0]], 0.0, 1.0, 1.0),
        # 7/12 of all importance is in the second column, of shares 5/7 and 2/7 and entropy .8631; the first has none.
        ([[0.5, 0.5], [0, 0.2]], 1 / 6, 5 / 12 + 7 / 12 * 0.13688, (1 + 0.13688) / 2),
        ([[0.1887, 0.1887], [0, 0.1187]], 0.2393, 0.4038, 0.5188),
    ],
)
def test_worked_examples_of_snc_nk(matrix: list, disentanglement: float, weighted: float, mean: float) -> None:
    assert dci_from_importance(matrix).disentanglement == pytest.approx(disentanglement, abs=1e-4)
    assert dci_from_importance(matrix).completeness == pytest.approx(mean, abs=1e-4)
    assert dci_from_importance(matrix, completeness="weighted").completeness == pytest.approx(weighted, abs=1e-4)


@pytest.mark.parametrize("shape", [(4, 4), (10, 5), (3, 7), (2, 2)])
@pytest.mark.parametrize("completeness", ["mean", "weighted"])
def test_twin_in_plain_loops(shape: tuple[int, int], completeness: str) -> None:
    rng = np.random.default_rng(shape[0])
    matrix = rng.exponential(size=shape) ** 3 * (rng.random(shape) < 0.8)
    matrix[0] += 0.01
    matrix[:, 0] += 0.01
    scores = dci_from_importance(matrix, completeness=completeness)
    expected = dci_by_loops(matrix, completeness == "weighted")
    assert (scores.disentanglement, scores.completeness) == pytest.approx(expected, abs=1e-12)
    assert scores.per_code @ scores.code_weights == pytest.approx(expected[0], abs=1e-12)
    assert (scores.per_code.shape, scores.per_factor.shape) == ((shape[0],), (shape[1],))


@pytest.mark.parametrize("n", [2, 4, 16])
def test_a_factor_that_two_codes_carry_together(n: int) -> None:
    """SNC/NK theorem 3.1: rows and columns of two equal entries give 1 - log_n 2."""
    matrix = np.eye(n) + np.roll(np.eye(n), 1, axis=1)
    scores = dci_from_importance(matrix)
    assert scores.disentanglement == pytest.approx(1 - math.log(2, n), abs=1e-12)
    assert scores.completeness == pytest.approx(1 - math.log(2, n), abs=1e-12)


def test_dead_codes_weigh_nothing_wherever_they_stand() -> None:
    live = np.array([[3.0, 1.0], [0.0, 2.0]])
    expected = dci_from_importance(live)
    for order in ([0, 1, 2], [2, 0, 1], [0, 2, 1]):
        scores = dci_from_importance(np.vstack([live, [0.0, 0.0]])[order])
        assert scores.disentanglement == pytest.approx(expected.disentanglement, abs=1e-12)
        assert scores.code_weights[order.index(2)] == scores.per_code[order.index(2)] == 0.0
    # Completeness knows of it by the base of the logarithm alone.
    entropies = (1 - expected.per_factor) * math.log(2) / math.log(3)
    assert dci_from_importance(np.vstack([live, [0.0, 0.0]])).per_factor == pytest.approx(1 - entropies, abs=1e-12)


def test_a_factor_without_importances_is_incomplete() -> None:
    scores = dci_from_importance([[1.0, 0.0], [0.0, 0.0]])
    assert scores.per_factor.tolist() == [1.0, 0.0]
    assert scores.completeness == 0.5
    assert dci_from_importance([[1.0, 0.0], [0.0, 0.0]], completeness="weighted").completeness == 1.0


def test_one_code_per_factor_is_best_and_not_beyond_whatever_their_shares() -> None:
    """Shares of all importance add up to 1 but for rounding, which is in no range."""
    draw = np.random.default_rng(0)
    for _ in range(500):
        matrix = np.diag(draw.random(int(draw.integers(2, 12))) + 0.01)
        found = [dci_from_importance(matrix, completeness=how) for how in ("mean", "weighted")]
        scores = [each.disentanglement for each in found] + [each.completeness for each in found]
        scores += [modularity_of(matrix, weighting).score for weighting in ("codes", "information")]
        assert scores == pytest.approx([1.0] * 6, abs=1e-12)
        assert max(scores) <= 1.0


def test_one_factor_and_one_code() -> None:
    one_factor, one_code = dci_from_importance([[1.0], [3.0]]), dci_from_importance([[1.0, 3.0]])
    assert one_factor.disentanglement == one_code.completeness == 1.0
    assert one_factor.completeness == one_code.disentanglement == pytest.approx(0.18872, abs=1e-5)
    assert dci_from_importance([[2.0]]).disentanglement == dci_from_importance([[2.0]]).completeness == 1.0
    assert one_factor.notes == ("one factor: disentanglement is 1 by definition",)
    assert one_code.notes == ("one code: completeness is 1 by definition",)


def test_nothing_is_1_by_definition_where_it_is_0() -> None:
    for zeros in ([[0.0]], [[0.0, 0.0]], [[0.0], [0.0]], np.zeros((3, 2))):
        scores = dci_from_importance(zeros)
        assert (scores.disentanglement, scores.completeness) == (0.0, 0.0)
        assert scores.notes == ("no code is important for any factor: disentanglement and completeness are 0",)
    half = dci_from_importance([[1.0, 0.0]])
    assert (half.disentanglement, half.completeness) == (1.0, 0.5)
    assert half.notes == (
        "disentanglement cannot be read: codes are important for factor 0 alone, so it must be 1",
        "one code: completeness is 1 by definition, of factors that the code is important for",
    )


@pytest.mark.parametrize("scale", [1e-20, 1e20])
def test_only_ratios_matter(scale: float) -> None:
    matrix = np.array([[3.0, 1.0], [0.5, 2.0]])
    assert dci_from_importance(matrix * scale).disentanglement == pytest.approx(
        dci_from_importance(matrix).disentanglement, abs=1e-12
    )


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1.0, -1.0]], "importance must not be negative; row 0, column 1 is -1"),
        ([[1.0, np.nan]], "importance must be finite"),
        ([1.0, 2.0], "importance must be a matrix"),
        (np.zeros((0, 2)), "importance must have at least 1 row"),
    ],
)
def test_unsound_matrices_are_refused(matrix: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dci_from_importance(matrix)


@pytest.mark.parametrize("metric", [dci_lasso, dci_forest, dci_boosted])
def test_a_result_is_what_its_matrix_says(metric: Callable[..., DCI]) -> None:
    factors = grid_factors(12)
    codes = entangled_codes(factors)[:, [0, 1, 2, 0]]
    for completeness in ("mean", "weighted"):
        result = metric(codes, factors, completeness=completeness)
        expected = dci_from_importance(result.importance, completeness=completeness)
        assert (result.disentanglement, result.completeness) == (expected.disentanglement, expected.completeness)
        assert result.importance.shape == (4, 3)
        assert result.informativeness == pytest.approx(result.errors.mean())
        assert "training" in result.notes[0]


@pytest.mark.parametrize(
    ("metric", "kind"),
    [(dci_lasso, "ordinal"), (dci_forest, "categorical"), (dci_forest, "ordinal"), (dci_boosted, "ordinal")],
)
def test_beside_each_error_stands_that_of_a_constant(metric: Callable[..., DCI], kind: str) -> None:
    """By hand, of test rows as given: the training mean, or the class that most training rows have."""
    train, test = np.repeat([[5, 0], [7, 1], [9, 0]], [40, 30, 20], axis=0), np.array([[5, 1], [9, 0], [9, 1]])
    codes = np.random.default_rng(0).standard_normal((90, 2))
    result = metric(codes, train, kinds=(kind,) * 2, test_codes=codes[:3], test_factors=test)
    if metric is dci_boosted or kind == "categorical":
        assert result.baseline == pytest.approx([2 / 3, 2 / 3])
    else:
        known = train[split_rows(90, (8 / 9, 1 / 9), 0)[0]]
        expected = np.sqrt(((test - known.mean(axis=0)) ** 2).mean(axis=0)) / known.std(axis=0)
        np.testing.assert_allclose(result.baseline, expected, rtol=1e-12)


def noise_and_a_weak_relation() -> tuple[FloatArray, IntArray]:
    rng = np.random.default_rng(0)
    factors = np.column_stack([rng.integers(0, size, 500) for size in (3, 4, 5)])
    codes = rng.standard_normal((500, 6))
    codes[:, :2] += 0.8 * factors[:, :2]
    return codes, factors


@pytest.mark.parametrize("metric", [dci_forest, dci_boosted])
@pytest.mark.parametrize("change", ["order", "flip", "dead"])
def test_trees_do_not_depend_on_where_codes_stand(metric: Callable[..., DCI], change: str) -> None:
    """Random draws belong to codes, not to columns: to the last digit, also where a relation is weak."""
    codes, factors = noise_and_a_weak_relation()
    expected = metric(codes, factors, seed=1).importance
    assert expected[:, :2].any(axis=0).all()
    order = np.array([3, 0, 5, 1, 4, 2])
    if change == "order":
        found = metric(codes[:, order], factors, seed=1).importance
        expected = expected[order]
    elif change == "flip":
        found = metric(codes * [1, -1, 1, -1, -1, 1], factors, seed=1).importance
    else:
        found = np.delete(metric(np.insert(codes, 2, 7.0, axis=1), factors, seed=1).importance, 2, axis=0)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("metric", [dci_lasso, dci_forest, dci_boosted])
def test_factors_may_come_in_any_order(metric: Callable[..., DCI]) -> None:
    codes, factors = noise_and_a_weak_relation()
    one, other = metric(codes, factors), metric(codes, factors[:, [2, 0, 1]])
    np.testing.assert_allclose(other.importance, one.importance[:, [2, 0, 1]], rtol=1e-12)
    np.testing.assert_allclose(other.errors, one.errors[[2, 0, 1]], rtol=1e-12)


@pytest.mark.parametrize("metric", [dci_lasso, dci_forest, dci_boosted])
def test_rows_to_test_on(metric: Callable[..., DCI]) -> None:
    """What is learnt from rows whose codes are good fails on test rows whose codes are shuffled, and only there."""
    factors = grid_factors(12)
    codes = entangled_codes(factors)
    shuffled = np.random.default_rng(0).permutation(codes)
    own, other = (metric(codes, factors, test_codes=z, test_factors=factors) for z in (codes, shuffled))
    assert other.informativeness > own.informativeness + 0.3
    np.testing.assert_array_equal(own.importance, other.importance)
    assert f"{len(factors)} test rows" in own.notes[0]


def codes_that_know(n_known: int, n_samples: int, n_levels: int) -> tuple[FloatArray, IntArray]:
    """Three codes, a rotation of the first factors and of noise in place of the others; and three factors."""
    rng = np.random.default_rng(0)
    factors = rng.integers(0, n_levels, (n_samples, 3))
    scaled = (factors - factors.mean(axis=0)) / factors.std(axis=0)
    known = np.where(np.arange(3) < n_known, scaled, rng.standard_normal((n_samples, 3)))
    return known @ np.linalg.qr(rng.standard_normal((3, 3)))[0], factors


@pytest.mark.parametrize("n_known", [3, 1])
def test_a_lost_factor_counts_as_scikit_learns_forests_have_it(n_known: int) -> None:
    """The importances of a factor that no code knows are those of noise, and count like all others."""
    codes, factors = codes_that_know(n_known, 1500, 10)
    ours, theirs = [], []
    for seed in range(4):
        result = dci_forest(codes, factors, seed=seed)
        train, _, _ = split_rows(1500, (0.8, 0.1, 0.1), seed)
        forests = [
            RandomForestRegressor(10, max_depth=int(depth), random_state=seed).fit(codes[train], factor)
            for depth, factor in zip(result.tuned, factors[train].T, strict=True)
        ]
        theirs.append(dci_by_loops(np.stack([each.feature_importances_ for each in forests], axis=1), weighted=False))
        ours.append((result.disentanglement, result.completeness))
    assert np.mean(ours, axis=0) == pytest.approx(np.mean(theirs, axis=0), abs=0.01 if n_known == 3 else 0.1)
    assert np.max(ours) < 0.35


@pytest.mark.parametrize("n_known", [3, 1])
def test_a_lost_factor_counts_as_scikit_learns_boosted_trees_have_it(n_known: int) -> None:
    codes, factors = codes_that_know(n_known, 600, 2)
    train, _ = split_rows(600, (2 / 3, 1 / 3), 0)
    models = [GradientBoostingClassifier(random_state=0).fit(codes[train], factor) for factor in factors[train].T]
    expected = dci_by_loops(np.stack([model.feature_importances_ for model in models], axis=1), weighted=False)
    for booster in ("histogram", "exact"):
        result = dci_boosted(codes, factors, booster=booster)
        assert (result.disentanglement, result.completeness) == pytest.approx(expected, abs=0.025)


@pytest.mark.parametrize("n_known", [3, 2, 1])
def test_a_lost_factor_counts_as_scikit_learns_lasso_has_it(n_known: int) -> None:
    codes, factors = codes_that_know(n_known, 3000, 10)
    result = dci_lasso(codes, factors)
    train, _, _ = split_rows(3000, (0.8, 0.1, 0.1), 0)
    x, y = ((each[train] - each[train].mean(axis=0)) / each[train].std(axis=0) for each in (codes, factors))
    weights = [Lasso(alpha=a, tol=1e-10).fit(x, own).coef_ for a, own in zip(result.tuned, y.T, strict=True)]
    importance = np.abs(np.stack(weights, axis=1))
    importance[importance < 1e-9] = 0.0  # of the largest penalty, where scikit-learn leaves rounding
    assert result.disentanglement == pytest.approx(dci_by_loops(importance, weighted=False)[0], abs=1e-6)
    assert amari(codes, factors).score == pytest.approx(amari_from_importance(importance).score, abs=1e-6)
    assert result.mean_over == ("" if importance.any(axis=0).all() else "factors 0, 1")
    assert importance.any(axis=0).all() == (n_known != 2), "of the lost factor no weight is left"


def test_fewer_rows_of_the_example_do_not_raise_disentanglement() -> None:
    """From its shape and both positions, of 32 levels each, which few rows can hardly tell."""
    example = Representation.example()
    codes, factors, kinds = example.codes, example.factors[:, [0, 3, 4]], [example.kinds[k] for k in (0, 3, 4)]
    few, more = (dci_boosted(codes[:n], factors[:n], kinds=kinds) for n in (300, 900))
    assert few.disentanglement < more.disentanglement
