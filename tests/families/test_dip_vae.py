"""DIP-VAE I and II: a step of each against the papers' equations, and the penalties by hand."""

import pytest
import torch
from torch import Tensor

from tests.families.members import Move, Weights, play
from tests.families.plain import (
    Mover,
    Terms,
    check,
    gaussian,
    mean_of,
    vae_terms,
)

ONE = ["vae"]


@pytest.mark.parametrize("variant", ["i", "ii"])
def test_a_step_of_the_dip_vae(variant: str) -> None:
    """Kumar et al. 2018, eq. 6 and 7; UDR eq. 12 and 13, with the covariance of the batch, divided by its size."""
    latents = 3

    def loss(weights: Weights, move: Move) -> tuple[Tensor, Terms]:
        fit, divergence = vae_terms(weights, move)
        posteriors = [gaussian(weights, image) for image in move.batch["images"]]
        centre = [mean_of([mean[d] for mean, _ in posteriors]) for d in range(latents)]
        off_diagonal = diagonal = torch.zeros((), dtype=torch.float64)
        for i in range(latents):
            for j in range(latents):
                covariance = mean_of([(mean[i] - centre[i]) * (mean[j] - centre[j]) for mean, _ in posteriors])
                if i != j:
                    off_diagonal = off_diagonal + covariance**2
                elif variant == "i":
                    diagonal = diagonal + (covariance - 1) ** 2
                else:
                    spread = mean_of([torch.exp(log_variance[i]) for _, log_variance in posteriors])
                    diagonal = diagonal + (covariance + spread - 1) ** 2
        logs = {"reconstruction": fit, "kl": divergence, "off_diagonal": off_diagonal, "diagonal": diagonal}
        return fit + divergence + 7.0 * off_diagonal + 3.0 * diagonal, logs

    played = play(f"dip_vae_{variant}", latents=latents, lambda_od=7.0, lambda_d=3.0)
    check(played, {"vae": Mover(loss, ("vae.",))}, ONE)
