"""The room of shapes3d_rendered against rays that are followed in small steps."""

import numpy as np
import pytest

from unbraid.base.types import BoolArray, FloatArray
from unbraid.datasets.rendering import room as _room
from unbraid.datasets.rendering.raster import compose
from unbraid.datasets.rendering.room import SHAPES, room_layers

STEP = 0.004


def inside(shape: str, scale: float, points: FloatArray) -> BoolArray:
    """Whether points (..., 3) are inside the object, from its description."""
    x, y, z = np.moveaxis(points, -1, 0) / scale
    match shape:
        case "cube":
            return (np.maximum(np.abs(x), np.abs(y)) <= 0.5) & (z >= 0) & (z <= 1)
        case "cylinder":
            return (x**2 + y**2 <= 0.5**2) & (z >= 0) & (z <= 1.05)
        case "sphere":
            return x**2 + y**2 + (z - 0.6) ** 2 <= 0.6**2
        case _:
            return x**2 + y**2 + (z - np.clip(z, 0.4, 1.0)) ** 2 <= 0.4**2


def march(shape: str, scale: float, orientation: float, size: int) -> tuple[FloatArray, FloatArray]:
    """What each pixel's central ray meets first (0 floor, 1 wall, 2 object), and where."""
    angle, tangent = np.radians(orientation), np.tan(np.radians(_room.FIELD_OF_VIEW / 2))
    eye = np.array([_room.DISTANCE * np.cos(angle), _room.DISTANCE * np.sin(angle), _room.HEIGHT])
    ahead = np.array([0, 0, _room.AIM]) - eye
    ahead /= np.linalg.norm(ahead)
    right = np.cross(ahead, [0, 0, 1])
    right /= np.linalg.norm(right)
    steps = ((np.arange(size) + 0.5) / size * 2 - 1) * tangent
    rays = (ahead + steps[None, :, None] * right - steps[:, None, None] * np.cross(right, ahead)).reshape(-1, 3)
    met, where = np.full(size * size, -1), np.zeros((size * size, 3))
    entered = np.zeros(size * size, dtype=bool)  # the camera looks in through a wall
    under_way = np.arange(size * size)
    for distance in np.arange(0, 12, STEP):
        points = eye + distance * rays[under_way]
        within = np.abs(points[:, :2]).max(axis=-1) <= _room.HALF_WIDTH
        entered[under_way] |= within
        left = entered[under_way] & ~within
        for layer, hit in ((1, left), (0, points[:, 2] < 0), (2, inside(shape, scale, points))):
            met[under_way[hit]], where[under_way[hit]] = layer, points[hit]
        under_way = under_way[met[under_way] < 0]
    return met.reshape(size, size), where.reshape(size, size, 3)


@pytest.mark.parametrize(
    ("shape", "scale", "orientation"), [(0, 1.25, 20.0), (1, 1.0, -12.0), (2, 0.75, 30.0), (3, 1.25, 0.0)]
)
def test_rays_meet_what_they_meet_when_followed_in_steps(shape: int, scale: float, orientation: float) -> None:
    layers = room_layers(shape, scale, orientation, size=48, samples=1)
    met, where = march(SHAPES[shape], scale, orientation, 48)
    assert set(np.unique(met)) == {0, 1, 2}
    seen = layers[:3].argmax(axis=0)
    assert ((layers[:3] > 0).sum(axis=0) == 1).all()
    assert (seen != met).mean() < 0.004, "only where a ray passes within a step of an edge"
    # Light: the angle to the lamp on floor and walls, and shadow where the way to the lamp is blocked.
    normal = np.zeros_like(where)
    normal[met == 0] = (0, 0, 1)
    wall = met == 1
    along_x = np.abs(where[..., 0]) > np.abs(where[..., 1])
    normal[wall & along_x, 0] = -np.sign(where[wall & along_x, 0])
    normal[wall & ~along_x, 1] = -np.sign(where[wall & ~along_x, 1])
    way = np.array(_room.LAMP) - where
    facing = np.einsum("hwi,hwi->hw", normal, way) / np.linalg.norm(way, axis=-1)
    blocked = np.zeros(met.shape, dtype=bool)
    for share in np.arange(0.004, 1, 0.002):
        blocked |= inside(SHAPES[shape], scale, where + share * way)
    expected = np.where(blocked, _room.AMBIENT, _room.AMBIENT + (1 - _room.AMBIENT) * facing)
    flat = (met == seen) & (met != 2)
    off = np.abs(layers[:3].max(axis=0) / 255 - expected)[flat]
    assert (blocked & flat).sum() > 20
    assert (off > 0.02).mean() < 0.015, "only at the rim of the shadow"


@pytest.mark.parametrize("shape", range(4))
def test_surface_of_the_object_is_lit_by_its_own_normal(shape: int) -> None:
    """The object's light against normals by finite differences of its outline function."""
    layers = room_layers(shape, 1.2, 9.0, size=48, samples=1)
    met, where = march(SHAPES[shape], 1.2, 9.0, 48)
    points = where[met == 2]

    def depth(p: FloatArray) -> FloatArray:
        x, y, z = np.moveaxis(p, -1, 0) / 1.2
        match SHAPES[shape]:
            case "cube":
                return np.maximum(np.maximum(np.abs(x), np.abs(y)) - 0.5, np.abs(z - 0.5) - 0.5)
            case "cylinder":
                return np.maximum(np.hypot(x, y) - 0.5, np.abs(z - 0.525) - 0.525)
            case "sphere":
                return np.sqrt(x**2 + y**2 + (z - 0.6) ** 2) - 0.6
            case _:
                return np.sqrt(x**2 + y**2 + (z - np.clip(z, 0.4, 1.0)) ** 2) - 0.4

    h = 1e-5
    normal = np.stack([depth(points + h * axis) - depth(points - h * axis) for axis in np.eye(3)], axis=-1)
    normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
    way = np.array(_room.LAMP) - points
    facing = np.einsum("ni,ni->n", normal, way) / np.linalg.norm(way, axis=-1)
    expected = _room.AMBIENT + (1 - _room.AMBIENT) * np.maximum(facing, 0)
    light = layers[2][met == 2] / 255
    assert len(points) > 150
    assert (np.abs(light - expected) > 0.03).mean() < 0.03


def test_highlight_is_on_the_object_alone_and_round_the_half_way_direction() -> None:
    layers = room_layers(2, 1.0, 0.0, size=64, samples=1)
    assert (layers[3][layers[2] == 0] == 0).all()
    row, column = np.unravel_index(layers[3].argmax(), (64, 64))
    met, where = march("sphere", 1.0, 0.0, 64)
    point = where[row, column]
    normal = point - [0, 0, 0.6]
    eye = np.array([_room.DISTANCE, 0, _room.HEIGHT])
    middle = sum((v - point) / np.linalg.norm(v - point) for v in (eye, np.array(_room.LAMP)))
    cosine = normal @ middle / np.linalg.norm(normal) / np.linalg.norm(middle)
    assert met[row, column] == 2
    assert cosine > 0.995
    assert layers[3].max() == pytest.approx(255 * _room.SHINE, abs=8)


def test_more_samples_average_what_fewer_see() -> None:
    fine = room_layers(0, 1.0, 10.0, size=64, samples=1).astype(float)
    coarse = room_layers(0, 1.0, 10.0, size=16, samples=4)
    assert np.abs(fine.reshape(4, 16, 4, 16, 4).mean(axis=(2, 4)) - coarse).max() <= 1


def test_layers_share_the_light_of_a_pixel() -> None:
    """All paints white and no highlight is a picture in greys, between ambient and full light."""
    layers = room_layers(3, 1.25, -30.0)
    total = layers[:3].astype(int).sum(axis=0)
    assert total.min() >= round(255 * _room.AMBIENT) - 2
    assert total.max() <= 257
    assert compose(layers[None], np.ones((1, 3, 3))).shape == (1, 64, 64, 3)
