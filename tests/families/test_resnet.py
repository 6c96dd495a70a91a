"""The residual networks against DCI 2018's table 2, and against a block written out with torch's functions."""

import pytest
import torch
from torch import Tensor, nn

from unbraid.families.resnet import (
    DownBlock,
    resnet_pair,
)


@pytest.mark.parametrize("shape", [(64, 64, 3), (32, 32, 1), (45, 60, 2), (128, 33, 3)])
def test_images_of_many_sizes_come_back_in_their_shape(shape: tuple[int, int, int]) -> None:
    height, width, channels = shape
    encoder, decoder = resnet_pair(shape, 6, 3)
    with torch.no_grad():
        outputs = encoder(torch.rand(2, channels, height, width))
        assert outputs.shape == (2, 6)
        assert decoder(outputs[:, :3]).shape == (2, channels, height, width)


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
