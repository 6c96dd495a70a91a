"""Drawing rows at a fixed level, and the kernels that run over what was drawn."""

import numpy as np
import pytest

from unbraid.metrics._inputs import NotDefined, as_levels, check_inputs
from unbraid.metrics._interventions import (
    Groups,
    combinations,
    draw_batches,
    draw_pairs,
    group_rows,
    least_variances,
    mean_differences,
)

RNG = np.random.default_rng(5)
CODES = RNG.standard_normal((300, 4))
# No grid: levels of very different frequency, and not every combination.
FACTORS = np.column_stack(
    [RNG.choice(3, 300, p=[0.9, 0.07, 0.03]), RNG.choice(6, 300, p=[0.5, 0.3, 0.1, 0.05, 0.03, 0.02])]
)


@pytest.fixture(scope="module")
def groups() -> Groups:
    return group_rows(as_levels(check_inputs(CODES, FACTORS)))


def test_a_pair_shares_the_level_of_the_fixed_factor_and_all_levels_come_up_alike(groups: Groups) -> None:
    pairs, fixed = draw_pairs(groups, 2000, 8, np.random.default_rng(0))
    np.testing.assert_allclose(np.bincount(fixed), 1000, atol=120)
    for factor, size in enumerate((3, 6)):
        drawn = FACTORS[pairs[fixed == factor], factor]
        np.testing.assert_array_equal(drawn[..., 0], drawn[..., 1])
        # Uniform over levels although one level has 30 times the rows of another, and anew for each pair.
        np.testing.assert_allclose(np.bincount(drawn[..., 0].ravel()) / drawn[..., 0].size, 1 / size, atol=0.02)
        assert len(np.unique(drawn[0, :, 0])) > 1


def test_the_two_rows_of_a_pair_are_independent_and_cover_the_level(groups: Groups) -> None:
    pairs, fixed = draw_pairs(groups, 4000, 8, np.random.default_rng(0))
    rare = pairs[fixed == 0].reshape(-1, 2)
    rare = rare[FACTORS[rare[:, 0], 0] == 2]
    members = np.flatnonzero(FACTORS[:, 0] == 2)
    assert set(rare[:, 0]) == set(rare[:, 1]) == set(members)
    assert (rare[:, 0] == rare[:, 1]).mean() == pytest.approx(1 / len(members), abs=0.03)


def test_a_batch_shares_one_level_of_the_fixed_factor(groups: Groups) -> None:
    batches, fixed = draw_batches(groups, 3000, 8, np.random.default_rng(0))
    for factor, size in enumerate((3, 6)):
        drawn = FACTORS[batches[fixed == factor], factor]
        assert (drawn == drawn[:, :1]).all()
        np.testing.assert_allclose(np.bincount(drawn[:, 0]) / len(drawn), 1 / size, atol=0.04)


def test_levels_of_a_single_row_are_left_out_and_named() -> None:
    factors = np.array([[0], [0], [1], [1], [2]])
    groups = group_rows(as_levels(check_inputs(np.zeros((5, 1)), factors)))
    assert groups.notes == ("factor 0: 1 levels of a single row are never held fixed",)
    batches, _ = draw_batches(groups, 200, 3, np.random.default_rng(0))
    assert set(batches.ravel()) == {0, 1, 2, 3}


def test_no_level_with_two_rows_is_not_defined() -> None:
    levels = as_levels(check_inputs(np.zeros((4, 1)), np.array([[0], [0], [1], [1]])))
    alone = type(levels)(np.arange(4)[:, None], (4,), ())
    with pytest.raises(NotDefined, match="two rows with the same level of factor 0"):
        group_rows(alone)


def test_mean_differences_are_those_of_the_pairs(groups: Groups) -> None:
    pairs, _ = draw_pairs(groups, 20, 7, np.random.default_rng(1))
    expected = [np.mean([abs(CODES[a] - CODES[b]) for a, b in point], axis=0) for point in pairs]
    np.testing.assert_allclose(mean_differences(CODES, pairs), expected, rtol=1e-13)


def test_least_variances_are_those_of_the_batches(groups: Groups) -> None:
    batches, _ = draw_batches(groups, 200, 7, np.random.default_rng(1))
    shifted = CODES + 1e6  # squares alone would lose the variance in rounding
    expected = [np.argmin([np.var(shifted[batch, code], ddof=1) for code in range(4)]) for batch in batches]
    np.testing.assert_array_equal(least_variances(shifted, batches), expected)


def test_combinations_are_numbered_without_gaps() -> None:
    factors = np.array([[5.0, 0.1], [2.0, 0.1], [5.0, 0.1], [2.0, 0.7]])
    numbers = combinations(factors)
    assert sorted(set(numbers.tolist())) == [0, 1, 2]
    assert numbers[0] == numbers[2]
    assert combinations(np.empty((4, 0))).tolist() == [0, 0, 0, 0]
