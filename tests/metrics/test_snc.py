"""SNC against worked examples, plain loops over every assignment, and the ways in which it goes wrong elsewhere."""

from itertools import permutations

import numpy as np
import pytest

from tests.examples import grid_factors, perfect_codes
from unbraid.base.types import FloatArray, IntArray
from unbraid.metrics import nk, snc
from unbraid.metrics._shared.alignment import align, beyond_luck, training_information
from unbraid.metrics._shared.information import binned_information
from unbraid.metrics._shared.inputs import check_inputs
from unbraid.metrics._shared.train_test_split import train_test_split
from unbraid.metrics.snc import _cut, _places, single_code_predictions, snc_of_noise


def toy_model(second: str) -> tuple[FloatArray, IntArray]:
    """The two models of SNC/NK Table 1, in 160 rows with exactly the stated frequencies.

    z1 is 0 for blue squares, 1 for yellow circles, and half and half for the others. z2 is noise (M1) or tells the
    shape to 70 % (M2).
    """
    blue, square, row = (each.ravel() for each in np.meshgrid([0, 1], [0, 1], np.arange(40), indexing="ij"))
    first = np.where(blue == square, blue, row % 2)
    noise, shape = (row // 2) % 2, np.where((row // 2) % 10 < 7, square, 1 - square)
    return np.stack([first, noise if second == "noise" else shape], axis=1).astype(float), np.stack(
        [blue, square], axis=1
    )


@pytest.mark.parametrize("bins", ["classes", "paper"])
@pytest.mark.parametrize(("second", "expected"), [("noise", 0.125), ("shape", 0.225)])
def test_table_1_of_the_paper(bins: str, second: str, expected: float) -> None:
    """Table 1 prints accuracy minus chance: 12.5 for M1, 22.5 for M2."""
    codes, factors = toy_model(second)
    result = snc(codes, factors, bins=bins, test_codes=codes, test_factors=factors)
    assert (result.accuracy - result.chance).mean() == pytest.approx(expected, abs=1e-12)
    assert result.mean_accuracy == pytest.approx(result.accuracy.mean())
    assert sorted(result.accuracy) == pytest.approx([0.5 if second == "noise" else 0.7, 0.75])
    np.testing.assert_allclose(result.chance, 0.5)
    np.testing.assert_allclose(result.per_factor, (result.accuracy - 0.5) / 0.5)
    assert sorted(result.alignment) == [0, 1]


def drawn(counts: list[int], noise: float, seed: int = 0) -> tuple[FloatArray, IntArray]:
    rng = np.random.default_rng(seed)
    levels = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    return (levels + noise * rng.standard_normal(len(levels)))[:, None], levels[:, None]


def best_accuracy(bin_of_row: IntArray, classes: IntArray, owners: list[tuple[int, ...]]) -> tuple[int, ...]:
    return max(owners, key=lambda owner: sum(owner[b] == c for b, c in zip(bin_of_row, classes, strict=True)))


def test_one_interval_per_class_equals_a_search_over_all_assignments() -> None:
    codes, factors = drawn([24, 40, 16], 0.8)
    test_codes, test_factors = drawn([30, 50, 20], 0.8, seed=1)
    values, classes = codes[:, 0], factors[:, 0]
    order = sorted(range(3), key=lambda c: values[classes == c].mean())
    ranked = np.sort(values)
    cuts, below = [], 0
    for c in order[:-1]:
        below += int((classes == c).sum())
        cuts.append((ranked[below - 1] + ranked[below]) / 2)
    bin_of = lambda column: np.array([sum(v > cut for cut in cuts) for v in column])  # noqa: E731
    owner = best_accuracy(bin_of(values), classes, list(permutations(range(3))))
    accuracy = np.mean([owner[b] == c for b, c in zip(bin_of(test_codes[:, 0]), test_factors[:, 0], strict=True)])
    chance = 0.3 * 0.3 + 0.5 * 0.5 + 0.2 * 0.2
    result = snc(codes, factors, test_codes=test_codes, test_factors=test_factors)
    assert 0.5 < accuracy < 0.9
    assert result.accuracy[0] == pytest.approx(accuracy)
    assert result.chance[0] == pytest.approx(chance)
    assert result.score == pytest.approx((accuracy - chance) / (1 - chance))


def test_intervals_of_the_paper_equal_a_search_over_all_assignments() -> None:
    """Counts of 40, 30 and 30 in a hundred: ten intervals of ten, of which the classes own 4, 3 and 3."""
    codes, factors = drawn([40, 30, 30], 0.7)
    values, classes = codes[:, 0], factors[:, 0]
    bin_of_row = np.argsort(np.argsort(values)) // 10
    owners = _distributions((4, 3, 3))
    owner = best_accuracy(bin_of_row, classes, owners)
    expected = np.mean([owner[b] == c for b, c in zip(bin_of_row, classes, strict=True)])
    result = snc(codes, factors, bins="paper", test_codes=codes, test_factors=factors)
    assert result.accuracy[0] == pytest.approx(expected)
    assert result.chance[0] == pytest.approx(0.34)


def _distributions(capacities: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Every way to give sum(capacities) bins to classes that take so many each."""
    if not any(capacities):
        return [()]
    return [
        (c, *rest)
        for c, left in enumerate(capacities)
        if left
        for rest in _distributions(tuple(n - (k == c) for k, n in enumerate(capacities)))
    ]


IMBALANCED = [600, 290, 70, 40]


@pytest.mark.parametrize("bins", ["classes", "paper"])
def test_a_perfect_integer_code_is_one_whatever_the_counts(bins: str) -> None:
    """K equal intervals would score well below 1 here, for ties and for unequal classes."""
    codes, factors = drawn(IMBALANCED, 0.0)
    assert snc(codes, factors, bins=bins).score == 1.0
    relabelled = np.array([5.0, -2.0, 9.0, 1.0])[factors]
    assert snc(relabelled, factors, bins=bins).score == 1.0


@pytest.mark.parametrize("bins", ["classes", "paper"])
@pytest.mark.parametrize("values", [1, 2, 3, 0])
def test_noise_is_about_zero_whatever_the_counts_and_ties(bins: str, values: int) -> None:
    """Noise of one, two, three or arbitrarily many values."""
    _, factors = drawn([2400, 1160, 280, 160], 0.0)
    rng = np.random.default_rng(5)
    codes = rng.integers(0, values, (4000, 1)).astype(float) if values else rng.standard_normal((4000, 1))
    assert np.mean([snc(codes, factors, bins=bins, seed=seed).score for seed in range(6)]) < 0.04


def test_one_row_per_interval_scores_noise_fully_on_the_rows_that_chose_it() -> None:
    """Counts of 101, 60 and 40 have no common divisor: the trap that a minimum size and a test split avoid."""
    _, factors = drawn([101, 60, 40], 0.0)
    noise = np.random.default_rng(1).standard_normal((201, 1))
    again = {"test_codes": noise, "test_factors": factors}
    assert snc(noise, factors, bins="paper", min_bin_size=1, **again).score == 1.0
    assert snc(noise, factors, bins="paper", **again).score < 0.4
    assert np.mean([snc(noise, factors, bins="paper", min_bin_size=1, seed=s).score for s in range(8)]) < 0.15


def test_equal_values_are_never_parted() -> None:
    values = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2, 3.0])
    classes = np.repeat([0, 1], [4, 6])
    cuts, counts = _cut(values, classes, np.array([2.0, 4.0, 8.0]), 2)
    assert cuts.tolist() == [0.5, 1.5, 2.5]
    assert counts.tolist() == [[3, 0], [1, 1], [0, 4], [0, 1]]
    assert _cut(values, classes, np.array([1.0]), 2)[0].tolist() == []
    assert _cut(np.zeros(5), np.zeros(5, int), np.array([1.0, 2.0]), 1)[0].tolist() == []


def test_places_follow_the_counts() -> None:
    assert _places(np.array([40, 30, 30]), 1).tolist() == [4, 3, 3]
    assert _places(np.array([50, 50]), None).tolist() == [1, 1]
    assert _places(np.array([101, 60, 39]), 10).tolist() == [10, 6, 4]


def test_fewer_codes_than_factors_leave_one_without() -> None:
    factors = grid_factors()
    result = snc(perfect_codes(factors)[:, :2], factors)
    assert result.alignment.tolist() == [-1, 1, 0]
    assert result.per_factor.tolist() == [0.0, 1.0, 1.0]
    assert "factor 0 has no code" in " ".join(result.notes)


def test_alignment_does_not_see_the_test_rows() -> None:
    rng = np.random.default_rng(0)
    factors = rng.integers(0, 3, (60, 2))
    codes = factors @ [[1.0, 0.5, 0.2], [0.3, 1.0, 0.4]] + rng.standard_normal((60, 3))
    rows = train_test_split(codes, factors, None, 0)
    changed = codes.copy()
    changed[rows.test] = rng.standard_normal((len(rows.test), 3)) * 100
    result, other = snc(codes, factors), snc(changed, factors)
    np.testing.assert_array_equal(other.mutual_information, result.mutual_information)
    np.testing.assert_array_equal(other.alignment, result.alignment)
    expected = binned_information(check_inputs(codes[rows.train], factors[rows.train]))
    np.testing.assert_array_equal(result.mutual_information, expected)


def test_a_test_value_midway_between_training_values_counts_half() -> None:
    """Training knows 0 and 2; 1 is on the cut between them, and half of such an answer is right."""
    arguments = {"test_codes": [[0.0], [1.0], [1.0], [2.0]], "test_factors": [[0], [0], [1], [1]]}
    codes, factors = np.repeat([[0.0], [2.0]], 10, axis=0), np.repeat([[0], [1]], 10, axis=0)
    assert snc(codes, factors, **arguments).accuracy[0] == 0.75
    arguments["test_factors"] = [[0], [0], [0], [1]]
    assert snc(codes, factors, **arguments).accuracy[0] == 0.75


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("bins", ["classes", "paper"])
def test_flip_and_scale_change_nothing_where_values_and_counts_tie(bins: str, seed: int) -> None:
    """Flips moved one whole-numbered case in eleven, by up to .054."""
    rng = np.random.default_rng(seed)
    factors = rng.integers(0, 6, (90, 2))
    codes = np.rint(factors[:, ::-1] + 0.7 * rng.standard_normal((90, 2)))
    expected = snc(codes, factors, bins=bins).score
    for change in ([-1.0, 1.0], [-0.3, -7.0], [1e-20, 1e20]):
        assert snc(codes * change, factors, bins=bins).score == pytest.approx(expected, abs=1e-12)


def test_an_outlier_is_noted_and_has_no_hold_on_alignment_by_mass() -> None:
    rng = np.random.default_rng(0)
    factors = rng.integers(0, 5, (3000, 2))
    codes = factors + 0.05 * rng.standard_normal((3000, 2))
    codes[rng.permutation(3000)[:2], [0, 1]] = 1e6
    for columns in ([0, 1], [1, 0]):
        result = snc(codes[:, columns], factors, binning="mass")
        assert result.alignment.tolist() == columns
        assert result.score > 0.95
        assert any("are in one bin" in note for note in snc(codes[:, columns], factors).notes)


def test_two_factors_never_share_a_code() -> None:
    """z1 knows more about both factors than z2 does; the total is largest when the second factor moves to z2."""
    assert align(np.array([[0.9, 0.8], [0.1, 0.5]])).tolist() == [0, 1]
    assert align(np.array([[0.9, 0.8], [0.5, 0.1]])).tolist() == [1, 0]
    assert align(np.array([[0.2, 0.8]])).tolist() == [-1, 0]


def test_no_factor_is_given_a_dead_code() -> None:
    rng = np.random.default_rng(0)
    factors = rng.integers(0, 3, (60, 2))
    codes = factors[:, 1:] + 0.3 * rng.standard_normal((60, 1))
    for metric in (snc, nk):
        alone, beside = metric(codes, factors), metric(np.column_stack([np.full(60, 0.3), codes]), factors)
        assert alone.alignment.tolist() == [-1, 0]
        assert beside.alignment.tolist() == [-1, 1]
        assert beside.per_factor[0] == alone.per_factor[0] == 0.0
        assert metric(np.ones((60, 3)), factors).score == 0.0


def test_luck_is_told_from_knowledge() -> None:
    rng = np.random.default_rng(0)
    factors = rng.integers(0, 5, (4000, 2))
    codes = np.stack([rng.standard_normal(4000), factors[:, 1] + 3 * rng.standard_normal(4000)], axis=1)
    rows = train_test_split(codes, factors, None, 0)
    assert beyond_luck(rows, training_information(rows)).tolist() == [[False, False], [False, True]]


def test_a_level_that_training_never_saw_counts_as_wrong() -> None:
    codes, factors = drawn([30, 30], 0.0)
    result = snc(codes, factors, test_codes=[[0.0], [1.0], [2.0], [2.0]], test_factors=[[0], [1], [2], [2]])
    assert result.accuracy[0] == 0.5


def test_of_noise_a_factor_without_a_code_counts_nothing() -> None:
    """A share p of n test rows strays by sqrt(p (1 - p) / n), of which what is above 0 is 1 / sqrt(2 pi) on average."""
    factors = np.stack([np.arange(1000) // 2**k % 2 for k in range(3)], axis=1)
    one = np.sqrt(1 / 250) / np.sqrt(2 * np.pi)
    for n_codes in (1, 2, 3):
        inputs = check_inputs(np.random.default_rng(0).standard_normal((1000, n_codes)), factors)
        assert snc_of_noise(inputs).score == pytest.approx(one * n_codes / 3, abs=0.004)


def test_levels_are_told_by_the_aligned_code_alone_and_are_the_commonest_without_one() -> None:
    """By hand: code 1 is the first factor, code 0 the second, and nothing is left for the third."""
    rng = np.random.default_rng(0)
    factors = np.stack([np.arange(120) % 2, np.arange(120) % 3, np.repeat([0, 1, 1], 40)], axis=1)
    rng.shuffle(factors)
    codes = factors[:, [1, 0]].astype(float)
    split = train_test_split(codes[:90], factors[:90], None, 0, codes[90:], factors[90:])
    predicted = single_code_predictions(split)
    assert (predicted[:, :2] == factors[90:, :2]).all()
    assert (predicted[:, 2] == 1).all()


def test_intervals_of_the_paper_are_counted_on_training_rows_alone() -> None:
    factors = np.repeat([0.0, 1.0], 50)[:, None]
    codes = factors + np.linspace(0, 0.4, 100)[:, None]
    asked = np.repeat([0.0, 1.0], [100, 10])[:, None]
    found = snc(codes, factors, kinds=["categorical"], bins="paper", test_codes=asked + 0.2, test_factors=asked)
    assert found.score == 1.0
