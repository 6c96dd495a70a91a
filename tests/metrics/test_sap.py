"""SAP against worked gaps, NumPy's correlation and scikit-learn's linear SVM."""

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score
from sklearn.svm import LinearSVC

from tests.examples import entangled_codes, grid_factors, perfect_codes
from unbraid.metrics import sap
from unbraid.metrics._shared.inputs import check_inputs
from unbraid.metrics._shared.train_test_split import TRAIN_FRACTION, train_test_split
from unbraid.metrics.sap import _above_chance, _objective, _sums, sap_of_noise, svm_margins

FACTORS = grid_factors(6)


def test_squared_correlations_and_their_gaps() -> None:
    codes = entangled_codes(FACTORS)
    result = sap(codes, FACTORS)
    expected = np.array([[np.corrcoef(z, v)[0, 1] ** 2 for v in FACTORS.T] for z in codes.T])
    np.testing.assert_allclose(result.predictability, expected, atol=1e-12)
    for factor in range(3):
        best, second = sorted(expected[:, factor])[::-1][:2]
        assert result.per_factor[factor] == pytest.approx(best - second)
    assert result.score == pytest.approx(result.per_factor.mean())


def test_svm_is_that_of_disentanglement_lib() -> None:
    """It fits LinearSVC(C=0.01, class_weight="balanced") to each code as it is; the gap is of the sorted accuracies."""
    codes = np.column_stack([entangled_codes(FACTORS), np.full(len(FACTORS), 0.3)]) * [1, 0.03, 5, 1]
    rows = train_test_split(codes, FACTORS, None, 0)
    result = sap(codes, FACTORS, variant="disentanglement_lib")
    expected = np.zeros((4, 3))
    for factor in range(3):
        for code in range(4):
            peer = LinearSVC(C=0.01, class_weight="balanced", dual=False, tol=1e-10, max_iter=10_000)
            peer.fit(codes[rows.train][:, [code]], FACTORS[rows.train, factor])
            expected[code, factor] = peer.score(codes[rows.test][:, [code]], FACTORS[rows.test, factor])
    np.testing.assert_allclose(result.predictability, expected, atol=1e-12)
    in_order = np.sort(expected, axis=0)
    assert result.score == pytest.approx(np.mean(in_order[-1] - in_order[-2]), abs=1e-12)


def test_the_variant_by_hand() -> None:
    """Three classes at -1, 0 and 1, and a constant code, with C n / 3 = 5 on either side of each machine's count.

    The machine of the class at 1 minimises (w^2 + b^2) / 2 + 5 (1 - w - b)^2 + 5 (1 + b)^2: w = 1.60, b = -.76; that of
    the class at -1 mirrors it; the middle one has w = 0 and 31 b = -10. At 0 the middle one, -.32, beats -.76, and at
    the ends the outer ones reach .84: every row is named rightly. On a constant code each machine is such a flat b, the
    highest that of the class with most training rows, which is the answer for all rows. The runner-up is its share.
    """
    levels = np.tile([0, 1, 2], 500)[:, None]
    codes = np.column_stack([levels - 1.0, np.zeros(len(levels))])
    rows = train_test_split(codes, levels, None, 0)
    answer = np.bincount(levels[rows.train, 0]).argmax()
    share = np.mean(levels[rows.test, 0] == answer)
    result = sap(codes, levels, variant="disentanglement_lib")
    assert result.predictability[:, 0] == pytest.approx([1.0, share], abs=1e-12)
    assert result.score == pytest.approx(1.0 - share, abs=1e-12)


def test_examples_of_disentanglement_lib() -> None:
    """Its tests of SAP (86a644d): ten factors of ten values, as they are .9 to 1, all zero or given twice 0 to .2."""
    factors = np.random.RandomState(0).randint(1, 11, (3000, 10))
    assert 0.9 <= sap(factors, factors).score <= 1.0
    assert 0.0 <= sap(np.zeros(factors.shape), factors).score <= 0.2
    assert 0.0 <= sap(np.hstack([factors, factors]), factors).score <= 0.2


def test_svm_of_two_unequal_classes() -> None:
    rng = np.random.default_rng(0)
    values = rng.standard_normal(400)
    levels = (values + rng.standard_normal(400) > 1.2).astype(int)
    peer = LinearSVC(C=0.01, class_weight="balanced", dual=False, tol=1e-10).fit(values[:, None], levels)
    test = np.linspace(-4, 4, 1001)
    order = np.argsort(values)
    margins = svm_margins(values[order], levels[order], 2, test)
    np.testing.assert_array_equal(margins.argmax(axis=1), peer.predict(test[:, None]))
    np.testing.assert_array_equal(svm_margins(values[order], np.zeros(400, int), 2, test).argmax(axis=1), 0)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_above_chance_it_is_the_adjusted_balanced_accuracy_of_that_svm(size: int) -> None:
    rng = np.random.default_rng(size)
    levels = rng.choice(size, (3000, 1), p=np.arange(1, size + 1) / np.arange(1, size + 1).sum())
    codes = np.column_stack([levels[:, 0] + rng.standard_normal(3000), rng.standard_normal(3000)])
    rows = train_test_split(codes, levels, ["categorical"], 0)
    result = sap(codes, levels, kinds=["categorical"])
    seen = (codes - codes[rows.train].mean(axis=0)) / codes[rows.train].std(axis=0)
    expected = []
    for code in seen.T[:, :, None]:
        peer = LinearSVC(C=0.01, class_weight="balanced", dual=False, tol=1e-10, max_iter=10_000)
        peer.fit(code[rows.train], levels[rows.train, 0])
        truth, answer = levels[rows.test, 0], peer.predict(code[rows.test])
        expected.append(max(0.0, balanced_accuracy_score(truth, answer, adjusted=True)))
    assert result.predictability[:, 0] == pytest.approx(expected, abs=1e-12)
    assert result.score == pytest.approx(abs(expected[0] - expected[1]), abs=1e-12)


SHARES = [[0.9, 0.1], [0.5, 0.5], [1 / 3] * 3, [0.2] * 5]


@pytest.mark.parametrize("shares", SHARES)
def test_noise_is_at_nought_and_dead_codes_move_nothing_whatever_the_classes(shares: list[float]) -> None:
    """By plain accuracy one noise code scored .50, .34 and .22 on 2, 3 and 5 classes, and a dead one moved that."""
    rng = np.random.default_rng(0)
    levels = rng.choice(len(shares), (5000, 1), p=shares)
    noise, dead = rng.standard_normal((5000, 1)), np.full((5000, 1), 0.3)
    near = (levels == 0) + 0.05 * rng.standard_normal((5000, 1))
    kinds = ["categorical"]
    assert sap(noise, levels, kinds=kinds).score < 0.1
    assert sap(dead, levels, kinds=kinds).score == 0.0
    for codes in (noise, np.hstack([near, noise])):
        expected = sap(codes, levels, kinds=kinds).score
        relabelled = np.random.default_rng(1).permutation(len(shares))[levels]
        assert sap(np.hstack([codes, dead]), levels, kinds=kinds).score == expected
        assert sap(np.hstack([dead, codes]), relabelled, kinds=kinds).score == pytest.approx(expected, abs=1e-12)


def test_classes_that_only_rounding_tells_apart_share_the_answer() -> None:
    """By hand: three rows of class 0 named rightly, shared and wrongly, one of class 1 named rightly.

    Recalls (1 + 1/2 + 0) / 3 = 1/2 and 1: balanced accuracy 3/4, halfway from chance to all right.
    """
    margins = np.array([[1.0, -1.0], [0.0, 1e-17], [-1.0, 1.0], [-1.0, 1.0]])
    assert _above_chance(margins, np.array([0, 0, 0, 1])) == pytest.approx(0.5)
    assert _above_chance(margins[:, ::-1].copy(), np.array([1, 1, 1, 0])) == pytest.approx(0.5)
    assert _above_chance(np.zeros((4, 2)), np.array([0, 0, 0, 1])) == 0.0
    assert _above_chance(margins, np.zeros(4, dtype=int)) == 0.0


def test_an_svm_on_one_code_cannot_isolate_middle_levels() -> None:
    """The trap: a perfect code of the factors of dSprites scores .24 by SVM and about 1 by squared correlation."""
    rng = np.random.default_rng(0)
    factors = np.stack([rng.integers(0, size, 10_000) for size in (3, 6, 40, 32, 32)], axis=1)
    assert sap(factors, factors).score == pytest.approx(1.0, abs=0.001)
    published = sap(factors, factors, variant="disentanglement_lib")
    assert published.score == pytest.approx(0.24, abs=0.02)
    assert published.per_factor[2:].max() < 0.1
    assert sap(factors, factors, kinds=["categorical"] * 5).score == pytest.approx(0.33, abs=0.02)


def test_a_continuous_factor_is_correlated_as_it_is_and_binned_for_the_svm() -> None:
    values = np.random.default_rng(0).random((500, 1))
    codes = np.column_stack([values**3, np.random.default_rng(1).random(500)])
    result = sap(codes, values)
    assert result.predictability[0, 0] == pytest.approx(np.corrcoef(codes[:, 0], values[:, 0])[0, 1] ** 2)
    assert not any("cut into" in note for note in result.notes)
    assert any("cut into" in note for note in sap(codes, values, variant="disentanglement_lib").notes)


def test_scale_matters_to_the_variant_alone() -> None:
    codes = entangled_codes(FACTORS)
    small = codes * [1.0, 0.001, 1.0]
    arguments = {"kinds": ["categorical"] * 3}
    assert sap(small, FACTORS, **arguments).score == sap(codes, FACTORS, **arguments).score
    theirs = [sap(given, FACTORS, variant="disentanglement_lib").score for given in (small, codes)]
    assert theirs[0] != pytest.approx(theirs[1], abs=0.01)


def test_a_dead_code_and_a_single_code() -> None:
    dead = np.zeros((len(FACTORS), 1))
    assert sap(dead, FACTORS).score == 0.0
    assert sap(perfect_codes(FACTORS)[:, :1], FACTORS).per_factor == pytest.approx([0, 0, 1.0])


def test_chance_of_few_rows_knows_of_rare_values() -> None:
    """A code that is 1 in one row of 73, and a factor in five, which meet in 5 of 73 shuffles; 200 are drawn."""
    n, rare = 73, 5
    variances = (1 - 1 / n) / n * (1 - rare / n) * rare / n
    met, missed = (1 / n - rare / n**2) ** 2 / variances, (rare / n**2) ** 2 / variances
    mean, spread = missed + rare / n * (met - missed), (met - missed) * np.sqrt(rare / n * (1 - rare / n))
    codes, factor = np.eye(n)[:, :1], np.arange(n)[:, None] < rare
    stated = sap_of_noise(check_inputs(codes, factor.astype(int), ["ordinal"]))
    assert stated.score == pytest.approx(mean, rel=0.4)
    assert stated.spread == pytest.approx(spread, rel=0.3)
    assert spread > 2.4 * np.sqrt(2) / n, "of normal codes"


def test_chance_of_many_rows_is_that_of_a_squared_correlation() -> None:
    """N r^2 of independent columns is chi-squared with one degree of freedom, of mean 1 and variance 2."""
    n = 5000
    stated = sap_of_noise(check_inputs(np.zeros((n, 1)), np.arange(n)[:, None] % 4, ["ordinal"]))
    assert (stated.score, stated.spread) == pytest.approx((1 / n, np.sqrt(2) / n), rel=0.3)


def test_chance_of_few_rows_knows_of_classes_that_are_not_tested() -> None:
    """Of 64, 6, 2 and 1 rows a part is tested, of which two classes have a row or more: one is guessed of two."""
    levels = np.repeat([0, 1, 2, 3], [64, 6, 2, 1])[:, None]
    stated = sap_of_noise(check_inputs(np.zeros((73, 1)), levels, ["categorical"]))
    # Recalls of 1/2 stray by sqrt(1/4 / rows); their mean is halved, and above chance over 1 - 1/2.
    tested = np.array([64, 6]) * (1 - TRAIN_FRACTION)
    strays = np.sqrt((0.25 / tested).sum()) / 2 / 0.5
    assert stated.score == pytest.approx(strays / np.sqrt(2 * np.pi), rel=0.15)


@pytest.mark.parametrize(("slope", "offset"), [(0.7, -0.3), (-1.2, 0.4), (0.0, 0.5)])
def test_the_objective_of_a_support_vector_machine_is_the_sum_over_rows(slope: float, offset: float) -> None:
    rng = np.random.default_rng(0)
    values, of_class, weight, rest = np.sort(rng.standard_normal(40)), rng.random(40) < 0.3, 2.5, 0.4

    def of_rows(w: float, b: float) -> float:
        total = (w * w + b * b) / 2
        for value, own in zip(values, of_class, strict=True):
            total += (weight if own else rest) * max(0.0, 1 - (1 if own else -1) * (w * value + b)) ** 2
        return total

    own_values = values[of_class]
    found = _objective(values, _sums(values), own_values, _sums(own_values), weight, rest, slope, offset)
    assert found[0] == pytest.approx(of_rows(slope, offset))
    step = 1e-6
    by_slope = (of_rows(slope + step, offset) - of_rows(slope - step, offset)) / (2 * step)
    by_offset = (of_rows(slope, offset + step) - of_rows(slope, offset - step)) / (2 * step)
    np.testing.assert_allclose(found[1:3], [by_slope, by_offset], rtol=1e-6)
