"""The residual networks of DCI 2018: encoder, decoder and Wasserstein critic."""

import math
from collections.abc import Callable
from typing import TypeAlias, TypeVar

from torch import Tensor, nn
from torch.nn import functional

Normalisation: TypeAlias = Callable[[int], nn.Module]

Layer = TypeVar("Layer", nn.Conv2d, nn.Linear)

SMALLEST, LARGEST = 32, 256  # sides of images, in pixels
WIDTHS = (64, 128, 256, 512, 512, 512, 512)  # channels, from the image inwards
GAIN = math.sqrt(2)  # of convolutions that follow a ReLU


def layer_norm(channels: int) -> nn.Module:
    """Over the whole of one image's activations, with a scale and an offset per channel."""
    return nn.GroupNorm(1, channels)


class DownBlock(nn.Module):
    """Normalise, ReLU, 3 x 3 convolution, twice, then mean pooling; the input is pooled and added."""

    def __init__(self, before: int, after: int, normalise: Normalisation) -> None:
        super().__init__()
        self.norm1, self.norm2 = normalise(before), normalise(before)
        self.conv1 = _convolution(before, before, 3, GAIN, bias=False)
        self.conv2 = _convolution(before, after, 3, GAIN)
        self.shortcut = _convolution(before, after, 1)

    def forward(self, values: Tensor) -> Tensor:
        hidden = self.conv1(functional.relu(self.norm1(values)))
        hidden = self.conv2(functional.relu(self.norm2(hidden)))
        return functional.avg_pool2d(hidden, 2) + self.shortcut(functional.avg_pool2d(values, 2))


class UpBlock(nn.Module):
    """Normalise, ReLU, twofold repetition of pixels, 3 x 3 convolution, then the same without repetition.

    Args:
        before, after: channels.
        size: (height, width) of what comes out.
        normalise: maker of a normalisation, given its channels.
        first: the input comes normalised and rectified, so the block begins with the repetition.
    """

    def __init__(
        self, before: int, after: int, size: tuple[int, int], normalise: Normalisation, *, first: bool = False
    ) -> None:
        super().__init__()
        self.size = size
        self.start = nn.Identity() if first else nn.Sequential(normalise(before), nn.ReLU())
        self.norm = normalise(after)
        self.conv1 = _convolution(before, after, 3, GAIN, bias=False)
        self.conv2 = _convolution(after, after, 3, GAIN)
        self.shortcut = _convolution(before, after, 1)

    def forward(self, values: Tensor) -> Tensor:
        hidden = self.conv1(functional.interpolate(self.start(values), self.size))
        hidden = self.conv2(functional.relu(self.norm(hidden)))
        # A 1 x 1 convolution sees one pixel at a time: repeating its output is repeating its input, for a quarter.
        return hidden + functional.interpolate(self.shortcut(values), self.size)


def resnet_encoder(shape: tuple[int, ...], n_outputs: int, normalise: Normalisation = nn.BatchNorm2d) -> nn.Sequential:
    """DCI 2018 table 2, left: images (n, channels, height, width) -> (n, n_outputs).

    Four blocks at 64 x 64, each halving the side; at other sizes as many as lead to 4 .. 7 pixels.

    Args:
        shape: (height, width, channels), sides from 32 to 256.
        n_outputs: numbers per image.
        normalise: BatchNorm2d, or `layer_norm` where images must not see each other.

    Raises:
        ValueError: no such images, or a side outside 32 .. 256.
    """
    sizes = halved_sides(shape, "residual")
    widths = WIDTHS[: len(sizes)]
    blocks = [DownBlock(before, after, normalise) for before, after in zip(widths, widths[1:], strict=False)]
    n_inner = widths[-1] * math.prod(sizes[-1])
    return nn.Sequential(_convolution(shape[2], widths[0], 3), *blocks, nn.Flatten(), _linear(n_inner, n_outputs))


def resnet_decoder(shape: tuple[int, ...], n_latents: int) -> nn.Sequential:
    """DCI 2018 table 2, right: (n, n_latents) -> (n, channels, height, width), unbounded.

    Differs from the table: no hyperbolic tangent at the end; the likelihood squashes logits.

    Args and Raises: as `resnet_encoder`.
    """
    sizes = halved_sides(shape, "residual")
    widths = WIDTHS[: len(sizes)]
    n_inner = widths[-1] * math.prod(sizes[-1])
    last = len(sizes) - 2
    blocks = [
        UpBlock(widths[level + 1], widths[level], sizes[level], nn.BatchNorm2d, first=level == last)
        for level in reversed(range(len(sizes) - 1))
    ]
    return nn.Sequential(
        _linear(n_latents, n_inner), nn.BatchNorm1d(n_inner), nn.ReLU(), nn.Unflatten(1, (widths[-1], *sizes[-1])),
        *blocks,
        nn.BatchNorm2d(widths[0]), nn.ReLU(), _convolution(widths[0], shape[2], 3, GAIN),
    )  # fmt: skip


def resnet_pair(shape: tuple[int, ...], n_outputs: int, n_latents: int) -> tuple[nn.Module, nn.Module]:
    """Encoder and decoder of DCI 2018 table 2, with batch norm; initialised as in the authors' code."""
    return resnet_encoder(shape, n_outputs), resnet_decoder(shape, n_latents)


def halved_sides(shape: tuple[int, ...], network: str, smallest: int = SMALLEST) -> list[tuple[int, int]]:
    """Heights and widths from the image inwards, each half of those before, down to 4 .. 7 pixels.

    Raises:
        ValueError: no such images, or a side outside smallest .. 256; names the network that takes them.
    """
    if len(shape) != 3 or not all(smallest <= side <= LARGEST for side in shape[:2]):
        raise ValueError(
            f"the {network} network takes (height, width, channels) with sides from {smallest} to {LARGEST}; "
            f"got {shape}. Other shapes: network='dense'"
        )
    depth = int(math.log2(min(shape[:2]) / 4))
    return [(shape[0] >> level, shape[1] >> level) for level in range(depth + 1)]


def _convolution(before: int, after: int, kernel: int, gain: float = 1.0, *, bias: bool = True) -> nn.Conv2d:
    convolution = nn.Conv2d(before, after, kernel, padding=kernel // 2, bias=bias)
    return _initialised(convolution, gain)


def _linear(before: int, after: int) -> nn.Linear:
    return _initialised(nn.Linear(before, after))


def _initialised(layer: Layer, gain: float = 1.0) -> Layer:
    nn.init.xavier_uniform_(layer.weight, gain)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer
