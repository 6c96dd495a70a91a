"""Generated sequences of images: around a circle of codes, and from one object to another."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from unbraid.base.arguments import check_whole
from unbraid.base.types import BoolArray, FloatArray, IntArray, Kind
from unbraid.data import FactorSpace, all_objects, cyclic_columns, turned
from unbraid.data.image_dataset import FactorDataset
from unbraid.data.space import level_text
from unbraid.metrics.d_lsbd import d_lsbd
from unbraid.runs.run import Run

__all__ = ["Strips", "object_interpolation", "rotation_traversal"]

MOST_TURNS = 10_000  # images of one object that are encoded


@dataclass(frozen=True, eq=False)
class Strips:
    """Sequences of codes and the images decoded from them: blocks of rows of steps."""

    names: tuple[str, ...]  # (n_blocks,)
    values: FloatArray  # (n_steps,): radians around the circle, or the share of the path
    codes: FloatArray  # (n_blocks, n_rows, n_steps, n_codes)
    images: FloatArray  # (n_blocks, n_rows, n_steps, height, width, channels)
    first: FloatArray | None = None  # (n_blocks, n_rows, height, width, channels), 0 .. 1: start image of each row
    last: FloatArray | None = None  # target image of each row, of the same shape


def rotation_traversal(
    run: Run, dataset: FactorDataset | None = None, *, rows: int = 4, steps: int = 12, seed: int = 0
) -> Strips:
    """Decode codes that go once around a circle, one block per circle.

    For a model with circles, each is traversed from an angle of 0; the other codes are drawn from the prior once per
    row. For other models, codes rotate in the plane that D_LSBD fits to each cyclic factor (eq. 8-9), from the code of
    an image of the dataset and about the mean code over that factor; components outside the plane stay.

    Args:
        run: the trained model.
        dataset: by default the one of the training; not needed where there are circles.
        rows: draws from the prior, or images, each of another object as far as there are.
        steps: angles, evenly around.
        seed: of the draws.

    Raises:
        ValueError: rows or steps below 1, or rows of a table; without circles, no grid of cyclic factors.

    Reference:
        Tonnaer et al. 2022 (LSBD), appendix G.1 and figure 10, whose models have a circle.
    """
    _check(run, rows=rows, steps=steps)
    angles = 2 * np.pi * np.arange(steps) / steps
    circles = [part.name for part in run.parts if part.kind == "circle"]
    if circles:
        return _strips(run, circles, angles, _around_circles(_on_circles(run), rows, angles, seed))
    orbits = _Orbits(run, run.dataset(dataset))
    objects = all_objects(orbits.space, seed=seed)[:rows]
    codes = np.stack([orbits.codes(levels) for levels in objects])
    start = np.random.default_rng(seed).integers(orbits.n_turns, size=rows)
    moved = _around_planes(codes, orbits.lengths, start, angles)
    first = np.stack([orbits.images(objects[row % len(objects)], start[row : row + 1])[0] for row in range(rows)])
    names = [orbits.space.names[k] for k in orbits.cyclic]
    return _strips(run, names, angles, moved, first=np.broadcast_to(first, (len(names), *first.shape)))


def object_interpolation(
    run: Run, dataset: FactorDataset | None = None, *, pairs: int = 3, rows: int = 4, steps: int = 8, seed: int = 0
) -> Strips:
    """Decode codes interpolated between two objects at a fixed turn: one block per pair of objects, one row per turn.

    For a model with circles, these stay as in the image of the first object, and all other codes are interpolated
    linearly between their means over all turns of either object. For other models, codes are interpolated linearly from
    the image of one object to that of the other at the same turn.

    Args:
        run: the trained model.
        dataset: by default the one of the training.
        pairs: of objects, drawn.
        rows: turns, evenly around.
        steps: of the way, both ends included.
        seed: of the draw.

    Raises:
        ValueError: pairs, rows or steps below 1, rows of a table, no grid of cyclic factors, or no two objects.

    Reference:
        Tonnaer et al. 2022 (LSBD), appendix G.2 and figures 11-12, where the circle goes through regular angles.
    """
    _check(run, pairs=pairs, rows=rows, steps=steps)
    orbits = _Orbits(run, run.dataset(dataset))
    objects = all_objects(orbits.space, seed=seed)
    if len(objects) < 2:
        raise ValueError(f"{run.path}: its images show one object only, since every factor is cyclic")
    ends = objects[np.arange(2 * pairs) % len(objects)].reshape(pairs, 2, -1)
    levels = [[n * row // rows for row in range(rows)] for n in orbits.lengths]
    turns = np.ravel_multi_index(levels, orbits.lengths)
    share, on_circles = np.linspace(0, 1, steps), _on_circles(run)
    codes = np.empty((pairs, rows, steps, run.n_codes))
    for pair, (one, other) in enumerate(ends):
        whole = np.stack([orbits.codes(one), orbits.codes(other)])
        low, high = whole[:, turns]
        if on_circles.any():
            low, high = (np.where(on_circles, low, mean) for mean in whole.mean(axis=1))
        codes[pair] = low[:, None] + share[:, None] * (high - low)[:, None]
    shown = np.stack([[orbits.images(end, turns) for end in pair] for pair in ends])
    names = [f"{orbits.named(one)} to {orbits.named(other)}" for one, other in ends]
    return _strips(run, names, share, codes, first=shown[:, 0], last=shown[:, 1])


class _Orbits:
    """Objects of a dataset, each in all its turns, in the order of `turned`."""

    def __init__(self, run: Run, dataset: FactorDataset) -> None:
        space = dataset.space
        if not isinstance(space, FactorSpace) or "cyclic" not in space.kinds:
            raise ValueError(f"{run.path}: its images are no grid with cyclic factors")
        self.run, self.dataset, self.space = run, dataset, space
        self.cyclic = cyclic_columns(space)
        self.lengths = [space.sizes[k] for k in self.cyclic]
        self.n_turns = prod(self.lengths)
        if self.n_turns > MOST_TURNS:
            raise ValueError(f"{run.path}: its cyclic factors have {self.n_turns:,} combinations; {MOST_TURNS:,} fit")

    def codes(self, levels: IntArray) -> FloatArray:
        """(n_turns, n_codes) of one object."""
        return self.run.encode(self.dataset.images(turned(self.space, levels[None])))

    def images(self, levels: IntArray, turns: IntArray) -> FloatArray:
        """(n, height, width, channels), 0 .. 1, of one object at these turns."""
        return self.dataset.images(turned(self.space, levels[None])[turns]) / np.float32(255)

    def named(self, levels: IntArray) -> str:
        return level_text(self.space, levels, [k for k in range(len(levels)) if k not in self.cyclic])


def _check(run: Run, **counts: int) -> None:
    if len(run.config["dataset"]["image_shape"]) != 3:
        raise ValueError(f"{run.path}: trained on rows of a table; only images can be drawn")
    for name, count in counts.items():
        check_whole(name, count, 1)


def _on_circles(run: Run) -> BoolArray:
    """(n_codes,) whether a code belongs to a circle, two codes each."""
    return np.concatenate([np.full(part.size, part.kind == "circle") for part in run.parts])


def _around_circles(on_circles: BoolArray, rows: int, angles: FloatArray, seed: int) -> FloatArray:
    """(n_circles, n_rows, n_steps, n_codes): drawn from the prior, except for the circle that is traversed."""
    rng = np.random.default_rng(seed)
    drawn = rng.standard_normal((rows, len(on_circles)))
    pairs = np.flatnonzero(on_circles).reshape(-1, 2)
    lengths = np.hypot(*drawn[:, pairs].transpose(2, 0, 1))
    drawn[:, pairs] /= lengths[..., None]  # the direction of a Gaussian point is uniform
    codes = np.tile(drawn[None, :, None], (len(pairs), 1, len(angles), 1))
    for block, pair in enumerate(pairs):
        codes[block][..., pair] = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    return codes


def _around_planes(codes: FloatArray, lengths: Sequence[int], start: IntArray, angles: FloatArray) -> FloatArray:
    """(n_cyclic, n_rows, n_steps, n_codes) from codes (n_objects, n_turns, n_codes); row r of object r, and so on."""
    n_objects, n_turns, n_codes = codes.shape
    levels = np.stack(np.unravel_index(np.arange(n_turns), lengths), axis=-1)
    factors = np.column_stack([np.repeat(np.arange(n_objects), n_turns), np.tile(levels, (n_objects, 1))])
    kinds: list[Kind] = ["categorical", *["cyclic" for _ in lengths]]
    varying = int(n_objects == 1)  # from this column on: what does not vary is no factor
    planes = d_lsbd(codes.reshape(-1, n_codes), factors[:, varying:], kinds=kinds[varying:]).planes
    turning = np.array([[np.cos(angles), -np.sin(angles)], [np.sin(angles), np.cos(angles)]]) - np.eye(2)[..., None]
    moved = np.empty((len(lengths), len(start), len(angles), n_codes))
    for block in range(len(lengths)):
        for row, turn in enumerate(start):
            orbit, plane = codes[row % n_objects], planes[row % n_objects, block]
            place: list[int | slice] = list(levels[turn])
            place[block] = slice(None)
            centre = orbit.reshape(*lengths, n_codes)[tuple(place)].mean(axis=0)
            inside = plane.T @ (orbit[turn] - centre)
            moved[block, row] = orbit[turn] + np.einsum("ijs,j,ci->sc", turning, inside, plane)
    return moved


def _strips(
    run: Run, names: Sequence[str], values: FloatArray, codes: FloatArray,
    first: FloatArray | None = None, last: FloatArray | None = None,
) -> Strips:  # fmt: skip
    images = run.decode(codes.reshape(-1, codes.shape[-1]))
    return Strips(tuple(names), values, codes, images.reshape(*codes.shape[:3], *images.shape[1:]), first, last)
