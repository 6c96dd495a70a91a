"""VAE and beta-VAE: first steps against the equations of their papers, and the objective by hand."""

import math

import pytest
import torch
from torch import Tensor, nn

from tests.families.members import Move, Weights, play
from tests.families.plain import (
    Mover,
    Terms,
    check,
    decoder,
    drawn,
    gaussian,
    kl_standard,
    mean_of,
    normal_pixels,
    vae_terms,
)
from tests.families.posteriors import outputs_of
from unbraid.families.vae import GaussianVAE, beta_vae

ONE, TWO = ["vae"], ["vae", "vae"]


@pytest.mark.parametrize(("family", "beta", "weight"), [("vae", 1.0, 1.0), ("beta_vae", 3.0, 1.0), ("vae", 1.0, 4.0)])
def test_two_steps_of_the_vae_and_of_the_beta_vae(family: str, beta: float, weight: float) -> None:
    """Kingma and Welling 2014, eq. 10; Higgins et al. 2017, eq. 4; UDR eq. 9."""

    def loss(weights: Weights, move: Move) -> tuple[Tensor, Terms]:
        fit, divergence = vae_terms(weights, move)
        return weight * fit + beta * divergence, {"reconstruction": weight * fit, "kl": divergence}

    hyper = {"reconstruction_weight": weight} if family == "vae" else {"beta": beta}
    played = play(family, 2, **{"latents": 3, **hyper})
    check(played, {"vae": Mover(loss, ("vae.",))}, TWO)


def test_gaussian_pixels_have_the_standard_deviation_given() -> None:
    def loss(weights: Weights, move: Move) -> tuple[Tensor, Terms]:
        fits, divergences = [], []
        for image, noise in zip(move.batch["images"], move.batch["noise"], strict=True):
            posterior = gaussian(weights, image)
            fits.append(normal_pixels(decoder(weights, "vae.decoder", drawn(posterior, noise)), image, 0.7))
            divergences.append(kl_standard(posterior))
        fit, divergence = mean_of(fits), mean_of(divergences)
        return fit + divergence, {"reconstruction": fit, "kl": divergence}

    played = play("vae", latents=2, likelihood="gaussian", sigma=0.7, learning_rate=1e-2)
    check(played, {"vae": Mover(loss, ("vae.",), 1e-2)}, ONE)


RECONSTRUCTION = torch.tensor([100.0, 104.0], dtype=torch.float64)


ZERO = torch.zeros(2, 1, dtype=torch.float64)


def means_of_kl(kl: float) -> Tensor:
    """Two posteriors of unit variance whose KL is `kl` on average: 0.5 * mean^2, once 0 and once twice `kl`."""
    return torch.tensor([[0.0], [2 * math.sqrt(kl)]], dtype=torch.float64)


def test_beta_vae_by_hand_and_at_beta_one_the_vae() -> None:
    outputs = outputs_of(means_of_kl(5.0), ZERO, ZERO)
    assert float(beta_vae(outputs, RECONSTRUCTION, beta=4.0)[0]) == pytest.approx(102 + 4 * 5)
    assert float(beta_vae(outputs, RECONSTRUCTION)[0]) == pytest.approx(102 + 5)


def test_the_sample_is_the_mean_plus_noise_times_the_deviation():
    encoder, decoder = nn.Identity(), nn.Identity()
    given = torch.tensor([[1.0, -2.0, 0.0, 2.0]])  # means 1 and -2, log-variances 0 and 2
    outputs = GaussianVAE(encoder, decoder)(given, torch.tensor([[0.5, -1.0]]))
    torch.testing.assert_close(outputs.sample, torch.tensor([[1.5, -2.0 - torch.e]]))
