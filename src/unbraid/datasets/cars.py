"""Cars seen from all sides: a rendered substitute for the 3D Cars set.

Cars of different build and colour, from 4 elevations and 24 azimuths, on white. Drawn by this package in the layout of
3D Cars, never its official images. Factors in the official order: elevation, azimuth (15 degrees a step), object.
Colour belongs to the object and is no factor.
"""

import colorsys

import numpy as np

from unbraid.data import FactorSpace
from unbraid.datasets.rendering.meshes import Mesh, box, join, lathe, loft
from unbraid.datasets.rendering.raster import Scene, orbit
from unbraid.datasets.rendering.renderer import SeededNumbers, objects_opener

VERSION = 1
N_OBJECTS = 183
ELEVATIONS = (6.0, 16.0, 26.0, 36.0)  # degrees of the camera above the horizon
N_AZIMUTHS = 24
SCENE = Scene(distance=4.0, field_of_view=30.0, ambient=0.42, highlight=0.15, background=1.0)

_GLASS, _TYRE, _HUB, _BUMPER = (0.1, 0.13, 0.18), (0.07, 0.07, 0.08), (0.7, 0.7, 0.72), (0.25, 0.25, 0.27)
_HEADLIGHT, _TAIL_LIGHT, _PLATE = (1.0, 0.95, 0.7), (0.9, 0.05, 0.04), (0.9, 0.9, 0.85)
_FLOOR = 0.14  # height of the body above the road


def cars_space(n_objects: int = N_OBJECTS) -> FactorSpace:
    degrees = tuple(360.0 / N_AZIMUTHS * k for k in range(N_AZIMUTHS))
    return FactorSpace(
        ("elevation", "azimuth", "object"),
        (len(ELEVATIONS), N_AZIMUTHS, n_objects),
        ("ordinal", "cyclic", "categorical"),
        (ELEVATIONS, degrees, tuple(float(number) for number in range(n_objects))),
    )


def car_mesh(seed: int, number: int) -> Mesh:
    """Car `number` of a set, of unit radius, front to x, with RGB for paints.

    Lights and number plate tell the front from the back, a mirror and a sunroof the left from the right.
    """
    draw = SeededNumbers(seed, number)
    length, width, waist = draw(1.7, 2.3), draw(0.76, 0.95), _FLOOR + draw(0.36, 0.48)
    roof, cabin, place = waist + draw(0.28, 0.46), length * draw(0.48, 0.64), length * draw(-0.12, 0.04)
    bonnet, boot, rake = draw(0.6, 0.95), draw(0.78, 1.05), draw(0.1, 0.22)
    wheel = draw(0.17, 0.22)
    if draw.whole(0, 3) == 0:  # an estate: the cabin reaches to the back
        place, rake = cabin / 2 - 0.46 * length, rake / 2
    paint = colorsys.hsv_to_rgb(draw(0, 1), draw(0.1, 0.95), draw(0.4, 1.0))
    end = length / 2
    back, front = place - cabin / 2, place + cabin / 2
    body = [
        _section(-end, width * 0.94, _FLOOR + (waist - _FLOOR) * boot * 0.85),
        _section(-end + 0.06, width, _FLOOR + (waist - _FLOOR) * boot),
        _section(max(back, -end + 0.1), width, waist),
        _section(front, width, waist),
        _section(end - 0.1, width, _FLOOR + (waist - _FLOOR) * bonnet),
        _section(end, width * 0.9, _FLOOR + (waist - _FLOOR) * bonnet * 0.75),
    ]
    roof_back, roof_front = back + 0.6 * rake, front - 1.5 * rake
    middle, half_roof = (roof_back + roof_front) / 2, (roof_front - roof_back) / 2
    glass = [_sheet(back, front, 0.96 * width, waist), _sheet(roof_back, roof_front, 0.76 * width, roof)]
    pillar = [_sheet(middle - 0.05, middle + 0.05, share * width, z) for share, z in ((0.97, waist), (0.77, roof))]
    lights = _FLOOR + (waist - _FLOOR) * 0.5
    parts = [
        loft(body).painted(paint),
        loft(glass).painted(_GLASS),
        loft(pillar).painted(paint),
        _block(middle, 0.0, roof, half_roof + 0.01, 0.39 * width, 0.025).painted(paint),
        _block(middle + 0.3 * half_roof, 0.17 * width, roof + 0.02, 0.5 * half_roof, 0.13 * width, 0.015).painted(
            _GLASS
        ),
        _block(front - 0.12, 0.55 * width, waist + 0.04, 0.05, 0.07, 0.05).painted(_BUMPER),
        _block(end, 0.0, _FLOOR + 0.04, 0.05, 0.44 * width, 0.06).painted(_BUMPER),
        _block(-end, 0.0, _FLOOR + 0.04, 0.05, 0.44 * width, 0.06).painted(_BUMPER),
        _block(-end, 0.0, _FLOOR + 0.16, 0.04, 0.12, 0.05).painted(_PLATE),
        *_wheels(end, width, wheel),
    ]
    for side in (-1, 1):
        parts.append(_block(end - 0.02, side * 0.32 * width, lights, 0.04, 0.09, 0.045).painted(_HEADLIGHT))
        parts.append(_block(-end + 0.02, side * 0.33 * width, lights + 0.06, 0.04, 0.09, 0.05).painted(_TAIL_LIGHT))
    return join(parts).of_unit_radius()


def _wheels(end: float, width: float, radius: float) -> list[Mesh]:
    rim = ((0.0, -0.07), (0.9, -0.07), (1.0, -0.04), (1.0, 0.04), (0.9, 0.07), (0.0, 0.07))
    tyre = lathe([(r * radius, y) for r, y in rim], 14, axis=1, smooth=False).painted(_TYRE)
    flat = ((0.0, -0.02), (0.5, -0.02), (0.5, 0.02), (0.0, 0.02))
    hub = lathe([(r * radius, y) for r, y in flat], 10, axis=1, smooth=False).painted(_HUB)
    wheels = []
    for x in (-0.62 * end, 0.62 * end):
        for side in (-1, 1):
            y = side * (width / 2 - 0.03)
            wheels += [tyre.moved((x, y, radius)), hub.moved((x, y + side * 0.075, radius))]
    return wheels


def _section(x: float, width: float, top: float) -> list[tuple[float, float, float]]:
    """The body cut across at x."""
    return [(x, -width / 2, _FLOOR), (x, width / 2, _FLOOR), (x, width / 2, top), (x, -width / 2, top)]


def _sheet(back: float, front: float, width: float, z: float) -> list[tuple[float, float, float]]:
    """A level rectangle."""
    return [(back, -width / 2, z), (front, -width / 2, z), (front, width / 2, z), (back, width / 2, z)]


def _block(x: float, y: float, z: float, long: float, wide: float, high: float) -> Mesh:
    """The box around a centre, by its half sides."""
    return box((x - long, y - wide, z - high), (x + long, y + wide, z + high))


open_cars_rendered = objects_opener(
    "cars_rendered",
    VERSION,
    cars_space,
    lambda factors: orbit(factors[:, 1] / N_AZIMUTHS, np.array(ELEVATIONS)[factors[:, 0]] / 360),
    car_mesh,
    usual=N_OBJECTS,
    follows="3D Cars",
    scene=SCENE,
)
