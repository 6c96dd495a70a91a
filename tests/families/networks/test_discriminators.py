"""FactorVAE's discriminator."""

import torch
from torch import nn

from unbraid.families.factor_vae import LatentDiscriminator


def test_it_has_six_hidden_layers_of_1000_and_two_logits() -> None:
    discriminator = LatentDiscriminator(10)
    sizes = [(each.in_features, each.out_features) for each in discriminator.modules() if isinstance(each, nn.Linear)]
    assert sizes == [(10, 1000), *[(1000, 1000)] * 5, (1000, 2)]
    assert discriminator(torch.zeros(3, 10)).shape == (3, 2)


def test_every_hidden_layer_is_followed_by_leaky_relu_of_0_2() -> None:
    discriminator = LatentDiscriminator(1, width=1, depth=3)
    for parameter in discriminator.parameters():
        nn.init.ones_(parameter) if parameter.ndim == 2 else nn.init.zeros_(parameter)
    given = torch.tensor([[5.0], [-5.0]])
    torch.testing.assert_close(discriminator(given), torch.tensor([[5.0, 5.0], [-0.04, -0.04]]))


def test_logits_are_single_precision_under_autocast() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        assert LatentDiscriminator(4, width=8, depth=2)(torch.zeros(3, 4)).dtype == torch.float32
