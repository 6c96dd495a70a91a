"""Latents on circles and lines."""

import pytest
import torch

from unbraid.families.delta_vae import DeltaVAE
from unbraid.families.networks import network_pair


@pytest.mark.parametrize("network", ["conv", "dense", "dense_norm"])
@pytest.mark.parametrize(("circles", "lines"), [(2, 0), (1, 5), (0, 3)])
def test_posteriors_have_their_shapes_and_ranges(network: str, circles: int, lines: int) -> None:
    pair = network_pair(network, (32, 32, 1), 3 * circles + 2 * lines, 2 * circles + lines)
    vae = DeltaVAE(*pair, circles, lines)
    images = torch.rand(6, 1, 32, 32)
    posterior = vae.encode(images, -10.0, -9.0)
    assert posterior.location.shape == (6, circles, 2)
    assert posterior.mean.shape == posterior.log_variance.shape == (6, lines)
    torch.testing.assert_close(posterior.location.square().sum(-1), torch.ones(6, circles))
    assert ((posterior.log_time > -10) & (posterior.log_time < -9)).all()
    assert vae.decode(posterior.location, posterior.mean).shape == images.shape


def test_an_interval_of_one_point_fixes_the_time() -> None:
    vae = DeltaVAE(*network_pair("dense", (4,), 3, 2), 1, 0)
    assert (vae.encode(torch.rand(3, 4), -7.0, -7.0).log_time == -7).all()
