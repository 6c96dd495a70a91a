"""The residual networks against DCI 2018's table 2, and against a block written out with torch's functions."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from unbraid.families.resnet import (
    DownBlock,
    UpBlock,
    layer_norm,
    resnet_encoder,
    resnet_pair,
)


def convolutions(network: nn.Module) -> list[tuple[int, int]]:
    """Channels in and out of the 3 x 3 convolutions, in the order of the table."""
    found = [each for each in network.modules() if isinstance(each, nn.Conv2d) and each.kernel_size == (3, 3)]
    return [(each.in_channels, each.out_channels) for each in found]


def test_layers_are_those_of_the_table() -> None:
    encoder, decoder = resnet_pair((64, 64, 3), 20, 10)
    assert convolutions(encoder) == [
        (3, 64), (64, 64), (64, 128), (128, 128), (128, 256), (256, 256), (256, 512), (512, 512), (512, 512),
    ]  # fmt: skip
    assert convolutions(decoder) == [
        (512, 512), (512, 512), (512, 256), (256, 256), (256, 128), (128, 128), (128, 64), (64, 64), (64, 3),
    ]  # fmt: skip
    linear = [each for network in (encoder, decoder) for each in network.modules() if isinstance(each, nn.Linear)]
    assert [(each.in_features, each.out_features) for each in linear] == [(4 * 4 * 512, 20), (10, 4 * 4 * 512)]


@pytest.mark.parametrize("shape", [(64, 64, 3), (32, 32, 1), (45, 60, 2), (128, 33, 3)])
def test_images_of_many_sizes_come_back_in_their_shape(shape: tuple[int, int, int]) -> None:
    height, width, channels = shape
    encoder, decoder = resnet_pair(shape, 6, 3)
    with torch.no_grad():
        outputs = encoder(torch.rand(2, channels, height, width))
        assert outputs.shape == (2, 6)
        assert decoder(outputs[:, :3]).shape == (2, channels, height, width)


def pooled(values: Tensor) -> Tensor:
    return sum((values[..., i::2, j::2] for i in (0, 1) for j in (0, 1)), torch.zeros(())) / 4


def normalised(values: Tensor, norm: nn.Module) -> Tensor:
    """Batch norm in training, by its definition."""
    assert isinstance(norm, nn.BatchNorm2d)
    centred = values - values.mean((0, 2, 3), keepdim=True)
    values = centred / (centred.square().mean((0, 2, 3), keepdim=True) + norm.eps).sqrt()
    return values * norm.weight[:, None, None] + norm.bias[:, None, None]


def shaken(block: nn.Module) -> nn.Module:
    """No parameter at the value where a mistake would not show."""
    for parameter in block.parameters():
        nn.init.normal_(parameter, std=0.3)
    return block


def test_a_block_downwards_is_what_the_caption_says() -> None:
    torch.manual_seed(0)
    block, values = shaken(DownBlock(3, 5, nn.BatchNorm2d)), torch.randn(4, 3, 8, 8)
    assert isinstance(block, DownBlock)
    hidden = functional.relu(normalised(values, block.norm1))
    hidden = functional.conv2d(hidden, block.conv1.weight, padding=1)
    hidden = functional.relu(normalised(hidden, block.norm2))
    hidden = functional.conv2d(hidden, block.conv2.weight, block.conv2.bias, padding=1)
    short = functional.conv2d(pooled(values), block.shortcut.weight, block.shortcut.bias)
    torch.testing.assert_close(block(values), pooled(hidden) + short)


@pytest.mark.parametrize("first", [False, True])
def test_a_block_upwards_is_what_the_caption_says(first: bool) -> None:
    torch.manual_seed(0)
    block, values = shaken(UpBlock(3, 5, (8, 8), nn.BatchNorm2d, first=first)), torch.randn(4, 3, 4, 4)
    assert isinstance(block, UpBlock)

    def doubled(values: Tensor) -> Tensor:
        return values.repeat_interleave(2, 2).repeat_interleave(2, 3)

    hidden = values
    if not first:
        assert isinstance(block.start, nn.Sequential)
        hidden = functional.relu(normalised(values, block.start[0]))
    hidden = functional.conv2d(doubled(hidden), block.conv1.weight, padding=1)
    hidden = functional.relu(normalised(hidden, block.norm))
    hidden = functional.conv2d(hidden, block.conv2.weight, block.conv2.bias, padding=1)
    short = functional.conv2d(doubled(values), block.shortcut.weight, block.shortcut.bias)
    torch.testing.assert_close(block(values), hidden + short)


def test_layer_norm_is_over_one_image() -> None:
    torch.manual_seed(0)
    norm, values = shaken(layer_norm(3)), torch.randn(4, 3, 5, 6)
    assert isinstance(norm, nn.GroupNorm)
    centred = values - values.mean((1, 2, 3), keepdim=True)
    expected = centred / (centred.square().mean((1, 2, 3), keepdim=True) + norm.eps).sqrt()
    expected = expected * norm.weight[:, None, None] + norm.bias[:, None, None]
    torch.testing.assert_close(norm(values), expected)


def test_a_critic_with_layer_norm_sees_images_one_by_one_and_one_with_batch_norm_does_not() -> None:
    torch.manual_seed(0)
    images = torch.rand(4, 1, 32, 32)
    others = torch.cat([images[:1], torch.rand(3, 1, 32, 32)])
    with torch.no_grad():
        critic = resnet_encoder((32, 32, 1), 1, layer_norm)
        torch.testing.assert_close(critic(images)[0], critic(others)[0])
        encoder = resnet_encoder((32, 32, 1), 1)
        assert float((encoder(images)[0] - encoder(others)[0]).abs()) > 1e-3


def test_activations_neither_vanish_nor_explode_at_the_start() -> None:
    torch.manual_seed(0)
    encoder, decoder = resnet_pair((32, 32, 1), 6, 3)
    with torch.no_grad():
        assert 0.1 < float(encoder(torch.rand(16, 1, 32, 32)).std()) < 10
        assert 0.1 < float(decoder(torch.randn(16, 3)).std()) < 10


def test_stacked_members_are_the_members_alone_running_statistics_included() -> None:
    members = []
    for seed in range(2):
        torch.manual_seed(seed)
        members.append(DownBlock(2, 3, nn.BatchNorm2d).double())
    parameters, buffers = torch.func.stack_module_state(members)
    values = torch.randn(2, 4, 2, 6, 6, dtype=torch.float64)

    def total(parameters: dict[str, Tensor], buffers: dict[str, Tensor], values: Tensor) -> Tensor:
        return torch.func.functional_call(members[0], (parameters, buffers), (values,)).square().sum()

    gradients = torch.func.vmap(torch.func.grad(total))(parameters, buffers, values)
    fresh = [DownBlock(2, 3, nn.BatchNorm2d).double() for _ in members]
    for number, (copy, original) in enumerate(zip(fresh, members, strict=True)):
        copy.load_state_dict(original.state_dict())
        copy(values[number]).square().sum().backward()
        for name, parameter in copy.named_parameters():
            assert parameter.grad is not None
            torch.testing.assert_close(gradients[name][number], parameter.grad)
        for name, buffer in copy.named_buffers():
            torch.testing.assert_close(buffers[name][number], buffer)
