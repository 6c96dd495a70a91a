"""DIP-VAE I and II: a step of each against the papers' equations, and the penalties by hand."""

import numpy as np
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
from tests.families.posteriors import normal, outputs_of, posteriors
from unbraid.families.dip_vae import covariance, covariance_penalty, dip_vae_i, dip_vae_ii
from unbraid.families.divergences import gaussian_kl

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


RECONSTRUCTION = torch.tensor([100.0, 104.0], dtype=torch.float64)


def test_covariance_is_that_of_numpy_divided_by_n() -> None:
    mean, _ = posteriors(9, 4)
    np.testing.assert_allclose(covariance(mean), np.cov(np.asarray(mean).T, bias=True), rtol=1e-12)


def test_penalty_counts_both_triangles() -> None:
    """[[2, 3], [3, 5]]: off the diagonal 9 + 9, on it 1 + 16."""
    off_diagonal, diagonal = covariance_penalty(torch.tensor([[2.0, 3.0], [3.0, 5.0]]))
    assert (float(off_diagonal), float(diagonal)) == (18.0, 17.0)


def test_dip_vae_by_hand() -> None:
    """Means (1, 1) and (-1, -3), variances 1/2 and 3/2 in both latents.

    Covariance of the means [[1, 2], [2, 4]]: off the diagonal 8, on it 0 + 9. Posterior variances add 1 on average:
    [[2, 2], [2, 5]]: 8, and 1 + 16.
    """
    mean = torch.tensor([[1.0, 1.0], [-1.0, -3.0]], dtype=torch.float64)
    log_variance = torch.tensor([[0.5, 0.5], [1.5, 1.5]], dtype=torch.float64).log()
    outputs = outputs_of(mean, log_variance, normal(2, 2))
    kl = float(gaussian_kl(mean, log_variance).sum(1).mean())
    for objective, diagonal in ((dip_vae_i, 9), (dip_vae_ii, 17)):
        loss, logs = objective(outputs, RECONSTRUCTION, lambda_od=2.0, lambda_d=20.0)
        assert float(loss) == pytest.approx(102 + kl + 2 * 8 + 20 * diagonal)
        assert [float(logs[name]) for name in ("kl", "off_diagonal", "diagonal")] == pytest.approx([kl, 8, diagonal])
