"""Bins against numpy.histogram and numpy.quantile, and what mirroring and rescaling a column must not change."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata

from unbraid.base.types import FloatArray, IntArray
from unbraid.metrics import factor_leakage, med, mig, modularity
from unbraid.metrics._shared.bins import bin_equal_mass, bin_equal_width, places

COUNTS = st.sampled_from([1, 2, 3, 7, 20])


def binned(column: FloatArray, bins: int) -> IntArray:
    # The constant column must not disturb the edges of the other.
    both = bin_equal_width(np.stack([column, np.ones(len(column))], axis=1), bins)
    assert not both[:, 1].any()
    return both[:, 0]


def partition(labels: IntArray) -> set[tuple[int, ...]]:
    """Which rows are together, whatever their bin is called."""
    return {tuple(np.flatnonzero(labels == label)) for label in np.unique(labels)}


@settings(deadline=None, derandomize=True)  # the first call compiles
@given(st.integers(0, 10**6), COUNTS, st.sampled_from([1e-20, 1e-9, 1.0, 1e9, 1e20]))
def test_bins_off_the_edges_are_those_of_numpy(seed: int, bins: int, scale: float) -> None:
    column = np.random.default_rng(seed).standard_normal(200) * scale
    edges = np.histogram_bin_edges(column, bins)
    expected = [min(sum(edge <= value for edge in edges[1:]), bins - 1) for value in column]
    assert binned(column, bins).tolist() == expected


@settings(deadline=None, derandomize=True)
@given(
    st.lists(st.integers(-40, 40), min_size=2, max_size=80),
    COUNTS,
    st.sampled_from([1.0, 0.1, 1 / 3, 0.3, 1e-20, 1e9, 1e20]),
    st.sampled_from([0.0, 1000.0]),
    st.booleans(),
)
def test_mirrored_and_rescaled_columns_fall_into_mirrored_bins(
    values: list[int], bins: int, step: float, shift: float, mass: bool
) -> None:
    """Multiples of a step fall on edges again and again, where the last bit would decide."""
    column = np.array(values, dtype=float)[:, None]
    cut = bin_equal_mass if mass else bin_equal_width
    expected = partition(cut(column, bins)[:, 0])
    for other in (-column, (column + shift) * step, (shift - column) * step):
        assert partition(cut(other, bins)[:, 0]) == expected


@pytest.mark.parametrize("levels", [2, 5, 20, 21])
def test_values_on_edges_are_told_apart_as_far_as_bins_go(levels: int) -> None:
    """21 levels in 20 bins: all but the one in the middle lie on edges, and it has a bin of its own."""
    assert len(set(binned(np.repeat(np.arange(levels), 2) * 0.3, 20))) == levels


def test_by_hand() -> None:
    """Sixes of a range of 12 in 4 bins: edges at 3, 6 and 9; 3 goes up, 9 goes down, 6 is alone."""
    column = np.array([0, 1, 2.9, 3, 4, 5, 6, 7, 8, 9, 10, 12])
    assert bin_equal_width(column[:, None], 4)[:, 0].tolist() == [0, 0, 0, 1, 1, 1, 4, 2, 2, 2, 3, 3]
    assert bin_equal_width(column[:, None], 3)[:, 0].tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2]


def test_few_values_have_a_bin_each_however_far_apart() -> None:
    column = np.tile([0.0, 1.0, 1000.0], 5)
    assert binned(column, 3).tolist() == [0, 1, 2] * 5
    # As many values as rows are no repeated values: they are cut.
    assert binned(np.array([0.0, 1.0, 1000.0]), 3).tolist() == [0, 0, 2]


def test_rounding_is_no_value_of_its_own() -> None:
    noisy = np.tile([0.1, 0.2, 0.3], 20) * (1 + 2e-16 * (np.arange(60) % 7))
    assert len(set(binned(noisy, 20))) == 3
    assert not binned(0.1 * (1 + 1e-14 * (np.arange(50) % 3)), 20).any()


@pytest.mark.parametrize("seed", range(3))
def test_bins_of_equal_mass_are_those_of_quantiles(seed: int) -> None:
    column = np.random.default_rng(seed).standard_cauchy(400)
    edges = np.quantile(column, np.linspace(0, 1, 21)[1:-1])
    assert bin_equal_mass(column[:, None], 20)[:, 0].tolist() == np.searchsorted(edges, column).tolist()


def test_places_are_the_mean_ranks_of_scipy() -> None:
    """Of equals as of others; with weights those of rows that are there so often."""
    rng = np.random.default_rng(0)
    values = np.stack([rng.standard_normal(300), rng.integers(-3, 4, 300), np.full(300, 0.1)], axis=1)
    np.testing.assert_array_equal(places(values), rankdata(values, axis=0) - 0.5)
    weights = rng.integers(0, 4, 300)
    repeated = np.repeat(np.arange(300), weights)
    np.testing.assert_allclose(places(values, weights.astype(float))[repeated], places(values[repeated]), atol=1e-9)


def test_equal_values_share_a_bin_of_equal_mass() -> None:
    """Ranks 1-4, 5-6 and 7-12 of twelve rows: their middles 2, 5 and 9 of 12 lie in thirds 1, 2 and 3."""
    column = np.repeat([0.0, 1.0, 2.0], [4, 2, 6])[:, None]
    assert partition(bin_equal_mass(column, 2)[:, 0]) == {tuple(range(6)), tuple(range(6, 12))}
    assert bin_equal_mass(column, 3)[:, 0].tolist() == [0] * 4 + [1] * 2 + [2] * 6


def skewed(n_levels: int) -> IntArray:
    rng = np.random.default_rng(0)
    shares = np.arange(1.0, n_levels + 1)
    return rng.choice(n_levels, (3000, 1), p=shares / shares.sum())


@pytest.mark.parametrize("metric", [mig, med, modularity, factor_leakage])
@pytest.mark.parametrize("scale", [-1.0, 0.3, -1e-20])
@pytest.mark.parametrize("n_levels", [21, 61])
def test_flip_and_scale_change_nothing_where_codes_are_whole_numbers(metric, scale: float, n_levels: int) -> None:
    """Bins that were right-open scored a perfect code of 21 skewed levels .752, and .694 when flipped."""
    levels = skewed(n_levels)
    factors = np.column_stack([levels, np.random.default_rng(1).integers(0, 3, len(levels))])
    codes = np.column_stack([levels[:, 0] + 2 * factors[:, 1], levels[:, 0]])
    before, after = metric(codes, factors), metric(codes * scale, factors)
    np.testing.assert_allclose(after.mutual_information, before.mutual_information, atol=1e-12)


def test_a_perfect_code_of_21_levels_scores_1() -> None:
    assert mig(skewed(21), skewed(21)).score == pytest.approx(1.0)


@pytest.mark.parametrize("metric", [mig, med, modularity, factor_leakage])
def test_an_outlier_is_noted_and_has_no_hold_on_bins_of_equal_mass(metric) -> None:
    rng = np.random.default_rng(0)
    factors = rng.integers(0, 5, (5000, 2))
    codes = factors + 0.05 * rng.standard_normal((5000, 2))
    stretched = codes.copy()
    stretched[7, 1] = 1e6
    assert not any("are in one bin" in note for note in metric(codes, factors).notes)
    (note,) = [note for note in metric(stretched, factors).notes if "are in one bin" in note]
    assert note.startswith("code 1: 4999 of 5000 rows")
    plain, held = (metric(each, factors, binning="mass") for each in (codes, stretched))
    np.testing.assert_allclose(held.mutual_information, plain.mutual_information, atol=0.01)
    assert not any("are in one bin" in note for note in held.notes)
    zeros = np.where(rng.random((5000, 1)) < 0.05, codes, 0.0)  # no bins part what is equal
    assert not any("are in one bin" in note for note in metric(zeros, factors).notes)
