"""VAE and beta-VAE: first steps against the equations of their papers, and the objective by hand."""

import pytest
from torch import Tensor

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
