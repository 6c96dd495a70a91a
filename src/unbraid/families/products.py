"""4 x 4 convolutions of stride 2, their transposes and the gradients of their weights as products of matrices.

For members that are stacked on a GPU: to cuDNN they are groups of channels, at which it is slow. A 4 x 4 convolution of
stride 2 and padding 1 is one of 2 x 2 blocks of pixels, of stride 1: a product of each block and its three neighbours
with a part of the weight.

All tensors may have the members in front: (n, f, h, w) is the fine image, (n, c, h // 2, w // 2) the coarse one, and
(c, f, 4, 4) the weight.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

FEW = 4  # channels of the fine image, up to which windows of four blocks take little room
PARTS = 8  # of the pixels, at most, for the gradient of the weight of few channels


class _Product(torch.autograd.Function):
    """Of two tensors, which the derivatives need; with stacked members it is itself."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ARG004
        ctx.save_for_backward(*inputs[:2])

    @classmethod
    def vmap(  # pyright: ignore[reportIncompatibleMethodOverride]
        cls, info: Any, in_dims: tuple[int | None, ...], *inputs: Any
    ) -> tuple[Tensor, int]:
        return cls.apply(*_members_first(info.batch_size, in_dims, inputs)), 0


class Halved(_Product):
    """From the fine image to the coarse one."""

    @staticmethod
    def forward(fine: Tensor, weight: Tensor) -> Tensor:
        return _stacked(halved, fine, weight)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        (coarse,), (fine, weight), needed = grad_outputs, ctx.saved_tensors, ctx.needs_input_grad
        return (
            Doubled.apply(coarse, weight, *fine.shape[-2:]) if needed[0] else None,
            Gradient.apply(fine, coarse) if needed[1] else None,
        )


class Doubled(_Product):
    """Its transpose: from the coarse image to a fine one of so many rows and columns."""

    @staticmethod
    def forward(coarse: Tensor, weight: Tensor, height: int, width: int) -> Tensor:
        return _stacked(doubled, coarse, weight, height, width)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        (fine,), (coarse, weight), needed = grad_outputs, ctx.saved_tensors, ctx.needs_input_grad
        return (
            Halved.apply(fine, weight) if needed[0] else None,
            Gradient.apply(fine, coarse) if needed[1] else None,
            None,
            None,
        )


class Gradient(_Product):
    """Of the weight, from the fine image and the gradient of the coarse one, or the other way round."""

    @staticmethod
    def forward(fine: Tensor, coarse: Tensor) -> Tensor:
        return _stacked(gradient, fine, coarse)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        (weight,), (fine, coarse) = grad_outputs, ctx.saved_tensors
        return Doubled.apply(coarse, weight, *fine.shape[-2:]), Halved.apply(fine, weight)


def _members_first(members: int, in_dims: Sequence[int | None], inputs: Sequence[Any]) -> list[Any]:
    def moved(value: Any, dim: int | None) -> Any:
        if not isinstance(value, Tensor):
            return value
        return value.expand(members, *value.shape) if dim is None else value.movedim(dim, 0)

    return [moved(value, dim) for value, dim in zip(inputs, in_dims, strict=True)]


def _stacked(function: Any, first: Tensor, second: Tensor, *sides: int) -> Tensor:
    """The function of stacked members, for one by itself as well."""
    if first.dim() == 5:
        return function(first, second, *sides)
    return function(first[None], second[None], *sides)[0]


def halved(fine: Tensor, weight: Tensor) -> Tensor:
    """(m, n, f, h, w) by (m, c, f, 4, 4) to (m, n, c, h // 2, w // 2)."""
    blocks, tiles = _blocks(fine), _tiles(weight)
    n, down, right = blocks.shape[1:4]
    if fine.shape[2] <= FEW or _is_half(fine):
        rows = _windows(blocks) @ tiles.flatten(1, 2)
        return rows.reshape(-1, n, down - 1, right - 1, rows.shape[2]).movedim(-1, 2)
    # The next block to the right is the next row of the matrix, and the one below is `right` rows on. What is
    # added across the edge of an image lands in blocks that are cut off.
    every = blocks.flatten(1, 3)
    rows = every @ tiles[:, 0]
    for place, ahead in enumerate((1, right, right + 1), 1):
        rows[:, : rows.shape[1] - ahead].baddbmm_(every[:, ahead:], tiles[:, place])
    return rows.reshape(-1, n, down, right, rows.shape[2])[:, :, :-1, :-1].movedim(-1, 2)


def doubled(coarse: Tensor, weight: Tensor, height: int, width: int) -> Tensor:
    """(m, n, c, h, w) by (m, c, f, 4, 4) to (m, n, f, height, width), 2 h and 2 w or one more."""
    around = _padded(coarse, 1, 1)
    tiles = _tiles(weight).flip(1).transpose(2, 3)
    n, down, right = around.shape[1:4]
    if weight.shape[2] <= FEW and not _is_half(coarse):
        size = tiles.shape[3]
        shares = around.flatten(1, 3) @ tiles.movedim(1, 2).flatten(2)
        rows = shares[:, :, :size].clone()
        for place, ahead in enumerate((1, right, right + 1), 1):
            rows[:, : rows.shape[1] - ahead] += shares[:, ahead:, place * size : (place + 1) * size]
        blocks = rows.reshape(-1, n, down, right, 2, 2, size // 4)[:, :, :-1, :-1]
    else:
        rows = _windows(around) @ tiles.flatten(1, 2)
        blocks = rows.reshape(-1, n, down - 1, right - 1, 2, 2, weight.shape[2])
    pixels = _copied(blocks.movedim(4, 3)).reshape(-1, n, 2 * down - 2, 2 * right - 2, weight.shape[2])
    # The first pixel of a block is one above and left of the image.
    return pixels[:, :, 1 : 1 + height, 1 : 1 + width].movedim(-1, 2)


def gradient(fine: Tensor, coarse: Tensor) -> Tensor:
    """(m, c, f, 4, 4) from (m, n, f, h, w) and (m, n, c, h // 2, w // 2)."""
    blocks = _blocks(fine)
    m, n, _, right = blocks.shape[:4]
    if fine.shape[2] <= FEW or _is_half(fine):
        # A product of few numbers by few over all pixels leaves most of a GPU idle: of a part of them each.
        parts = 1 if _is_half(fine) else math.gcd(n, PARTS)
        windows, rows = _windows(blocks), _padded(coarse, 0, 0).flatten(1, 3)
        windows, rows = (matrix.reshape(m * parts, -1, matrix.shape[2]) for matrix in (windows, rows))
        product = (windows.transpose(1, 2) @ rows).unflatten(0, (m, parts)).sum(1)
    else:
        every, rows = blocks.flatten(1, 3), _padded(coarse, 0, 1).flatten(1, 3)
        shifted = [
            every[:, ahead:].transpose(1, 2) @ rows[:, : rows.shape[1] - ahead] for ahead in (0, 1, right, right + 1)
        ]
        product = torch.stack(shifted, dim=1)
    tiles = product.reshape(m, 2, 2, 2, 2, fine.shape[2], coarse.shape[2])
    return tiles.permute(0, 6, 5, 1, 3, 2, 4).reshape(m, coarse.shape[2], fine.shape[2], 4, 4)


def _blocks(images: Tensor) -> Tensor:
    """(m, n, f, h, w) with a border of zeros to blocks of 2 x 2 pixels, (m, n, h // 2 + 1, w // 2 + 1, 4 f)."""
    m, n, channels, height, width = images.shape
    blocks = images.new_zeros(m, n, height // 2 + 1, width // 2 + 1, 4, channels)
    pixels, into = _wide(images.movedim(2, -1), blocks)
    for place in range(4):
        # The first pixel of a block is one above and left of an even one.
        down, right = 1 - place // 2, 1 - place % 2
        every = pixels[:, :, down::2, right::2]
        into[:, :, down : down + every.shape[2], right : right + every.shape[3], place] = every
    return blocks.flatten(4)


def _tiles(weight: Tensor) -> Tensor:
    """(m, c, f, 4, 4) to four matrices (4 f, c): of the blocks above left, above right, below left and below right."""
    m, coarse, fine = weight.shape[:3]
    return weight.reshape(m, coarse, fine, 2, 2, 2, 2).permute(0, 3, 5, 4, 6, 2, 1).reshape(m, 4, 4 * fine, coarse)


def _windows(blocks: Tensor) -> Tensor:
    """(m, n, h + 1, w + 1, k) to (m, n h w, 4 k): each block with the one to its right and the two below."""
    m, n, down, right, size = blocks.shape
    windows = blocks.unfold(2, 2, 1).unfold(3, 2, 1).movedim(4, -1)
    return _copied(windows).reshape(m, n * (down - 1) * (right - 1), 4 * size)


def _padded(images: Tensor, before: int, after: int) -> Tensor:
    """(m, n, c, h, w) to (m, n, h, w, c), with so many rows and columns of zeros above and left, below and right."""
    m, n, channels, height, width = images.shape
    more = before + after
    padded = images.new_zeros(m, n, height + more, width + more, channels)
    pixels, into = _wide(images.movedim(2, -1), padded)
    into[:, :, before : before + height, before : before + width] = pixels
    return padded


def _copied(values: Tensor) -> Tensor:
    """In the order of its axes in memory."""
    (wide,) = _wide(values)
    return wide.contiguous().view(values.dtype)


def _wide(*values: Tensor) -> list[Tensor]:
    """The same memory as fewer, longer numbers of up to 16 bytes, which are quicker to copy."""
    for dtype in (torch.complex128, torch.float64):
        ratio = dtype.itemsize // values[0].element_size()
        if ratio > 1 and all(_divides(ratio, tensor) for tensor in values):
            return [tensor.view(dtype) for tensor in values]
    return [*values]


def _divides(ratio: int, values: Tensor) -> bool:
    *strides, last = values.stride()
    return last == 1 and all(number % ratio == 0 for number in (values.storage_offset(), values.shape[-1], *strides))


def _is_half(images: Tensor) -> bool:
    """In half precision a sum of several products errs more than one."""
    return images.element_size() < 4
