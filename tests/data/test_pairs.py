from typing import Any

import numpy as np
import pytest

from unbraid.data import (
    FactorSpace,
    Series,
    all_objects,
    labelled_pairs,
    one_object,
    turntables,
    walks,
    weak_pairs,
    whole_objects,
)
from unbraid.datasets import DATASETS, load
from unbraid.datasets.subset import SubsetDataset
from unbraid.scoring.encoding import encoded

TORUS = FactorSpace(("y", "x"), (64, 64), ("cyclic", "cyclic"))
OBJECTS = FactorSpace(("object", "rotation"), (5, 9), ("categorical", "cyclic"))
MIXED = FactorSpace(("hue", "shape", "turn"), (6, 3, 4), ("cyclic", "categorical", "cyclic"))


def assert_steps_lead_from_the_first_image(space: FactorSpace, series: Series) -> None:
    """Plain loops: move the first image level by level, and arrive at the image that the series names."""
    for images, steps in zip(series.index, series.steps, strict=True):
        start = space.factors(images[:1])[0]
        for image, step in zip(images, steps, strict=True):
            moved = [(a + b) % n for a, b, n in zip(start, step, space.sizes, strict=True)]
            assert space.index([moved])[0] == image
    assert not series.steps[:, 0].any()


@pytest.mark.parametrize(("space", "n"), [(TORUS, 0), (TORUS, 256), (TORUS, 2048), (OBJECTS, 20), (MIXED, 36)])
def test_labelled_pairs_are_disjoint_and_their_steps_are_true(space: FactorSpace, n: int) -> None:
    pairs = labelled_pairs(space, n)
    assert pairs.index.shape == (n, 2)
    assert len(np.unique(pairs.index)) == 2 * n
    assert_steps_lead_from_the_first_image(space, pairs)
    still = [k for k, kind in enumerate(space.kinds) if kind != "cyclic"]
    assert not pairs.steps[:, :, still].any()
    assert ((pairs.steps >= 0) & (pairs.steps < np.asarray(space.sizes))).all()


def test_labelled_pairs_are_a_random_choice() -> None:
    assert not np.array_equal(labelled_pairs(TORUS, 100).index, labelled_pairs(TORUS, 100, seed=1).index)
    # On the torus every difference is possible: with 2048 pairs nearly all 64 steps of an axis appear.
    steps = labelled_pairs(TORUS, 2048).steps[:, 1]
    assert np.abs(np.bincount(steps[:, 0], minlength=64) - 32).max() < 32
    assert np.abs(np.bincount(steps[:, 1], minlength=64) - 32).max() < 32


def test_few_labelled_pairs_come_from_all_objects_alike() -> None:
    objects = [OBJECTS.factors(labelled_pairs(OBJECTS, 1, seed=seed).index[0, :1])[0, 0] for seed in range(100)]
    assert np.bincount(objects, minlength=5).min() >= 8


@pytest.mark.parametrize(("space", "most"), [(TORUS, 2048), (OBJECTS, 20), (MIXED, 36)])
def test_there_are_only_so_many_disjoint_pairs(space: FactorSpace, most: int) -> None:
    with pytest.raises(ValueError, match=f"0 to {most} .there are no more disjoint pairs.; got {most + 1}"):
        labelled_pairs(space, most + 1)


def test_turns_are_fractions_of_a_full_turn() -> None:
    assert turntables(OBJECTS, "rotation", 1).turns[0, :, 1] == pytest.approx(np.arange(9) / 9)


def test_turntables_show_every_level_of_each_object() -> None:
    series = turntables(OBJECTS, "rotation")
    assert series.index.tolist() == np.arange(45).reshape(5, 9).tolist()
    assert_steps_lead_from_the_first_image(OBJECTS, series)


def test_turntables_turn_any_cyclic_factor_and_pick_objects_at_random() -> None:
    series = turntables(MIXED, "hue", 5, seed=1)
    assert series.index.shape == (5, 6)
    assert_steps_lead_from_the_first_image(MIXED, series)
    assert MIXED.factors(series.index)[:, :, 0].tolist() == [list(range(6))] * 5
    assert len({tuple(row[1:]) for row in MIXED.factors(series.index[:, 0])}) == 5
    assert not np.array_equal(series.index, turntables(MIXED, "hue", 5, seed=2).index)


def test_walks_move_one_cyclic_factor_by_one_step_at_a_time() -> None:
    paths = walks(TORUS, step=3)
    assert paths.index.shape == (50, 100)
    assert_steps_lead_from_the_first_image(TORUS, paths)
    moves = np.diff(paths.steps, axis=1)
    assert (np.abs(moves).sum(axis=2) == 3).all()
    assert ((moves != 0).sum(axis=2) == 1).all()
    assert paths.actions is not None
    # Action 2 k is up along factor k, 2 k + 1 down; all four appear alike often among 4950.
    up_or_down = {0: (3, 0), 1: (-3, 0), 2: (0, 3), 3: (0, -3)}
    for action, move in up_or_down.items():
        taken = paths.actions == action
        assert (moves[taken] == move).all()
        assert abs(taken.mean() - 0.25) < 0.03


def test_walks_start_anywhere_and_leave_other_factors_alone() -> None:
    paths = walks(MIXED, 40, 7)
    assert_steps_lead_from_the_first_image(MIXED, paths)
    assert not paths.steps[:, :, [kind != "cyclic" for kind in MIXED.kinds]].any()
    assert len(np.unique(paths.index[:, 0])) > 20
    assert set(np.unique(paths.actions)) == {0, 1, 2, 3}


def test_transitions_are_the_steps_of_walks() -> None:
    paths = walks(TORUS, 4, 6, seed=5)
    before, actions, after = paths.transitions()
    assert len(before) == len(actions) == len(after) == 20
    change = {0: (1, 0), 1: (-1, 0), 2: (0, 1), 3: (0, -1)}
    expected = [(TORUS.factors([b])[0] + change[int(a)]) % 64 for b, a in zip(before, actions, strict=True)]
    assert (TORUS.factors(after) == expected).all()
    with pytest.raises(ValueError, match="only walks"):
        labelled_pairs(TORUS, 2).transitions()


@pytest.mark.parametrize(("rule", "changed"), [("exact", 1), ("exact", 2), ("exact", 3), ("one-or-k", 2)])
def test_changed_says_which_factors_differ(rule: str, changed: int) -> None:
    pairs = weak_pairs(MIXED, 4000, changed=changed, rule=rule)  # pyright: ignore[reportArgumentType]
    differs = MIXED.factors(pairs.first) != MIXED.factors(pairs.second)
    assert np.array_equal(pairs.changed, differs)
    assert differs.sum(axis=1).max() == changed


def test_exact_pairs_change_k_factors_each_alike_often() -> None:
    pairs = weak_pairs(MIXED, 6000, changed=2, rule="exact")
    assert (pairs.changed.sum(axis=1) == 2).all()
    assert np.abs(pairs.changed.mean(axis=0) - 2 / 3).max() < 0.03
    # The new level is any other with equal odds: a hue moves by each of 1 .. 5.
    moved = (MIXED.factors(pairs.second) - MIXED.factors(pairs.first))[:, 0] % 6
    assert np.abs(np.bincount(moved[moved > 0], minlength=6)[1:] / (moved > 0).sum() - 0.2).max() < 0.03


def test_k_is_drawn_when_it_is_not_given() -> None:
    counts = weak_pairs(MIXED, 6000, rule="exact").changed.sum(axis=1)
    assert np.abs(np.bincount(counts, minlength=4) / 6000 - [0, 0.5, 0.5, 0]).max() < 0.03


def test_the_published_rule_changes_one_or_k_and_may_keep_a_level() -> None:
    """By hand, for hue 6, shape 3, turn 4 and k = 3: with odds 1/2 one factor is drawn anew, else all three.

    A redrawn factor keeps its level with 1/6, 1/3, 1/4. Equal pairs: 1/2 (1/6 + 1/3 + 1/4)/3 + 1/2 (1/72) = 19/144.
    The hue differs in 1/2 (1/3)(5/6) + 1/2 (5/6) = 5/9.
    """
    changed = weak_pairs(MIXED, 40_000, changed=3).changed
    assert (~changed).all(axis=1).mean() == pytest.approx(19 / 144, abs=0.008)
    assert changed[:, 0].mean() == pytest.approx(5 / 9, abs=0.01)


def test_the_published_rule_with_drawn_k() -> None:
    """k is 1 or 2 alike often for three factors, so one factor is drawn anew with 3/4 and two with 1/4.

    The shape is drawn anew in 3/4 (1/3) + 1/4 (2/3) = 5/12 of all pairs, and differs in 2/3 of those.
    """
    changed = weak_pairs(MIXED, 40_000).changed
    assert changed[:, 1].mean() == pytest.approx(5 / 18, abs=0.01)
    assert changed.sum(axis=1).max() == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: weak_pairs(MIXED, 5, changed=4), "changed, where not None, must be a whole number, 1 to 3"),
        (lambda: weak_pairs(MIXED, 5, rule="any"), "'one-or-k' or 'exact'"),
        (lambda: weak_pairs(FactorSpace(("a",), (4,), ("ordinal",)), 5), "changed=1"),
        (lambda: weak_pairs(FactorSpace(("a", "b"), (4, 1), ("ordinal",) * 2), 5, rule="exact"), "one level"),
        (lambda: labelled_pairs(FactorSpace(("a",), (4,), ("ordinal",)), 1), "none of the factors a is cyclic"),
    ],
)
def test_pairs_say_what_is_wrong(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize(
    "draw",
    [
        lambda seed: weak_pairs(MIXED, 30, seed=seed).second,
        lambda seed: labelled_pairs(MIXED, 30, seed=seed).index,
        lambda seed: turntables(MIXED, "hue", 8, seed=seed).index,
        lambda seed: walks(MIXED, 5, 9, seed=seed).index,
    ],
)
def test_same_seed_same_pairs(draw: object) -> None:
    assert np.array_equal(draw(7), draw(7))  # pyright: ignore[reportCallIssue]
    assert not np.array_equal(draw(7), draw(8))  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize("name", ["sprites", "dsprites"])
def test_turns_are_those_of_the_angles_where_the_last_level_is_the_first_again(name: str) -> None:
    """The 40 orientations of dSprites are linspace(0, 2 pi, 40): a step is 1/39 of a turn, and level 39 is level 0."""
    space = DATASETS[name].space
    assert isinstance(space, FactorSpace)
    assert space.values is not None
    assert space.turns == (3, 6, 39, 32, 32)
    orientations = np.array(space.values[2], dtype=float)
    for series in (
        labelled_pairs(space, 3000, seed=1), turntables(space, "orientation", 20, seed=1), walks(space, 20, 60, seed=1),
    ):  # fmt: skip
        angles = orientations[space.factors(series.index)[..., 2]]
        told = 2 * np.pi * series.turns[..., 2]
        np.testing.assert_allclose(np.exp(1j * told), np.exp(1j * (angles - angles[:, :1])), atol=1e-9)


@pytest.mark.parametrize("name", [name for name, row in DATASETS.items() if "cyclic" in row.space.kinds])
def test_a_full_turn_of_every_dataset_is_whole(name: str) -> None:
    """Levels are evenly spaced, and `turns` steps go once around in the unit of the values."""
    space = DATASETS[name].space
    assert isinstance(space, FactorSpace)
    assert space.values is not None
    for column, kind in enumerate(space.kinds):
        values = np.array(space.values[column])
        if kind != "cyclic" or name in ("square", "flatland"):  # of which one wraps around in pixels, one by its rule
            continue
        (step,) = set(np.round(np.diff(values), 9))
        assert min(abs(step * space.turns[column] - turn) for turn in (1, 360, 2 * np.pi)) < 1e-6


@pytest.mark.parametrize(
    ("kind", "values", "turn"),
    [
        ("cyclic", (0.0, 120.0, 240.0, 360.0), 3),
        ("cyclic", (90.0, 210.0, 330.0, 450.0), 3),
        ("cyclic", (0.0, 2.094, 4.189, 6.283), 3),
        ("cyclic", (-3.142, -1.047, 1.047, 3.142), 3),
        ("cyclic", (6.28, 4.19, 2.09, 0.0), 3),
        ("cyclic", (0.0, 2.094, 4.192, 6.283), 4),
        ("cyclic", (0.0, 2.094, 4.189, 6.282), 4),
        ("cyclic", (0.0, 120.0, 240.0, 359.0), 4),
        ("cyclic", (0.0, 90.0, 180.0, 270.0), 4),
        ("cyclic", (0.0, 1.0, 2.0, 3.0), 4),
        ("ordinal", (0.0, 120.0, 240.0, 360.0), 4),
        ("cyclic", ("north", "east", "south", "west"), 4),
    ],
)
def test_a_level_repeats_the_first_where_the_values_say_so(kind: Any, values: Any, turn: int) -> None:
    assert FactorSpace(("angle",), (4,), (kind,), (values,)).turns == (turn,)


def test_a_part_of_a_dataset_turns_as_the_whole_does() -> None:
    """Whichever levels are left: what is encoded of some sprites knows that 39 steps go around."""
    sprites = load("sprites", shrink=4)
    rows = np.sort(np.random.default_rng(0).choice(len(sprites), 60, replace=False))
    early = rows[sprites.space.factors(rows)[:, 2] < 20]
    for part in (SubsetDataset(sprites, rows), SubsetDataset(sprites, early)):
        held = encoded(lambda images: images.reshape(len(images), -1)[:, :2], part, 50, 50, 0)
        assert held.sizes == part.space.turns
        assert held.sizes[:3] == (3, 6, 39)


@pytest.mark.parametrize(
    "draw",
    [
        lambda space: weak_pairs(space, 5),
        lambda space: labelled_pairs(space, 1),
        lambda space: turntables(space, "x"),
        walks,
        lambda space: whole_objects(space, 8),
        all_objects,
        one_object,
    ],
)
def test_what_needs_a_grid_says_so_of_samples(draw: Any) -> None:
    part = load("square", positions=8, without={"random": 3}).space
    with pytest.raises(ValueError, match="needs a full grid of factors, a FactorSpace; these are samples"):
        draw(part)
