"""Head accuracies against scikit-learn, and the formula by hand."""

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module

import numpy as np
import pytest
from scipy.special import expit, softmax
from scipy.stats import norm
from sklearn.feature_selection import f_classif
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from tests.examples import entangled_codes, grid_factors, noisy_codes, perfect_codes, rotated_codes
from unbraid.base.types import FloatArray, IntArray
from unbraid.metrics import explicitness, linear_accuracy, mlp_accuracy, nk
from unbraid.metrics._shared import accuracy, linear_heads
from unbraid.metrics._shared.accuracy import Accuracy, noisy_perceptrons
from unbraid.metrics._shared.chance import UNREADABLE
from unbraid.metrics._shared.inputs import check_inputs, split_rows
from unbraid.metrics._shared.train_test_split import adjusted, guessing, standardised_codes, train_test_split
from unbraid.metrics._solvers.logistic import (
    BLOCK,
    COLUMNS,
    one_vs_rest_regression,
    softmax_regression,
    validated_regressions,
)
from unbraid.metrics.linear_accuracy import linear_of_noise
from unbraid.metrics.mlp_accuracy import mlp_of_noise

FACTORS = grid_factors(6)


@pytest.mark.parametrize("factor", [0, 2])
def test_softmax_regression_is_that_of_scikit_learn(factor: int) -> None:
    codes = noisy_codes(FACTORS)
    own, converged = softmax_regression(codes, FACTORS[:, factor], FACTORS[:, factor].max() + 1)
    assert converged
    peer = LogisticRegression(solver="newton-cg", tol=1e-10, max_iter=1000).fit(codes, FACTORS[:, factor])
    np.testing.assert_allclose(own[:-1], peer.coef_.T, atol=2e-3)
    np.testing.assert_allclose(own[-1] - own[-1].mean(), peer.intercept_ - peer.intercept_.mean(), atol=2e-3)


def test_binary_regressions_are_those_of_scikit_learn() -> None:
    codes = noisy_codes(FACTORS)
    positive = np.column_stack([FACTORS == 0, FACTORS[:, 2] == 7, codes[:, 0] > 0])
    own, converged = one_vs_rest_regression(codes, positive)
    assert converged
    for problem, target in enumerate(positive.T):
        peer = LogisticRegression(solver="newton-cg", tol=1e-10, max_iter=1000).fit(codes, target)
        np.testing.assert_allclose(own[:-1, problem], peer.coef_[0], atol=2e-3)
        np.testing.assert_allclose(own[-1, problem], peer.intercept_[0], atol=2e-3)


def test_binary_regressions_of_many_columns_are_each_in_its_place() -> None:
    """More than are solved together, some of them without a single row or without any other."""
    codes = noisy_codes(FACTORS)
    cuts = np.quantile(codes[:, 1], np.linspace(0.02, 0.98, COLUMNS + 7))
    positive = np.column_stack([codes[:, [1]] + 0.3 * codes[:, [0]] > cuts, np.zeros(len(codes)), np.ones(len(codes))])
    own, converged = one_vs_rest_regression(codes, positive > 0)
    assert converged
    for problem in range(0, COLUMNS + 7, 5):
        peer = LogisticRegression(solver="newton-cg", tol=1e-10, max_iter=1000).fit(codes, positive[:, problem])
        np.testing.assert_allclose(own[:-1, problem], peer.coef_[0], atol=0.01)
        np.testing.assert_allclose(own[-1, problem], peer.intercept_[0], atol=0.01)
    np.testing.assert_allclose(own[:-1, -2:], 0.0, atol=1e-4)
    assert own[-1, -2] < -5
    assert own[-1, -1] > 5


def test_more_rows_than_a_block_have_the_gradient_of_the_definition() -> None:
    """Nothing of the solver enters: at the optimum the sum of x (p - y), plus the weights, is 0."""
    rng = np.random.default_rng(0)
    codes, levels = rng.standard_normal((BLOCK + 901, 4)), rng.integers(0, 5, BLOCK + 901)
    codes[:, 0] += levels
    indicators, extended = np.eye(5)[levels], np.column_stack([codes, np.ones(len(codes))])
    for one, chances in ((softmax_regression(codes, levels, 5), partial(softmax, axis=1)),
                         (one_vs_rest_regression(codes, indicators > 0), expit)):  # fmt: skip
        missed = chances(extended @ one.weights) - indicators
        slope = extended.T @ missed
        slope[:-1] += one.weights[:-1]
        assert one.converged
        assert np.abs(one.weights[0]).max() > 1
        np.testing.assert_allclose(slope / len(codes), 0.0, atol=2e-6)


def sklearn_head(codes: FloatArray, levels: IntArray, penalty: float) -> LogisticRegression:
    return LogisticRegression(C=1 / penalty, solver="newton-cg", tol=1e-7, max_iter=2000).fit(codes, levels)


def test_the_accuracy_without_validation_is_that_of_scikit_learn() -> None:
    codes = rotated_codes(FACTORS, noise=0.4)
    rows = train_test_split(codes, FACTORS, None, 0)
    standard, levels = standardised_codes(rows), rows.levels.levels
    result = linear_accuracy(codes, FACTORS, training="optimum")
    for factor in range(3):
        peer = sklearn_head(standard[rows.train], levels[rows.train, factor], 1.0)
        expected = peer.score(standard[rows.test], levels[rows.test, factor])
        assert result.accuracy[factor] == pytest.approx(expected, abs=1.5 / len(rows.test))
        share = [np.mean(levels[part, factor][:, None] == np.arange(9), axis=0) for part in (rows.train, rows.test)]
        chance = sum(a * b for a, b in zip(*share, strict=True))
        assert result.chance[factor] == pytest.approx(chance)
        assert result.per_factor[factor] == pytest.approx((result.accuracy[factor] - chance) / (1 - chance))
    assert result.score == pytest.approx(result.per_factor.mean())
    assert result.mean_accuracy == pytest.approx(result.accuracy.mean())


def validated_by_sklearn(
    known: FloatArray, levels: IntArray, fit: IntArray, validation: IntArray
) -> tuple[FloatArray, IntArray, float]:
    """(n_classes, n_codes + 1) weights of the head chosen by loops over scikit-learn, its columns and penalty."""
    tests = f_classif(known[fit], levels[fit])[1]
    subsets, losses = [np.arange(known.shape[1]), np.flatnonzero(tests < 0.05 / known.shape[1])], []
    for number, columns in enumerate(subsets if 2 * len(subsets[1]) < known.shape[1] else subsets[:1]):
        before = np.inf
        for penalty in (1e4, 1e3, 1e2, 1e1, 1.0):
            peer = sklearn_head(known[fit][:, columns], levels[fit], penalty)
            logits = known[validation][:, columns] @ peer.coef_.T + peer.intercept_
            chances = [softmax(scale * logits, axis=1) for scale in 2.0 ** np.arange(-4, 9)]
            loss = min(log_loss(levels[validation], each, labels=peer.classes_) for each in chances)
            if loss >= before:
                break
            before = loss
            losses.append((loss, -number, -penalty))
    _, number, penalty = min(losses)
    peer = sklearn_head(known[:, subsets[-number]], levels, -penalty)
    weights = np.zeros((len(peer.classes_), known.shape[1] + 1))
    weights[:, subsets[-number]], weights[:, -1] = peer.coef_, peer.intercept_
    return weights, subsets[-number], -penalty


@pytest.mark.parametrize(
    ("n_signal", "n_noise", "spread", "few_columns", "penalty"),
    [(3, 0, 1.5, False, 10.0), (30, 0, 1.5, False, 100.0), (30, 0, 6.0, False, 1.0), (3, 30, 1.5, True, 10.0)],
)
def test_penalty_and_codes_are_those_that_scikit_learn_does_best_with_on_validation_rows(
    n_signal: int, n_noise: int, spread: float, few_columns: bool, penalty: float
) -> None:
    rng = np.random.default_rng(4)
    levels = rng.integers(0, 4, 300)
    signal = np.eye(4)[levels] @ rng.standard_normal((4, n_signal)) + spread * rng.standard_normal((300, n_signal))
    codes = np.hstack([signal, rng.standard_normal((300, n_noise))])
    rows = train_test_split(codes, levels[:, None], ["categorical"], 0)
    standard, own = standardised_codes(rows), rows.levels.levels[:, 0]
    fit, validation = split_rows(len(rows.train), (0.8, 0.2), 0)
    weights, columns, chosen = validated_by_sklearn(standard[rows.train], own[rows.train], fit, validation)
    assert (len(columns) < len(codes.T), chosen) == (few_columns, penalty)
    found = validated_regressions(standard[rows.train], own[rows.train, None], [4], fit, validation)[0]
    assert np.flatnonzero(found.weights[:-1].any(axis=1)).tolist() == columns.tolist()
    np.testing.assert_allclose(found.weights - found.weights.mean(axis=1, keepdims=True), weights.T, atol=0.02)
    predicted = (standard[rows.test] @ weights[:, :-1].T + weights[:, -1]).argmax(axis=1)
    expected = np.mean(predicted == own[rows.test])
    result = linear_accuracy(codes, levels[:, None], kinds=["categorical"])
    assert result.accuracy[0] == pytest.approx(expected, abs=1.5 / len(rows.test))


def test_columns_of_noise_hardly_lower_the_accuracy() -> None:
    """With scikit-learn's default penalty 998 of them cost .18."""
    rng = np.random.default_rng(1)
    factors = rng.integers(0, 10, (2000, 1))
    signal = 0.4 * factors + 0.5 * rng.standard_normal((2000, 1))
    noise = rng.standard_normal((2000, 998))
    alone, few, many = (
        linear_accuracy(np.hstack([signal, noise[:, :count]]), factors).mean_accuracy for count in (0, 99, 998)
    )
    # The nearest level is right with probability 2 Phi(.4) - 1 inside and Phi(.4) at both ends.
    assert alone == pytest.approx(0.8 * (2 * norm.cdf(0.4) - 1) + 0.2 * norm.cdf(0.4), abs=0.04)
    assert alone - few < 0.03
    assert alone - many < 0.03


def test_validation_rows_of_levels_that_the_fit_lacks_do_not_count() -> None:
    rng = np.random.default_rng(0)
    levels = np.append(rng.integers(0, 2, 60), [2, 2])
    codes = levels[:, None] + 0.3 * rng.standard_normal((62, 1))
    fit = np.arange(50)
    with_both, without = (
        validated_regressions(codes, levels[:, None], [3], fit, rows)[0].weights
        for rows in (np.arange(50, 62), np.arange(50, 60))
    )
    np.testing.assert_array_equal(with_both, without)


def test_whole_groups_are_held_back_for_validation(monkeypatch: pytest.MonkeyPatch) -> None:
    parts, fitted = [], linear_heads.validated_regressions
    monkeypatch.setattr(linear_heads, "validated_regressions", lambda *args: parts.append(args[3:]) or fitted(*args))
    groups = np.arange(len(FACTORS)) % 7 + 3
    linear_accuracy(noisy_codes(FACTORS), FACTORS, groups=groups)
    train = train_test_split(noisy_codes(FACTORS), FACTORS, None, 0, groups=groups).train
    fit, validation = (set(groups[train[rows]]) for rows in parts[0])
    assert fit
    assert validation
    assert not fit & validation
    linear_accuracy(noisy_codes(FACTORS), FACTORS, groups=np.arange(len(FACTORS)) % 2)
    assert len(parts[1][1])


def near_copies(n_rows: int, n_codes: int) -> tuple[FloatArray, IntArray]:
    """Many codes that follow two numbers."""
    rng = np.random.default_rng(0)
    two = rng.standard_normal((n_rows, 2))
    codes = np.tanh(two @ rng.standard_normal((2, n_codes))) + 0.01 * rng.standard_normal((n_rows, n_codes))
    levels = np.digitize(two[:, 0] + 0.3 * rng.standard_normal(n_rows), [-0.8, 0.0, 0.8])
    return (codes - codes.mean(axis=0)) / codes.std(axis=0), levels


@pytest.mark.parametrize(("n_rows", "n_codes"), [(300, 40), (40, 90)])
def test_many_codes_that_are_alike(n_rows: int, n_codes: int) -> None:
    """Also more codes than rows; compared by logits, since near copies share their coefficients in many ways."""
    codes, levels = near_copies(n_rows, n_codes)
    settings = {"solver": "newton-cg", "tol": 1e-9, "max_iter": 2000}
    peer = LogisticRegression(**settings).fit(codes, levels).decision_function(codes)
    weights, converged = softmax_regression(codes, levels, 4)
    own = codes @ weights[:-1] + weights[-1]
    assert converged
    np.testing.assert_allclose(
        own - own.mean(axis=1, keepdims=True), peer - peer.mean(axis=1, keepdims=True), atol=0.01
    )
    positive = levels[:, None] == np.arange(4)
    weights, converged = one_vs_rest_regression(codes, positive)
    assert converged
    for problem, target in enumerate(positive.T):
        peer = LogisticRegression(**settings).fit(codes, target).decision_function(codes)
        np.testing.assert_allclose(codes @ weights[:-1, problem] + weights[-1, problem], peer, atol=0.01)


def test_classifiers_that_have_not_converged_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = noisy_codes(FACTORS)
    assert not linear_accuracy(codes, FACTORS).notes + explicitness(codes, FACTORS).notes
    monkeypatch.setattr(import_module("unbraid.metrics._solvers.logistic"), "MAX_STEPS", 2)
    expected = tuple(f"factor {factor}: the linear classifier has not converged" for factor in range(3))
    assert linear_accuracy(codes, FACTORS).notes == expected
    assert explicitness(codes, FACTORS, classifier="softmax").notes == expected
    assert explicitness(codes, FACTORS).notes == ("the linear classifiers have not converged",)


def test_each_linear_head_is_fitted_once_also_without_a_score_card(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted, fit = list[int](), linear_heads.softmax_regressions
    monkeypatch.setattr(linear_heads, "softmax_regressions", lambda *given: fitted.extend(given[2]) or fit(*given))
    linear_accuracy(noisy_codes(FACTORS), FACTORS, training="optimum")
    assert fitted == [3, 4, 8]
    explicitness(noisy_codes(FACTORS), FACTORS, classifier="softmax")
    assert fitted == [3, 4, 8] * 2


def test_codes_are_standardised_by_training_rows_alone() -> None:
    codes = noisy_codes(FACTORS)
    rows = train_test_split(codes, FACTORS, None, 0, 50 * codes[:9] + 7, FACTORS[:9])
    known = standardised_codes(rows)[rows.train]
    np.testing.assert_allclose(known.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(known.std(axis=0), 1.0, rtol=1e-12)


@pytest.mark.parametrize("metric", [linear_accuracy, mlp_accuracy])
def test_naming_the_commonest_level_is_chance_where_that_is_asked_for(metric: Callable[..., Accuracy]) -> None:
    """Guessing by frequency is right .68 of the time and the constant .8: by eq. 4 noise scores .12 / .32."""
    rng = np.random.default_rng(0)
    factors = np.stack([np.arange(3000) % 5 > 3, np.arange(3000) < 1500], axis=1).astype(int)
    codes, tested = rng.standard_normal((2, 3000, 2))
    by_guessing, by_commonest = (
        metric(codes, factors, chance=chance, test_codes=tested, test_factors=factors)
        for chance in ("guessing", "commonest")
    )
    np.testing.assert_allclose(by_guessing.chance, [0.68, 0.5])
    assert by_guessing.per_factor[0] == pytest.approx(0.12 / 0.32, abs=0.02)
    np.testing.assert_allclose(by_commonest.chance, [0.8, 0.5])
    assert by_commonest.score < 0.02
    np.testing.assert_array_equal(by_guessing.accuracy, by_commonest.accuracy)
    note = "factor 0: always naming the commonest level scores 0.37; chance='commonest' counts that as chance"
    assert by_guessing.notes == (note,)
    assert not by_commonest.notes


def test_few_rows_of_other_levels_than_the_commonest_cannot_be_read() -> None:
    rng = np.random.default_rng(0)
    factors = np.column_stack([np.arange(200) % 3, np.arange(200) % 25 == 0]).astype(int)
    for metric in (linear_accuracy, nk):
        notes = metric(rng.standard_normal((200, 2)), factors).notes
        count = int((factors[train_test_split(factors, factors, None, 0).test, 1] == 1).sum())
        found = [note for note in notes if UNREADABLE in note]
        assert found == [
            f"{UNREADABLE} at this size: only {count} of 40 test rows have another than the commonest level of factor 1"
        ]


@pytest.mark.parametrize(
    ("n_rows", "n_codes", "shares"),
    [
        (500, 20, [0.5, 0.5]),
        (2000, 20, [0.1, 0.2, 0.7]),
        (1000, 1, [0.8, 0.2]),
        (300, 60, [0.6, 0.4]),
    ],
)
def test_what_noise_is_said_to_score_is_what_linear_heads_score_on_it(
    n_rows: int, n_codes: int, shares: list[float]
) -> None:
    """Linear heads on few codes always name the commonest level; on many they name levels as often as these occur."""
    rng, scores, inputs = np.random.default_rng(0), [], None
    for _ in range(20):
        factors = rng.choice(len(shares), (n_rows, 1), p=shares)
        codes = rng.standard_normal((n_rows, n_codes))
        scores.append(linear_accuracy(codes, factors).score)
        inputs = check_inputs(codes, factors)
    assert inputs is not None
    expected, spread = linear_of_noise(inputs)
    assert abs(np.mean(scores) - expected) < 3 * spread / np.sqrt(20) + 0.02
    assert np.max(scores) < expected + 4 * spread + 0.02


HEADS = {"optimum": linear_accuracy, "paper": partial(linear_accuracy, training="paper"), "mlp": mlp_accuracy, "nk": nk}


@cache
def where_they_stood(head: str) -> FloatArray:
    factors = grid_factors(2)[::2]
    return HEADS[head](entangled_codes(factors), factors, seed=1).accuracy


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("change", ["codes", "factors"])
def test_heads_do_not_depend_on_where_codes_and_factors_stand(head: str, change: str) -> None:
    """Nor on signs, units and dead codes, nor on how levels are called: draws belong to codes and levels."""
    factors = grid_factors(2)[::2]
    codes = entangled_codes(factors)
    expected = where_they_stood(head)
    if change == "codes":
        codes = np.insert(codes[:, [2, 0, 1]] * [1e-20, -1e20, -4.0], 1, 0.3, axis=1)
    else:
        factors, expected = (factors[:, [2, 0, 1]] * 5 + 1) % [17, 7, 11], expected[[2, 0, 1]]
    np.testing.assert_array_equal(HEADS[head](codes, factors, seed=1).accuracy, expected)


def test_the_test_rows_are_not_those_trained_on() -> None:
    """Labels without meaning: a perceptron learns its training rows by heart and is no use on the others."""
    rng = np.random.default_rng(0)
    codes, factors = rng.standard_normal((300, 40)), rng.integers(0, 4, (300, 1))
    assert mlp_accuracy(codes, factors).score < 0.3
    assert mlp_accuracy(codes, factors, test_codes=codes, test_factors=factors).score > 0.6


def test_a_line_cannot_read_xor_and_a_perceptron_can() -> None:
    bits = np.random.default_rng(0).integers(0, 2, (800, 2))
    factors = bits[:, :1] ^ bits[:, 1:]
    assert linear_accuracy(bits, factors).accuracy[0] < 0.8
    assert mlp_accuracy(bits, factors).score == 1.0


def test_linear_heads_start_within_one_over_the_root_of_the_inputs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = train_test_split(np.random.default_rng(0).standard_normal((60, 25)), np.arange(60)[:, None] % 5, None, 0)
    started, epoch = [], linear_heads.linear_epoch
    monkeypatch.setattr(linear_heads, "linear_epoch", lambda *args: started.append(args[5][0].copy()) or epoch(*args))
    monkeypatch.setattr(linear_heads, "EPOCHS_OF_PAPER", 1)
    linear_heads.adam_linear_predictions(rows, 0)
    assert 0.98 / 5 < np.abs(started[0]).max() <= 1 / 5 * (1 + 1e-6)


@pytest.mark.slow
def test_the_training_of_the_paper_stops_short_of_the_optimum() -> None:
    factors = grid_factors()
    codes = perfect_codes(factors)
    assert linear_accuracy(codes, factors).score == 1.0
    paper = linear_accuracy(codes, factors, training="paper")
    assert paper.accuracy[0] == 1.0
    assert 0.3 < paper.accuracy[2] < 0.7


def test_adjustment_by_hand() -> None:
    np.testing.assert_allclose(adjusted(np.array([0.75, 0.2, 1.0]), np.array([0.5, 0.25, 1.0])), [0.5, 0.0, 0.0])


def test_guessing_by_frequency_on_test_rows() -> None:
    codes, factors = np.arange(10.0)[:, None], np.repeat([0, 1], [7, 3])[:, None]
    rows = train_test_split(codes, factors, None, 0, [[0.0], [1.0], [2.0], [3.0]], [[0], [1], [1], [1]])
    assert guessing(rows)[0] == pytest.approx(0.7 * 0.25 + 0.3 * 0.75)


@pytest.mark.parametrize(
    ("n_samples", "n_codes", "freedom"), [(50, 4, 0.04), (500, 64, 0.2), (32_000, 64, 0.32), (32_000, 128, 0.4)]
)
def test_perceptrons_of_32_times_the_rows_are_half_as_free(
    n_samples: int, n_codes: int, freedom: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """32^(1/5) = 2; up to 1000 rows it is a hundredth of the codes, a fifth at most."""
    monkeypatch.setattr(accuracy, "noisy_scores", lambda _, given: given)
    inputs = check_inputs(np.zeros((n_samples, n_codes)), np.arange(n_samples)[:, None] % 2, ["categorical"])
    assert noisy_perceptrons(inputs) == pytest.approx(freedom)


def test_many_rows_of_few_codes_that_are_noise_teach_a_perceptron_the_commonest_level() -> None:
    """Of shares .6 and .4 always naming the first scores .08 / .48; on fewer rows much less is scored."""
    rng = np.random.default_rng(0)
    codes, factors = rng.standard_normal((30_000, 8)), (rng.random((30_000, 1)) < 0.4).astype(int)
    expected, spread = mlp_of_noise(check_inputs(codes, factors))
    assert mlp_accuracy(codes, factors).score == pytest.approx(expected, abs=3 * spread)
    assert expected == pytest.approx(0.08 / 0.48, abs=0.03)
    fewer, _ = mlp_of_noise(check_inputs(codes[:1000], factors[:1000]))
    assert fewer < 0.09
