"""A z-buffer triangle rasteriser that gives the same bytes on every machine.

Projected corners are snapped to 1/256 of a sample, so that whether a triangle covers a sample is exact
arithmetic on whole numbers (held in float64, well below 2 ** 53); depth becomes a whole number of 24 bits;
light becomes a whole number of 16 bits before samples are summed. What is left in between is IEEE
arithmetic in a fixed order. See `_meshes` for the other half of the promise.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numba
import numpy as np

from unbraid.base.types import ArrayLike, FloatArray, UInt8Array
from unbraid.datasets.rendering.meshes import Mesh, circle, join, length

GRID = 256  # sub-sample positions per sample and axis
DEPTH = 1 << 24  # depth levels from the nearest plane to infinity
LIGHT = 65535  # levels of light per sample
NEAREST = 0.05  # of the camera's distance: what comes closer to the camera than this cannot be drawn


@dataclass(frozen=True)
class Scene:
    """Camera and light. The light is directional and fixed to the camera, which looks at the origin."""

    distance: float = 4.0
    field_of_view: float = 32.0  # degrees, of the whole frame
    light: tuple[float, float, float] = (-0.45, 0.65, 1.0)  # towards the light: right, up, to the viewer
    ambient: float = 0.3  # light that reaches every face; the rest depends on the angle
    highlight: float = 0.0  # strength of the white highlight
    sharpness: int = 5  # the highlight falls with the cosine to the power 2 ** sharpness
    background: float = 0.0  # grey level


def orbit(azimuth: ArrayLike, elevation: ArrayLike) -> FloatArray:
    """Views (n, 3, 3) of a camera that circles the z axis and looks at the origin.

    Args:
        azimuth, elevation: (n,) or one number, in turns. Elevation 0 looks along the horizon and .25
            straight down, without a flip at the pole.

    Returns:
        Rows of each view are the directions right, up, and from the origin to the camera.
    """
    azimuth, elevation = np.broadcast_arrays(np.atleast_1d(azimuth), np.atleast_1d(elevation))
    (ca, sa), (ce, se) = circle(azimuth), circle(elevation)
    zero = np.zeros_like(ca)
    right = np.stack([-sa, ca, zero], axis=-1)
    up = np.stack([-ca * se, -sa * se, ce], axis=-1)
    back = np.stack([ca * ce, sa * ce, se], axis=-1)
    return np.stack([right, up, back], axis=1)


def render(
    meshes: Mesh | Sequence[Mesh],
    views: FloatArray,
    *,
    which: ArrayLike = 0,
    scene: Scene | None = None,
    size: int = 64,
    samples: int = 2,
) -> UInt8Array:
    """Layers of light, from which `compose` makes images of any colours.

    Args:
        meshes: one mesh, or several with equally many paints.
        views: (n, 3, 3) from `orbit`.
        which: (n,) the mesh in each view, or one number for all.
        scene: camera and light; `Scene()` by default.
        size: pixels per side.
        samples: samples per pixel and axis; 2 means that a pixel is the mean of 4.

    Returns:
        (n, n_paints + 1, size, size) uint8. One layer per paint says how much of the light of that paint
        reaches the pixel; the last adds white: highlights and background.

    Raises:
        ValueError: a mesh reaches behind the camera.
    """
    scene = Scene() if scene is None else scene
    meshes = [meshes] if isinstance(meshes, Mesh) else list(meshes)
    views = np.ascontiguousarray(views, dtype=np.float64)
    which = np.array(np.broadcast_to(np.asarray(which, dtype=np.int64), (len(views),)))
    whole = join(meshes)
    reach = length(whole.vertices).max()
    if not reach < scene.distance * (1 - NEAREST):
        raise ValueError(
            f"a mesh reaches {reach:.3g} from the origin and the camera stands at {scene.distance:.3g}: "
            "move it back, or scale the mesh"
        )
    arrays = (whole.vertices, whole.faces, whole.normals, whole.paint)
    vertices, faces, normals, paint = (np.ascontiguousarray(array) for array in arrays)
    # Where the rows of each mesh begin among those of all, and where the last end.
    vertex_starts = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    face_starts = np.cumsum([0, *(len(mesh.faces) for mesh in meshes)])
    lens = _lens(scene, size * samples)
    out = np.empty((len(views), paint.shape[1] + 1, size, size), dtype=np.uint8)
    starts = vertex_starts, face_starts
    _render_views(vertices, faces, normals, paint, *starts, which, views, lens, size, samples, scene.sharpness, out)
    return out


def compose(layers: UInt8Array, colours: ArrayLike, which: ArrayLike | None = None) -> UInt8Array:
    """Images from layers of light: the sum of layer times colour, plus the last layer in white.

    Args:
        layers: (n_layers, n_paints + 1, height, width) uint8, from `render`.
        colours: (n, n_paints, 3) RGB in [0, 1], one per paint and image.
        which: (n,) the row of `layers` for each image; by default image k is of row k.

    Returns:
        (n, height, width, 3) uint8. Colours are rounded to 16 bits and the arithmetic is exact from there.
    """
    colours = np.asarray(colours, dtype=np.float64)
    which = np.arange(len(colours)) if which is None else np.asarray(which)
    levels = np.rint(np.clip(colours, 0, 1) * LIGHT).astype(np.int64)
    out = np.empty((len(colours), *layers.shape[2:], 3), dtype=np.uint8)
    if len(out):
        _compose(layers, which.astype(np.int64), levels.astype(np.uint32), out)
    return out


def _lens(scene: Scene, samples_across: int) -> FloatArray:
    """The numbers of camera and light that the compiled loops read, in one row."""
    cosine, sine = (float(part) for part in circle(scene.field_of_view / 720))
    half = samples_across * GRID / 2
    light = np.asarray(scene.light, dtype=np.float64)
    light = light / length(light)
    middle = light + np.array([0.0, 0.0, 1.0])
    middle = middle / length(middle)
    return np.array(
        [
            scene.distance,
            half * cosine / sine,
            half,
            scene.distance * NEAREST,
            *light,
            *middle,
            scene.ambient,
            scene.highlight,
            scene.background,
        ]
    )


@numba.njit(cache=True)
def _render_views(
    vertices, faces, normals, paint, vertex_start, face_start, which, views, lens, size, samples, sharpness, out
):  # pragma: no cover
    across = size * samples
    best = np.empty((across, across), np.int64)
    most = 0
    for m in range(len(vertex_start) - 1):
        most = max(most, vertex_start[m + 1] - vertex_start[m])
    x, y, depth = np.empty(most), np.empty(most), np.empty(most)
    total = np.empty((out.shape[1], size, size), np.int64)
    for n in range(len(views)):
        m = which[n]
        first = vertex_start[m]
        _project(vertices[first : vertex_start[m + 1]], views[n], lens, x, y, depth)
        best[:] = -1
        for face in range(face_start[m], face_start[m + 1]):
            _cover(x, y, depth, faces, first, face, best)
        total[:] = 0
        _shade(x, y, faces, first, normals, paint, views[n], lens, samples, sharpness, best, total)
        parts = samples * samples * LIGHT
        for layer in range(out.shape[1]):
            for row in range(size):
                for column in range(size):
                    level = (total[layer, row, column] * 510 + parts) // (2 * parts)
                    out[n, layer, row, column] = min(level, 255)


@numba.njit(cache=True)
def _project(vertices, view, lens, x, y, depth):  # pragma: no cover
    distance, focal, half, near = lens[0], lens[1], lens[2], lens[3]
    for v in range(len(vertices)):
        px, py, pz = vertices[v, 0], vertices[v, 1], vertices[v, 2]
        right = view[0, 0] * px + view[0, 1] * py + view[0, 2] * pz
        up = view[1, 0] * px + view[1, 1] * py + view[1, 2] * pz
        away = distance - (view[2, 0] * px + view[2, 1] * py + view[2, 2] * pz)
        scale = focal / away
        x[v] = np.floor(half + right * scale + 0.5)
        y[v] = np.floor(half - up * scale + 0.5)
        depth[v] = np.floor(near / away * DEPTH)


@numba.njit(cache=True)
def _cover(x, y, depth, faces, first, face, best):  # pragma: no cover
    a, b, c = faces[face, 0] - first, faces[face, 1] - first, faces[face, 2] - first
    x0, y0, x1, y1, x2, y2 = x[a], y[a], x[b], y[b], x[c], y[c]
    area = (x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)
    if area == 0:
        return
    if area < 0:
        # Seen from behind: swap two corners, so that one test serves both sides.
        area, b, c, x1, y1, x2, y2 = -area, c, b, x2, y2, x1, y1
    share = 1.0 / area
    d0, d1, d2 = depth[a], depth[b], depth[c]
    last = len(best) - 1
    left = max(0, int(np.ceil((min(x0, x1, x2) - GRID // 2) / GRID)))
    right = min(last, int(np.floor((max(x0, x1, x2) - GRID // 2) / GRID)))
    top = max(0, int(np.ceil((min(y0, y1, y2) - GRID // 2) / GRID)))
    bottom = min(last, int(np.floor((max(y0, y1, y2) - GRID // 2) / GRID)))
    px = left * GRID + GRID // 2
    step0, step1, step2 = (y1 - y2) * GRID, (y2 - y0) * GRID, (y0 - y1) * GRID
    for row in range(top, bottom + 1):
        py = row * GRID + GRID // 2
        w0 = (x2 - x1) * (py - y1) - (px - x1) * (y2 - y1)
        w1 = (x0 - x2) * (py - y2) - (px - x2) * (y0 - y2)
        w2 = (x1 - x0) * (py - y0) - (px - x0) * (y1 - y0)
        for column in range(left, right + 1):
            if w0 >= 0 and w1 >= 0 and w2 >= 0:
                key = (int((w0 * d0 + w1 * d1 + w2 * d2) * share) << 32) | face
                if key > best[row, column]:
                    best[row, column] = key
            w0, w1, w2 = w0 + step0, w1 + step1, w2 + step2


@numba.njit(cache=True)
def _shade(x, y, faces, first, normals, paint, view, lens, samples, sharpness, best, total):  # pragma: no cover
    n_paints = paint.shape[1]
    ambient, highlight, background = lens[10], lens[11], lens[12]
    blank = int(np.floor(background * LIGHT + 0.5))
    for row in range(len(best)):
        for column in range(len(best)):
            key = best[row, column]
            if key < 0:
                total[n_paints, row // samples, column // samples] += blank
                continue
            face = key & 0xFFFFFFFF
            a, b, c = faces[face, 0] - first, faces[face, 1] - first, faces[face, 2] - first
            x0, y0, x1, y1, x2, y2 = x[a], y[a], x[b], y[b], x[c], y[c]
            px, py = column * GRID + GRID // 2, row * GRID + GRID // 2
            area = (x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)
            share = 1.0 / area
            w0 = ((x2 - x1) * (py - y1) - (px - x1) * (y2 - y1)) * share
            w1 = ((x0 - x2) * (py - y2) - (px - x2) * (y0 - y2)) * share
            w2 = ((x1 - x0) * (py - y0) - (px - x0) * (y1 - y0)) * share
            # y runs down the frame, so a positive area is a face seen from behind.
            side = -1.0 if area > 0 else 1.0
            nx = (w0 * normals[face, 0, 0] + w1 * normals[face, 1, 0] + w2 * normals[face, 2, 0]) * side
            ny = (w0 * normals[face, 0, 1] + w1 * normals[face, 1, 1] + w2 * normals[face, 2, 1]) * side
            nz = (w0 * normals[face, 0, 2] + w1 * normals[face, 1, 2] + w2 * normals[face, 2, 2]) * side
            size = 1.0 / np.sqrt(nx * nx + ny * ny + nz * nz)
            across = (view[0, 0] * nx + view[0, 1] * ny + view[0, 2] * nz) * size
            up = (view[1, 0] * nx + view[1, 1] * ny + view[1, 2] * nz) * size
            back = (view[2, 0] * nx + view[2, 1] * ny + view[2, 2] * nz) * size
            facing = max(lens[4] * across + lens[5] * up + lens[6] * back, 0.0)
            lit = ambient + (1 - ambient) * facing
            for k in range(n_paints):
                level = int(np.floor(lit * paint[face, k] * LIGHT + 0.5))
                total[k, row // samples, column // samples] += level
            if highlight > 0:
                shine = max(lens[7] * across + lens[8] * up + lens[9] * back, 0.0)
                for _ in range(sharpness):
                    shine = shine * shine
                total[n_paints, row // samples, column // samples] += int(np.floor(highlight * shine * LIGHT + 0.5))


@numba.njit(cache=True)
def _compose(layers, which, levels, out):  # pragma: no cover
    n_paints = levels.shape[1]
    flat = layers.reshape((layers.shape[0], layers.shape[1], -1))
    pixels = out.reshape((len(out), -1, 3))
    total = np.empty(flat.shape[2], np.uint32)
    for n in range(len(out)):
        light = flat[which[n]]
        for channel in range(3):
            total[:] = LIGHT // 2
            for k in range(n_paints):
                level = levels[n, k, channel]
                if level > 0:
                    for p in range(len(total)):
                        total[p] += np.uint32(light[k, p]) * level
            for p in range(len(total)):
                white = np.uint32(light[n_paints, p])
                pixels[n, p, channel] = min(total[p] // np.uint32(LIGHT) + white, np.uint32(255))
