"""The shared pairs of encoders and decoders."""

import pytest
import torch
from torch import nn

from unbraid.families.networks import conv_pair, dense_pair, network_pair
from unbraid.families.vae import GaussianVAE
from unbraid.files.trust import Trusted

SHAPES = [
    (16, 16, 3), (17, 31, 1), (33, 33, 1), (50, 77, 2), (63, 32, 1), (100, 64, 4), (256, 130, 5),
]  # fmt: skip


@pytest.mark.parametrize("pair", [conv_pair, dense_pair])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_decoded_images_have_the_shape_of_the_images(pair, shape):
    height, width, channels = shape
    vae = GaussianVAE(*pair(shape, 14, 7))
    outputs = vae(torch.rand(2, channels, height, width), torch.randn(2, 7))
    assert outputs.decoded.shape == (2, channels, height, width)
    assert outputs.mean.shape == outputs.log_variance.shape == outputs.sample.shape == (2, 7)


def test_a_network_of_ones_own_is_named_by_module_and_function():
    encoder, _ = network_pair(Trusted(f"{__name__}:halves"), (4,), 2, 1)
    assert encoder(torch.ones(3, 4)).shape == (3, 2)
    with pytest.raises(ValueError, match="no network 'cnv': one of conv, dense"):
        network_pair("cnv", (64, 64, 1), 2, 1)


def halves(shape: tuple[int, ...], n_outputs: int, n_latents: int) -> tuple[nn.Module, nn.Module]:
    return nn.Linear(shape[0], n_outputs), nn.Linear(n_latents, shape[0])
