"""What the players of a family are given at a step, for all members of a population."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from unbraid.datasets.base import FactorDataset
from unbraid.training import batches
from unbraid.training._family import Context, Draw

CHUNK = 64  # steps whose image positions are worked out at once
RESIDENT_BYTES = 16 << 30  # datasets up to this size are copied, as they are, onto an accelerator


class Images:
    """Images of a dataset as float tensors, channels first; the dataset itself stays as it is."""

    def __init__(self, dataset: FactorDataset, device: torch.device, dtype: torch.dtype = torch.float32) -> None:
        self.dataset, self.device, self.dtype = dataset, device, dtype
        self.resident: Tensor | None = None
        n_values = len(dataset) * int(np.prod(dataset.image_shape))
        if device.type != "cpu" and n_values <= RESIDENT_BYTES:
            sample = torch.from_numpy(dataset.images(np.arange(1)))
            self.resident = torch.empty((len(dataset), *sample.shape[1:]), dtype=sample.dtype, device=device)
            for start in range(0, len(dataset), 4096):
                stop = min(start + 4096, len(dataset))
                self.resident[start:stop] = torch.from_numpy(dataset.images(np.arange(start, stop))).to(device)

    def __call__(self, positions: Tensor) -> Tensor:
        """Positions (...,) -> (..., c, h, w) in [0, 1], or (..., n_features); channels last in memory."""
        flat = positions.reshape(-1)
        if self.resident is not None:
            images = self.resident[flat.to(self.device)]
        else:
            images = torch.from_numpy(self.dataset.images(flat.cpu().numpy())).to(self.device)
        return as_floats(images, self.dtype).reshape(*positions.shape, *_channels_first(images.shape[1:]))


def as_floats(images: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """(n, h, w, c) of whole numbers 0 .. 255, or of floats, to (n, c, h, w) floats; tables keep their shape.

    Raises:
        ValueError: neither images nor rows of a table.
    """
    if images.dim() not in (2, 4):
        raise ValueError(f"images must be (n, height, width, channels) or (n, n_features); got {tuple(images.shape)}")
    floats = images.to(dtype)
    if images.dtype == torch.uint8:
        floats = floats.div_(255)
    return floats if images.dim() == 2 else floats.movedim(-1, 1)


def _channels_first(shape: Sequence[int]) -> tuple[int, ...]:
    return (shape[-1], *shape[:-1])


class Draws:
    """Draws of a population by step, members in front; see `unbraid.training.batches`."""

    def __init__(self, seeds: Sequence[int], context: Context, images: Images) -> None:
        # An accelerator without double precision gets its draws from the CPU.
        self.home = images.device if images.device.type in ("cpu", "cuda") else torch.device("cpu")
        self.seeds, self.context, self.images = tuple(seeds), context, images
        self._keys: dict[str, Tensor] = {}
        self._chunks: dict[str, tuple[int, Tensor]] = {}
        self._step = -1
        self._made: dict[str, Tensor] = {}

    def __call__(self, draw: Draw, step: int, repeat: int) -> Tensor:
        """(n_members, batch, ...) on the device of the images; made once per step, name and repeat."""
        if step != self._step:
            self._step, self._made = step, {}
        purpose = f"{draw.kind}/{draw.name}/{repeat}"
        if purpose not in self._made:
            self._made[purpose] = self._make(draw, purpose, step)
        return self._made[purpose]

    def _make(self, draw: Draw, purpose: str, step: int) -> Tensor:
        if purpose not in self._keys:
            self._keys[purpose] = batches.streams(self.seeds, purpose, self.home)
        keys = self._keys[purpose]
        if draw.kind == "images":
            return self.images(self._positions(keys, purpose, step))
        sizes = (self.context.settings[size] if isinstance(size, str) else size for size in draw.shape)
        shape = (self.context.batch_size, *sizes)
        made = _MAKERS[draw.kind](keys, step, shape).to(self.images.device)
        return made.to(self.images.dtype) if made.is_floating_point() else made

    def _positions(self, keys: Tensor, purpose: str, step: int) -> Tensor:
        number, offset = divmod(step, CHUNK)
        size = self.context.batch_size
        if self._chunks.get(purpose, (-1, None))[0] != number:
            count = CHUNK * size
            self._chunks[purpose] = (
                number,
                batches.epoch_positions(keys, number * count, count, self.context.n_images),
            )
        return self._chunks[purpose][1][:, offset * size : (offset + 1) * size]


_MAKERS: dict[str, Callable[[Tensor, int, Sequence[int]], Tensor]] = {
    "normal": batches.normal,
    "uniform": batches.uniform,
    "permutation": batches.permutations,
}
