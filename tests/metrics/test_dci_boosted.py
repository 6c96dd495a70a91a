"""Boosted trees against scikit-learn's GradientBoostingClassifier, whose importances they stand for."""

import math

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier

from tests.examples import entangled_codes, grid_factors, noisy_codes, perfect_codes, rotated_codes
from unbraid.base.types import FloatArray, IntArray
from unbraid.metrics import dci_boosted
from unbraid.metrics._solvers.boosting import MAX_BINS, _bound, _rows_below_cuts, _step, boosted_classes, ranked_codes
from unbraid.metrics._solvers.trees import coarse_bins

FACTORS = grid_factors(12)


def both(
    codes: FloatArray, classes: IntArray, others: FloatArray, n_iterations: int = 100
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Our importance and predictions, then scikit-learn's."""
    ours = boosted_classes(ranked_codes(codes, others), classes, n_iterations=n_iterations, learning_rate=0.1, seed=0)
    model = GradientBoostingClassifier(n_estimators=n_iterations, random_state=0).fit(codes, classes)
    return ours.importance, ours.predicted, model.feature_importances_, model.predict(others)


def cloud(n_samples: int, n_classes: int, seed: int = 0) -> tuple[FloatArray, IntArray]:
    rng = np.random.default_rng(seed)
    codes = rng.standard_normal((n_samples, 4))
    target = codes[:, 0] + 0.5 * codes[:, 1] * codes[:, 2] + 0.3 * rng.standard_normal(n_samples)
    return codes, np.digitize(target, np.quantile(target, np.arange(1, n_classes) / n_classes))


@pytest.mark.parametrize("n_classes", [2, 3, 6, 12])
@pytest.mark.parametrize("n_iterations", [1, 10])
def test_scikit_learn_to_many_digits(n_classes: int, n_iterations: int) -> None:
    """While no two splits are equally good, trees are the same; nodes of few rows draw between equals."""
    codes, classes = cloud(1000, n_classes)
    ours, predicted, theirs, expected = both(codes[:800], classes[:800], codes[800:], n_iterations)
    np.testing.assert_allclose(ours, theirs, atol=1e-6 if n_iterations == 1 and n_classes < 6 else 0.01)
    assert np.mean(predicted == expected) > 0.95


@pytest.mark.parametrize(
    "n_classes", [2, pytest.param(3, marks=pytest.mark.slow), pytest.param(6, marks=pytest.mark.slow)]
)
def test_scikit_learn_after_all_iterations(n_classes: int) -> None:
    codes, classes = cloud(1000, n_classes, seed=1)
    ours, predicted, theirs, expected = both(codes[:800], classes[:800], codes[800:])
    np.testing.assert_allclose(ours, theirs, atol=0.015)
    assert np.mean(predicted == classes[800:]) == pytest.approx(np.mean(expected == classes[800:]), abs=0.03)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_codes_of_few_values_leave_nothing_to_bins(n_classes: int) -> None:
    codes, classes = cloud(900, n_classes, seed=2)
    codes = np.rint(codes * 8)
    ours, _, theirs, _ = both(codes, classes, codes[:5], 20)
    np.testing.assert_allclose(ours, theirs, atol=2e-3)


@pytest.mark.parametrize("seed", range(20))
def test_no_order_of_the_rows_of_a_bin_gains_more_than_its_bound(seed: int) -> None:
    """All cuts within the bin and at its end, of rows as they come and of those above 0 first and last."""
    rng, bits = np.random.default_rng(seed), 8
    before, here, after = (int(n) for n in rng.integers((0, 1, 0), (6, 12, 6)) + [0, 1, 0])
    n_node = before + here + after
    residuals = rng.integers(-30, 1, n_node)
    residuals[rng.random(n_node) < 0.3] += 100
    bin_rows, total = residuals[before : before + here].copy(), int(residuals.sum())
    left = int(residuals[: before + here].sum())
    risen = float(bin_rows[bin_rows > 0].sum())
    bound = _bound(
        (int(bin_rows.sum()) << bits) + here, (left << bits) + before + here, risen, float(n_node), float(total), bits
    )
    greatest = 0.0
    for ordered in (bin_rows, np.sort(bin_rows), np.sort(bin_rows)[::-1]):
        residuals[before : before + here] = ordered
        n_left = np.arange(max(before, 1), min(before + here, n_node - 1) + 1)
        difference = n_node * residuals.cumsum()[n_left - 1] - n_left * total
        greatest = max(greatest, float((difference**2 / (n_left * (n_node - n_left))).max()))
    assert greatest <= bound * (1 + 1e-12)
    assert bound < 30 * greatest


NOISY, ROTATED = noisy_codes(FACTORS), rotated_codes(FACTORS, noise=0.3)
MODELS = {
    "noisy": NOISY,
    "noisier": noisy_codes(FACTORS, noise=1.0),
    "rotated": ROTATED,
    "redundant": np.hstack([NOISY, NOISY[:, :1]]),
    "entangled": entangled_codes(FACTORS),
}


@pytest.mark.parametrize(
    ("name", "n_factors"), [("entangled", 2), *(pytest.param(name, 3, marks=pytest.mark.slow) for name in MODELS)]
)
def test_disentanglement_and_completeness_of_either_booster(name: str, n_factors: int) -> None:
    codes, factors = MODELS[name], FACTORS[:, :n_factors]
    ours, exact = (dci_boosted(codes, factors, seed=1, booster=booster) for booster in ("histogram", "exact"))
    assert ours.disentanglement == pytest.approx(exact.disentanglement, abs=0.02)
    assert ours.completeness == pytest.approx(exact.completeness, abs=0.02)
    assert ours.errors == pytest.approx(exact.errors, abs=0.04)


@pytest.mark.parametrize("copy", [1.0, -1.0])
def test_identical_codes_share_their_importance(copy: float) -> None:
    """C = 1 - log_D 2 of the factor that two codes carry alike."""
    codes = perfect_codes(FACTORS)
    result = dci_boosted(np.column_stack([codes, copy * codes[:, 0]]), FACTORS)
    assert result.importance[0, 2] == pytest.approx(0.5, abs=0.06)
    assert result.per_factor == pytest.approx([1.0, 1.0, 1 - math.log(2, 4)], abs=0.01)
    assert result.disentanglement == pytest.approx(1.0, abs=1e-9)


def test_errors_are_those_of_test_rows() -> None:
    """Noise is memorised in training and worth nothing after: one class in eight is right."""
    noise = np.random.default_rng(0).standard_normal((len(FACTORS), 6))
    assert dci_boosted(noise, FACTORS[:, 2:]).error_rate == pytest.approx(7 / 8, abs=0.06)
    assert dci_boosted(perfect_codes(FACTORS), FACTORS).errors.tolist() == [0.0, 0.0, 0.0]


def test_a_class_of_one_sample_and_one_that_training_lacks() -> None:
    factors = FACTORS[:, :2].copy()
    factors[5, 0], factors[6, 1] = 9, 8
    for seed in range(3):
        result = dci_boosted(entangled_codes(FACTORS), factors, seed=seed)
        assert np.isfinite(result.importance).all()
        assert result.errors.max() < 0.3
    test = np.array([[9, 0], [9, 1]])
    absent = dci_boosted(entangled_codes(FACTORS), FACTORS[:, :2], test_codes=np.zeros((2, 3)), test_factors=test)
    assert absent.errors[0] == 1.0
    assert "factor 0: 1 of its levels are in no training row" in absent.notes


def test_one_class_in_training() -> None:
    codes = ranked_codes(np.arange(6.0)[:, None], np.zeros((2, 1)))
    fitted = boosted_classes(codes, np.full(6, 3), n_iterations=5, learning_rate=0.1, seed=0)
    assert fitted.importance.tolist() == [0.0]
    assert fitted.predicted.tolist() == [3, 3]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_separable_classes_never_overflow(n_classes: int) -> None:
    codes = np.repeat(np.arange(n_classes), 500)[:, None] + 0.0
    fitted = boosted_classes(
        ranked_codes(codes, codes), codes[:, 0].astype(int), n_iterations=2000, learning_rate=1.0, seed=0
    )
    assert fitted.importance.tolist() == [1.0]
    np.testing.assert_array_equal(fitted.predicted, codes[:, 0])


def test_one_row_of_its_class_among_many() -> None:
    """Alone in its leaf, its Newton step is the inverse of a frequency of 1 in 20 000: e to its tenth overflows."""
    codes = np.arange(20_000.0)[:, None]
    classes = np.where(codes[:, 0] < 10_000, 0, 1)
    classes[-1] = 2
    fitted = boosted_classes(ranked_codes(codes, codes[-3:]), classes, n_iterations=3, learning_rate=0.1, seed=0)
    assert fitted.predicted.tolist() == [1, 1, 2]
    assert fitted.importance.tolist() == [1.0]


def test_odds_of_two_classes_stay_finite() -> None:
    odds = np.array([1e58, 1e-58])
    for _ in range(20):
        _step(odds, 2, np.full(2, 7, dtype=np.uint8), np.ones(15, dtype=int), np.zeros((5, 15)), 0, 1.0, 2, 1.0, 0.1)
    assert odds.max() <= 1e60


def test_bins_hold_about_as_many_rows_and_mirror() -> None:
    values = np.random.default_rng(0).standard_normal(5120)
    targets = _rows_below_cuts(5120, 10)
    bins = coarse_bins(np.unique(values, return_inverse=True)[1], targets)
    assert np.all(np.diff(bins) >= 0)
    assert set(np.bincount(bins)) == {40}
    ranks = np.unique(values.round(2), return_inverse=True)[1]
    bins = coarse_bins(ranks, targets)
    assert np.bincount(bins[ranks]).max() < 60
    np.testing.assert_array_equal(coarse_bins(ranks.max() - ranks, targets), bins.max() - bins[::-1])
    np.testing.assert_array_equal(coarse_bins(np.array([0, 2, 1, 1]), np.array([1.0, 3.0])), [0, 1, 2])


def test_bins_of_many_codes_narrow_towards_both_ends() -> None:
    targets = _rows_below_cuts(5120, 65)
    np.testing.assert_allclose(targets, 5120 - targets[::-1], rtol=1e-12)
    counts = np.bincount(coarse_bins(np.random.default_rng(0).permutation(5120), targets))
    assert len(counts) == 32
    assert counts[0] == counts[-1] == 8
    assert np.all(np.diff(counts[1:16]) > 0)
    np.testing.assert_array_equal(counts, counts[::-1])


def test_a_value_of_many_rows_is_never_cut_in_two() -> None:
    ranks = np.repeat(np.arange(300), np.where(np.arange(300) == 150, 4000, 1))
    bins = coarse_bins(ranks, _rows_below_cuts(4299, 10))
    assert len(bins) == 300
    assert bins.max() < MAX_BINS
    assert np.all(np.diff(bins) >= 0)


def test_an_importance_below_0_by_rounding_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a code whose only splits gain nothing; it was refused as a negative importance."""
    monkeypatch.setattr(GradientBoostingClassifier, "feature_importances_", np.array([1.0, -8e-18]))
    assert dci_boosted(FACTORS[:, :2], FACTORS[:, :2], booster="exact").importance.min() == 0.0


def test_scale_is_of_no_account() -> None:
    """scikit-learn's trees read single precision, in which values that differ by less than 1e-7 are one."""
    codes, factors = NOISY[::4], FACTORS[::4, 1:2]
    plain, scaled = (dci_boosted(z, factors, booster="exact") for z in (codes, codes * [1.0, 1e-6, 1e6]))
    np.testing.assert_array_equal(scaled.importance, plain.importance)
