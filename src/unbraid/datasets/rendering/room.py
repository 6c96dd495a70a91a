"""The room of `shapes3d_rendered`: rays meet a box, cylinder, sphere or capsule in closed form.

Like `_raster`, only IEEE arithmetic in a fixed order, so that the layers are the same bytes on every machine.
"""

import numba
import numpy as np

from unbraid.base.types import UInt8Array
from unbraid.datasets.rendering.meshes import circle, unit

SHAPES = ("cube", "cylinder", "sphere", "capsule")
HALF_WIDTH = 3.6  # of the square room
DISTANCE, HEIGHT, AIM = 4.4, 2.1, 0.65  # of the camera from the axis and above the floor; height it looks at
FIELD_OF_VIEW = 41.0  # degrees
LAMP = (2.2, -2.0, 5.4)
AMBIENT = 0.35
SHINE, SHARPNESS = 0.45, 5  # of the object; the cosine to the power 2 ** SHARPNESS
LIGHT = 65535
NONE = 1e30


def room_layers(shape: int, scale: float, orientation: float, size: int = 64, samples: int = 4) -> UInt8Array:
    """Layers of light (4, size, size) for `compose`: floor, wall, object, and white.

    Args:
        shape: row of SHAPES.
        scale: of the object, 1 being the middle of the set.
        orientation: degrees by which the camera has gone round the room.
        size: pixels per side.
        samples: samples per pixel and axis.
    """
    cosine, sine = (float(part) for part in circle(orientation / 360))
    half_cosine, half_sine = (float(part) for part in circle(FIELD_OF_VIEW / 720))
    eye = np.array([DISTANCE * cosine, DISTANCE * sine, HEIGHT])
    back = unit(eye - np.array([0.0, 0.0, AIM]))
    right = np.array([-sine, cosine, 0.0])
    up = np.array([-back[2] * cosine, -back[2] * sine, back[0] * cosine + back[1] * sine])
    view = np.stack([right, up, back])
    out = np.empty((4, size, size), dtype=np.uint8)
    _cast(shape, scale, eye, view, half_sine / half_cosine, np.array(LAMP), samples, out)
    return out


@numba.njit(cache=True)
def _cast(shape, scale, eye, view, tangent, lamp, samples, out):  # pragma: no cover
    size = out.shape[1]
    parts = samples * samples * LIGHT
    total = np.empty(4, np.int64)
    origin = (eye[0], eye[1], eye[2])
    for row in range(size):
        for column in range(size):
            total[:] = 0
            for k in range(samples * samples):
                x = ((column * samples + k % samples + 0.5) / (size * samples) * 2 - 1) * tangent
                y = (1 - (row * samples + k // samples + 0.5) / (size * samples) * 2) * tangent
                ray = (
                    x * view[0, 0] + y * view[1, 0] - view[2, 0],
                    x * view[0, 1] + y * view[1, 1] - view[2, 1],
                    x * view[0, 2] + y * view[1, 2] - view[2, 2],
                )
                layer, t, normal = _first_hit(shape, scale, origin, ray)
                point = (eye[0] + t * ray[0], eye[1] + t * ray[1], eye[2] + t * ray[2])
                lit, shine = _lit(shape, scale, layer, point, normal, ray, lamp)
                total[layer] += int(np.floor(lit * LIGHT + 0.5))
                total[3] += int(np.floor(shine * LIGHT + 0.5))
            for layer in range(4):
                out[layer, row, column] = (total[layer] * 510 + parts) // (2 * parts)


@numba.njit(cache=True)
def _first_hit(shape, scale, origin, ray):  # pragma: no cover
    """Layer, distance along the ray and normal of what the ray meets."""
    t, normal = _object(shape, scale, origin, ray)
    if t < NONE:
        return 2, t, normal
    floor = -origin[2] / ray[2] if ray[2] < 0 else NONE
    along_x = ((HALF_WIDTH if ray[0] > 0 else -HALF_WIDTH) - origin[0]) / ray[0] if ray[0] != 0 else NONE
    along_y = ((HALF_WIDTH if ray[1] > 0 else -HALF_WIDTH) - origin[1]) / ray[1] if ray[1] != 0 else NONE
    if floor <= along_x and floor <= along_y:
        return 0, floor, (0.0, 0.0, 1.0)
    if along_x <= along_y:
        return 1, along_x, (-1.0 if ray[0] > 0 else 1.0, 0.0, 0.0)
    return 1, along_y, (0.0, -1.0 if ray[1] > 0 else 1.0, 0.0)


@numba.njit(cache=True)
def _lit(shape, scale, layer, point, normal, ray, lamp):  # pragma: no cover
    """Diffuse light and highlight at a point, in [0, 1]."""
    to_lamp = _unit(lamp[0] - point[0], lamp[1] - point[1], lamp[2] - point[2])
    facing = _dot(normal, to_lamp)
    if facing <= 0:
        return AMBIENT, 0.0
    start = (point[0] + 1e-6 * normal[0], point[1] + 1e-6 * normal[1], point[2] + 1e-6 * normal[2])
    if _object(shape, scale, start, to_lamp)[0] < NONE:
        return AMBIENT, 0.0
    lit = AMBIENT + (1 - AMBIENT) * facing
    if layer != 2:
        return lit, 0.0
    toward = _unit(-ray[0], -ray[1], -ray[2])
    middle = _unit(to_lamp[0] + toward[0], to_lamp[1] + toward[1], to_lamp[2] + toward[2])
    shine = max(_dot(normal, middle), 0.0)
    for _ in range(SHARPNESS):
        shine = shine * shine
    return lit, SHINE * shine


@numba.njit(cache=True)
def _object(shape, scale, origin, ray):  # pragma: no cover
    """Distance and normal where a ray from outside enters the object; NONE where it misses."""
    if shape == 0:
        return _box(0.5 * scale, scale, origin, ray)
    if shape == 1:
        return _cylinder(0.5 * scale, 0.0, 1.05 * scale, True, origin, ray)
    if shape == 2:
        return _sphere(0.6 * scale, 0.6 * scale, origin, ray)
    radius = 0.4 * scale
    best = _cylinder(radius, radius, 1.4 * scale - radius, False, origin, ray)
    for centre in (radius, 1.4 * scale - radius):
        other = _sphere(radius, centre, origin, ray)
        if other[0] < best[0]:
            best = other
    return best


@numba.njit(cache=True)
def _box(half, height, origin, ray):  # pragma: no cover
    enter, leave, axis = -NONE, NONE, 0
    for k in range(3):
        low, high = (0.0, height) if k == 2 else (-half, half)
        if ray[k] == 0:
            if origin[k] < low or origin[k] > high:
                return NONE, (0.0, 0.0, 0.0)
            continue
        near = (low - origin[k]) / ray[k]
        far = (high - origin[k]) / ray[k]
        if near > far:
            near, far = far, near
        if near > enter:
            enter, axis = near, k
        leave = min(leave, far)
    if enter > leave or enter <= 0:
        return NONE, (0.0, 0.0, 0.0)
    sign = -1.0 if ray[axis] > 0 else 1.0
    return enter, (sign if axis == 0 else 0.0, sign if axis == 1 else 0.0, sign if axis == 2 else 0.0)


@numba.njit(cache=True)
def _cylinder(radius, low, high, capped, origin, ray):  # pragma: no cover
    a = ray[0] * ray[0] + ray[1] * ray[1]
    b = origin[0] * ray[0] + origin[1] * ray[1]
    c = origin[0] * origin[0] + origin[1] * origin[1] - radius * radius
    best, normal = NONE, (0.0, 0.0, 0.0)
    inner = b * b - a * c
    if a > 0 and inner >= 0:
        t = (-b - np.sqrt(inner)) / a
        z = origin[2] + t * ray[2]
        if t > 0 and low <= z <= high:
            best = t
            normal = ((origin[0] + t * ray[0]) / radius, (origin[1] + t * ray[1]) / radius, 0.0)
    if capped and ray[2] != 0:
        for z in (low, high):
            t = (z - origin[2]) / ray[2]
            x, y = origin[0] + t * ray[0], origin[1] + t * ray[1]
            if 0 < t < best and x * x + y * y <= radius * radius:
                best, normal = t, (0.0, 0.0, -1.0 if z == low else 1.0)
    return best, normal


@numba.njit(cache=True)
def _sphere(radius, centre, origin, ray):  # pragma: no cover
    z = origin[2] - centre
    a = ray[0] * ray[0] + ray[1] * ray[1] + ray[2] * ray[2]
    b = origin[0] * ray[0] + origin[1] * ray[1] + z * ray[2]
    c = origin[0] * origin[0] + origin[1] * origin[1] + z * z - radius * radius
    inner = b * b - a * c
    if inner < 0:
        return NONE, (0.0, 0.0, 0.0)
    t = (-b - np.sqrt(inner)) / a
    if t <= 0:
        return NONE, (0.0, 0.0, 0.0)
    return t, ((origin[0] + t * ray[0]) / radius, (origin[1] + t * ray[1]) / radius, (z + t * ray[2]) / radius)


@numba.njit(cache=True)
def _dot(a, b):  # pragma: no cover
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@numba.njit(cache=True)
def _unit(x, y, z):  # pragma: no cover
    size = np.sqrt(x * x + y * y + z * z)
    return x / size, y / size, z / size
