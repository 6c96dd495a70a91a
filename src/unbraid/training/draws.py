"""Batches, noise and labels for the optimizer steps of a family, for all members of a population."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unbraid.base.device import GENERATOR
from unbraid.base.seeds import stream
from unbraid.base.suggest import error_line
from unbraid.base.types import IntArray
from unbraid.data.image_dataset import FactorDataset
from unbraid.families.family import NO_AUGMENTATION, Context, Draw, OptimizerStep, Settings, Supply
from unbraid.families.networks import as_floats, as_tensor
from unbraid.files.trust import imported
from unbraid.training import batches

CHUNK = 64  # steps whose draws are computed at once
NUMBERS = 1 << 18  # at most so many numbers at once, but at least those of one step
RESIDENT_BYTES = 16 << 30  # datasets up to this size are copied onto an accelerator
KEPT_BYTES = 64 << 20  # images of datasets up to this size are drawn or read once and cached


@contextmanager
def seeded(device: torch.device, key: int) -> Iterator[None]:
    """Within the block, torch's own generator is seeded with the key: for networks that draw, as dropout does."""
    generators = [torch.default_generator]
    if device.type == "cuda":
        generators.append(torch.cuda.default_generators[torch.cuda.current_device()])
    with GENERATOR:
        before = [generator.get_state() for generator in generators]
        try:
            for generator in generators:
                generator.manual_seed(key & (1 << 63) - 1)
            yield
        finally:
            for generator, state in zip(generators, before, strict=True):
                generator.set_state(state)


Augmentation = Callable[[Tensor], Tensor]


def augmentation_of(settings: Settings) -> Augmentation | None:
    """The user's own function that changes the images of a batch; None without one.

    Raises:
        UntrustedCode: the user did not name it.
        ValueError: it cannot be imported.
    """
    name = settings.get("augment", NO_AUGMENTATION)
    return None if name == NO_AUGMENTATION else imported(name, "augmentation", f"give it again: augment={name!r}")


@torch.no_grad()
def augmented(augmentation: Augmentation, images: Tensor, key: int) -> Tensor:
    """Images (n, channels, height, width), changed by a function whose draws of torch's generator follow from the key.

    Raises:
        ValueError: it returns something else than as many such images.
    """
    with seeded(images.device, key):
        changed = augmentation(images.clone())
    if not isinstance(changed, Tensor) or changed.shape != images.shape:
        result = tuple(changed.shape) if isinstance(changed, Tensor) else type(changed).__name__
        raise ValueError(f"augment must return a tensor {tuple(images.shape)}, as it was given; got {result}")
    return changed.to(images)


def check_augmentation(settings: Settings, dataset: FactorDataset, n_images: int) -> None:
    """Tries the augmentation on the first images.

    Raises:
        ValueError: it fails on them, gives values outside of 0 .. 1, or does not draw from torch's own generator.
    """
    if (augmentation := augmentation_of(settings)) is None:
        return
    images = as_floats(as_tensor(dataset.images(np.arange(min(n_images, len(dataset))))))
    try:
        first, second = (augmented(augmentation, images, 0) for _ in range(2))
    except Exception as error:  # whatever the user's code raises
        raise ValueError(f"augment {settings['augment']}: {error_line(error, ValueError)}") from error
    if images.dim() == 4 and not bool(((first >= 0) & (first <= 1)).all()):
        low, high = float(first.min()), float(first.max())
        raise ValueError(f"augment {settings['augment']} must give values from 0 to 1; got {low:.3g} to {high:.3g}")
    if not torch.equal(first, second):
        raise ValueError(
            f"augment {settings['augment']} must draw its random numbers from torch, which is seeded for every step; "
            "it gave the same images twice another result"
        )


class Images:
    """Images of a dataset as float tensors, channels first; the dataset itself stays as it is."""

    def __init__(self, dataset: FactorDataset, device: torch.device, dtype: torch.dtype = torch.float32) -> None:
        self.dataset, self.device, self.dtype = dataset, device, dtype
        self.resident: Tensor | None = None
        first = dataset.images(np.arange(1))
        if device.type != "cpu" and len(dataset) * first.nbytes <= RESIDENT_BYTES:
            sample = as_tensor(first)
            self.resident = torch.empty((len(dataset), *sample.shape[1:]), dtype=sample.dtype, device=device)
            for start in range(0, len(dataset), 4096):
                stop = min(start + 4096, len(dataset))
                self.resident[start:stop] = as_tensor(dataset.images(np.arange(start, stop))).to(device)
        small = self.resident is None and len(dataset) * first.nbytes <= KEPT_BYTES
        self._cache = np.empty((len(dataset), *first.shape[1:]), first.dtype) if small else None
        self._seen = np.zeros(len(dataset), dtype=bool)

    def __call__(self, positions: Tensor) -> Tensor:
        """Positions (...,) -> (..., c, h, w) in [0, 1], or (..., n_features); channels last in memory."""
        flat = positions.reshape(-1)
        if self.resident is not None:
            images = self.resident[flat.to(self.device)]
        else:
            images = as_tensor(self._at(flat.cpu().numpy())).to(self.device)
        return as_floats(images, self.dtype).reshape(*positions.shape, images.shape[-1], *images.shape[1:-1])

    def _at(self, positions: IntArray) -> Any:
        if self._cache is None:
            return self.dataset.images(positions)
        new = np.unique(positions[~self._seen[positions]])
        if len(new):
            self._cache[new] = self.dataset.images(new)
            self._seen[new] = True
        return self._cache[positions]


@dataclass(frozen=True, eq=False)
class _Items:
    """Items of all members, members in front."""

    positions: Tensor  # (n_members, n, ...)
    known: dict[str, Tensor]  # (n_members, n, ...)
    at_a_time: int


class Draws:
    """Draws of a population by step, members in front; see `unbraid.training.batches`."""

    def __init__(
        self, seeds: Sequence[int], context: Context, images: Images, supplies: Sequence[Supply | None] = ()
    ) -> None:
        # An accelerator without double precision gets its draws from the CPU.
        self.home = images.device if images.device.type in ("cpu", "cuda") else torch.device("cpu")
        self.seeds, self.context, self.images = tuple(seeds), context, images
        self.augmentation = augmentation_of(context.settings)
        self.items = _stacked_items([supply for supply in supplies if supply], context, self.home)
        self._keys: dict[str, Tensor] = {}
        self._chunks: dict[str, tuple[int, Tensor]] = {}
        self._noise: dict[str, tuple[int, Tensor]] = {}
        self._step = -1
        self._made: dict[str, dict[str, Tensor]] = {}

    def batch(self, move: OptimizerStep, step: int, turn: int, repeat: int) -> dict[str, Tensor]:
        """All inputs of an optimizer step, (n_members, batch, ...) each, on the device of the images."""
        made: dict[str, Tensor] = {}
        for draw in move.draws:
            made |= self(draw, step, turn, repeat)
        return made

    def __call__(self, draw: Draw, step: int, turn: int, repeat: int) -> dict[str, Tensor]:
        """One draw with its labels, by name; made once per step, turn, name and repeat."""
        if step != self._step:
            self._step, self._made = step, {}
        # If all images are labelled, an optimizer step sees them in the same order as one that draws images.
        purpose = f"{'images' if draw.kind == 'given' else draw.kind}/{draw.name}/{repeat}"
        if f"{purpose}/{turn}" not in self._made:
            self._made[f"{purpose}/{turn}"] = self._make(draw, purpose, step, turn)
        return self._made[f"{purpose}/{turn}"]

    def _make(self, draw: Draw, purpose: str, step: int, turn: int) -> dict[str, Tensor]:
        if purpose not in self._keys:
            self._keys[purpose] = batches.streams(self.seeds, purpose, self.home)
        keys = self._keys[purpose]
        if draw.kind == "images":
            positions = self._chosen(keys, purpose, turn, self.context.n_images)
            return {draw.name: self._batch_images(positions, purpose, turn)}
        if draw.kind == "given":
            return self._item_batch(draw, keys, purpose, turn)
        sizes = (self.context.settings[size] if isinstance(size, str) else size for size in draw.shape)
        return {draw.name: self._drawn(draw.kind, keys, purpose, step, (*self._leading(draw), *sizes))}

    def _drawn(self, kind: str, keys: Tensor, purpose: str, step: int, shape: Sequence[int]) -> Tensor:
        """Noise for this step, (n_members, *shape), computed in chunks of steps."""
        count = max(1, min(CHUNK, NUMBERS // max(1, len(keys) * math.prod(shape))))
        number, offset = divmod(step, count)
        if self._noise.get(purpose, (-1, None))[0] != number:
            steps = number * count + torch.arange(count, device=self.home)
            made = _MAKERS[kind](keys.repeat_interleave(count), steps.repeat(len(keys)), shape)
            made = made.unflatten(0, (len(keys), count)).to(self.images.device)
            self._noise[purpose] = (number, made.to(self.images.dtype) if made.is_floating_point() else made)
        return self._noise[purpose][1][:, offset]

    def _leading(self, draw: Draw) -> tuple[int, ...]:
        if not draw.of:
            return (self.context.batch_size,)
        items = self.items[draw.of]
        return (items.at_a_time, *items.positions.shape[2:])

    def _item_batch(self, draw: Draw, keys: Tensor, purpose: str, turn: int) -> dict[str, Tensor]:
        items = self.items[draw.of or draw.name]
        chosen = self._chosen(keys, purpose, turn, items.positions.shape[1], items.at_a_time)
        members = torch.arange(len(keys), device=self.home)[:, None]
        made = {draw.name: self._batch_images(items.positions[members, chosen], purpose, turn)}
        for name, values in items.known.items():
            labels = values[members, chosen].to(self.images.device)
            made[f"{draw.name} {name}"] = labels.to(self.images.dtype) if labels.is_floating_point() else labels
        return made

    def _batch_images(self, positions: Tensor, purpose: str, turn: int) -> Tensor:
        """Images at positions (n_members, n, ...), changed by the augmentation if there is one."""
        images = self.images(positions)
        if self.augmentation is None:
            return images
        one = images.shape[positions.dim() :]
        changed = [
            augmented(self.augmentation, own.reshape(-1, *one), stream(seed, f"augment/{purpose}/{turn}"))
            for seed, own in zip(self.seeds, images, strict=True)
        ]
        return torch.stack(changed).reshape(images.shape)

    def _chosen(self, keys: Tensor, purpose: str, turn: int, n: int, size: int = 0) -> Tensor:
        """Indices of the images or items, of n, at this turn: (n_members, size)."""
        number, offset = divmod(turn, CHUNK)
        size = size or self.context.batch_size
        if self._chunks.get(purpose, (-1, None))[0] != number:
            count = CHUNK * size
            self._chunks[purpose] = (number, batches.epoch_positions(keys, number * count, count, n))
        return self._chunks[purpose][1][:, offset * size : (offset + 1) * size]


def _stacked_items(supplies: Sequence[Supply], context: Context, home: torch.device) -> dict[str, _Items]:
    def stacked(arrays: Sequence[np.ndarray]) -> Tensor:
        return torch.from_numpy(np.stack(arrays)).to(home)

    return {
        name: _Items(
            stacked([supply.items[name].positions for supply in supplies]),
            {what: stacked([supply.items[name].known[what] for supply in supplies]) for what in first.known},
            first.at_a_time(context.batch_size),
        )
        for name, first in (supplies[0].items.items() if supplies else ())
    }


_MAKERS: dict[str, Callable[[Tensor, int | Tensor, Sequence[int]], Tensor]] = {
    "normal": batches.normal,
    "uniform": batches.uniform,
    "permutation": batches.permutations,
}
