"""Encoder and decoder pairs, built from the shape of the images."""

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from unbraid.families.resnet import halved_sides, resnet_pair
from unbraid.families.strided import Doubling, Halving
from unbraid.files.trust import imported, is_code

Shape: TypeAlias = tuple[int, ...]  # (height, width, channels) of images, (n_features,) of rows of a table
Pair: TypeAlias = tuple[nn.Module, nn.Module]
PairBuilder: TypeAlias = Callable[[Shape, int, int], Pair]

CHANNELS = (32, 32, 64, 64, 64, 64)  # of the convolutions, from the image inwards
HIDDEN = 256
SMALLEST = 16  # side of images, in pixels, that convolutions take


def conv_pair(shape: Shape, n_outputs: int, n_latents: int) -> Pair:
    """The shared convolutional pair: 4 x 4 convolutions of stride 2 down to 4 .. 7 pixels, then one hidden layer.

    At 64 x 64 these are the four convolutions 32, 32, 64, 64, FC 256 and its mirror image that the published studies
    share (UDR table 2, LSBD table 1); other sizes take one or two more or less. Odd sides are rounded down on the
    way in and restored on the way out.

    Args:
        shape: (height, width, channels), sides from 16 to 256.
        n_outputs: numbers the encoder gives per image (two per latent for a Gaussian posterior).
        n_latents: numbers the decoder takes.

    Returns:
        Encoder (n, channels, height, width) -> (n, n_outputs); decoder (n, n_latents) -> (n, channels, height, width),
        unbounded: logits of pixels, or their means.

    Raises:
        ValueError: no such images, or a side outside 16 .. 256.
    """
    sizes = halved_sides(shape, "convolutional", SMALLEST)
    depth = len(sizes) - 1
    widths = (shape[2], *CHANNELS[:depth])
    inner = (widths[-1], *sizes[-1])

    down: list[nn.Module] = []
    for before, after in pairwise(widths):
        down += [Halving(before, after), nn.ReLU(inplace=True)]
    encoder = nn.Sequential(
        *down, nn.Flatten(), nn.Linear(math.prod(inner), HIDDEN), nn.ReLU(inplace=True), nn.Linear(HIDDEN, n_outputs)
    )

    up: list[nn.Module] = []
    for level in reversed(range(depth)):
        odd = (sizes[level][0] % 2, sizes[level][1] % 2)
        up += [nn.ReLU(inplace=True), Doubling(widths[level + 1], widths[level], odd)]
    decoder = nn.Sequential(
        nn.Linear(n_latents, HIDDEN),
        nn.ReLU(inplace=True),
        nn.Linear(HIDDEN, math.prod(inner)),
        nn.Unflatten(1, inner),
        *up,
    )
    return encoder, decoder


def channels_first(shape: Shape) -> Shape:
    """The shape of one image, or of one row of a table, as networks take it."""
    return (shape[2], *shape[:2]) if len(shape) == 3 else shape


def dense_pair(shape: Shape, n_outputs: int, n_latents: int) -> Pair:
    """Two hidden layers of 256 each way, for images of any size and for rows of a table.

    Args and Returns: as `conv_pair`; for a table the encoder takes and the decoder gives (n, n_features).
    """
    return _mirrored(shape, n_outputs, n_latents, (HIDDEN, HIDDEN), normed=False)


def dense_norm_pair(shape: Shape, n_outputs: int, n_latents: int) -> Pair:
    """Hidden layers of 512 and 256 with ReLU and batch norm, mirrored (LSBD table 2).

    Args and Returns: as `dense_pair`.
    """
    return _mirrored(shape, n_outputs, n_latents, (512, 256), normed=True)


def _mirrored(shape: Shape, n_outputs: int, n_latents: int, widths: tuple[int, int], *, normed: bool) -> Pair:
    inner = channels_first(shape)
    n_inputs, (outer, deep) = math.prod(inner), widths

    def layers(*sizes: int) -> list[nn.Module]:
        hidden: list[nn.Module] = []
        for before, after in pairwise(sizes):
            hidden += [nn.Linear(before, after), nn.ReLU(inplace=True), *([nn.BatchNorm1d(after)] if normed else [])]
        return hidden

    encoder = nn.Sequential(nn.Flatten(), *layers(n_inputs, outer, deep), nn.Linear(deep, n_outputs))
    decoder = nn.Sequential(*layers(n_latents, deep, outer), nn.Linear(outer, n_inputs), nn.Unflatten(1, inner))
    return encoder, decoder


NETWORKS: Mapping[str, PairBuilder] = MappingProxyType(
    {"conv": conv_pair, "dense": dense_pair, "dense_norm": dense_norm_pair, "resnet": resnet_pair}
)


def network_pair(name: str, shape: Shape, n_outputs: int, n_latents: int) -> Pair:
    """The pair called `name`: a row of NETWORKS, or "package.module:function" with the signature of `conv_pair`.

    Raises:
        ValueError: no such network; or code that the user has not named.
    """
    if name in NETWORKS:
        return NETWORKS[name](shape, n_outputs, n_latents)
    if not is_code(name):
        raise ValueError(f"no network {name!r}: one of {', '.join(NETWORKS)}, or your own as package.module:function")
    return imported(name, "network", f"name it yourself: network={name!r}")(shape, n_outputs, n_latents)


def promote(values: Tensor) -> Tensor:
    """At least single precision: sums over pixels and exponentials are never taken in bfloat16."""
    return values.float() if values.is_floating_point() and values.element_size() < 4 else values


def as_tensor(images: NDArray[Any]) -> Tensor:
    """Images as a tensor; copied if torch cannot take their byte order, negative strides or read-only memory."""
    return torch.from_numpy(np.require(images, images.dtype.newbyteorder("="), ["C", "W"]))


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
