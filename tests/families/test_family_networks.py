"""Architectures against the tables of the papers: layers, activations, counts of parameters, gains, and what they do.

The forward passes are written out with sums over kernels; every weight is random, so that no layer is without effect.
"""

import math
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor, nn

from tests.families.members import NETWORKS, Weights, layer_norm, resnet_critic, untrained_at

CONV, DENSE = NETWORKS["conv"], NETWORKS["dense"]


def shaken(network: nn.Module, scale: float = 1.5) -> nn.Module:
    """Weights of about the usual size and biases that matter, none at its initial value."""
    generator = torch.Generator().manual_seed(0)
    for value in network.parameters():
        width = math.sqrt(value[0].numel()) if value.ndim > 1 else 2.0
        value.data = scale * torch.randn(value.shape, generator=generator, dtype=torch.float64) / width
    return network.double()


def count(network: nn.Module) -> int:
    return sum(value.numel() for value in network.parameters())


def layers(network: nn.Module) -> list[str]:
    """Kinds and sizes of all layers, in the order in which they are called."""
    found = []
    for each in network.modules():
        if isinstance(each, nn.Conv2d | nn.ConvTranspose2d):
            (kernel, _), (stride, _), padding = each.kernel_size, each.stride, each.padding
            kind = "up" if isinstance(each, nn.ConvTranspose2d) else "conv"
            assert each.kernel_size == (kernel, kernel)
            assert each.stride == (stride, stride)
            assert padding == (kernel // 2 - (kernel == 4), kernel // 2 - (kernel == 4))
            found.append(f"{kind}{kernel}/{stride} {each.in_channels}-{each.out_channels}")
        elif isinstance(each, nn.Linear):
            found.append(f"fc {each.in_features}-{each.out_features}")
        elif isinstance(each, nn.LeakyReLU):
            found.append(f"leaky {each.negative_slope}")
        elif isinstance(each, nn.BatchNorm1d | nn.BatchNorm2d):
            found.append(f"bn {each.num_features}")
        elif isinstance(each, nn.ReLU | nn.Tanh):
            found.append(type(each).__name__.lower())
    return found


# Plain layers.


def relu(values: Tensor) -> Tensor:
    return values * (values > 0)


def dense(weights: Weights, name: str, values: Tensor) -> Tensor:
    return (weights[f"{name}.weight"] * values[:, None]).sum(-1) + weights[f"{name}.bias"]


def halving(weights: Weights, name: str, images: Tensor) -> Tensor:
    """4 x 4, stride 2, a border of one zero: each kernel entry meets every second pixel."""
    weight = weights[f"{name}.weight"]
    n, _, height, width = images.shape
    padded = torch.zeros(n, images.shape[1], height + 2, width + 2, dtype=images.dtype)
    padded[:, :, 1:-1, 1:-1] = images
    down, right = height // 2, width // 2
    total = weights[f"{name}.bias"][None, :, None, None].expand(n, -1, down, right)
    for i in range(4):
        for j in range(4):
            seen = padded[:, :, i : i + 2 * down : 2, j : j + 2 * right : 2]
            total = total + torch.einsum("oc,ncyx->noyx", weight[:, :, i, j], seen)
    return total


def doubling(weights: Weights, name: str, images: Tensor) -> Tensor:
    """Its transpose: every pixel is spread over 4 x 4, and the border of one pixel is cut off."""
    weight = weights[f"{name}.weight"]
    n, _, height, width = images.shape
    total = torch.zeros(n, weight.shape[1], 2 * height + 2, 2 * width + 2, dtype=images.dtype)
    for i in range(4):
        for j in range(4):
            spread = torch.einsum("co,ncyx->noyx", weight[:, :, i, j], images)
            total[:, :, i : i + 2 * height : 2, j : j + 2 * width : 2] += spread
    return total[:, :, 1:-1, 1:-1] + weights[f"{name}.bias"][None, :, None, None]


def same(weights: Weights, name: str, images: Tensor) -> Tensor:
    """3 x 3 with a border of one zero, or 1 x 1."""
    weight = weights[f"{name}.weight"]
    n, _, height, width = images.shape
    size = weight.shape[-1]
    edge = size // 2
    padded = torch.zeros(n, images.shape[1], height + 2 * edge, width + 2 * edge, dtype=images.dtype)
    padded[:, :, edge : edge + height, edge : edge + width] = images
    total = torch.zeros(n, len(weight), height, width, dtype=images.dtype)
    for i in range(size):
        for j in range(size):
            seen = padded[:, :, i : i + height, j : j + width]
            total = total + torch.einsum("oc,ncyx->noyx", weight[:, :, i, j], seen)
    bias = weights.get(f"{name}.bias")
    return total if bias is None else total + bias[None, :, None, None]


def standardised(weights: Weights, name: str, values: Tensor, over: Sequence[int]) -> Tensor:
    """Batch norm in training (over all but channels) or layer norm (over all but images), with scale and offset."""
    shape = [1, -1, *[1] * (values.ndim - 2)]
    centred = values - values.mean(tuple(over), keepdim=True)
    scaled = centred / torch.sqrt((centred**2).mean(tuple(over), keepdim=True) + 1e-5)
    return scaled * weights[f"{name}.weight"].reshape(shape) + weights[f"{name}.bias"].reshape(shape)


def mean_pooled(values: Tensor) -> Tensor:
    return (values[..., ::2, ::2] + values[..., 1::2, ::2] + values[..., ::2, 1::2] + values[..., 1::2, 1::2]) / 4


def repeated(values: Tensor) -> Tensor:
    return values.repeat_interleave(2, -1).repeat_interleave(2, -2)


# UDR table 2 and LSBD table 1.


@pytest.mark.parametrize(("channels", "latents"), [(1, 10), (3, 4)])
def test_layers_of_the_convolutional_pair(channels: int, latents: int) -> None:
    encoder, decoder = CONV((64, 64, channels), 2 * latents, latents)
    assert layers(encoder) == [
        f"conv4/2 {channels}-32", "relu", "conv4/2 32-32", "relu", "conv4/2 32-64", "relu", "conv4/2 64-64", "relu",
        "fc 1024-256", "relu", f"fc 256-{2 * latents}",
    ]  # fmt: skip
    assert layers(decoder) == [
        f"fc {latents}-256", "relu", "fc 256-1024", "relu", "up4/2 64-64", "relu", "up4/2 64-32", "relu",
        "up4/2 32-32", "relu", f"up4/2 32-{channels}",
    ]  # fmt: skip


def test_what_the_convolutional_pair_does() -> None:
    """At 32 x 32, one convolution less, where sums over kernels are quick."""
    generator = torch.Generator().manual_seed(1)
    encoder, decoder = (shaken(each) for each in CONV((32, 32, 2), 6, 3))
    images = torch.rand(2, 2, 32, 32, generator=generator, dtype=torch.float64)
    weights = dict(encoder.named_parameters())
    values = images
    for name in ("0", "2", "4"):
        values = relu(halving(weights, name, values))
        assert 0.2 < (values > 0).double().mean() < 0.8
    values = relu(dense(weights, "7", values.flatten(1)))
    torch.testing.assert_close(encoder(images), dense(weights, "9", values))
    codes = torch.randn(2, 3, generator=generator, dtype=torch.float64)
    weights = dict(decoder.named_parameters())
    values = relu(dense(weights, "2", relu(dense(weights, "0", codes)))).reshape(2, 64, 4, 4)
    values = relu(doubling(weights, "5", values))
    values = relu(doubling(weights, "7", values))
    torch.testing.assert_close(decoder(codes), doubling(weights, "9", values))


# LSBD table 2, and the pair for rows and small images.


def test_layers_of_the_dense_pairs() -> None:
    encoder, decoder = DENSE((16, 16, 3), 20, 10)
    assert layers(encoder) == ["fc 768-256", "relu", "fc 256-256", "relu", "fc 256-20"]
    assert layers(decoder) == ["fc 10-256", "relu", "fc 256-256", "relu", "fc 256-768"]
    encoder, decoder = NETWORKS["dense_norm"]((64, 64, 1), 19, 7)
    assert layers(encoder) == ["fc 4096-512", "relu", "bn 512", "fc 512-256", "relu", "bn 256", "fc 256-19"]
    assert layers(decoder) == ["fc 7-256", "relu", "bn 256", "fc 256-512", "relu", "bn 512", "fc 512-4096"]


@pytest.mark.parametrize("name", ["dense", "dense_norm"])
def test_what_the_dense_pairs_do(name: str) -> None:
    generator = torch.Generator().manual_seed(1)
    normed = name == "dense_norm"
    for network, given in zip(NETWORKS[name]((2, 3, 2), 6, 3), (12, 3), strict=True):
        shaken(network)
        weights = {key: value for key, value in network.named_parameters()}
        values = torch.randn(5, given, generator=generator, dtype=torch.float64)
        linear = [key.removesuffix(".weight") for key, value in weights.items() if value.ndim == 2]
        inputs = values.reshape(5, 2, 2, 3) if given == 12 else values
        for number, layer in enumerate(linear):
            values = dense(weights, layer, values)
            if number < 2:
                values = relu(values)
                if normed:
                    values = standardised(weights, str(int(layer) + 2), values, [0])
        torch.testing.assert_close(network(inputs).flatten(1), values)


# DCI table 2.


def block(before: int, after: int) -> int:
    """Two normalisations, 3 x 3 without and with biases, 1 x 1 around them."""
    return 2 * before + 2 * before + 9 * before**2 + 9 * before * after + after + before * after + after


def test_parameters_of_the_residual_pair() -> None:
    """Norms of an upward block are of `before` and `after`; its first block is normalised ahead of it."""
    encoder, decoder = NETWORKS["resnet"]((64, 64, 3), 20, 10)
    steps = [(64, 128), (128, 256), (256, 512), (512, 512)]
    assert count(encoder) == 64 * 28 + sum(block(*step) for step in steps) + 20 * (8192 + 1)
    up = 0
    for after, before in steps:
        norms = 2 * after + (2 * before if (after, before) != (512, 512) else 0)
        up += norms + 9 * before * after + 9 * after**2 + after + before * after + after
    assert count(decoder) == 8192 * 11 + 2 * 8192 + up + 2 * 64 + 3 * (9 * 64 + 1)


def test_gains_of_the_residual_pair() -> None:
    """Glorot's bounds, times the root of 2 where a convolution follows a ReLU; biases at 0."""
    torch.manual_seed(0)
    encoder, decoder = NETWORKS["resnet"]((64, 64, 3), 20, 10)
    plain, rectified = 0, 0
    for network in (encoder, decoder):
        for name, each in network.named_modules():
            if not isinstance(each, nn.Conv2d | nn.Linear):
                continue
            weight, area = each.weight, each.weight[0, 0].numel()
            bound = math.sqrt(6 / (area * (weight.shape[0] + weight.shape[1])))
            after_relu = "conv1" in name or "conv2" in name or (network is decoder and isinstance(each, nn.Conv2d))
            after_relu = after_relu and "shortcut" not in name
            gain = math.sqrt(2) if after_relu else 1.0
            assert 0.97 * gain * bound < weight.abs().max().item() <= gain * bound * (1 + 1e-6), name
            assert weight.std().item() == pytest.approx(gain * bound / math.sqrt(3), rel=0.05)
            assert each.bias is None or not each.bias.any()
            rectified, plain = rectified + after_relu, plain + (not after_relu)
    assert (plain, rectified) == (1 + 4 + 1 + 1 + 4, 8 + 8 + 1)


@pytest.mark.parametrize("critic", [False, True], ids=["batch norm", "layer norm"])
def test_what_the_residual_encoder_does(critic: bool) -> None:
    """Convolution, blocks of normalise, ReLU, 3 x 3, twice, pooled and added to the pooled input, one dense layer."""
    network = shaken(resnet_critic((32, 32, 1), 3) if critic else NETWORKS["resnet"]((32, 32, 1), 3, 2)[0])
    weights = dict(network.named_parameters())
    images = torch.rand(3, 1, 32, 32, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    over = [1, 2, 3] if critic else [0, 2, 3]
    values = same(weights, "0", images)
    for name in ("1", "2", "3"):
        hidden = same(weights, f"{name}.conv1", relu(standardised(weights, f"{name}.norm1", values, over)))
        hidden = same(weights, f"{name}.conv2", relu(standardised(weights, f"{name}.norm2", hidden, over)))
        values = mean_pooled(hidden) + same(weights, f"{name}.shortcut", mean_pooled(values))
    torch.testing.assert_close(network(images), dense(weights, "5", values.flatten(1)))


def test_what_the_residual_decoder_does() -> None:
    network = shaken(NETWORKS["resnet"]((32, 32, 1), 3, 2)[1])
    weights = dict(network.named_parameters())
    codes = torch.randn(4, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    values = relu(standardised(weights, "1", dense(weights, "0", codes), [0])).reshape(4, 512, 4, 4)
    for number, name in enumerate(("4", "5", "6")):
        start = values
        if number:
            start = relu(standardised(weights, f"{name}.start.0", values, [0, 2, 3]))
        hidden = same(weights, f"{name}.conv1", repeated(start))
        hidden = same(weights, f"{name}.conv2", relu(standardised(weights, f"{name}.norm", hidden, [0, 2, 3])))
        values = hidden + repeated(same(weights, f"{name}.shortcut", values))
    values = same(weights, "9", relu(standardised(weights, "7", values, [0, 2, 3])))
    torch.testing.assert_close(network(codes), values)


# What families add.


def test_the_discriminator_of_the_factor_vae() -> None:
    """UDR table 4b; Kim and Mnih 2018, appendix A."""
    discriminator = untrained_at((64, 64, 1), "factor_vae")["discriminator"]
    hidden = ["fc 1000-1000", "leaky 0.2"] * 5
    assert layers(discriminator) == ["fc 10-1000", "leaky 0.2", *hidden, "fc 1000-2"]


def test_the_critic_of_info_gan_is_the_encoder_with_a_score_and_as_many_means_as_codes() -> None:
    modules = untrained_at((32, 32, 1), "info_gan", network="resnet", latents=7)
    assert [each.num_groups for each in modules["critic"].modules() if isinstance(each, nn.GroupNorm)] == [1] * 6
    assert not [each for each in modules["critic"].modules() if isinstance(each, nn.BatchNorm2d)]
    assert [each.out_features for each in modules["critic"].modules() if isinstance(each, nn.Linear)] == [8]
    assert [each.in_features for each in modules["generator"].modules() if isinstance(each, nn.Linear)] == [7]
    dense_critic = untrained_at((8, 8, 1), "info_gan", network="dense")["critic"]
    assert layers(dense_critic)[-1] == "fc 256-11"


def test_the_adversaries_of_weak_de() -> None:
    """1 + 3 hidden layers of 1024 with hyperbolic tangents; the learner of relations is told which of three."""
    modules = untrained_at((32, 32, 1), "weak_de", labels=60, classes="shape+hue")
    hidden = ["fc 1024-1024", "tanh"] * 3
    assert layers(modules["discriminator"]) == ["fc 8-1024", "tanh", *hidden, "fc 1024-1"]
    assert layers(modules["relations"]) == ["fc 11-1024", "tanh", *hidden, "fc 1024-8"]


def test_the_heads_of_parted_vae() -> None:
    """Features of 256; a mask over them and two numbers for each u; dSprites' sizes, one categorical of three."""
    modules = untrained_at((64, 64, 1), "parted_vae")
    assert layers(modules["trunk"])[-1] == "fc 256-256"
    assert layers(modules["classes"]) == ["fc 256-3"]
    assert layers(modules["heads"]) == ["fc 256-10", "fc 3-256", "fc 256-2"]
    assert layers(modules["decoder"])[0] == "fc 6-256"


@pytest.mark.parametrize(("family", "outputs", "inputs", "settings"), [
    ("vae", 20, 10, {}),
    ("quessard", 4, 4, {}),  # LSBD appendix F.1: a single dense layer of 4 units
    ("forward_vae", 8, 4, {}),  # two latents for each of two cyclic factors
    ("delta_vae", 3 * 2, 2 * 2, {"euclidean": 0}),  # F.1: two dense layers with 4 and 2 units
    ("delta_vae", 3 + 2 * 5, 2 + 5, {"circles": 1}),
    ("lsbd_vae", 3 * 2 + 2 * 5, 2 * 2 + 5, {"pairs": 20}),
    ("mtd", 2 * (4 + 3 * 2), 4 + 3 * 2, {}),
    ("weak_de", 8, 8, {"labels": 60}),
])  # fmt: skip
def test_sizes_of_what_encoders_say_and_decoders_take(family: str, outputs: int, inputs: int, settings: dict) -> None:
    modules = untrained_at((64, 64, 1), family, **settings)
    linear = [each for each in modules.modules() if isinstance(each, nn.Linear)]
    assert (linear[1].out_features, linear[2].in_features) == (outputs, inputs)
    assert linear[0].in_features == 1024


def test_layer_norm_is_over_all_of_one_image() -> None:
    norm = shaken(layer_norm(3))
    values = torch.randn(2, 3, 4, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    weights = {f"norm.{name}": value for name, value in norm.named_parameters()}
    torch.testing.assert_close(norm(values), standardised(weights, "norm", values, [1, 2, 3]))
