"""The rasteriser against a ray tracer, closed forms, and the arithmetic that it promises, in NumPy on whole frames."""

from dataclasses import replace

import numpy as np
import pytest

from unbraid.base.types import FloatArray, UInt8Array
from unbraid.datasets.rendering.meshes import Mesh, box, circle, flat_mesh, join, lathe, length, teapot_mesh
from unbraid.datasets.rendering.raster import Scene, compose, orbit, render

FRONT = orbit(0.0, 0.0)  # the camera stands on the x axis: y to the right, z up
PLAIN = Scene(distance=4.0, field_of_view=32.0, ambient=1.0)  # light everywhere: a layer is cover
SCENE = Scene(distance=4.0, field_of_view=36.0, light=(-0.5, 0.6, 1.0), ambient=0.25, highlight=0.5, sharpness=4)


def plate(x: float, corners: list[tuple[float, float]], paint: tuple[float, ...] = (1.0,)) -> Mesh:
    """A flat polygon across the line of sight of FRONT."""
    fan = [[0, k, k + 1] for k in range(1, len(corners) - 1)]
    return flat_mesh([(x, y, z) for y, z in corners], fan, paint)


def cluttered() -> Mesh:
    """Bodies that hide and cut each other, in two paints."""
    cosine, sine = circle(np.arange(9) / 16)
    ball = lathe(0.6 * np.stack([sine, -cosine], axis=1), 14)
    return join(
        [
            ball.painted((1.0, 0.0)),
            box((-0.9, 0.1, -0.3), (0.2, 0.8, 0.25)).painted((0.0, 1.0)),
            plate(0.3, [(-0.9, -0.8), (0.7, -0.5), (0.2, 0.9)], (0.4, 0.3)),
        ]
    )


def trace(mesh: Mesh, view: FloatArray, scene: Scene, size: int) -> tuple[FloatArray, FloatArray]:
    """Layers at the centres of pixels by the definition: every ray against every triangle, in world space.

    Returns the layers (n_paints + 1, size, size) in [0, 1], and by how much each ray clears the nearest edge.
    """
    right, up, back = view
    eye = scene.distance * back
    steps = ((np.arange(size) + 0.5) / size * 2 - 1) * np.tan(np.radians(scene.field_of_view / 2))
    rays = (steps[None, :, None] * right - steps[:, None, None] * up - back).reshape(-1, 3)
    a, b, c = np.moveaxis(mesh.vertices[mesh.faces], 1, 0)
    edge1, edge2 = b - a, c - a
    p = np.cross(rays[:, None], edge2)
    det = np.einsum("fi,rfi->rf", edge1, p)
    det = np.where(det == 0, 1e-300, det)
    s = eye - a
    u = np.einsum("fi,rfi->rf", s, p) / det
    q = np.cross(s, edge1)
    v = np.einsum("ri,fi->rf", rays, q) / det
    t = np.einsum("fi,fi->f", edge2, q) / det
    inside = np.minimum(np.minimum(u, v), 1 - u - v)
    depth = np.where(inside >= 0, t, np.inf)
    nearest = depth.argmin(axis=1)
    hit = np.isfinite(depth.min(axis=1))
    row = np.arange(len(rays))
    u, v = u[row, nearest, None], v[row, nearest, None]
    n0, n1, n2 = np.moveaxis(mesh.normals[nearest], 1, 0)
    normal = (1 - u - v) * n0 + u * n1 + v * n2
    faced = np.einsum("ri,ri->r", np.cross(edge1, edge2)[nearest], rays) > 0
    normal = np.where(faced[:, None], -normal, normal)
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    light = np.asarray(scene.light) @ view
    light /= np.linalg.norm(light)
    middle = light + back
    middle /= np.linalg.norm(middle)
    lit = scene.ambient + (1 - scene.ambient) * np.maximum(normal @ light, 0)
    shine = scene.highlight * np.maximum(normal @ middle, 0) ** 2**scene.sharpness
    layers = np.concatenate([lit[:, None] * mesh.paint[nearest], shine[:, None]], axis=1)
    blank = np.zeros(layers.shape[1])
    blank[-1] = scene.background
    clear = np.abs(inside).min(axis=1)
    return np.where(hit[:, None], layers, blank).T.reshape(-1, size, size), clear.reshape(size, size)


@pytest.mark.parametrize(("azimuth", "elevation"), [(0.0, 0.0), (0.1, 0.07), (0.37, 0.2), (0.62, -0.1), (0.9, 0.25)])
@pytest.mark.parametrize("background", [0.0, 0.8])
def test_agrees_with_a_ray_tracer(azimuth: float, elevation: float, background: float) -> None:
    mesh, view = cluttered(), orbit(azimuth, elevation)
    scene = Scene(4.0, 36.0, SCENE.light, 0.25, 0.5, 4, background)
    expected, clear = trace(mesh, view[0], scene, 40)
    layers = render(mesh, view, scene=scene, size=40, samples=1)[0]
    off = np.abs(layers / 255 - expected).max(axis=0)
    assert (layers[0] > 0).sum() > 200
    # Away from edges, rounding is left and that normals are interpolated on the screen.
    assert off[clear > 0.005].max() < 2.5 / 255
    assert (off > 2.5 / 255).sum() <= 3, "a ray may graze an edge, whose ends are snapped to 1/256 of a sample"


def test_a_plate_covers_exactly_the_samples_inside_it() -> None:
    """At distance 4 and 32 degrees the frame is 8 tan 16 wide: a plate of 5/8 of that covers 5 of 8 pixels."""
    half = 4 * np.tan(np.radians(16)) * 5 / 8
    mesh = plate(0.0, [(-half, -half), (half, -half), (half, half), (-half, half)])
    layers = render(mesh, FRONT, scene=PLAIN, size=16, samples=2)
    expected = np.zeros((16, 16))
    expected[3:13, 3:13] = 255
    assert (layers[0, 0] == expected).all()
    assert (layers[0, 1] == 0).all()


def test_cover_of_a_ball_is_the_area_of_its_outline() -> None:
    cosine, sine = circle(np.arange(65) / 128)
    ball = lathe(np.stack([sine, -cosine], axis=1), 128)
    cover = render(ball, orbit(0.13, 0.05), scene=PLAIN, size=64, samples=3)[0, 0].sum() / 255
    # A ball of radius 1 at distance 4 is seen under asin(1/4), a disk of radius tan(asin(1/4)) at distance 1.
    radius = 32 * np.tan(np.arcsin(0.25)) / np.tan(np.radians(16))
    assert cover == pytest.approx(np.pi * radius**2, rel=0.002)


@pytest.mark.parametrize("seed", range(5))
def test_triangles_that_share_edges_leave_no_hole(seed: int) -> None:
    """A plate larger than the frame, cut into a fan around any point, covers every sample."""
    rng = np.random.default_rng(seed)
    cosine, sine = circle((np.arange(9) + rng.uniform(-0.3, 0.3, 9)) / 9)
    hub = rng.uniform(-0.5, 0.5, 2)
    points = [(0.0, *hub), *zip(np.zeros(9), 2 * cosine, 2 * sine, strict=True)]
    mesh = flat_mesh(points, [[0, 1 + k, 1 + (k + 1) % 9] for k in range(9)])
    scene = Scene(distance=4.0, field_of_view=20.0, ambient=1.0, background=1.0)
    cover, background = render(mesh, FRONT, scene=scene, size=32, samples=3)[0]
    assert (cover == 255).all()
    assert (background == 0).all()


def test_light_falls_with_the_cosine_and_the_side_that_is_seen_is_lit() -> None:
    """A plate that faces the camera has the cosine of the light's third coordinate, from either side."""
    scene = Scene(light=(0.0, 3.0, 4.0), ambient=0.2, highlight=0.0)
    square = [(-2.0, -2.0), (2.0, -2.0), (2.0, 2.0), (-2.0, 2.0)]
    front = plate(0.0, square)
    back = flat_mesh(front.vertices, front.faces[:, ::-1])
    expected = round(255 * (0.2 + 0.8 * 4 / 5))
    for mesh in (front, back):
        assert (render(mesh, FRONT, scene=scene, size=8)[0, 0] == expected).all()
        assert (render(mesh, orbit(0.5, 0.0), scene=scene, size=8)[0, 0] == expected).all()


def test_highlight_has_its_strength_and_its_sharpness() -> None:
    """On a plate that faces the camera the half-way vector has a cosine of sqrt((1 + l) / 2), l = 4/5."""
    scene = Scene(light=(0.0, 3.0, 4.0), highlight=0.6, sharpness=3)
    square = [(-2.0, -2.0), (2.0, -2.0), (2.0, 2.0), (-2.0, 2.0)]
    expected = 255 * 0.6 * 0.9**4
    assert (render(plate(0.0, square), FRONT, scene=scene, size=8)[0, 1] == round(expected)).all()


def test_views_are_rotations_and_show_what_they_say() -> None:
    views = orbit(np.array([0.0, 0.1, 0.4, 0.77]), np.array([0.0, 0.25, -0.1, 0.2]))
    for view in views:
        np.testing.assert_allclose(view @ view.T, np.eye(3), atol=1e-15)
        assert np.linalg.det(view) == pytest.approx(1)
    assert orbit(0.0, 0.0)[0].tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    assert orbit(0.0, 0.25)[0].tolist() == [[0, 1, 0], [-1, 0, 0], [0, 0, 1]], "straight down, x to the foot"
    assert (orbit(np.arange(8) / 8 + 1, 0.1) == orbit(np.arange(8) / 8, 0.1)).all()


def test_the_pole_is_passed_without_a_flip() -> None:
    below, at, above = render(cluttered(), orbit(0.1, np.array([0.249, 0.25, 0.251])), scene=SCENE).astype(int)
    assert np.abs(below - at).mean() < 2
    assert np.abs(above - at).mean() < 2
    assert np.abs(at - at[:, ::-1, ::-1]).mean() > 8, "a flip would be seen"


def assert_same_bytes(layers: UInt8Array, others: UInt8Array) -> None:
    assert layers.shape == others.shape
    assert (layers == others).all()


def exact(mesh: Mesh, view: FloatArray, scene: Scene, size: int, samples: int) -> UInt8Array:
    """Layers by the promised arithmetic: corners in 1/256 of a sample, depth in 24 bits, light in 16."""
    (cosine,), (sine,) = circle(np.array([scene.field_of_view / 720]))
    half, centres = size * samples * 128.0, np.arange(size * samples) * 256.0 + 128.0
    px, py = centres[None, :], centres[:, None]
    right, up, back = (view[k, 0] * mesh.vertices[:, 0] + view[k, 1] * mesh.vertices[:, 1] for k in range(3))
    right, up, back = (part + view[k, 2] * mesh.vertices[:, 2] for k, part in enumerate((right, up, back)))
    away = scene.distance - back
    scale = half * cosine / sine / away
    x, y = np.floor(half + right * scale + 0.5), np.floor(half - up * scale + 0.5)
    depth = np.floor(scene.distance * 0.05 / away * 2**24)
    light = np.asarray(scene.light) / length(np.asarray(scene.light))
    middle = light + np.array([0.0, 0.0, 1.0])
    middle = middle / length(middle)
    nearest = np.full((size * samples, size * samples), -1, dtype=np.int64)
    shades = np.zeros((mesh.paint.shape[1] + 1, *nearest.shape), dtype=np.int64)
    shades[-1] = np.floor(scene.background * 65535 + 0.5)
    for face, (a, b, c) in enumerate(mesh.faces):
        area = (x[b] - x[a]) * (y[c] - y[a]) - (x[c] - x[a]) * (y[b] - y[a])
        if area == 0:
            continue
        w0, w1, w2 = ((x[k] - x[j]) * (py - y[j]) - (px - x[j]) * (y[k] - y[j]) for j, k in ((b, c), (c, a), (a, b)))
        inside = np.minimum(np.minimum(w0 * area, w1 * area), w2 * area) >= 0
        # The order of a sum decides its last bit: seen from behind, the loop swaps the last two corners.
        first, second = (w1 * depth[b], w2 * depth[c]) if area > 0 else (w2 * depth[c], w1 * depth[b])
        near = (np.sign(area) * (w0 * depth[a] + first + second) * (1.0 / abs(area))).astype(np.int64)
        seen = inside & (near >= nearest)  # of equals the later face
        nearest[seen] = near[seen]
        side = -1.0 if area > 0 else 1.0
        w0, w1, w2 = (w * (1.0 / area) for w in (w0, w1, w2))
        normal = [
            (w0 * mesh.normals[face, 0, k] + w1 * mesh.normals[face, 1, k] + w2 * mesh.normals[face, 2, k]) * side
            for k in range(3)
        ]
        nx, ny, nz = (part[seen] for part in normal)
        norm = 1.0 / np.sqrt(nx * nx + ny * ny + nz * nz)
        turned = [(view[k, 0] * nx + view[k, 1] * ny + view[k, 2] * nz) * norm for k in range(3)]
        facing, shine = (
            np.maximum(to[0] * turned[0] + to[1] * turned[1] + to[2] * turned[2], 0.0) for to in (light, middle)
        )
        for _ in range(scene.sharpness):
            shine = shine * shine
        for layer, paint in enumerate(mesh.paint[face]):
            shades[layer][seen] = np.floor((scene.ambient + (1 - scene.ambient) * facing) * paint * 65535 + 0.5)
        shades[-1][seen] = np.floor(scene.highlight * shine * 65535 + 0.5)
    total = shades.reshape(len(shades), size, samples, size, samples).sum(axis=(2, 4))
    parts = samples * samples * 65535
    return np.minimum((total * 510 + parts) // (2 * parts), 255).astype(np.uint8)


@pytest.mark.parametrize("samples", [1, 2, 3])
def test_bytes_are_those_of_the_promised_arithmetic(samples: int) -> None:
    rng = np.random.default_rng(samples)
    teapot = teapot_mesh(2)
    meshes = [
        cluttered(),
        replace(teapot, vertices=0.28 * teapot.vertices).painted((0.5, 0.5)),
        box((-1, -1, -1), (1, 1, 0)).painted((0, 1)),
    ]
    which = np.array([0, 1, 2, 0])
    views = orbit(rng.uniform(0, 1, 4), rng.uniform(-0.25, 0.25, 4))
    scene = Scene(4.0, 36.0, highlight=0.5, background=0.3)
    drawn = render(meshes, views, which=which, scene=scene, size=32, samples=samples)
    expected = [exact(meshes[m], view, scene, 32, samples) for m, view in zip(which, views, strict=True)]
    assert_same_bytes(drawn, np.stack(expected))


def test_a_view_does_not_depend_on_its_company() -> None:
    meshes, views = [cluttered(), box((-1, -1, -1), (1, 1, 1)).painted((0.3, 0.3))], orbit(np.arange(4) / 7, 0.1)
    together = render(meshes, views, which=[0, 1, 1, 0], scene=SCENE, size=24)
    for k, mesh in enumerate([0, 1, 1, 0]):
        assert_same_bytes(together[k : k + 1], render(meshes[mesh], views[k : k + 1], scene=SCENE, size=24))


def test_order_of_faces_does_not_matter() -> None:
    mesh = cluttered()
    shuffled = np.random.default_rng(0).permutation(len(mesh.faces))
    other = Mesh(mesh.vertices, mesh.faces[shuffled], mesh.normals[shuffled], mesh.paint[shuffled])
    a, b = (render(m, orbit(0.3, 0.1), scene=SCENE, size=64, samples=1).astype(int) for m in (mesh, other))
    assert (np.abs(a - b).max(axis=1) > 0).mean() < 0.002, "only where two faces are equally near"


def test_compose_is_the_sum_of_paints_and_white() -> None:
    rng = np.random.default_rng(0)
    layers = rng.integers(0, 256, (5, 4, 6, 7), dtype=np.uint8)
    layers[:, :3] //= 3  # paints share the light
    colours, which = rng.random((9, 3, 3)), rng.integers(0, 5, 9)
    expected = np.einsum("nkhw,nkc->nhwc", layers[which, :3].astype(float), colours) + layers[which, 3][..., None]
    images = compose(layers, colours, which)
    assert images.shape == (9, 6, 7, 3)
    assert np.abs(images - np.minimum(expected, 255)).max() <= 0.51
    assert (images == 255).any()


def test_compose_with_extreme_colours_changes_nothing() -> None:
    layers = np.arange(256, dtype=np.uint8).reshape(1, 1, 16, 16).repeat(2, axis=1)
    layers[:, 1] = 0
    grey = compose(layers, [[[1.0, 0.0, 2.0]]])
    assert (grey[0, ..., 0] == layers[0, 0]).all()
    assert (grey[0, ..., 1] == 0).all()
    assert (grey[0, ..., 2] == layers[0, 0]).all(), "colours are clipped to [0, 1]"
