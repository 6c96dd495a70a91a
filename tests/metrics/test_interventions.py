"""Drawing rows at a fixed level, and the kernels that run over what was drawn."""

import numpy as np
import pytest

from unbraid.metrics._shared.inputs import NotDefined, as_levels, check_inputs
from unbraid.metrics._shared.interventions import (
    Groups,
    combinations,
    draw_batches,
    draw_pairs,
    group_rows,
    mean_differences,
    training_and_test_groups,
    votes_of_least,
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


def test_the_two_rows_of_a_pair_differ_and_any_two_are_drawn_alike(groups: Groups) -> None:
    pairs, fixed = draw_pairs(groups, 4000, 8, np.random.default_rng(0))
    rare = pairs[fixed == 0].reshape(-1, 2)
    rare = rare[FACTORS[rare[:, 0], 0] == 2]
    members = np.flatnonzero(FACTORS[:, 0] == 2)
    assert set(rare[:, 0]) == set(rare[:, 1]) == set(members)
    couples, counts = np.unique(rare, axis=0, return_counts=True)
    assert (couples[:, 0] != couples[:, 1]).all()
    assert len(couples) == len(members) * (len(members) - 1)
    np.testing.assert_allclose(counts / len(rare), 1 / len(couples), atol=5 * np.sqrt(1 / len(couples) / len(rare)))


def test_a_batch_shares_one_level_of_the_fixed_factor(groups: Groups) -> None:
    batches, fixed = draw_batches(groups, 3000, 8, np.random.default_rng(0))
    for factor, size in enumerate((3, 6)):
        drawn = FACTORS[batches[fixed == factor], factor]
        assert (drawn == drawn[:, :1]).all()
        np.testing.assert_allclose(np.bincount(drawn[:, 0]) / len(drawn), 1 / size, atol=0.04)


def test_levels_of_a_single_row_are_left_out_and_named() -> None:
    factors = np.array([[0], [0], [1], [1], [2]])
    groups = group_rows(as_levels(check_inputs(np.zeros((5, 1)), factors)))
    assert groups.notes == ("factor 0: 1 level with a single row is never held fixed",)
    several = group_rows(as_levels(check_inputs(np.zeros((6, 1)), np.array([[0], [0], [1], [1], [2], [3]]))))
    assert several.notes == ("factor 0: 2 levels with a single row are never held fixed",)
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


def test_votes_go_to_the_least_variance_of_each_batch(groups: Groups) -> None:
    batches, fixed = draw_batches(groups, 200, 7, np.random.default_rng(1))
    shifted = CODES + 1e6  # squares alone would lose the variance in rounding
    expected = np.zeros((4, 2))
    for batch, factor in zip(batches, fixed, strict=True):
        expected[np.argmin([np.var(shifted[batch, code], ddof=1) for code in range(4)]), factor] += 1
    np.testing.assert_array_equal(votes_of_least(shifted, batches, fixed, 2), expected)


def test_codes_that_vary_equally_little_share_the_vote(groups: Groups) -> None:
    batches, fixed = draw_batches(groups, 200, 7, np.random.default_rng(1))
    alone = votes_of_least(CODES, batches, fixed, 2)
    twins = np.column_stack([CODES[:, 2], CODES, 1 - CODES[:, 2], np.ones(len(CODES))])
    shared = votes_of_least(twins[:, :-1], batches, fixed, 2)
    np.testing.assert_allclose(shared[[1, 2, 4]], alone[[0, 1, 3]])
    np.testing.assert_allclose(shared[[0, 3, 5]], np.tile(alone[2] / 3, (3, 1)))


def test_rows_that_are_held_out_are_those_of_the_other_half() -> None:
    levels = as_levels(check_inputs(CODES, FACTORS))
    training, test = training_and_test_groups(levels, 3, held_out=True)
    assert set(training.rows).isdisjoint(test.rows)
    assert set(training.rows) | set(test.rows) == set(range(300))
    for part in (training, test):
        for factor in range(2):
            drawn = [part.rows[at : at + size] for at, size in zip(part.starts, part.counts, strict=True)]
            for rows in drawn[part.first[factor] : part.first[factor + 1]]:
                assert len(set(FACTORS[rows, factor])) == 1
    both = training_and_test_groups(levels, 3, held_out=False)
    np.testing.assert_array_equal(both[0].rows, both[1].rows)


def test_combinations_are_numbered_without_gaps() -> None:
    factors = np.array([[5.0, 0.1], [2.0, 0.1], [5.0, 0.1], [2.0, 0.7]])
    numbers = combinations(factors)
    assert sorted(set(numbers.tolist())) == [0, 1, 2]
    assert numbers[0] == numbers[2]
    assert combinations(np.empty((4, 0))).tolist() == [0, 0, 0, 0]
