"""The 626 airplanes of ModelNet40's training split, each turned once around the vertical axis in 64 steps.

The meshes are official and the images are not: this package draws them, grey, lit from the camera, seen from 25 degrees
above.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from unbraid.base.types import FloatArray, IntArray, UInt8Array
from unbraid.data import FactorSpace
from unbraid.datasets.airplanes import ELEVATION, N_OBJECTS, N_ROTATIONS
from unbraid.datasets.containers import Bundle, bundle, file_of_each
from unbraid.datasets.image_store import Content
from unbraid.datasets.official_files import OfficialFile, official_opener
from unbraid.datasets.rendering.meshes import Mesh, fan_triangles, flat_mesh, unit_radius
from unbraid.datasets.rendering.raster import orbit
from unbraid.datasets.rendering.renderer import MILD, slabs, turned_objects

VERSION = 1
PAINT = (0.8, 0.8, 0.8)
SPACE = turned_objects(N_OBJECTS, N_ROTATIONS, first=1)
FILES = (
    OfficialFile(
        "ModelNet40.zip",
        "http://modelnet.cs.princeton.edu/ModelNet40.zip",
        sha256="42dc3e656932e387f554e25a4eb2cc0e1a1bd3ab54606e2a9eae444c60e536ac",
        downloads=True,
        folder="ModelNet40",
    ),
)
_NAME = re.compile(r"(?:^|/)train/(airplane_\d+)\.off$")


def read(path: Path, space: FactorSpace = SPACE) -> Content:
    """The content of the archive or of its folder, drawn."""
    return Content(space, (64, 64, 3), _slabs(path, space), {"rendered": True})


def _slabs(path: Path, space: FactorSpace) -> Iterator[UInt8Array]:
    n_objects, n_rotations = space.sizes
    with bundle(path) as files:
        meshes = file_of_each(path, files.names, _stem)
        if len(meshes) != n_objects:
            raise ValueError(f"{path}: there are {len(meshes)} train/airplane_*.off where {n_objects} were expected")
        names = [meshes[stem] for stem in sorted(meshes)]
        objects, rotation = space.grid().T
        views = orbit(rotation / n_rotations, ELEVATION / 360)
        yield from slabs(lambda number: _mesh(files, names[number]), objects, views, MILD)


def _stem(name: str) -> str | None:
    match = _NAME.search(name)
    return match[1] if match else None


def _mesh(files: Bundle, name: str) -> Mesh:
    vertices, triangles = read_off(files.read(name), name)
    return flat_mesh(unit_radius(vertices), triangles, PAINT)


def read_off(data: bytes, name: str) -> tuple[FloatArray, IntArray]:
    """Vertices (n, 3) and triangles (m, 3) of an .off mesh; polygons become fans.

    The first line is "OFF", and the second the numbers of vertices, faces and edges; many files of ModelNet40 have
    them on one line with no space between.

    Raises:
        ValueError: the text is cut short, or no .off mesh.
    """
    text = data.decode("ascii", errors="replace")
    if not text.startswith("OFF"):
        raise ValueError(f"{name} is no .off mesh: it does not begin with OFF")
    rows = [line for line in (line.partition("#")[0].strip() for line in text[3:].splitlines()) if line]
    try:
        n_vertices, n_faces = (int(number) for number in rows[0].split()[:2])
        vertices = np.array([row.split()[:3] for row in rows[1 : 1 + n_vertices]], dtype=np.float64)
        faces = [_corners(row) for row in rows[1 + n_vertices : 1 + n_vertices + n_faces]]
        triangles = fan_triangles(faces)
    except (ValueError, IndexError, OverflowError) as error:  # the last of a corner with twenty digits
        raise ValueError(f"{name} is no sound .off mesh ({error})") from error
    if vertices.shape != (n_vertices, 3) or len(faces) != n_faces:
        raise ValueError(f"{name} is cut short: it announces {n_vertices} vertices and {n_faces} faces")
    if len(triangles) == 0 or triangles.min() < 0 or triangles.max() >= n_vertices:
        raise ValueError(f"{name} has no face, or one with a corner outside its {n_vertices} vertices")
    return vertices, triangles


def _corners(row: str) -> list[int]:
    count, *corners = row.split()
    # Colours may follow the corners.
    if len(corners) < int(count):
        raise ValueError(f"face {row!r} has too few corners")
    return [int(corner) for corner in corners[: int(count)]]


open_modelnet40_airplanes = official_opener(
    "modelnet40_airplanes",
    FILES,
    read,
    VERSION,
    {"drawn": "from the meshes, by this package", "elevation": ELEVATION, "paint": PAINT},
)
