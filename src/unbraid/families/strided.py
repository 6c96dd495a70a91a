"""Convolutions that halve the sides of an image, and transposed ones that double them, faster to train.

Both are made of three products: a convolution of the fine image, its transpose of the coarse one, and the gradient of
the weight, which takes both. On a GPU these are products of matrices, see `products.py` beside this file. On a CPU
oneDNN is slow at the gradients of a deconvolution (most of all that of its bias, which is a sum), at images of few
channels, of which it works out sixteen, and in bfloat16 at the gradient of a weight of many channels.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from unbraid.families import products

MANY = 64  # channels of the fine image, from where on a product over patches is faster in bfloat16
FEW = 4  # channels of the fine image, up to where a deconvolution is faster in blocks of 2 x 2 pixels


class Halving(nn.Conv2d):
    """4 x 4, stride 2, padding 1: (n, before, h, w) to (n, after, h // 2, w // 2).

    PyTorch's own layer on other devices and in evaluation; the same up to rounding.
    """

    def __init__(self, before: int, after: int) -> None:
        super().__init__(before, after, 4, stride=2, padding=1)

    def forward(self, input: Tensor) -> Tensor:
        by_products = in_products(input)
        if not self.training or not (by_products or input.device.type == "cpu"):
            return super().forward(input)
        images, weight, bias = _cast(input, self.weight, self.bias)
        if by_products:
            return products.Halved.apply(images, weight) + bias[:, None, None]
        if self.in_channels == 1:
            return _Halved.apply(_Blocks.apply(images), functional.pixel_unshuffle(weight, 2), bias, 1, 0)
        return _Halved.apply(images, weight, bias, 2, 1)


class Doubling(nn.ConvTranspose2d):
    """4 x 4, stride 2, padding 1: (n, before, h, w) to (n, after, 2 h, 2 w), a row or column more where `odd` is 1.

    PyTorch's own layer on other devices and in evaluation; the same up to rounding.
    """

    def __init__(self, before: int, after: int, odd: tuple[int, int] = (0, 0)) -> None:
        super().__init__(before, after, 4, stride=2, padding=1, output_padding=odd)

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        by_products = in_products(input)
        if not self.training or not (by_products or input.device.type == "cpu"):
            return super().forward(input, output_size)
        images, weight, bias = _cast(input, self.weight, self.bias)
        if by_products:
            sides = (2 * side + odd for side, odd in zip(images.shape[-2:], self.output_padding, strict=True))
            return products.Doubled.apply(images, weight, *sides) + bias[:, None, None]
        if self.out_channels == 1:
            blocks = _Doubled.apply(images, functional.pixel_unshuffle(weight, 2), bias.expand(4), 1, 0, (0, 0))
            sides = (2 * side + odd for side, odd in zip(images.shape[-2:], self.output_padding, strict=True))
            return _Pixels.apply(blocks, *sides)
        return _Doubled.apply(images, weight, bias, 2, 1, self.output_padding)


def in_products(images: Tensor) -> bool:
    """Whether convolutions of these are worked out as products of matrices."""
    return images.device.type == "cuda"


class _Halved(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(fine: Tensor, weight: Tensor, bias: Tensor, stride: int, padding: int) -> Tensor:
        return functional.conv2d(fine, weight, bias, stride, padding)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ARG004
        ctx.save_for_backward(*inputs[:2])
        ctx.geometry = inputs[3:]

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        (coarse,), (fine, weight), (stride, padding) = grad_outputs, ctx.saved_tensors, ctx.geometry
        needed = ctx.needs_input_grad
        odd = [side % stride for side in fine.shape[-2:]]
        return (
            functional.conv_transpose2d(coarse, weight, None, stride, padding, odd) if needed[0] else None,
            _gradient_of_weight(fine, coarse, weight, stride, padding) if needed[1] else None,
            coarse.sum((0, 2, 3)) if needed[2] else None,
            None,
            None,
        )


class _Doubled(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(
        coarse: Tensor, weight: Tensor, bias: Tensor, stride: int, padding: int, odd: tuple[int, int]
    ) -> Tensor:
        if stride == 2 and weight.shape[1] <= FEW:
            return _doubled_in_blocks(coarse, weight, bias, odd)
        return functional.conv_transpose2d(coarse, weight, bias, stride, padding, odd)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ARG004
        ctx.save_for_backward(*inputs[:2])
        ctx.geometry = inputs[3:5]

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        (fine,), (coarse, weight), (stride, padding) = grad_outputs, ctx.saved_tensors, ctx.geometry
        needed = ctx.needs_input_grad
        return (
            functional.conv2d(fine, weight, None, stride, padding) if needed[0] else None,
            _gradient_of_weight(fine, coarse, weight, stride, padding) if needed[1] else None,
            fine.sum((0, 2, 3)) if needed[2] else None,
            None,
            None,
            None,
        )


class _Blocks(torch.autograd.Function):
    """(n, 1, h, w) with a border of zeros to blocks of 2 x 2 pixels, (n, 4, h // 2 + 1, w // 2 + 1).

    A 4 x 4 convolution of stride 2 and padding 1 is one of 2 x 2 blocks, of stride 1 and without padding; its weight
    is cut into blocks by `pixel_unshuffle`.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(images: Tensor) -> Tensor:
        n, _, height, width = images.shape
        blocks = images.new_zeros(n, height // 2 + 1, width // 2 + 1, 4)
        for place in range(4):
            # The first pixel of a block is one above and left of an even one.
            down, right = 1 - place // 2, 1 - place % 2
            every = images[:, 0, down::2, right::2]
            blocks[:, down : down + every.shape[1], right : right + every.shape[2], place] = every
        return blocks.movedim(-1, 1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ARG004
        ctx.sides = inputs[0].shape[-2:]

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> Tensor:
        return _Pixels.apply(*grad_outputs, *ctx.sides)


class _Pixels(torch.autograd.Function):
    """The blocks as an image of so many rows and columns, without the border."""

    generate_vmap_rule = True

    @staticmethod
    def forward(blocks: Tensor, height: int, width: int) -> Tensor:
        n, _, down, right = blocks.shape
        images = blocks.new_empty(n, down, 2, right, 2)
        for place in range(4):
            images[:, :, place // 2, :, place % 2] = blocks[:, place]
        return images.reshape(n, 1, 2 * down, 2 * right)[:, :, 1 : 1 + height, 1 : 1 + width]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, None, None]:  # noqa: ARG004
        return _Blocks.apply(*grad_outputs), None, None


def _doubled_in_blocks(coarse: Tensor, weight: Tensor, bias: Tensor, odd: tuple[int, int]) -> Tensor:
    """The 4 x 4 deconvolution of stride 2 as a 2 x 2 one of stride 1, which gives four pixels at a time."""
    before, few = weight.shape[:2]
    blocked = weight.reshape(before, few, 2, 2, 2, 2).permute(0, 3, 5, 1, 2, 4).reshape(before, 4 * few, 2, 2)
    blocks = functional.conv_transpose2d(coarse, blocked, bias.repeat(4)).movedim(1, -1)
    n, down, right = blocks.shape[:3]
    rows = blocks.reshape(n, down, right, 2, 2 * few).movedim(3, 2).reshape(n, 2 * down, 2 * right, few)
    height, width = (2 * side + more for side, more in zip(coarse.shape[-2:], odd, strict=True))
    # The first pixel of a block is one above and left of the image.
    return rows[:, 1 : 1 + height, 1 : 1 + width].contiguous().movedim(-1, 1)


def _gradient_of_weight(fine: Tensor, coarse: Tensor, weight: Tensor, stride: int, padding: int) -> Tensor:
    """Of the convolution from fine to coarse; `weight` lends its shape and its order in memory."""
    if fine.dtype == torch.bfloat16 and weight.shape[1] >= MANY:
        return over_patches(fine, coarse)
    geometry = ((stride, stride), (padding, padding), (1, 1), False, (0, 0), 1)
    return torch.ops.aten.convolution_backward(coarse, fine, weight, None, *geometry, (False, True, False))[1]


def over_patches(fine: Tensor, coarse: Tensor) -> Tensor:
    """The gradient of a 4 x 4 weight, stride 2, padding 1, as one product of all patches."""
    padded = functional.pad(fine, (1, 1, 1, 1)).movedim(1, -1)
    patches = padded.unfold(1, 4, 2).unfold(2, 4, 2).movedim(3, -1)  # (n, h, w, 4, 4, channels)
    n, height, width = (coarse.shape[axis] for axis in (0, 2, 3))
    rows = patches[:, :height, :width].reshape(n * height * width, -1)
    product = coarse.movedim(1, -1).reshape(len(rows), -1).t() @ rows
    return product.reshape(-1, 4, 4, fine.shape[1]).movedim(-1, 1)


def _cast(*tensors: Tensor | None) -> list[Any]:
    """To the precision in which autocast multiplies, if it does."""
    kind = next(tensor.device.type for tensor in tensors if tensor is not None)
    if kind not in ("cpu", "cuda") or not torch.is_autocast_enabled(kind):
        return list(tensors)
    dtype = torch.get_autocast_dtype(kind)
    return [None if tensor is None else tensor.to(dtype) for tensor in tensors]
