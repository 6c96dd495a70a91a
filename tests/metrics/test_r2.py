"""R^2 against scikit-learn, worked examples and measured noise."""

import re
from typing import Any

import numpy as np
import pytest
from scipy.stats import kurtosis
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPRegressor
from sklearn.preprocessing import StandardScaler

from tests.examples import entangled_codes, grid_factors, perfect_codes, rotated_codes
from unbraid import score
from unbraid.base.types import FloatArray
from unbraid.metrics import r2
from unbraid.metrics._shared.inputs import check_inputs, split_rows
from unbraid.metrics._solvers.network import _slopes
from unbraid.metrics.r2 import heavy_tails, r2_of_noise

FACTORS = grid_factors(6)
GRID = np.tile([(a, b) for a in range(4) for b in range(2)], (25, 1))


def test_both_directions_are_those_of_scikit_learn() -> None:
    codes = entangled_codes(FACTORS) * [1.0, 1e3, 1e-3] + 7.0
    halves = split_rows(len(FACTORS), (0.5, 0.5), 2)
    result = r2(codes, FACTORS, seed=2)
    for inputs, targets, got in ((codes, FACTORS, result.per_factor), (FACTORS, codes, result.per_code)):
        expected = [
            r2_score(
                targets[rest],
                LinearRegression().fit(inputs[fit], targets[fit]).predict(inputs[rest]),
                multioutput="raw_values",
            )
            for fit, rest in (halves, halves[::-1])
        ]
        np.testing.assert_allclose(got, np.mean(expected, axis=0), atol=1e-10)
    assert result.score == pytest.approx(result.per_factor.mean())
    assert result.codes_from_factors == pytest.approx(result.per_code.mean())


def test_worked_examples() -> None:
    turned = np.column_stack([GRID.sum(axis=1), GRID[:, 0] - GRID[:, 1]])
    result = r2(turned, GRID)
    assert (result.score, result.codes_from_factors) == pytest.approx((1.0, 1.0))
    half = r2(GRID[:, :1], GRID, test_codes=GRID[:, :1], test_factors=GRID)
    assert half.per_factor == pytest.approx([1.0, 0.0])
    assert half.score == pytest.approx(0.5)


def test_given_rows_are_what_is_judged() -> None:
    rng = np.random.default_rng(0)
    codes, factors = rng.standard_normal((2, 60, 2))
    other, true = rng.standard_normal((2, 30, 2))
    expected = r2_score(true, LinearRegression().fit(codes, factors).predict(other))
    assert r2(codes, factors, test_codes=other, test_factors=true).score == pytest.approx(expected)


def test_a_circle_and_classes_are_read_as_blocks() -> None:
    angle = 2 * np.pi * FACTORS[:, 2:] / 8
    both = np.hstack([np.cos(angle), np.sin(angle)])
    cyclic = {"kinds": ["cyclic"], "test_codes": both[:, :1], "test_factors": FACTORS[:, 2:]}
    assert r2(both, FACTORS[:, 2:], kinds=["cyclic"]).score == pytest.approx(1.0)
    assert r2(both[:, :1], FACTORS[:, 2:], **cyclic).score == pytest.approx(0.5)
    classes, codes = FACTORS[:, :1], np.eye(3)[FACTORS[:, 0]]
    relabelled = np.array([5, 70, 3])[classes]
    assert r2(codes, relabelled, kinds=["categorical"]).score == pytest.approx(1.0)
    assert r2(codes[:, :1], relabelled, kinds=["categorical"]).score == pytest.approx(
        r2(codes[:, :1], classes, kinds=["categorical"]).score
    )


def test_rotation_changes_nothing_and_dead_codes_count_backwards_only() -> None:
    assert r2(rotated_codes(FACTORS), FACTORS).score == pytest.approx(1.0)
    result = r2(np.column_stack([perfect_codes(FACTORS), np.full(len(FACTORS), 0.1)]), FACTORS)
    assert result.score == pytest.approx(1.0)
    np.testing.assert_allclose(result.per_code, [1, 1, 1, 0], atol=1e-12)


@pytest.mark.parametrize(("n_samples", "n_codes", "n_factors"), [(60, 3, 2), (200, 30, 3), (400, 100, 1)])
def test_chance_is_what_noise_scores(n_samples: int, n_codes: int, n_factors: int) -> None:
    rng = np.random.default_rng(0)
    factors = rng.integers(0, 4, (n_samples, n_factors))
    scores = [r2(rng.standard_normal((n_samples, n_codes)), factors, seed=seed).score for seed in range(30)]
    stated = r2_of_noise(check_inputs(rng.standard_normal((n_samples, n_codes)), factors))
    assert np.mean(scores) == pytest.approx(stated.score, abs=3 * np.std(scores) / np.sqrt(30) + 0.01)
    assert 0.5 * stated.spread < np.std(scores) < 1.5 * stated.spread


def test_chance_knows_of_heavy_tails() -> None:
    """Codes by Student's t of two degrees: factors drawn anew are far worse predicted than for normal codes."""
    rng = np.random.default_rng(4)
    codes, halves = rng.standard_t(2, (100, 10)), split_rows(100, (0.5, 0.5), 0)
    scores = []
    for _ in range(200):
        factor = rng.standard_normal(100)
        ways = [LinearRegression().fit(codes[one], factor[one]).score(codes[two], factor[two])
                for one, two in (halves, halves[::-1])]  # fmt: skip
        scores.append(np.mean(ways))
    stated = r2_of_noise(check_inputs(codes, rng.standard_normal((100, 1))))
    assert stated.score == pytest.approx(np.mean(scores), abs=float(np.std(scores)) / 5)
    assert 0.7 * stated.spread < np.std(scores) < 1.4 * stated.spread
    assert stated.score < -1 < 1 - 51 / 49 * 48 / 38, "of normal codes"


def test_noise_that_would_fit_in_sample_is_below_nothing_and_doubted() -> None:
    rng = np.random.default_rng(0)
    codes, factors = rng.standard_normal((300, 256)), rng.standard_normal((300, 2))
    assert LinearRegression().fit(codes, factors).score(codes, factors) > 0.8
    result = r2(codes, factors)
    assert result.score < -0.5
    assert "least squares on 256 codes fits any 150 rows" in result.notes[-1]


@pytest.mark.parametrize("classes", [False, True])
def test_slopes_of_the_network_are_those_of_autograd(classes: bool) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    weights, x = [rng.standard_normal((4, 6)), rng.standard_normal((7, 5))], rng.standard_normal((20, 3))
    y = np.eye(5)[rng.integers(0, 5, 20)]
    first, second = (torch.tensor(each, requires_grad=True) for each in weights)
    predicted = torch.relu(torch.tensor(x) @ first[:-1] + first[-1]) @ second[:-1] + second[-1]
    of_classes, squared = torch.nn.functional.cross_entropy, 0.5 * ((predicted - torch.tensor(y)) ** 2).sum() / 20
    (of_classes(predicted, torch.tensor(y)) if classes else squared).backward()
    for slopes, leaf in zip(_slopes(weights, x, y, classes), (first, second), strict=True):
        np.testing.assert_allclose(slopes, leaf.grad, rtol=1e-6)


def _curved() -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(0)
    codes = rng.standard_normal((240, 3)) * [1.0, 30.0, 0.2]
    return codes, np.column_stack([np.sin(2 * codes[:, 0]), codes[:, 1] * codes[:, 2] + rng.standard_normal(240)])


def test_the_kernel_is_that_of_scikit_learn_searched_over_the_same_folds() -> None:
    codes, factors = _curved()
    result = r2(codes, factors, regressor="kernel", seed=2)
    assert result.score > r2(codes, factors).score + 0.2
    halves, expected = split_rows(240, (0.5, 0.5), 2), []
    grid = {"alpha": [1, 0.1, 0.01, 0.001], "gamma": [0.01, 0.2154, 4.642, 100.0]}
    for fit, rest in (halves, halves[::-1]):
        fit = fit[np.random.default_rng(2).permutation(120)]
        inputs, targets = (StandardScaler().fit(values[fit]) for values in (codes, factors))
        folds = split_rows(120, (1 / 3, 1 / 3, 1 / 3), 2)
        search = GridSearchCV(
            KernelRidge(kernel="rbf"), grid, cv=[(np.setdiff1d(np.arange(120), fold), fold) for fold in folds]
        ).fit(inputs.transform(codes[fit]), targets.transform(factors[fit]))
        predicted = targets.inverse_transform(search.predict(inputs.transform(codes[rest])))
        expected.append(r2_score(factors[rest], predicted, multioutput="raw_values"))
    np.testing.assert_allclose(result.per_factor, np.mean(expected, axis=0), atol=1e-9)


def test_curves_are_read_by_the_kernel_and_the_perceptron_as_by_scikit_learn() -> None:
    codes, factors = _curved()
    fit, rest = np.arange(160), np.arange(160, 240)
    given: Any = {"test_codes": codes[rest], "test_factors": factors[rest]}
    settings: Any = {"batch_size": 64, "alpha": 0.0, "max_iter": 75, "n_iter_no_change": 75}
    peer = MLPRegressor(hidden_layer_sizes=(256,), random_state=0, **settings)
    inputs, targets = (StandardScaler().fit(values[fit]) for values in (codes, factors))
    with pytest.warns(ConvergenceWarning):
        peer.fit(inputs.transform(codes[fit]), targets.transform(factors[fit]))
    expected = r2_score(targets.transform(factors[rest]), peer.predict(inputs.transform(codes[rest])))
    result = r2(codes[fit], factors[fit], regressor="mlp", **given)
    assert result.score == pytest.approx(expected, abs=0.1)
    assert result.score > r2(codes[fit], factors[fit], **given).score + 0.2
    few = r2(codes[fit], factors[fit], regressor="kernel", max_train=20, **given)
    assert few.score < r2(codes[fit], factors[fit], regressor="kernel", **given).score - 0.1


@pytest.mark.parametrize(
    ("codes", "factors", "reason"),
    [
        ("t2", "normal", r"^code 1 has heavy tails or outliers \(excess kurtosis of its residuals given the factors "),
        ("normal", "t2", r"^factor 0 has heavy tails or outliers \(excess kurtosis of its values "),
        ("normal", "normal", "^$"),
    ],
)
def test_heavy_tails_give_no_interval(codes: str, factors: str, reason: str) -> None:
    """The scores of such samples have a mean far below almost all of them, which no part of the rows can show."""
    rng = np.random.default_rng(7)
    drawn = {"t2": rng.standard_t(2, 60), "normal": rng.standard_normal(60)}
    z, v = np.column_stack([rng.standard_normal(60), drawn[codes]]), drawn[factors][:, None] + 0.0
    left = z[:, 1] - LinearRegression().fit(v, z[:, 1]).predict(v)
    excess = kurtosis(left if codes == "t2" else v[:, 0])
    assert (excess > 7) == (reason != "^$")
    card = score(z, v, kinds=("continuous",), metrics="r2", confidence=0.95)
    assert re.search(reason, card.scored["r2"].no_interval)
    assert (card.scored["r2"].intervals is None) == (reason != "^$")
    if reason != "^$":
        assert f" {excess:.1f}; an interval takes 7.0 or less on 60 rows" in card.scored["r2"].no_interval
        times = int(np.ceil(1000 / 60 * (excess / 7) ** 3))  # its cube root of a thousand rows bears the excess
        fewer, enough = (check_inputs(np.tile(z, (n, 1)), np.tile(v, (n, 1)), kinds=("continuous",))
                         for n in (times - 1, times))  # fmt: skip
        assert heavy_tails(fewer) != "" == heavy_tails(enough)


def test_tails_that_a_factor_hides_in_a_code_give_no_interval() -> None:
    """Noise by Student's t with 3 degrees of freedom, less than half of the deviation of the code."""
    rng, refused, of_codes = np.random.default_rng(0), 0, 0
    for _ in range(50):
        factor = rng.uniform(-1, 1, (300, 1)) * 4
        codes = factor + rng.standard_t(3, (300, 1)) / np.sqrt(3)
        of_codes += kurtosis(codes[:, 0]) > 7
        refused += heavy_tails(check_inputs(codes, factor, ("continuous",))) != ""
    assert of_codes < 5 < 25 < refused


@pytest.mark.parametrize("n_rows", [60, 300, 3000])
def test_light_tails_have_an_interval(n_rows: int) -> None:
    """Student's t with 10 degrees of freedom in 5 codes and 3 factors, codes that are factors, and a rare class."""
    rng = np.random.default_rng(n_rows)
    refused = 0
    for _ in range(100):
        factors = rng.standard_t(10, (n_rows, 3))
        codes = 0.7 * rng.standard_t(10, (n_rows, 5))
        codes[:, :3] += factors
        refused += heavy_tails(check_inputs(codes, factors, ("continuous",) * 3)) != ""
    assert refused <= 8
    levels = rng.integers(0, 5, (n_rows, 2))
    assert heavy_tails(check_inputs(levels / 3 + 1e6, levels, ("ordinal",) * 2)) == ""
    rare = (np.arange(n_rows) % 30 == 0).astype(int)[:, None]
    code = rare + 0.05 * rng.standard_normal((n_rows, 1))
    assert kurtosis(code[:, 0]) > 15
    assert heavy_tails(check_inputs(code, rare, ("categorical",))) == ""
