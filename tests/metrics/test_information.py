"""Binning against numpy.histogram; information against loops over its definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbraid.metrics._information import factor_entropy, mutual_information
from unbraid.metrics._inputs import as_levels, bin_equal_width, check_inputs
from unbraid.types import FloatArray, IntArray


def histogram_bins(column: FloatArray, bins: int) -> IntArray:
    if column.min() == column.max():
        return np.zeros(len(column), dtype=int)
    edges = np.histogram_bin_edges(column, bins)
    return np.array([min(sum(edge <= value for edge in edges[1:]), bins - 1) for value in column])


@settings(deadline=None)  # the first call compiles
@given(
    st.lists(st.integers(-40, 40), min_size=2, max_size=60),
    st.sampled_from([1, 2, 3, 7, 20]),
    st.sampled_from([1.0, 0.1, 1 / 3, 1e-9, 1e9]),
)
def test_bins_have_the_edges_of_numpy_histogram(values: list[int], bins: int, step: float) -> None:
    # Multiples of a step fall on edges again and again, where the last bit decides.
    column = np.array(values) * step
    binned = bin_equal_width(np.stack([column, np.zeros(len(column))], axis=1), bins)
    assert binned[:, 0].tolist() == histogram_bins(column, bins).tolist()
    assert not binned[:, 1].any()


@settings(deadline=None)
@given(st.integers(2, 40), st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_a_value_on_an_edge_opens_the_next_bin_and_one_just_below_does_not(bins: int, low: float, width: float) -> None:
    edges = np.histogram_bin_edges([low, low + width], bins)
    values = np.concatenate([edges, np.nextafter(edges[1:], -np.inf)])
    # The constant column must not disturb the edges of the other.
    binned = bin_equal_width(np.stack([values, np.ones(len(values))], axis=1), bins)[:, 0]
    assert binned.tolist() == [*range(bins), bins - 1, *range(bins)]


def test_bins_of_many_columns_are_those_of_each_alone() -> None:
    values = np.random.default_rng(0).standard_normal((500, 7)) * 10.0 ** np.arange(-3, 4)
    together = bin_equal_width(values, 20)
    for column in range(7):
        assert together[:, column].tolist() == histogram_bins(values[:, column], 20).tolist()


def test_information_and_entropy_are_the_sums_of_their_definition() -> None:
    rng = np.random.default_rng(1)
    factors = np.stack([rng.integers(0, size, 400) for size in (2, 3, 11)], axis=1)
    binned = np.stack([(factors[:, 2] + rng.integers(0, 4, 400)) % 9, factors[:, 0], np.zeros(400, dtype=int)], axis=1)
    levels = as_levels(check_inputs(binned, factors))
    expected = np.zeros((3, 3))
    for code in range(3):
        for factor in range(3):
            for i in set(binned[:, code]):
                for j in set(factors[:, factor]):
                    joint = np.mean((binned[:, code] == i) & (factors[:, factor] == j))
                    alone = np.mean(binned[:, code] == i) * np.mean(factors[:, factor] == j)
                    expected[code, factor] += joint * np.log(joint / alone) if joint else 0.0
    assert mutual_information(binned, levels) == pytest.approx(expected, abs=1e-12)
    entropies = [
        -sum(p * np.log(p) for p in (np.mean(factors[:, k] == j) for j in set(factors[:, k]))) for k in range(3)
    ]
    assert factor_entropy(levels) == pytest.approx(np.array(entropies), abs=1e-12)
