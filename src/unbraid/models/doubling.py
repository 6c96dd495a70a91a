"""The transposed convolution that doubles the sides of an image, faster to train on a CPU.

There PyTorch takes its gradients from oneDNN's deconvolution, which spends more time on the biases than on all else.
They are those of the convolution whose adjoint it is, with image and gradient in exchanged places, which oneDNN does
well, and for the biases a sum. And for one channel of output oneDNN works out sixteen, where one matrix product and
four sums will do.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class Doubling(nn.ConvTranspose2d):
    """4 x 4, stride 2, padding 1: (n, before, h, w) to (n, after, 2 h, 2 w), a row or column more where `odd` is 1.

    PyTorch's own layer on other devices and in evaluation; the same up to rounding.
    """

    def __init__(self, before: int, after: int, odd: tuple[int, int] = (0, 0)) -> None:
        super().__init__(before, after, 4, stride=2, padding=1, output_padding=odd)

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        if not self.training or input.device.type != "cpu":
            return super().forward(input, output_size)
        dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else input.dtype
        tensors = (each.to(dtype) for each in (input, self.weight, self.bias) if each is not None)
        return _Doubled.apply(*tensors, self.output_padding)


class _Doubled(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(images: Tensor, weight: Tensor, bias: Tensor, odd: tuple[int, int]) -> Tensor:
        if weight.shape[1] == 1:
            return _one_channel(images, weight, bias, odd)
        return functional.conv_transpose2d(images, weight, bias, 2, 1, odd)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ARG004
        ctx.save_for_backward(*inputs[:2])

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,), (images, weight) = grad_outputs, ctx.saved_tensors
        wanted = ctx.needs_input_grad
        return (
            functional.conv2d(gradient, weight, None, 2, 1) if wanted[0] else None,
            _gradient_of_weight(images, gradient, weight) if wanted[1] else None,
            gradient.sum((0, 2, 3)) if wanted[2] else None,
            None,
        )


def _gradient_of_weight(images: Tensor, gradient: Tensor, weight: Tensor) -> Tensor:
    """Of the convolution from the doubled images down to `images`; `weight` lends its shape and its order in memory."""
    geometry = ((2, 2), (1, 1), (1, 1), False, (0, 0), 1)
    return torch.ops.aten.convolution_backward(images, gradient, weight, None, *geometry, (False, True, False))[1]


def _one_channel(images: Tensor, weight: Tensor, bias: Tensor, odd: tuple[int, int]) -> Tensor:
    """What a pixel spreads over 4 x 4 others is a product; these are 2 x 2 blocks of 2 x 2, added block by block."""
    n, _, height, width = images.shape
    spread = weight.flatten(1).t() @ images.movedim(1, 0).flatten(1)
    blocks = spread.reshape(2, 2, 2, 2, n, height, width)  # down by block, within it, right by block, within it
    single = torch.promote_types(images.dtype, torch.float32)
    total = bias.to(single).reshape(1, 1, 1, 1, 1).repeat(2, 2, n, height + 1, width + 1)
    for down in (0, 1):
        for right in (0, 1):
            total[..., down : down + height, right : right + width] += blocks[down, :, right]
    padded = total.permute(2, 3, 0, 4, 1).reshape(n, 1, 2 * height + 2, 2 * width + 2)
    return padded[:, :, 1 : 2 * height + 1 + odd[0], 1 : 2 * width + 1 + odd[1]].to(images.dtype)
