"""Many airplanes on a turntable: a rendered substitute for the ModelNet40 airplanes of the LSBD paper.

Airplanes of different build and livery, each turned once around the vertical axis in 64 steps. Drawn by this package in
the layout of the ModelNet40 airplanes, never their official images or meshes. Factors: object, rotation. Rotation k is
k / 64 of a turn.
"""

import colorsys

import numpy as np

from unbraid.datasets.rendering.meshes import Mesh, join, lathe, slab
from unbraid.datasets.rendering.raster import orbit
from unbraid.datasets.rendering.renderer import SeededNumbers, objects_opener, turned_objects

VERSION = 1
N_OBJECTS, N_ROTATIONS = 626, 64
ELEVATION = 25.0  # degrees of the camera above the horizon

BODY, TRIM = (1.0, 0.0), (0.0, 1.0)
# Radius and position along the hull from tail (-1) to nose (1); an engine likewise.
_HULL = ((0.0, -1.0), (0.22, -0.93), (0.5, -0.78), (0.82, -0.55), (1.0, -0.3), (1.0, 0.5), (0.93, 0.7), (0.72, 0.86))
_HULL += ((0.42, 0.96), (0.0, 1.0))
_ENGINE = ((0.0, -0.5), (0.55, -0.5), (0.9, -0.1), (1.0, 0.3), (0.8, 0.5), (0.0, 0.42))
_COCKPIT = ((0.0, 0.62), (0.62, 0.68), (0.7, 0.76), (0.45, 0.84), (0.0, 0.88))
SPACE = turned_objects(N_OBJECTS, N_ROTATIONS)


def painted_airplane(seed: int, number: int) -> Mesh:
    """Airplane `number` of a set, with RGB for paints."""
    draw = SeededNumbers(seed, number, 1)
    hue = draw(0, 1)
    body = colorsys.hsv_to_rgb(hue, draw(0.0, 0.5), draw(0.75, 1.0))
    trim = colorsys.hsv_to_rgb(hue + draw(0.25, 0.75), draw(0.5, 1.0), draw(0.5, 1.0))
    mesh = airplane_mesh(seed, number)
    return mesh.painted(np.where(mesh.paint[:, :1] == 1, body, trim))


def airplane_mesh(seed: int, number: int) -> Mesh:
    """Airplane `number` of a set, of unit radius, nose to x, with two paints: body and trim.

    One wing tip alone wears the trim, so that no airplane is its own mirror image.
    """
    draw = SeededNumbers(seed, number)
    radius, length = draw(0.08, 0.17), 1.0
    span, chord, taper, sweep = draw(0.7, 1.15), draw(0.28, 0.58), draw(0.25, 0.75), draw(0.0, 0.6)
    position, dihedral = draw(-0.05, 0.3), draw(-0.03, 0.14)
    height = -0.5 * radius if draw(0, 1) < 0.7 else 0.8 * radius
    tail, fin = draw(0.3, 0.52), draw(0.26, 0.5)
    high_tail = draw(0, 1) < 0.25
    engines, engine = draw.whole(0, 4), draw(0.05, 0.085)
    on_the_wing = draw(0, 1) < 0.75

    def chord_at(side: int, share: float) -> list[tuple[float, float, float]]:
        front = position + chord / 2 - sweep * share
        depth = chord * (1 - (1 - taper) * share)
        y, z = side * span * share, height + dihedral * share
        return [(front, y, z), (front - depth, y, z)]

    def wing(side: int, start: float, end: float) -> Mesh:
        return slab(chord_at(side, start), chord_at(side, end), 0.07 * (1 - start / 2), axis=2)

    def tailplane(side: int) -> Mesh:
        z = radius + 0.9 * fin if high_tail else 0.3 * radius
        root = [(-0.68, 0.0, z), (-0.68 - 0.5 * tail, 0.0, z)]
        tip = [
            (-0.76 - 0.25 * sweep, side * 0.85 * tail, z),
            (-0.82 - 0.25 * sweep - 0.3 * tail, side * 0.85 * tail, z),
        ]
        return slab(root, tip, 0.05, axis=2)

    foot = [(-0.6, 0.0, 0.5 * radius), (-0.6 - 0.65 * tail, 0.0, 0.5 * radius)]
    top = [(-0.8, 0.0, radius + fin), (-0.84 - 0.35 * tail, 0.0, radius + fin)]
    parts = [
        lathe([(radius * r, length * x) for r, x in _HULL], 16, axis=0).painted(BODY),
        lathe([(radius * r, x) for r, x in _COCKPIT], 12, axis=0).moved((0, 0, 0.42 * radius)).painted(TRIM),
        wing(-1, 0.0, 1.0).painted(BODY),
        wing(1, 0.0, 0.7).painted(BODY),
        wing(1, 0.7, 1.0).painted(TRIM),
        tailplane(-1).painted(BODY),
        tailplane(1).painted(BODY),
        slab(foot, top, 0.06, axis=1).painted(TRIM),
    ]
    pod = lathe([(engine * r, 3.4 * engine * x) for r, x in _ENGINE], 10, axis=0)
    if engines % 2:
        parts.append(pod.moved((-0.6, 0.0, 1.15 * radius + 0.6 * engine)).painted(TRIM))
    for pair in range(engines // 2):
        for side in (-1, 1):
            share = 0.34 + 0.28 * pair
            (front, y, z), _ = chord_at(side, share)
            under = (front - 0.02, y, z - 1.2 * engine)
            at_the_tail = (-0.34 - 0.2 * pair, side * (radius + 1.1 * engine), 0.55 * radius)
            parts.append(pod.moved(under if on_the_wing else at_the_tail).painted(TRIM))
    return join(parts).of_unit_radius()


open_airplanes = objects_opener(
    "airplanes",
    VERSION,
    lambda n_objects: turned_objects(n_objects, N_ROTATIONS),
    lambda factors: orbit(factors[:, 1] / N_ROTATIONS, ELEVATION / 360),
    painted_airplane,
    usual=N_OBJECTS,
    follows="ModelNet40 airplanes",
)
