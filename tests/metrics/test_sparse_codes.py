"""Operations on sparse codes against their definitions, row by row."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from unbraid.base.types import FloatArray
from unbraid.metrics import (
    absorption,
    codes_to_ablate,
    feature_recovery,
    sparse_probing,
    spurious_correlation_removal,
    targeted_probe_perturbation,
)
from unbraid.metrics._shared.inputs import split_rows

RNG = np.random.default_rng(0)


def absorbed(z: FloatArray, x: FloatArray, d: FloatArray, w: FloatArray, main: list[int]) -> tuple[float, float, int]:
    """Section 12 of the definition, one row after another."""
    w = w / np.linalg.norm(w)
    cosines, full, fractions = [row @ w / np.linalg.norm(row) for row in d], [], []
    for codes, row in zip(z, x, strict=True):
        told = row @ w
        if told <= 0:
            continue
        p = {i: codes[i] * cosines[i] for i in range(len(d))}
        others = sorted((i for i in p if i not in main), key=lambda i: -p[i])
        top = others[0]
        full.append(not any(codes[i] > 0 for i in main) and cosines[top] >= 0.025 and p[top] / told >= 0.4)
        taken = sum([p[i] for i in others if cosines[i] >= 0.1 and p[i] > 0][:3])
        own = sum(p[i] for i in main)
        if taken / told < 0.4 or own >= told:
            fractions.append(0.0)
        elif own <= 0:
            fractions.append(1.0)
        else:
            a = min(taken, told - own)
            fractions.append(a / (a + own))
    return float(np.mean(full)), float(np.mean(fractions)), len(full)


def test_absorption_row_by_row() -> None:
    d, w = RNG.standard_normal((12, 6)), RNG.standard_normal(6)
    d[:4] += 2 * w
    z = np.maximum(RNG.standard_normal((400, 12)) * 0.3, 0.0)
    x = z @ d + 0.3 * RNG.standard_normal((400, 6))
    for main in ([0], [0, 5], []):
        result = absorption(z, x, d, 3.0 * w, main)
        assert (result.full, result.fraction, result.n_rows) == pytest.approx(absorbed(z, x, d, w, main))
    assert 0.05 < absorption(z, x, d, w, [0]).fraction < 0.95
    assert absorption(z, -np.abs(x @ w)[:, None] * w, d, w, [0]).n_rows == 0


def test_codes_are_chosen_by_differences_of_means_and_read_on_other_rows() -> None:
    factors = np.column_stack([RNG.integers(0, 2, 500), RNG.integers(0, 3, 500)])
    codes = RNG.standard_normal((500, 8))
    codes[:, 5] += 4 * factors[:, 0]
    codes[:, 2] += 3 * (factors[:, 1] == 1)
    codes[:, 7] += 2.5 * (factors[:, 1] == 2)
    result = sparse_probing(codes, factors, ks=[1, 2], seed=1)
    assert result.chosen[0][0] == 5
    assert result.chosen[1].tolist() == [2, 7]
    train, test = split_rows(500, (0.8, 0.2), 1)
    scaled = (codes - codes.mean(axis=0)) / codes.std(axis=0)
    for place, columns in enumerate(([2], [2, 7])):
        known = LogisticRegression(tol=1e-8).fit(scaled[train][:, columns], factors[train, 1])
        expected = known.score(scaled[test][:, columns], factors[test, 1])
        assert result.accuracy[place, 1] == pytest.approx(expected)
    assert result.accuracy[1, 1] > result.accuracy[0, 1] > result.guess[1]
    with pytest.raises(ValueError, match=r"ks\[1\] must be a whole number, 1 to 8 \(the number of codes\); got 9"):
        sparse_probing(codes, factors, ks=[1, 9])


def test_codes_that_push_a_class_most_come_first() -> None:
    labels, d, w = RNG.random(300) < 0.3, RNG.standard_normal((5, 4)), RNG.standard_normal(4)
    codes = RNG.standard_normal((300, 5)) + labels[:, None] * [0.0, 1.0, -2.0, 0.5, 3.0]
    pushes = [(z[labels].mean() - z[~labels].mean()) * (row @ w) for z, row in zip(codes.T, d, strict=True)]
    assert codes_to_ablate(codes, labels, d, w).tolist() == np.argsort(np.negative(pushes)).tolist()
    with pytest.raises(ValueError, match="a row for each code"):
        codes_to_ablate(codes, labels, d[:2], w)


def test_what_a_cue_costs_is_won_back() -> None:
    gained = {0: 0.6, 1: 0.7, 2: 0.8}
    won = spurious_correlation_removal(lambda ablated: gained[len(ablated)], [3, 1], [1, 2], clean=0.8)
    np.testing.assert_allclose(won, [0.5, 1.0])
    assert spurious_correlation_removal(lambda _: 0.8, [3, 1], [1], clean=0.8005).tolist() == [0.0]
    with pytest.raises(ValueError, match=r"counts\[0\] must be a whole number, 0 to 2"):
        spurious_correlation_removal(lambda _: 0.5, [3, 1], [5], clean=0.8)


def test_a_class_loses_more_than_the_others() -> None:
    """Code c is worth .2 to class c, and .06 to the next."""

    def effect(ablated) -> FloatArray:
        accuracy = np.full(3, 0.9)
        for code in ablated:
            accuracy[code] -= 0.2
            accuracy[(code + 1) % 3] -= 0.06
        return accuracy

    found = targeted_probe_perturbation(effect, [[0], [1], [2]], [0, 1])
    np.testing.assert_allclose(found, [0.0, 0.2 - 0.03])
    with pytest.raises(ValueError, match="at least two classes"):
        targeted_probe_perturbation(effect, [[0]], [1])
    with pytest.raises(ValueError, match="one accuracy per class"):
        targeted_probe_perturbation(effect, [[0], [1]], [1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"probe": np.zeros(6)}, "probe must be a direction of 6"),
        ({"main": [12]}, "main must be a whole number, 0 to 11"),
        ({"dictionary": np.ones((11, 6))}, "do not fit"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict, message: str) -> None:
    given = {"codes": np.ones((3, 12)), "activations": np.ones((3, 6)), "dictionary": np.ones((12, 6)),
             "probe": np.ones(6), "main": [0]}  # fmt: skip
    with pytest.raises(ValueError, match=message):
        absorption(**(given | change))


@pytest.mark.parametrize("scale", [1e-20, 1e20])
def test_no_direction_is_too_short_or_too_long(scale: float) -> None:
    x, d = np.array([[1.0, 0.0], [1.0, 0.0]]), np.eye(2)
    assert feature_recovery(np.eye(3) * scale, np.eye(3)).cosine.tolist() == [1, 1, 1]
    found = absorption([[0.0, 1.0], [0.0, 1.0]], x, d[::-1] * scale, [scale, 0.0], main=[0])
    assert (found.full, found.fraction) == (1.0, 1.0)


@pytest.mark.parametrize("scale", [1e20, 1e-4])
def test_shrinkage_has_no_unit(scale: float) -> None:
    """Rows of lengths 5 and 1, rebuilt at lengths 4 and .5, and one without length, which says nothing."""
    x, decoded = scale * np.array([[3.0, 4], [1, 0], [0, 0]]), scale * np.array([[0.0, 4], [0.3, 0.4], [7, 0]])
    found = feature_recovery(np.eye(2), np.eye(2), activations=x, reconstructions=decoded)
    assert found.shrinkage == pytest.approx((4 / 5 + 1 / 2) / 2)


def test_shrinkage_of_activations_without_length_is_not_known() -> None:
    x = np.random.default_rng(0).standard_normal((50, 4)) * 1e-8
    found = feature_recovery(np.eye(4), np.eye(4), activations=x, reconstructions=x)
    assert found.shrinkage is None
    assert "every activation is shorter than 1e-06, so that shrinkage is not known" in found.notes


def test_a_latent_without_a_direction_is_the_best_of_no_feature() -> None:
    """Two latents are features 1 and 2; the third has a row of zeros, and fires in two rows, one of feature 0."""
    features = np.eye(3)
    dictionary = np.array([[0.0, 2.0, 0.0], [0.0, 0.0, -1.0], [0.0, 0.0, 0.0]])
    firing = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 1]], dtype=float)
    codes = np.array([[0, 0, 1], [1, 0, 1], [0, 1, 0], [1, 1, 0]], dtype=float)
    result = feature_recovery(dictionary, features, codes=codes, firing=firing)
    assert result.uniqueness == pytest.approx(2 / 3)
    assert result.best_feature is not None
    assert result.best_feature.tolist() == [1, 2, -1]
    for per_latent in (result.precision_per_latent, result.recall_per_latent, result.f1_per_latent):
        np.testing.assert_array_equal(per_latent, [1, 1, 0])
    assert result.accuracy == pytest.approx(1 - 2 / 12)
    assert feature_recovery(0 * dictionary, features).uniqueness == 0.0
