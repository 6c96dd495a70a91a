"""DCI-ES against worked examples, scikit-learn's probes and what it must say of noise."""

import sys
from typing import Any

import numpy as np
import pytest
from scipy.integrate import trapezoid
from sklearn.ensemble import RandomForestRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score

from tests.examples import grid_factors, noisy_codes, perfect_codes, rotated_codes
from unbraid.base.types import FloatArray
from unbraid.metrics import dci_es, dci_from_importance, explicitness_from_curve
from unbraid.metrics._shared.capacities import DEPTHS, FEATURES, Curves, _judged
from unbraid.metrics._shared.inputs import check_inputs, split_rows
from unbraid.metrics._shared.train_valid_test import train_valid_test

FACTORS = grid_factors(6)


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
    few = dci_es(codes, FACTORS, n_trees=60, capacities=[1, 3, 8])
    np.testing.assert_array_equal(few.curves, np.minimum.accumulate(result.curves[[0, 2, 4]]))
    areas = trapezoid(few.curves - few.curves[-1], [1, 3, 8], axis=0)
    np.testing.assert_allclose(few.per_factor, 1 - 2 * areas / 7)
    assert few.capacities.tolist() == [1, 3, 8]


def test_the_importance_of_noise_counts_and_its_flat_curve_does_only_as_published() -> None:
    """One factor is the sign of a code, the other is of no code; trees of one cut share its importance by luck, p."""
    rng = np.random.default_rng(0)
    codes = rng.standard_normal((2400, 2))
    factors = np.column_stack([np.sign(codes[:, 0]), rng.standard_normal(2400)])
    forest = RandomForestRegressor(300, max_depth=1, random_state=0).fit(codes[:400], factors[:400, 1])
    p = float(forest.feature_importances_[0])
    entropy = -(np.log2(1 / (1 + p)) + p * np.log2(p / (1 + p))) / (1 + p)
    disentanglement = (1 + p) / 2 * (1 - entropy) + (1 - p) / 2
    completeness = (1 + 1 + p * np.log2(p) + (1 - p) * np.log2(1 - p)) / 2
    test: Any = {"test_codes": codes[400:], "test_factors": factors[400:]}
    ours, theirs = (
        dci_es(codes[:400], factors[:400], n_trees=300, capacities=[1, 2], published=published, **test)
        for published in (False, True)
    )
    for result in (ours, theirs):
        assert result.disentanglement == pytest.approx(disentanglement, abs=0.04)
        assert result.completeness == pytest.approx(completeness, abs=0.04)
    assert disentanglement < 0.75
    assert ours.explicitness == pytest.approx(0.5)
    assert theirs.explicitness == theirs.explicitness_published == ours.explicitness_published > 0.9
    assert "its curve counts, as published" in theirs.notes[0]


def test_parts_follow_from_curves_and_importance() -> None:
    result = dci_es(noisy_codes(FACTORS), FACTORS, kinds=["categorical", "ordinal", "ordinal"], n_trees=10)
    expected = [explicitness_from_curve(DEPTHS, result.curves[:, k], (2 / 3, 1, 1)[k]) for k in range(3)]
    np.testing.assert_allclose(result.per_factor, expected)
    assert result.explicitness == pytest.approx(np.mean(expected)) == pytest.approx(result.explicitness_published)
    dci = dci_from_importance(result.importance)
    assert (result.disentanglement, result.completeness) == (dci.disentanglement, dci.completeness)
    assert result.size == 1.0
    best = 1 - result.curves[-1] / [2 / 3, 1, 1]
    np.testing.assert_allclose(result.informativeness_per_factor, best, atol=0.01)  # at one capacity for all
    assert (result.informativeness_per_factor <= best + 1e-12).all()


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
    with pytest.raises(ValueError, match="capacities must be at least two ascending numbers"):
        explicitness_from_curve(capacities, losses)


def _curved() -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(0)
    codes = rng.standard_normal((300, 4))
    codes[:, 3] = 0.1
    factors = np.column_stack([codes[:, 0], np.sin(2 * codes[:, 1]), 1.0 * (codes[:, 2] > 0)])
    return codes, factors


def test_perceptrons_begin_with_a_line_and_gain_where_there_is_a_curve() -> None:
    codes, factors = _curved()
    result = dci_es(codes, factors, kinds=["continuous", "continuous", "categorical"], probe="mlp")
    train, test = split_rows(300, (0.8, 0.2), 0)
    for column in (0, 1):
        line = LinearRegression().fit(codes[train], factors[train, column])
        loss = 1 - line.score(codes[test], factors[test, column])
        assert result.curves[0, column] == pytest.approx(loss, abs=1e-10)
    classes = LogisticRegression().fit(codes[train], factors[train, 2]).predict(codes[test])
    assert result.curves[0, 2] == pytest.approx(1 - accuracy_score(factors[test, 2], classes))
    # Parameters of the linear probe, and of 2 to 256 hidden units, for 3 codes that vary and 4 / 3 outputs.
    units = 2.0 ** np.arange(1, 9)
    assert result.capacities == pytest.approx(np.log([4 * 4 / 3, *(4 * units + (units + 1) * 4 / 3)]))
    assert result.curves[-1, 1] < 0.5 * result.curves[0, 1]
    assert result.per_factor[0] == pytest.approx(1.0, abs=1e-3)
    assert result.per_factor[1] < 0.9
    np.testing.assert_array_equal(result.importance.argmax(axis=0), [0, 1, 2])
    assert not result.importance[3].any()
    few = dci_es(codes, factors, kinds=["continuous", "continuous", "categorical"], probe="mlp", capacities=(0, 16))
    np.testing.assert_array_equal(few.curves[0], result.curves[0])
    assert few.capacities == pytest.approx(np.log([4 * 4 / 3, 4 * 16 + 17 * 4 / 3]))


def test_many_random_features_are_a_gaussian_kernel() -> None:
    """Whose width and penalty follow from theirs: k = exp(-(2 pi .08 d)^2 / 2), of half as many cosines and sines."""
    codes, factors = _curved()
    result = dci_es(codes, factors[:, :2], probe="rff")
    train, test = split_rows(300, (0.8, 0.2), 0)
    live = (codes[:, :3] - codes[train, :3].mean(axis=0)) / codes[train, :3].std(axis=0)
    for column in (0, 1):
        centred = factors[:, column] - factors[train, column].mean()
        settings: Any = {"alpha": 2 / FEATURES[-1], "gamma": (2 * np.pi * 0.08) ** 2 / 2}
        predicted = KernelRidge(kernel="rbf", **settings).fit(live[train], centred[train]).predict(live[test])
        loss = ((predicted - centred[test]) ** 2).mean() / centred[test].var()
        assert result.curves[-1, column] == pytest.approx(loss, abs=0.01)
    assert result.capacities == pytest.approx(np.log([16, 32, 64, 128, 256, 512, 1024, 2048]))
    np.testing.assert_array_equal(result.importance.argmax(axis=0), [0, 1])


@pytest.mark.parametrize("probe", ["forest", "mlp", "rff"])
def test_noise_is_not_explicit_by_any_probe(probe: Any) -> None:
    rng = np.random.default_rng(1)
    factors = np.column_stack([rng.standard_normal(8_000), rng.integers(0, 3, 8_000)])
    capacities = {"forest": (1, 2), "mlp": (0, 2), "rff": (16, 32)}[probe]
    codes = rng.standard_normal((8_000, 2))
    noise = dci_es(codes, factors, kinds=("continuous", "categorical"), probe=probe, capacities=capacities)
    assert noise.explicitness == 0.0
    assert noise.explicitness_published > 0.5


@pytest.mark.parametrize(
    ("probe", "capacities", "message"),
    [
        ("forest", [0, 2], r"capacities\[0\] must be a whole number, 1 to 40; got 0"),
        ("forest", [2], r"capacities must be at least two ascending whole numbers; got \[2\]"),
        ("mlp", [4, 4], r"capacities must be at least two ascending whole numbers; got \[4, 4\]"),
        ("rff", [16, 33], r"capacities of rff must be even \(cosines and sines\); got \[16, 33\]"),
        ("forest", [1, 2.5], r"capacities\[1\] must be a whole number"),
    ],
)
def test_capacities_that_a_probe_cannot_have_are_refused(probe: Any, capacities: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        dci_es(FACTORS, FACTORS, probe=probe, capacities=capacities)


def test_losses_above_that_of_a_constant_count_as_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 1.5 and .2 at two capacities, with baseline 1: 1 - 2 (1 - .2) / 2 = .2, as published 1 - 1.3 = -.3."""
    curves = Curves(
        np.array([1.0, 2.0]),
        np.array([[1.5, 1.5, 1.5], [0.2, 0.2, 0.2]]),
        np.ones(3),
        lambda _: np.eye(3),
    )
    monkeypatch.setattr(sys.modules["unbraid.metrics.dci_es"], "by_forests", lambda *_: curves)
    result = dci_es(perfect_codes(FACTORS), FACTORS)
    assert (result.explicitness, result.explicitness_published) == pytest.approx((0.2, -0.3))


def test_a_code_whose_shuffling_helps_is_not_important() -> None:
    """A prediction of the wrong sign is off by 4 variances, by 2 with its code shuffled; the right one by 0 and 2."""
    rng = np.random.default_rng(0)
    codes = rng.standard_normal((4000, 2))
    split = train_valid_test(check_inputs(codes, codes[:, :1], ["continuous"]), 0, None, None, (0.8, 0.2))
    wrong = _judged(split, 0, np.array([1.0]), [lambda asked: -asked[:, :1]]).importance(0)
    assert wrong.tolist() == [[0.0], [0.0]]
    right = _judged(split, 0, np.array([1.0]), [lambda asked: asked[:, :1]]).importance(0)
    assert right[:, 0] == pytest.approx([2.0, 0.0], abs=0.2)


def test_informativeness_is_that_of_one_capacity_for_all_factors() -> None:
    rng = np.random.default_rng(0)
    codes = rng.uniform(-1, 1, (1000, 4))
    factors = np.column_stack([(codes[:, 0] > 0) + 1.5 * rng.standard_normal(1000), np.floor(8 * codes[:, 1]) % 2])
    found = dci_es(codes, factors, n_trees=20, kinds=["continuous", "ordinal"])
    # Noise beside the first factor is best told by shallow trees, the stripes of the second by deep ones.
    assert found.informativeness == pytest.approx(found.informativeness_per_factor.mean())
    best = 1 - found.curves.min(axis=0)  # of each factor, at a capacity of its own
    assert (found.informativeness_per_factor <= best + 1e-12).all()
    assert found.informativeness < best.mean() - 0.02
