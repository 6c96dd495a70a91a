"""Subsets against the whole, and holding images out by name wherever a dataset is named."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unbraid import load_run, train
from unbraid.data import FactorSpace, FactorTable
from unbraid.datasets import ArrayDataset, FactorDataset, SubsetDataset, leave_out, load
from unbraid.datasets.sprites import sprites_space
from unbraid.datasets.subset import left_out

SPACE = FactorSpace(("shape", "size", "hue"), (3, 4, 8), ("categorical", "ordinal", "cyclic"))
GRID = SPACE.grid()


def square() -> FactorDataset:
    return load("square", positions=8)


def test_images_and_factors_are_those_of_the_whole() -> None:
    whole, part = square(), load("square", positions=8, without="x == 2 or y > 5")
    kept = [number for number, (y, x) in enumerate(whole.space.factors(np.arange(64))) if not (x == 2 or y > 5)]
    assert whole.space.names == part.space.names == ("y", "x")
    assert isinstance(part, SubsetDataset)
    assert part.positions.tolist() == kept
    assert (len(part), part.image_shape) == (len(kept), whole.image_shape)
    index = np.array([41, 0, 7, 7])
    np.testing.assert_array_equal(part.images(index), whole.images(np.array(kept)[index]))
    np.testing.assert_array_equal(part.space.factors(index), whole.space.factors(np.array(kept)[index]))
    assert part.space.kinds == whole.space.kinds
    with pytest.raises(ValueError, match="index 42 is outside the dataset"):
        part.images(np.array([42]))
    with pytest.raises(ValueError, match="index 64 is outside the dataset"):
        SubsetDataset(whole, np.array([64]))


def test_a_subset_of_samples_keeps_their_values() -> None:
    table = FactorTable(("angle",), ("continuous",), np.linspace(0, 1, 5)[:, None])
    whole = ArrayDataset(np.arange(20, dtype=np.uint8).reshape(5, 2, 2, 1), table)
    part = SubsetDataset(whole, np.array([4, 1]))
    assert part.space.factors([0, 1]).tolist() == [[1.0], [0.25]]
    assert part.images(np.array([1])).ravel().tolist() == [4, 5, 6, 7]
    assert left_out(table, "angle > 0.5").tolist() == [False, False, False, True, True]


def test_what_does_not_vary_is_no_factor() -> None:
    part = load("sprites", without="orientation > 0 or shape != 1")
    assert part.space.names == ("scale", "position_x", "position_y")
    assert part.space.kinds == ("ordinal",) * 3
    assert len(part) == 6 * 32 * 32
    np.testing.assert_array_equal(part.space.factors([32 * 32 + 33]), [[1, 1, 1]])
    alone = SubsetDataset(square(), np.array([9]))
    assert alone.space.factors([0]).tolist() == [[1, 1]]


def test_it_travels_small() -> None:
    part = leave_out(load("sprites"), "shape == 0")
    assert part.space.table.nbytes > 15_000_000
    sent = pickle.dumps(part)
    assert len(sent) < 1.1 * part.positions.nbytes + 1000
    again = pickle.loads(sent)
    np.testing.assert_array_equal(again.positions, part.positions)
    np.testing.assert_array_equal(again.images(np.array([3])), part.images(np.array([3])))


def test_random_images_are_as_many_as_asked_for_and_spread() -> None:
    masks = [left_out(SPACE, {"random": 24, "seed": seed}) for seed in (0, 1)]
    assert [int(mask.sum()) for mask in masks] == [24, 24]
    assert (masks[0] != masks[1]).any()
    np.testing.assert_array_equal(masks[0], left_out(SPACE, {"random": 24}))
    often = np.mean([left_out(SPACE, {"random": 24, "seed": seed}) for seed in range(2000)], axis=0)
    assert np.abs(often - 0.25).max() < 0.05


def test_a_list_leaves_out_all_of_its_parts() -> None:
    parts = ("shape == 1 and size == 2", {"random": 10, "seed": 3})
    both = left_out(SPACE, list(parts))
    np.testing.assert_array_equal(both, left_out(SPACE, parts[0]) | left_out(SPACE, parts[1]))
    np.testing.assert_array_equal(left_out(SPACE, parts[0]), left_out(SPACE, {"size": 2, "shape": 1}))
    np.testing.assert_array_equal(left_out(SPACE, parts[0]), (GRID[:, 0] == 1) & (GRID[:, 1] == 2))


@pytest.mark.parametrize(
    ("without", "message"),
    [
        ("shape == 7", "without 'shape == 7': there is no such image"),
        ("shape >= 0", "leaves none of 96 images"),
        ("colour == 7", "names no factor 'colour'; there are shape, size, hue"),
        ({"random": 96}, "random must be 1 to 95 images, and seed 0 or more"),
        ({"random": 5, "sead": 1}, "no factor 'random'; there are shape, size, hue"),
        ({}, "without must be a condition such as"),
    ],
)
def test_what_cannot_be_left_out(without: Any, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        left_out(SPACE, without)
    assert message in str(caught.value)


def test_a_run_remembers_what_it_never_saw(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"latents": 2, "steps": 2, "processes": 0, "network": "dense", "out": tmp_path}
    source = {"name": "square", "positions": 8, "without": "x == 2 and y == 3"}
    (run,) = train("vae", source, **settings)
    (whole,) = train("vae", {"name": "square", "positions": 8}, **settings)
    assert run.path != whole.path
    dataset = load_run(run.path).dataset()
    assert len(dataset) == 63
    assert not (dataset.space.factors(np.arange(63)) == [3, 2]).all(axis=1).any()
    assert len(run.codes().factors) == 63


def test_a_grid_less_whole_levels_is_a_grid_again() -> None:
    """Found by hand: of 3 x 4 x 6, shape 1 and hues 1, 3, 5 are gone, so that 2 x 4 x 3 remain."""
    space = FactorSpace(("shape", "size", "hue"), (3, 4, 6), ("categorical", "ordinal", "cyclic"))
    images = np.arange(72, dtype=np.uint8)[:, None, None, None]
    left = leave_out(ArrayDataset(images, space), ["shape == 1", "hue == 1", "hue == 3", "hue == 5"])
    complete = left.space.complete
    assert complete is not None
    assert complete == FactorSpace(
        ("shape", "size", "hue"), (2, 4, 3), ("categorical", "ordinal", "cyclic"),
        ((0.0, 2.0), (0.0, 1.0, 2.0, 3.0), (0.0, 2.0, 4.0)),
    )  # fmt: skip
    expected = [24 * shape + 6 * size + hue for shape in (0, 2) for size in range(4) for hue in (0, 2, 4)]
    assert left.images(np.arange(24)).ravel().tolist() == expected
    assert left.images(complete.index([[1, 3, 2]])).item() == 24 * 2 + 6 * 3 + 4
    again = pickle.loads(pickle.dumps(left))
    assert again.space.complete == complete
    flat = leave_out(ArrayDataset(images, space), "shape != 2")
    assert flat.space.complete == FactorSpace(
        ("size", "hue"), (4, 6), ("ordinal", "cyclic"), (tuple(map(float, range(4))), tuple(map(float, range(6))))
    )


@pytest.mark.parametrize(
    ("kept", "kind"),
    [
        ((0, 1, 2, 3, 4, 5), "cyclic"),
        ((0, 2, 4), "cyclic"),
        ((1, 4), "cyclic"),
        ((0, 1, 2), "ordinal"),
        ((0, 1, 3, 4), "ordinal"),
    ],
)
def test_what_is_left_of_a_circle_is_one_only_if_it_closes(kept: tuple[int, ...], kind: str) -> None:
    space = FactorSpace(("size", "hue"), (2, 6), ("ordinal", "cyclic"))
    positions = np.flatnonzero(np.isin(space.grid()[:, 1], kept))
    left = SubsetDataset(ArrayDataset(np.zeros((12, 1, 1, 1), np.uint8), space), positions).space.complete
    assert left is not None
    assert left.kinds == ("ordinal", kind)


def test_the_orientation_that_repeats_the_first_may_be_left_out() -> None:
    left = load("sprites", without="orientation == 39").space
    assert isinstance(left, FactorTable)
    assert left.complete == sprites_space(True)


@pytest.mark.parametrize("positions", [[0, 1, 2, 3, 4], [1, 0, 2, 3], [0, 3, 4], [0, 5], [0, 0, 1, 1]])
def test_what_is_no_product_of_levels_in_order_is_no_grid(positions: list[int]) -> None:
    space = FactorSpace(("size", "hue"), (2, 3), ("ordinal", "ordinal"))
    left = SubsetDataset(ArrayDataset(np.zeros((6, 1, 1, 1), np.uint8), space), np.array(positions))
    assert left.space.complete is None
