"""What the rendered sets share: images composed when asked for, slabs of views of many objects, seeded draws."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np

from unbraid.base.arguments import check_whole
from unbraid.base.types import FloatArray, IntArray, UInt8Array
from unbraid.data import FactorSpace
from unbraid.data.image_dataset import ImageShape, ReadingProgress, check_index
from unbraid.datasets.image_store import Content, StoredImages, cache_folder, cached
from unbraid.datasets.rendering.meshes import Mesh
from unbraid.datasets.rendering.raster import Scene, compose, render

MIXING = 1  # version of `compose`; raised whenever it makes another image of the same layers and colours
SLAB = 1024  # views drawn between two reports of progress
MOST_DRAWN = 10_000_000  # images or objects of one set
SAMPLES = 3  # per pixel and axis
MILD = Scene(distance=4.0, field_of_view=30.0, highlight=0.25)  # a mesh of unit radius fits, whatever its pose


class SeededNumbers:
    """Seeded numbers whose every bit is the same on every machine."""

    def __init__(self, *seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def __call__(self, low: float, high: float) -> float:
        """Uniform between the two."""
        return low + (high - low) * float(self._rng.random())

    def whole(self, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return int(self._rng.integers(low, high + 1))


def check_count(seed: int, **counts: int) -> None:
    """
    Raises:
        ValueError: a count is not 1 to 10 million, or the seed is negative.
    """
    for name, count in counts.items():
        check_whole(name, count, 1, MOST_DRAWN, why="all factors have to fit in memory")
    check_whole("seed", seed, 0)


def changed(**options: tuple[int, int]) -> dict[str, int]:
    """The options whose value differs from the usual one, both given, to name a cache folder."""
    return {name: value for name, (value, usual) in options.items() if value != usual}


@dataclass(frozen=True, eq=False)
class Composed:
    """A grid whose first factors are colours: each image is mixed from layers of light when it is asked for.

    Args:
        space: colour factors first, then those that change the geometry.
        layers: (n_geometries, n_paints + 1, height, width) from `render`, in the order of the later factors.
        palettes: RGB (n_levels, 3) of each paint; those of the colour factors first, in their order, then paints
            of one colour.
    """

    space: FactorSpace
    layers: UInt8Array
    palettes: tuple[FloatArray, ...]

    @property
    def image_shape(self) -> ImageShape:
        height, width = self.layers.shape[2:]
        return height, width, 3

    def __len__(self) -> int:
        return len(self.space)

    def images(self, index: IntArray) -> UInt8Array:
        colour, geometry = np.divmod(check_index(index, len(self)), len(self.layers))
        levels = np.unravel_index(colour, [len(palette) for palette in self.palettes])
        colours = np.stack([palette[level] for palette, level in zip(self.palettes, levels, strict=True)], axis=1)
        return compose(self.layers, colours, geometry)


def turned_objects(n_objects: int, n_rotations: int, first: int = 0) -> FactorSpace:
    """Objects, numbered from `first`, each turned once around the vertical axis."""
    turns = tuple(k / n_rotations for k in range(n_rotations))
    numbers = tuple(float(first + k) for k in range(n_objects))
    return FactorSpace(("object", "rotation"), (n_objects, n_rotations), ("categorical", "cyclic"), (numbers, turns))


def objects_opener(
    name: str,
    version: int,
    space: Callable[[int], FactorSpace],
    views: Callable[[IntArray], FloatArray],
    mesh: Callable[[int, int], Mesh],
    *,
    usual: int,
    follows: str,
    scene: Scene = MILD,
) -> Callable[..., StoredImages]:
    """What opens a set with a factor "object", and draws it where there is no cache of it.

    Args:
        name, version: of the set.
        space: from the number of objects to the factors.
        views: from factors (n, n_factors) to views (n, 3, 3).
        mesh: from the seed and the number of an object to its mesh, with RGB for paints.
        usual: objects that the set has by default.
        follows: the published set that it is a substitute for.
        scene: camera and light.
    """

    def opener(
        root: Path, *, progress: ReadingProgress | None = None, n_objects: int = usual, seed: int = 0
    ) -> StoredImages:
        """Open the set. With fewer objects the first ones stay the same.

        Args:
            root: folder of all caches.
            progress: called as progress(images done, images in all) while the set is drawn.
            n_objects: how many.
            seed: draws their build and colours.

        Raises:
            ValueError: n_objects or the seed is out of range.
        """
        check_count(seed, n_objects=n_objects)
        whole, mesh_of = space(n_objects), cache(partial(mesh, seed))  # slabs may show the same objects
        column = whole.column("object")

        def drawn() -> Iterator[UInt8Array]:
            for start in range(0, len(whole), SLAB):
                factors = whole.factors(np.arange(start, min(start + SLAB, len(whole))))
                yield from slabs(mesh_of, factors[:, column], views(factors), scene)

        def content() -> Content:
            description = {"rendered": True, "follows": follows, "version": version, "seed": seed}
            return Content(whole, (64, 64, 3), drawn(), description)

        options = changed(n_objects=(n_objects, usual), seed=(seed, 0))
        return cached(cache_folder(root, name, version, **options), content, progress)

    return opener


def slabs(mesh_of: Callable[[int], Mesh], objects: IntArray, views: FloatArray, scene: Scene) -> Iterator[UInt8Array]:
    """Images (n, 64, 64, 3) of object `objects[i]` in view `views[i]`, in slabs.

    Args:
        mesh_of: from the number of an object to its mesh, of unit radius where `scene` is MILD, with RGB for paints.
            Asked once per slab and object.
        objects: (n,) numbers.
        views: (n, 3, 3) from `orbit`.
        scene: camera and light.
    """
    for start in range(0, len(objects), SLAB):
        rows = slice(start, start + SLAB)
        present, which = np.unique(objects[rows], return_inverse=True)
        meshes = [mesh_of(int(number)) for number in present]
        layers = render(meshes, views[rows], which=which, scene=scene, samples=SAMPLES)
        yield compose(layers, np.broadcast_to(np.eye(3), (len(layers), 3, 3)))
