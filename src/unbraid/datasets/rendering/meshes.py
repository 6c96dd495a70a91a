"""Triangle meshes made from figures: the Newell teapot, lathes, boxes and slabs.

Everything here and in `_raster` is built from +, -, *, / and square roots, element by element: those
are rounded alike by every processor, so a mesh, and with it an image, is the same to the byte anywhere.
Sines, powers and matrix products of a library are not, and are kept out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

import numpy as np

from unbraid.base.types import ArrayLike, FloatArray, IntArray

TAU = 6.283185307179586


def circle(turns: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Cosine and sine of an angle in turns, correct to 2e-16 and equal to the last bit on every machine.

    Whole turns drop out exactly, so turn 1 is turn 0.

    Example:
        >>> from unbraid.datasets.rendering.meshes import circle
        >>> [float(value) for value in circle(1.25)]
        [0.0, 1.0]
    """
    turns = np.asarray(turns, dtype=np.float64)
    quarter = np.rint(4 * turns)
    x = (turns - quarter / 4) * TAU
    square = x * x
    cosine, sine = np.ones_like(x), np.ones_like(x)
    for k in range(18, 0, -2):
        cosine = 1 - square / (k * (k - 1)) * cosine
        sine = 1 - square / (k * (k + 1)) * sine
    sine = x * sine
    quarter = quarter.astype(np.int64) % 4
    flipped = np.where(quarter >= 2, -1.0, 1.0)
    odd = quarter % 2 == 1
    return flipped * np.where(odd, -sine, cosine) + 0.0, flipped * np.where(odd, cosine, sine) + 0.0


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles with a normal at each corner, pointing to the side that the winding calls the front."""

    vertices: FloatArray  # (n_vertices, 3), z up
    faces: IntArray  # (n_faces, 3) rows of vertices, counter-clockwise from the front
    normals: FloatArray  # (n_faces, 3, 3) unit normal at each corner
    paint: FloatArray  # (n_faces, n_paints) share of each paint in [0, 1]; rows sum to at most 1

    def painted(self, paint: Sequence[float] | FloatArray) -> "Mesh":
        """The same mesh with one paint row for all faces, or a row (n_faces, n_paints) for each."""
        rows = np.broadcast_to(np.asarray(paint, dtype=np.float64), (len(self.faces), np.shape(paint)[-1]))
        return replace(self, paint=np.ascontiguousarray(rows))

    def moved(self, shift: Sequence[float]) -> "Mesh":
        return replace(self, vertices=self.vertices + np.asarray(shift, dtype=np.float64))

    def of_unit_radius(self) -> "Mesh":
        return replace(self, vertices=unit_radius(self.vertices))


def flat_mesh(vertices: ArrayLike, faces: ArrayLike, paint: Sequence[float] = (1.0,)) -> Mesh:
    """A mesh with one normal per face; triangles without area are left out.

    The renderer lights the side of a flat face that it sees, so the winding of `faces` is free.
    """
    vertices = np.asarray(vertices, dtype=np.float64)
    faces = np.asarray(faces, dtype=np.int64).reshape(-1, 3)
    normals, area = _face_normals(vertices, faces)
    faces, normals = faces[area > 0], normals[area > 0]
    mesh = Mesh(vertices, faces, np.repeat(normals[:, None, :], 3, axis=1), np.empty((len(faces), 0)))
    return mesh.painted(paint)


def join(meshes: Iterable[Mesh]) -> Mesh:
    """One mesh of several with equally many paints."""
    parts = list(meshes)
    starts = np.cumsum([0, *(len(part.vertices) for part in parts)])
    return Mesh(
        np.concatenate([part.vertices for part in parts]),
        np.concatenate([part.faces + start for part, start in zip(parts, starts, strict=False)]),
        np.concatenate([part.normals for part in parts]),
        np.concatenate([part.paint for part in parts]),
    )


def fan_triangles(polygons: Iterable[Sequence[int]]) -> IntArray:
    """(n_triangles, 3) triangles of polygons given as rows of vertex numbers: a fan from the first corner.

    Example:
        >>> from unbraid.datasets.rendering.meshes import fan_triangles
        >>> fan_triangles([[0, 1, 2], [4, 5, 6, 7]]).tolist()
        [[0, 1, 2], [4, 5, 6], [4, 6, 7]]
    """
    fans = [(corners[0], corners[i], corners[i + 1]) for corners in polygons for i in range(1, len(corners) - 1)]
    return np.array(fans, dtype=np.int64).reshape(-1, 3)


def unit_radius(vertices: ArrayLike) -> FloatArray:
    """Vertices moved so that their bounding box is centred on the origin and scaled so that the farthest is at 1.

    Raises:
        ValueError: one is not finite, or all are in one place.
    """
    vertices = np.asarray(vertices, dtype=np.float64)
    if not np.isfinite(vertices).all():
        row = int(np.argmin(np.isfinite(vertices).all(axis=1)))
        raise ValueError(f"vertices must be finite; row {row} is {vertices[row].tolist()}")
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    centred = vertices - (low + (high - low) / 2)
    radius = length(centred).max()
    if radius == 0:
        raise ValueError("all vertices are in one place: the mesh has no size")
    return centred / radius


def length(vectors: FloatArray) -> FloatArray:
    """Euclidean length along the last axis of 3."""
    x, y, z = np.moveaxis(vectors, -1, 0)
    return np.sqrt(x * x + y * y + z * z)


def unit(vectors: FloatArray) -> FloatArray:
    """Vectors of length 1 in the same directions."""
    return vectors / length(vectors)[..., None]


def box(low: Sequence[float], high: Sequence[float]) -> Mesh:
    """The box between two opposite corners."""
    (x0, y0, z0), (x1, y1, z1) = low, high
    return loft([[(x0, y0, z), (x1, y0, z), (x1, y1, z), (x0, y1, z)] for z in (z0, z1)])


def slab(root: ArrayLike, tip: ArrayLike, thickness: float, axis: int) -> Mesh:
    """A wing: the quadrilateral between two chords, thickened along `axis`.

    Args:
        root: (2, 3) leading and trailing end of the chord at the root.
        tip: (2, 3) the same at the tip.
        thickness: at the root; the tip has half of it.
        axis: 0, 1 or 2, the direction of the thickness.
    """
    rings = []
    for chord, half in ((root, thickness / 2), (tip, thickness / 4)):
        front, back = np.asarray(chord, dtype=np.float64)
        off = np.eye(3)[axis] * half
        rings.append([front, (front + back) / 2 + off, back, (front + back) / 2 - off])
    return loft(rings)


def loft(rings: ArrayLike, smooth: bool = False) -> Mesh:
    """The skin through closed rings of equally many points, its two ends capped.

    Args:
        rings: (n_rings, n_points, 3); rings run counter-clockwise as seen from the last one.
        smooth: one normal per point, the mean of the faces around it, instead of one per face; caps stay flat.
    """
    points = np.asarray(rings, dtype=np.float64)
    n_rings, n_points = points.shape[:2]
    number = np.arange(n_rings * n_points).reshape(n_rings, n_points)
    a, b = number[:-1], np.roll(number, -1, axis=1)[:-1]
    c, d = np.roll(number, -1, axis=1)[1:], number[1:]
    quads = np.stack([a, b, c, a, c, d], axis=-1)
    caps = np.concatenate([fan_triangles([number[0, ::-1].tolist()]), fan_triangles([number[-1].tolist()])])
    vertices = points.reshape(-1, 3)
    skin, ends = flat_mesh(vertices, quads), flat_mesh(vertices, caps)
    if smooth:
        skin = replace(skin, normals=_smooth_normals(vertices, skin.faces)[skin.faces])
    return Mesh(
        vertices,
        np.concatenate([skin.faces, ends.faces]),
        np.concatenate([skin.normals, ends.normals]),
        np.concatenate([skin.paint, ends.paint]),
    )


def lathe(profile: ArrayLike, n_around: int, axis: int = 2, smooth: bool = True) -> Mesh:
    """A profile turned once around an axis.

    Args:
        profile: (n_knots, 2) radius and position along the axis, position increasing.
        n_around: points per ring.
        axis: 0, 1 or 2.
        smooth: shade as a round body rather than as facets.
    """
    radius, along = np.asarray(profile, dtype=np.float64).T
    cosine, sine = circle(np.arange(n_around) / n_around)
    rings = np.empty((len(radius), n_around, 3))
    rings[..., (axis + 1) % 3] = radius[:, None] * cosine
    rings[..., (axis + 2) % 3] = radius[:, None] * sine
    rings[..., axis] = along[:, None]
    return loft(rings, smooth)


@cache
def teapot_mesh(segments: int = 6) -> Mesh:
    """The Utah teapot, centred, with 64 * segments ** 2 triangles less those without area.

    Its 32 bicubic patches are evaluated from the control points, and the normals from their derivatives.
    """
    points, patches = teapot_patches()
    steps = np.arange(segments + 1) / segments
    corners = _patch(points[patches], _bernstein(steps), _bernstein(steps))
    # At the cusps of the lid and of the bottom one derivative vanishes; a hair away it does not.
    inside = np.clip(steps, 2.0**-20, 1 - 2.0**-20)
    weights, slopes = _bernstein(inside), _bernstein_slope(inside)
    along = _patch(points[patches], slopes, weights)
    across = _patch(points[patches], weights, slopes)
    normals = unit(_cross(along, across)).reshape(-1, 3)
    number = np.arange(32 * (segments + 1) ** 2).reshape(32, segments + 1, segments + 1)
    a, b, c, d = number[:, :-1, :-1], number[:, 1:, :-1], number[:, 1:, 1:], number[:, :-1, 1:]
    faces = np.stack([a, b, c, a, c, d], axis=-1).reshape(-1, 3)
    vertices = corners.reshape(-1, 3)
    faces = faces[_face_normals(vertices, faces)[1] > 0]
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    return Mesh(vertices - (low + high) / 2, faces, normals[faces], np.ones((len(faces), 1)))


@cache
def teapot_patches() -> tuple[FloatArray, IntArray]:
    """Newell's control points (290, 3) and the 32 patches (32, 4, 4) of their numbers."""
    lines = (files("unbraid.datasets") / "newell_teapot.txt").read_text(encoding="ascii").splitlines()
    points = [line.split()[1:] for line in lines if line.startswith("point")]
    patches = [line.split()[1:] for line in lines if line.startswith("patch")]
    return np.array(points, dtype=np.float64), np.array(patches, dtype=np.int64).reshape(32, 4, 4)


def _bernstein(t: FloatArray) -> FloatArray:
    s = 1 - t
    return np.stack([s * s * s, 3 * s * s * t, 3 * s * t * t, t * t * t])


def _bernstein_slope(t: FloatArray) -> FloatArray:
    s = 1 - t
    return np.stack([-3 * s * s, 3 * s * s - 6 * s * t, 6 * s * t - 3 * t * t, 3 * t * t])


def _patch(control: FloatArray, rows: FloatArray, columns: FloatArray) -> FloatArray:
    """(n_patches, n, n, 3) from control points (n_patches, 4, 4, 3): a sum in a fixed order."""
    out = np.zeros((len(control), rows.shape[1], columns.shape[1], 3))
    for i in range(4):
        for j in range(4):
            out += (rows[i][:, None] * columns[j])[:, :, None] * control[:, i, j][:, None, None, :]
    return out


def _cross(a: FloatArray, b: FloatArray) -> FloatArray:
    ax, ay, az = np.moveaxis(a, -1, 0)
    bx, by, bz = np.moveaxis(b, -1, 0)
    return np.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], axis=-1)


def _face_normals(vertices: FloatArray, faces: IntArray) -> tuple[FloatArray, FloatArray]:
    """Unit normals (n_faces, 3) and twice the areas (n_faces,); a face without area keeps a zero normal."""
    a, b, c = vertices[faces[:, 0]], vertices[faces[:, 1]], vertices[faces[:, 2]]
    normals = _cross(b - a, c - a)
    area = length(normals)
    area = np.where(area > 1e-12, area, 0.0)
    return normals / np.where(area > 0, area, 1.0)[:, None], area


def _smooth_normals(vertices: FloatArray, faces: IntArray) -> FloatArray:
    """(n_vertices, 3) mean normal of the faces around each vertex, weighted by area; z where there is none."""
    a, b, c = vertices[faces[:, 0]], vertices[faces[:, 1]], vertices[faces[:, 2]]
    normals = _cross(b - a, c - a)
    total = np.zeros_like(vertices)
    for corner in range(3):
        np.add.at(total, faces[:, corner], normals)
    # Points in one place, such as the nose of a lathe, share their normal.
    _, place = np.unique(np.rint(vertices * 65536), axis=0, return_inverse=True)
    merged = np.zeros((place.max() + 1, 3))
    np.add.at(merged, place.reshape(-1), total)
    total = merged[place.reshape(-1)]
    empty = length(total) == 0
    total[empty] = (0.0, 0.0, 1.0)
    return unit(total)
