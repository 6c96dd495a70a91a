"""Codes once around and between objects, of models whose every code is known."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from unbraid.data import FactorSpace
from unbraid.data.image_dataset import ArrayDataset
from unbraid.families.family import Part
from unbraid.runs.interpolations import object_interpolation, rotation_traversal

SPACE = FactorSpace(("object", "a", "b"), (3, 8, 4), ("categorical", "cyclic", "cyclic"))
IMAGES = ArrayDataset(np.arange(96, dtype=np.uint8).reshape(96, 1, 1, 1), SPACE)  # each shows its own number
OBJECT, A, B = (SPACE.grid() * [1, 2 * np.pi / 8, 2 * np.pi / 4]).T
ORTHOGONAL = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]


def model(table: Any, *parts: Part) -> Any:
    """A model that encodes image number i as row i of the table, and draws the first code."""
    return SimpleNamespace(
        path=Path("run"), parts=parts, n_codes=table.shape[1], config={"dataset": {"image_shape": [1, 1, 1]}},
        encode=lambda images: table[images[:, 0, 0, 0]], decode=lambda codes: codes[:, :1, None, None],
        dataset=lambda dataset: dataset,
    )  # fmt: skip


def on_circles() -> Any:
    """Two circles, the first a little behind for the second object, and two lines that depend on all."""
    lag = 0.5 * (OBJECT == 1)
    lines = np.random.default_rng(1).normal(size=(96, 2))
    table = np.column_stack([np.cos(A + lag), np.sin(A + lag), lines[:, 0], np.cos(B), np.sin(B), lines[:, 1]])
    parts = (Part("a", "circle", 2), Part("c", "gaussian", 1), Part("b", "circle", 2), Part("d", "gaussian", 1))
    return table, model(table, *parts)


def test_a_circle_is_gone_around_while_all_else_stays() -> None:
    _, run = on_circles()
    found = rotation_traversal(run, rows=300, steps=4)
    assert found.names == ("a", "b")
    assert found.codes.shape == (2, 300, 4, 6)
    np.testing.assert_allclose(found.values, [0, np.pi / 2, np.pi, 3 * np.pi / 2])
    around = [[1, 0], [0, 1], [-1, 0], [0, -1]]
    for block, own, rest in ((0, [0, 1], [2, 3, 4, 5]), (1, [3, 4], [0, 1, 2, 5])):
        np.testing.assert_allclose(found.codes[block][..., own], np.broadcast_to(around, (300, 4, 2)), atol=1e-12)
        assert (np.ptp(found.codes[block][..., rest], axis=1) == 0).all()
    np.testing.assert_allclose(np.hypot(found.codes[0, :, 0, 3], found.codes[0, :, 0, 4]), 1)
    # Of the prior: lines are standard normal, the other circle uniform. Three standard errors.
    assert abs(found.codes[0, :, 0, 2].mean()) < 3 / np.sqrt(300)
    assert abs(found.codes[0, :, 0, 5].std() - 1) < 3 / np.sqrt(600)
    assert abs(found.codes[0, :, 0, 3:5].mean(axis=0)).max() < 3 / np.sqrt(600)
    np.testing.assert_array_equal(found.images[..., 0, 0, 0], found.codes[..., 0])
    assert found.first is None


def test_without_circles_a_step_in_the_plane_is_a_step_of_the_factor() -> None:
    """A torus about a centre of each object's own, at radii 2 and 1, in six dimensions that each object turns anew."""
    flat = np.column_stack([2 * np.cos(A), 2 * np.sin(A), np.cos(B), np.sin(B), OBJECT, OBJECT**2]) + [1, 0, 0, 3, 0, 0]
    turns = np.stack([ORTHOGONAL, ORTHOGONAL.T, ORTHOGONAL @ ORTHOGONAL])
    table = np.einsum("nij,nj->ni", turns[OBJECT.astype(int)], flat)
    found = rotation_traversal(model(table, Part("z", "gaussian", 6)), IMAGES, rows=5, steps=4)
    assert found.names == ("a", "b")
    assert found.first is not None
    start = found.first[:, :, 0, 0, 0] * 255
    np.testing.assert_array_equal(start[0], start[1])
    objects = SPACE.factors(np.rint(start[0]).astype(int))[:, 0]
    assert set(objects[:3]) == {0, 1, 2}
    assert (objects[3:] == objects[:2]).all()
    for block, (column, size) in enumerate(((1, 8), (2, 4))):
        for row in range(5):
            levels = np.repeat(SPACE.factors([int(np.rint(start[block, row]))]), 4, axis=0)
            ways = []
            for sense in (-1, 1):  # a plane has no orientation
                moved = levels.copy()
                moved[:, column] = (levels[:, column] + sense * np.arange(4) * size // 4) % size
                ways.append(np.abs(table[SPACE.index(moved)] - found.codes[block, row]).max())
            assert min(ways) < 1e-9


def test_between_objects_the_circles_stay_and_all_else_goes_from_mean_to_mean() -> None:
    table, run = on_circles()
    found = object_interpolation(run, IMAGES, pairs=2, rows=4, steps=3)
    assert found.first is not None
    assert found.last is not None
    cells = table.reshape(3, 8, 4, 6)
    for pair, name in enumerate(found.names):
        one, other = (int(word) for word in name.replace("object", "").split("to"))
        assert one != other
        for row in range(4):
            np.testing.assert_array_equal(found.first[pair, row] * 255, SPACE.index([[one, 2 * row, row]])[0])
            np.testing.assert_array_equal(found.last[pair, row] * 255, SPACE.index([[other, 2 * row, row]])[0])
            for step, share in enumerate((0, 0.5, 1)):
                codes = found.codes[pair, row, step]
                np.testing.assert_allclose(codes[[0, 1, 3, 4]], cells[one, 2 * row, row, [0, 1, 3, 4]])
                means = [cells[each, :, :, [2, 5]].mean(axis=(1, 2)) for each in (one, other)]
                np.testing.assert_allclose(codes[[2, 5]], (1 - share) * means[0] + share * means[1])


def test_without_circles_the_way_is_straight_from_image_to_image() -> None:
    table = np.random.default_rng(2).normal(size=(96, 4))
    found = object_interpolation(model(table, Part("z", "point", 4)), IMAGES, pairs=3, rows=2, steps=5)
    assert found.first is not None
    assert found.last is not None
    ends = np.rint(np.stack([found.first, found.last])[..., 0, 0, 0] * 255).astype(int)
    np.testing.assert_allclose(found.codes[:, :, 0], table[ends[0]])
    np.testing.assert_allclose(found.codes[:, :, -1], table[ends[1]])
    np.testing.assert_allclose(found.codes[:, :, 1], 0.75 * table[ends[0]] + 0.25 * table[ends[1]])
