"""Meshes against geometry that is known without them: volumes, symmetries, and curves by another route."""

import numpy as np
import pytest

from unbraid.base.types import FloatArray
from unbraid.datasets.rendering.meshes import (
    Mesh,
    box,
    circle,
    fan_triangles,
    flat_mesh,
    join,
    lathe,
    loft,
    slab,
    teapot_mesh,
    teapot_patches,
    unit_radius,
)


def volume(mesh: Mesh) -> float:
    """Of the body that a closed mesh bounds; negative when its faces look inwards."""
    a, b, c = np.moveaxis(mesh.vertices[mesh.faces], 1, 0)
    return float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6)


def gaps(mesh: Mesh) -> int:
    """Edges that are not passed once in each direction; 0 for a closed mesh."""
    _, place = np.unique(np.rint(mesh.vertices * 1e6), axis=0, return_inverse=True)
    faces = place.reshape(-1)[mesh.faces]
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    forward = {(a, b) for a, b in edges.tolist()}
    return len(edges) - len(forward) + sum((b, a) not in forward for a, b in forward)


def face_normals(mesh: Mesh) -> FloatArray:
    a, b, c = np.moveaxis(mesh.vertices[mesh.faces], 1, 0)
    return np.cross(b - a, c - a)


def test_circle_agrees_with_the_library() -> None:
    turns = np.random.default_rng(0).uniform(-3, 3, 100_000)
    cosine, sine = circle(turns)
    np.testing.assert_allclose(cosine, np.cos(2 * np.pi * turns), rtol=0, atol=5e-15)
    np.testing.assert_allclose(sine, np.sin(2 * np.pi * turns), rtol=0, atol=5e-15)
    near = turns / 24  # no whole turns to lose digits on
    np.testing.assert_allclose(circle(near)[1], np.sin(2 * np.pi * near), rtol=0, atol=3e-16)


def test_circle_is_exact_at_quarter_turns_and_forgets_whole_turns() -> None:
    quarters = np.arange(-4, 5) / 4
    assert circle(quarters)[0].tolist() == [1, 0, -1, 0, 1, 0, -1, 0, 1]
    assert circle(quarters)[1].tolist() == [0, 1, 0, -1, 0, 1, 0, -1, 0]
    steps = np.arange(64) / 64
    for part, again in zip(circle(steps), circle(steps + 1), strict=True):
        assert (part == again).all()


def test_fans_cover_polygons_and_leave_out_what_is_no_polygon() -> None:
    assert fan_triangles([[3, 1, 2, 0, 5], [7, 8]]).tolist() == [[3, 1, 2], [3, 2, 0], [3, 0, 5]]
    assert fan_triangles([]).shape == (0, 3)


def test_unit_radius_centres_the_box_and_scales_the_farthest_corner_to_one() -> None:
    vertices = unit_radius([[1.0, 1.0, 5.0], [4.0, 1.0, 5.0], [4.0, 5.0, 5.0], [2.0, 2.0, 5.0]])
    np.testing.assert_allclose(vertices[:3], [[-0.6, -0.8, 0], [0.6, -0.8, 0], [0.6, 0.8, 0]], atol=1e-15)


def test_flat_meshes_drop_faces_without_area() -> None:
    mesh = flat_mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [2, 0, 0]], [[0, 1, 2], [0, 1, 3], [1, 1, 2]])
    assert mesh.faces.tolist() == [[0, 1, 2]]
    assert mesh.normals.tolist() == [[[0, 0, 1]] * 3]


BODIES = {
    "box": (box((0, 0, 0), (2, 3, 5)), 30.0),
    # Half a unit thick at the root and a quarter at the tip, diamonds of half the area of their box:
    # the integral over the unit span of (2 - t) * (1 - t / 2) / 4 with t from 0 to 1 is 7 / 12.
    "slab": (slab([(2, 0, 0), (0, 0, 0)], [(1, 1, 0), (0, 1, 0)], 0.5, axis=2), -7 / 24),
    # A frustum on a regular 12-gon: area 3 r^2, height h, volume 3 h (r^2 + r s + s^2) / 3.
    "lathe": (lathe([(2.0, 0.0), (1.0, 1.5)], 12, axis=1), 1.5 * (4 + 2 + 1)),
    "cone": (lathe([(0.0, -1.0), (1.0, 0.0), (0.0, 1.0)], 12, smooth=False), 2.0),
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies_are_closed_and_have_their_volume(name: str) -> None:
    mesh, expected = BODIES[name]
    assert gaps(mesh) == 0
    assert abs(volume(mesh)) == pytest.approx(abs(expected), rel=1e-12)


@pytest.mark.parametrize("name", ["box", "lathe", "cone"])
def test_bodies_look_outwards(name: str) -> None:
    assert volume(BODIES[name][0]) > 0


@pytest.mark.parametrize("mesh", [BODIES["box"][0], BODIES["lathe"][0], teapot_mesh(6)])
def test_normals_are_unit_and_agree_with_the_winding(mesh: Mesh) -> None:
    np.testing.assert_allclose(np.linalg.norm(mesh.normals, axis=-1), 1, atol=1e-12)
    assert (np.einsum("fi,fci->fc", face_normals(mesh), mesh.normals) > 0).all()


def test_smooth_normals_of_a_ball_point_away_from_its_centre() -> None:
    cosine, sine = circle(np.arange(33) / 64)
    ball = lathe(np.stack([sine, -cosine], axis=1), 64)
    assert (np.einsum("fci,fci->fc", ball.normals, ball.vertices[ball.faces]) > 0.998).all()


def test_loft_keeps_its_caps_flat() -> None:
    cosine, sine = circle(np.arange(16) / 16)
    rings = [np.stack([cosine, sine, np.full(16, z)], axis=1) for z in (0.0, 1.0, 2.0)]
    tube = loft(rings, smooth=True)
    ends = np.abs(face_normals(tube)[:, 2]) > 1e-9
    assert ends.sum() == 2 * 14
    assert (np.abs(tube.normals[ends][..., 2]) == 1).all()
    assert (np.abs(tube.normals[~ends][..., 2]) < 1e-12).all()


def test_join_keeps_each_part() -> None:
    parts = [box((0, 0, 0), (1, 1, 1)).painted((1.0, 0.0)), box((3, 0, 0), (4, 1, 2)).painted((0.0, 1.0))]
    both = join(parts)
    assert volume(both) == pytest.approx(3)
    assert both.paint[:12].tolist() == [[1, 0]] * 12
    assert both.paint[12:].tolist() == [[0, 1]] * 12
    assert volume(both.moved((1, 2, 3))) == pytest.approx(3)


def test_teapot_control_points_have_the_symmetries_of_the_teapot() -> None:
    points, patches = teapot_patches()
    assert points.shape == (290, 3)
    assert patches.shape == (32, 4, 4)
    assert set(patches.reshape(-1).tolist()) == set(range(290))
    rows = {tuple(row) for row in points.tolist()}
    assert {(x, -y, z) for x, y, z in rows} == rows, "left and right are mirror images"
    # Rim, body, lid and bottom are turned on the wheel: a quarter turn maps them to themselves.
    for part in (slice(0, 4), slice(4, 12), slice(20, 24), slice(24, 28), slice(28, 32)):
        turned = points[patches[part].reshape(-1)]
        assert {(-y, x, z) for x, y, z in turned.tolist()} == {tuple(row) for row in turned.tolist()}
    assert points[:, 2].min() == 0
    assert points[:, 2].max() == 3.15
    assert points[:, 0].max() == 3.525, "the spout"
    assert points[:, 0].min() == -3, "the handle"


def test_teapot_surface_by_repeated_halving_of_the_control_polygon() -> None:
    points, patches = teapot_patches()
    mesh = teapot_mesh(4)
    grid = mesh.vertices.reshape(32, 5, 5, 3)
    offset = grid[0, 0, 0] - points[patches[0, 0, 0]]
    for patch in range(32):
        for i, j in ((1, 2), (3, 1), (2, 2), (4, 3)):
            control = points[patches[patch]]
            for share in (i / 4, j / 4):  # de Casteljau, first along rows and then along columns
                while len(control) > 1:
                    control = (1 - share) * control[:-1] + share * control[1:]
                control = control[0]
            np.testing.assert_allclose(grid[patch, i, j], control + offset, atol=1e-12)
    low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
    np.testing.assert_allclose(low + high, 0, atol=1e-12)


def test_teapot_normals_are_those_of_a_finer_teapot_s_faces() -> None:
    """Corner normals come from derivatives; the mean of the small faces around a point needs none."""
    mesh, n = teapot_mesh(24), 25
    normals = np.zeros_like(mesh.vertices)
    np.add.at(normals, mesh.faces.reshape(-1), np.repeat(face_normals(mesh), 3, axis=0))
    inner = np.zeros((32, n, n), dtype=bool)
    inner[:, 2:-2, 2:-2] = True
    inside = inner.reshape(-1)[mesh.faces]
    expected = normals[mesh.faces][inside]
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    cosine = np.einsum("ij,ij->i", mesh.normals[inside], expected)
    assert np.quantile(cosine, 0.01) > 0.999
    assert cosine.min() > 0.98
