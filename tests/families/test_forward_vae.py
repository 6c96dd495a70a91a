"""ForwardVAE's posterior and what it predicts from, by hand."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from unbraid.families.base import Context
from unbraid.families.forward_vae import ActionBlocks, encode_forward_vae, forward_vae_loss
from unbraid.models.gaussian_vae import GaussianVAE

SELU, FLOOR = 1.0507009873554805, -1.7580993408473766  # its slope above 0, and what it never falls below


class Pixels(nn.Module):
    """Outputs are the pixels."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images.flatten(1)


class White(nn.Module):
    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        return torch.full((len(codes), 1, 2, 2), 50.0)


def modules() -> nn.ModuleDict:
    found = nn.ModuleDict({"vae": GaussianVAE(Pixels(), White()), "actions": ActionBlocks(2)})
    with torch.no_grad():
        found["actions"].blocks.copy_(torch.tensor([[[0.0, 1.0], [1.0, 0.0]], [[2.0, 0.0], [0.0, 2.0]]]))
    return found


def test_means_and_deviations_are_bounded_below() -> None:
    images = torch.tensor([[2.0, -100.0, 1.0, -100.0]]).reshape(1, 1, 2, 2)
    means, log_variances = encode_forward_vae(modules(), images, {})
    np.testing.assert_allclose(means, [[2 * SELU, FLOOR]], rtol=1e-6)
    np.testing.assert_allclose(log_variances, [[2 * SELU, 2 * FLOOR]], rtol=1e-6)


def test_the_next_mean_is_predicted_from_a_sample() -> None:
    """Mean (1, 2) and deviation e in both, noise (1, -1): the first action swaps them, the second doubles them."""
    first = torch.tensor([1.0, 2.0, 1.0, 1.0]) / SELU
    images = torch.stack([first, torch.zeros(4)]).reshape(1, 2, 1, 2, 2).expand(2, 2, 1, 2, 2)
    batch = {
        "transitions": images,
        "noise": torch.tensor([[[1.0, -1.0], [9.0, 9.0]]]).expand(2, 2, 2),
        "transitions actions": torch.tensor([0, 1]),
    }
    context = Context({"planes": [0, 0], "latents": 2}, 2, 4, 1)
    _, logs, _ = forward_vae_loss(modules(), batch, {"beta": 1.0}, 0, context)
    sample = [1 + math.e, 2 - math.e]
    expected = sum(value**2 for value in sample) * (1 + 4) / 4
    assert logs["forward"].item() == pytest.approx(expected, rel=1e-5)
    assert logs["kl"].item() == pytest.approx(0.5 * (1 + 4) + 2 * 0.5 * (math.e - 1 - 1), rel=1e-5)
