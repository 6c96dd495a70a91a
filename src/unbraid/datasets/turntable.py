"""Objects on a turntable: a rendered substitute for COIL-100.

Vases, jugs and totems of three colours on black, each turned once in 72 steps of 5 degrees. Drawn by this package in
the layout of COIL-100, never its photographs. Factors: object, rotation. No object looks the same from two sides.
"""

import colorsys

import numpy as np

from unbraid.base.types import FloatArray
from unbraid.datasets.rendering.meshes import Mesh, circle, join, loft
from unbraid.datasets.rendering.raster import orbit
from unbraid.datasets.rendering.renderer import SeededNumbers, objects_opener, turned_objects

VERSION = 1
N_OBJECTS, N_ROTATIONS = 100, 72
ELEVATION = 15.0  # degrees of the camera above the horizon
N_AROUND, N_UP = 40, 24  # quadrilaterals of an object's skin
SPACE = turned_objects(N_OBJECTS, N_ROTATIONS)


def turntable_mesh(seed: int, number: int) -> Mesh:
    """Object `number` of a set, of unit radius, with RGB for paints.

    A turned profile, pushed off its axis, pressed flat, ribbed and twisted, in patches of three colours that differ
    around the axis; half of the objects have a handle.
    """
    draw = SeededNumbers(seed, number)
    knots = [draw(0.25, 1.0) for _ in range(draw.whole(5, 8))]
    height, flat, twist = draw(0.9, 2.4), draw(0.55, 1.0), draw(-0.12, 0.12)
    rib, ribs, rib_at = draw(0.0, 0.16), draw.whole(2, 6), draw(0, 1)
    bulge, bulge_at = draw(0.06, 0.2), draw(0, 1)
    turns = np.arange(N_AROUND) / N_AROUND
    section = 1 + rib * circle(ribs * turns + rib_at)[0] + bulge * circle(turns + bulge_at)[0]
    rings = np.empty((N_UP + 1, N_AROUND, 3))
    for row in range(N_UP + 1):
        share = row / N_UP
        radius = _along(knots, share) * section
        cosine, sine = circle(turns + twist * share)
        rings[row] = np.stack(
            [radius * cosine, flat * radius * sine, np.full(N_AROUND, (share - 0.5) * height)], axis=-1
        )
    hue = draw(0, 1)
    colours = np.array(
        [
            colorsys.hsv_to_rgb(hue + shift, draw(0.3, 0.95), draw(0.45, 1.0))
            for shift in (0.0, draw(0.2, 0.5), draw(0.5, 0.8))
        ]
    )
    skin = loft(rings, smooth=True)
    body = skin.painted(_patches(draw, colours, len(skin.faces)))
    if draw(0, 1) >= 0.5:
        body = join([body, _handle(draw, 0.8 * knots[len(knots) // 2], height).painted(colours[2])])
    return body.of_unit_radius()


def _along(knots: list[float], share: float) -> float:
    """The profile between its knots, level at each."""
    step = min(int(share * (len(knots) - 1)), len(knots) - 2)
    t = share * (len(knots) - 1) - step
    return knots[step] + (knots[step + 1] - knots[step]) * (t * t * (3 - 2 * t))


def _patches(draw: SeededNumbers, colours: FloatArray, n_faces: int) -> FloatArray:
    """(n_faces, 3) a colour for each patch; the first patch of each band differs from the second."""
    bands, sectors = draw.whole(2, 4), draw.whole(3, 6)
    pick = np.array([[draw.whole(0, 2) for _ in range(sectors)] for _ in range(bands)])
    pick[:, 0] = (pick[:, 1] + 1) % 3
    row, column = np.divmod(np.arange(N_UP * N_AROUND), N_AROUND)
    skin = np.repeat(pick[row * bands // N_UP, column * sectors // N_AROUND], 2)
    cap = (n_faces - len(skin)) // 2
    return colours[np.concatenate([skin, np.zeros(cap, dtype=int), np.ones(cap, dtype=int)])]


def _handle(draw: SeededNumbers, reach: float, height: float) -> Mesh:
    cosine, sine = (float(part) for part in circle(draw(0, 1)))
    size, thickness, lift = 0.28 * height, draw(0.07, 0.12), draw(-0.1, 0.1) * height
    across, upright = circle(np.arange(8) / 8)
    rings = []
    for step in range(13):
        out, up = (float(part) for part in circle((step / 12 - 0.5) * 0.6))
        x = reach + 1.1 * size * out + thickness * across * out
        y, z = thickness * upright, lift + size * up + thickness * across * up
        rings.append(np.stack([x * cosine - y * sine, x * sine + y * cosine, z], axis=-1))
    return loft(rings, smooth=True)


open_turntable = objects_opener(
    "turntable",
    VERSION,
    lambda n_objects: turned_objects(n_objects, N_ROTATIONS),
    lambda factors: orbit(factors[:, 1] / N_ROTATIONS, ELEVATION / 360),
    turntable_mesh,
    usual=N_OBJECTS,
    follows="COIL-100",
)
