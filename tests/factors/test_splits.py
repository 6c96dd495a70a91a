import numpy as np
import pytest

from unbraid.factors import (
    FactorSpace,
    FactorTable,
    Split,
    combinations,
    split_at_random,
    split_by_combination,
    split_by_condition,
)

SPACE = FactorSpace(("shape", "size", "hue"), (3, 4, 8), ("categorical", "ordinal", "cyclic"))
TEAPOT = FactorTable(("red", "green"), ("continuous", "continuous"), np.random.default_rng(0).random((1000, 2)))


def assert_whole(split: Split, n: int) -> None:
    assert np.array_equal(np.sort(np.concatenate([split.train, split.test])), np.arange(n))


def test_a_random_split_has_the_asked_size_and_depends_on_the_seed() -> None:
    split = split_at_random(SPACE, 0.25, seed=1)
    assert_whole(split, 96)
    assert len(split.test) == 24
    assert np.array_equal(split.test, split_at_random(SPACE, 0.25, seed=1).test)
    assert not np.array_equal(split.test, split_at_random(SPACE, 0.25, seed=2).test)


def test_a_combination_is_held_out_whole_and_its_levels_are_still_seen_apart() -> None:
    split = split_by_combination(SPACE, {"hue": 7, "shape": 1})
    assert_whole(split, 96)
    held_out, seen = SPACE.factors(split.test), SPACE.factors(split.train)
    assert len(held_out) == 4
    assert (held_out[:, [0, 2]] == [1, 7]).all()
    assert not ((seen[:, 0] == 1) & (seen[:, 2] == 7)).any()
    assert ((seen[:, 0] == 1).sum(), (seen[:, 2] == 7).sum()) == (28, 8)


@pytest.mark.parametrize("condition", ["red > green + 0.15", lambda f: f[:, 0] > f[:, 1] + 0.15])
def test_a_condition_holds_exactly_on_the_test_part(condition: object) -> None:
    split = split_by_condition(TEAPOT, condition)  # pyright: ignore[reportArgumentType]
    assert_whole(split, 1000)
    red, green = TEAPOT.table.T
    assert np.array_equal(split.test, [i for i in range(1000) if red[i] > green[i] + 0.15])


def test_a_condition_sees_the_levels_of_a_grid() -> None:
    assert set(SPACE.factors(split_by_condition(SPACE, "size + hue >= 10").test)[:, 1]) == {3}


def test_drawn_combinations_differ_and_can_be_held_out() -> None:
    drawn = combinations(SPACE, ["shape", "size"], 12)
    assert len({tuple(levels.items()) for levels in drawn}) == 12
    assert all(len(split_by_combination(SPACE, levels).test) == 8 for levels in drawn)
    assert combinations(SPACE, ["shape", "size"], 3, seed=1) != combinations(SPACE, ["shape", "size"], 3, seed=2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: split_at_random(SPACE, 0.0), "leaves no image in the test part"),
        (lambda: split_at_random(SPACE, 1.0), "leaves no image in the training part"),
        (lambda: split_by_combination(SPACE, {"shape": 3}), "leaves no image in the test part"),
        (lambda: split_by_combination(SPACE, {"colour": 3}), "no factor 'colour'"),
        (lambda: split_by_condition(SPACE, "shape < 3"), "leaves no image in the training part"),
        (lambda: split_by_condition(SPACE, lambda f: f[:, 0]), "must give a mask"),
        (
            lambda: combinations(SPACE, ["shape", "size"], 13),
            "1 to 12 .the combinations of shape and size.; got 13",
        ),
    ],
)
def test_splits_say_what_is_wrong(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # pyright: ignore[reportCallIssue]
