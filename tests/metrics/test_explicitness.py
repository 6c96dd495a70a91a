"""Explicitness against scikit-learn and plain counting of pairs."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.multiclass import OneVsRestClassifier

from tests.examples import entangled_codes, grid_factors, perfect_codes
from unbraid.metrics import explicitness
from unbraid.metrics._shared.inputs import check_inputs
from unbraid.metrics._shared.train_test_split import standardised_codes, train_test_split
from unbraid.metrics.explicitness import explicitness_of_noise, roc_areas

FACTORS = grid_factors(6)


@pytest.mark.parametrize("classifier", ["one_vs_rest", "softmax"])
def test_areas_are_those_of_scikit_learn(classifier: str) -> None:
    codes = entangled_codes(FACTORS)
    rows = train_test_split(codes, FACTORS, None, 0)
    standard, levels = standardised_codes(rows), rows.levels.levels
    result = explicitness(codes, FACTORS, classifier=classifier)
    areas = []
    for factor, size in enumerate((3, 4, 8)):
        head = LogisticRegression(tol=1e-8, max_iter=5000)
        head = OneVsRestClassifier(head) if classifier == "one_vs_rest" else head
        head.fit(standard[rows.train], levels[rows.train, factor])
        scores = head.decision_function(standard[rows.test])
        scores = scores if classifier == "one_vs_rest" else head.predict_proba(standard[rows.test])
        truth = levels[rows.test, factor][:, None] == np.arange(size)
        expected = np.array([roc_auc_score(truth[:, c], scores[:, c]) for c in range(size)])
        np.testing.assert_allclose(result.auc_per_class[factor], expected, atol=2e-4)
        areas.append(expected.mean())
    assert result.auc == pytest.approx(np.mean(areas), abs=1e-4)
    assert result.score == pytest.approx(2 * np.mean(areas) - 1, abs=2e-4)
    np.testing.assert_allclose(result.per_factor, 2 * np.array(areas) - 1, atol=3e-4)
    assert 0.2 < result.score < 0.99


def test_area_counts_pairs_and_halves_ties() -> None:
    rng = np.random.default_rng(0)
    scores, positive = rng.integers(0, 5, (40, 3)).astype(float), rng.random((40, 3)) < 0.3
    for column, area in enumerate(roc_areas(scores, positive)):
        own, other = scores[positive[:, column], column], scores[~positive[:, column], column]
        wins = sum((a > b) + 0.5 * (a == b) for a in own for b in other)
        assert area == pytest.approx(wins / (len(own) * len(other)))
    assert np.isnan(roc_areas(np.ones((3, 2)), np.array([[1, 0]] * 3, dtype=bool))).all()


def test_rows_that_rounding_alone_tells_apart_tie() -> None:
    """Codes of three values each, off by a last bit: areas as counted with one logit for all rows of equal values."""
    rng = np.random.default_rng(0)
    codes, factors = rng.integers(0, 3, (300, 2)).astype(float) + 1, rng.integers(0, 2, (300, 1))
    rows = train_test_split(codes, factors, None, 0)
    standard, true = standardised_codes(rows), factors[:, 0]
    head = LogisticRegression(tol=1e-10, max_iter=5000).fit(standard[rows.train], true[rows.train])
    cells = np.unique(codes[rows.test], axis=0, return_inverse=True)[1].ravel()
    logits = head.decision_function(standard[rows.test])[np.unique(cells, return_index=True)[1]][cells]
    won = logits[true[rows.test] == 1][:, None] - logits[true[rows.test] == 0]
    expected = float(((won > 0) + 0.5 * (won == 0)).mean())
    off = codes * (1 + np.finfo(float).eps * rng.choice([-1, 0, 1], codes.shape))
    for classifier in ("one_vs_rest", "softmax"):
        assert explicitness(off, factors, classifier=classifier).auc == pytest.approx(expected, abs=1e-12)


def test_a_line_through_one_code_cannot_single_out_a_middle_level() -> None:
    """Level j of n stands before a share max(j, n - 1 - j) / (n - 1) of the others: 5/6, 5/6 and 11/14 on average."""
    factors = grid_factors()
    codes = perfect_codes(factors)
    assert explicitness(codes, factors).auc == pytest.approx((5 / 6 + 5 / 6 + 11 / 14) / 3, abs=0.01)
    assert explicitness(codes, factors, classifier="softmax").score == 1.0


def test_one_direction_per_level_is_the_best() -> None:
    codes = np.concatenate([np.eye(size)[FACTORS[:, k]] for k, size in enumerate((3, 4, 8))], axis=1)
    assert explicitness(codes, FACTORS).score == 1.0


def test_a_level_missing_from_a_part_is_left_out_and_named() -> None:
    rng = np.random.default_rng(0)
    factors = rng.integers(0, 3, (100, 1))
    codes = factors + 0.1 * rng.standard_normal((100, 1))
    train = train_test_split(codes, factors, None, 0).train
    test = train_test_split(codes, factors, None, 0).test
    for row in (train[0], test[0]):
        rare = factors.copy()
        rare[row] = 7
        result = explicitness(codes, rare)
        assert np.isnan(result.auc_per_class[0]).tolist() == [False, False, False, True]
        assert result.auc == pytest.approx(np.nanmean(result.auc_per_class[0]))
        assert "1 of 4 levels" in result.notes[0]


def test_a_factor_that_cannot_be_tested_counts_as_chance() -> None:
    codes, factors = np.random.default_rng(0).standard_normal((20, 2)), np.zeros((20, 1), int)
    factors[train_test_split(codes, np.arange(20)[:, None] % 2, None, 0).train[0]] = 1
    result = explicitness(codes, factors)
    assert result.score == 0.0
    assert "counts as chance" in result.notes[0]


@pytest.mark.parametrize("shares", [[0.5, 0.5], [0.1, 0.2, 0.3, 0.4]])
def test_how_far_noise_is_said_to_stray_is_how_far_it_strays(shares: list[float]) -> None:
    rng, scores, spreads = np.random.default_rng(0), [], []
    for _ in range(200):
        factors = rng.choice(len(shares), (200, 1), p=shares)
        scores.append(explicitness(rng.standard_normal((200, 3)), factors).score)
        spreads.append(explicitness_of_noise(check_inputs(factors, factors)).spread)
    assert np.std(scores) == pytest.approx(np.mean(spreads), rel=0.1)
    assert abs(np.mean(scores)) < 3 * np.mean(spreads) / np.sqrt(200)
