"""Hold-outs by brute force over all images."""

from collections import Counter

import numpy as np
import pytest

from unbraid.data import FactorSpace, FactorTable
from unbraid.datasets import from_array
from unbraid.datasets.subset import left_out
from unbraid.studies.holdout.splits import compositional_holdouts, zero_shot_holdout, zero_shot_parts

SPACE = FactorSpace(("shape", "size", "hue"), (3, 4, 8), ("categorical", "ordinal", "cyclic"))
GRID = [tuple(row) for row in SPACE.grid().tolist()]


def test_one_pair_of_levels_is_held_out_at_a_time() -> None:
    holdouts = compositional_holdouts(SPACE, ["hue", "shape"], n_combinations=24)
    held_out = []
    for holdout in holdouts[:24]:
        mask = left_out(SPACE, holdout.without)
        pairs = {(row[2], row[0]) for row, out in zip(GRID, mask, strict=True) if out}
        assert len(pairs) == 1
        assert mask.sum() == 4
        (pair,) = pairs
        assert holdout.name == f"hue={pair[0]}, shape={pair[1]}"
        assert holdout.split == "combination"
        held_out.append(pair)
    assert sorted(held_out) == [(hue, shape) for hue in range(8) for shape in range(3)]


def test_pairs_are_levels_also_of_a_table_whose_values_are_others() -> None:
    """Sizes 1, 2 and 4 are its levels 0, 1 and 2, of which two are values as well."""
    factors = {"size": [1, 1, 2, 2, 4, 4, 4], "shade": [10, 20, 10, 20, 10, 20, 20]}
    dataset = from_array(np.zeros((7, 8, 8), np.uint8), factors)
    (held_out,) = compositional_holdouts(dataset.space, ["size", "shade"], combinations=[(1, 0)], n_random=0)
    assert left_out(dataset.space, held_out.without).tolist() == [False, False, True, False, False, False, False]
    assert left_out(dataset.space, "size == 1").tolist() == [True, True, *[False] * 5]


def test_random_splits_have_the_sizes_of_the_pairs() -> None:
    table = FactorTable(
        ("a", "b"), ("ordinal", "ordinal"), np.array([[0, 0]] * 5 + [[0, 1]] * 3 + [[1, 0]] * 7 + [[1, 1]])
    )
    holdouts = compositional_holdouts(table, ["a", "b"], n_combinations=4)
    sizes = [int(left_out(table, each.without).sum()) for each in holdouts]
    assert sizes[:4] == sizes[4:]
    assert sorted(sizes[:4]) == [1, 3, 5, 7]
    assert [each.split for each in holdouts] == ["combination"] * 4 + ["random"] * 4
    masks = {left_out(SPACE, each.without).tobytes() for each in compositional_holdouts(SPACE, ["size", "hue"])[5:]}
    assert len(masks) == 5


def test_only_pairs_are_held_out_whose_levels_remain() -> None:
    """Level 2 of a occurs with level 1 of b alone: without that pair nobody could learn it."""
    rows = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 1), (2, 1)]
    table = FactorTable(("a", "b"), ("ordinal", "ordinal"), np.array(rows))
    names = {each.name for each in compositional_holdouts(table, ["a", "b"], n_combinations=4)[:4]}
    assert names == {"a=0, b=0", "a=0, b=1", "a=1, b=0", "a=1, b=1"}
    turned = {each.name for each in compositional_holdouts(table, ["b", "a"], n_combinations=4)[:4]}
    assert turned == {"b=0, a=0", "b=0, a=1", "b=1, a=0", "b=1, a=1"}
    with pytest.raises(ValueError, match="a and b have 4 combinations that can be held out; got n 5"):
        compositional_holdouts(table, ["a", "b"])
    with pytest.raises(ValueError, match=r"combination \[2, 1\] of a and b \(3 and 2 levels\) cannot be held out"):
        compositional_holdouts(table, ["a", "b"], combinations=[[2, 1]])


def test_a_larger_study_keeps_the_hold_outs_of_a_smaller_one() -> None:
    few, many = (compositional_holdouts(SPACE, ["shape", "hue"], n_combinations=n, seed=4) for n in (3, 9))
    assert few == many[:3] + many[9:12]


def test_every_pair_is_drawn_alike() -> None:
    drawn = Counter(
        compositional_holdouts(SPACE, ["shape", "size"], n_combinations=1, seed=s)[0].name for s in range(1200)
    )
    assert len(drawn) == 12
    assert min(drawn.values()) > 60  # 100 expected


def test_pairs_of_ones_own_choice() -> None:
    holdouts = compositional_holdouts(SPACE, ["size", "shape"], combinations=[[3, 2], [0, 0]], n_random=1)
    assert [each.name for each in holdouts] == ["size=3, shape=2", "size=0, shape=0", "random 0"]
    assert holdouts[0].without == {"size": 3, "shape": 2}
    assert holdouts[2].without == {"random": 8, "seed": 0}


@pytest.mark.parametrize(
    ("factors", "options", "message"),
    [
        (["shape"], {}, "factors must name two different factors; got shape"),
        (["shape", "shape"], {}, "two different factors"),
        (["shape", "colour"], {}, "no factor 'colour'; there are shape, size, hue"),
        (["shape", "size"], {"n_combinations": 13}, "have 12 combinations that can be held out; got n 13"),
    ],
)
def test_what_cannot_be_held_out(factors: list[str], options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compositional_holdouts(SPACE, factors, **options)


def test_images_are_split_first_and_the_gap_is_then_taken_out_of_each_part() -> None:
    """Eight in ten for training, one each for validation and testing; the gap comes out of all three."""
    space = FactorSpace(("a", "b"), (50, 40), ("ordinal", "ordinal"))
    factors = space.grid()
    gap = (factors[:, 0] > 30) & (factors[:, 1] < 20)
    holdout = zero_shot_holdout(space, "a > 30 and b < 20", seed=3)
    train = ~left_out(space, holdout.without)
    valid, test, inside = zero_shot_parts(space, "a > 30 and b < 20", seed=3)
    np.testing.assert_array_equal(inside, np.flatnonzero(gap))
    counted = np.concatenate([np.flatnonzero(train), valid, test, inside])
    assert sorted(counted) == list(range(2000))
    outside = 2000 - gap.sum()
    assert abs(len(valid) - len(test)) <= 1
    assert len(valid) + len(test) == pytest.approx(0.2 * outside, rel=0.1)
    assert not np.array_equal(valid, zero_shot_parts(space, "a > 30 and b < 20", seed=4)[0])
    # Both parts are drawn from everywhere, and not one from the front and the other from the back.
    assert abs(np.mean(valid) - np.mean(test)) < 200
