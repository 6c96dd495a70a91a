"""Ada-GVAE and Ada-ML-VAE: two steps against Locatello et al. 2020 and the threshold of the published code."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.families.members import SPACE, Move, Weights, play
from tests.families.plain import (
    Mover,
    Terms,
    bernoulli,
    check,
    decoder,
    drawn,
    gaussian,
    kl_standard,
    levels,
    mean_of,
)
from tests.families.posteriors import posteriors
from unbraid.families.ada_vae import averaged, share

LATENTS, BETA = 5, 2.0


def averaged_by_hand(family: str, means: list[Tensor], variances: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Ada-GVAE: plain means of means and variances. Ada-ML-VAE: by precision, with the variances' harmonic mean."""
    if family == "ada_gvae":
        return (means[0] + means[1]) / 2, (variances[0] + variances[1]) / 2
    variance = 2 * variances[0] * variances[1] / (variances[0] + variances[1])
    return (means[0] / variances[0] + means[1] / variances[1]) * variance / 2, variance


@pytest.mark.parametrize("family", ["ada_gvae", "ada_ml_vae"])
def test_two_steps(family: str) -> None:
    counts: list[int] = []
    middling: list[bool] = []

    def loss(weights: Weights, move: Move) -> tuple[Tensor, Terms]:
        fits, divergences, shared = [], [], []
        assert len(move.batch["pairs"]) == 4
        for pair, noise in zip(move.batch["pairs"], move.batch["noise"], strict=True):
            first, second = (gaussian(weights, image) for image in pair)
            means = [torch.stack([first[0][j], second[0][j]]) for j in range(LATENTS)]
            variances = [torch.stack([first[1][j], second[1][j]]).exp() for j in range(LATENTS)]
            distances = []
            for (m1, m2), (v1, v2) in zip(means, variances, strict=True):
                distances.append((v1 / v2 + (m2 - m1) ** 2 / v2 - 1 + torch.log(v2) - torch.log(v1)).item())
            threshold = (min(distances) + max(distances)) / 2
            same = [distance < threshold or min(distances) == max(distances) for distance in distances]
            near_mean = [distance < sum(distances) / LATENTS for distance in distances]
            middling.append(near_mean != same)
            for j in range(LATENTS):
                if same[j]:
                    mean, variance = averaged_by_hand(family, [*means[j]], [*variances[j]])
                    means[j], variances[j] = mean.repeat(2), variance.repeat(2)
            shared.append(torch.tensor(float(sum(same)), dtype=torch.float64))
            counts.append(sum(same))
            for one in (0, 1):
                mean = torch.stack([each[one] for each in means])
                log_variance = torch.stack([each[one] for each in variances]).log()
                sample = drawn((mean, log_variance), noise[one])
                fits.append(bernoulli(decoder(weights, "vae.decoder", sample), pair[one]))
                divergences.append(kl_standard((mean, log_variance)))
        fit, divergence = mean_of(fits), mean_of(divergences)
        return fit + BETA * divergence, {"reconstruction": fit, "kl": divergence, "shared": mean_of(shared)}

    played = play(family, 2, batch_size=8, latents=LATENTS, beta=BETA, pairs=40)
    check(played, {"vae": Mover(loss, ("vae.",))}, ["vae", "vae"])
    assert {2, 3, 4, LATENTS} <= set(counts)  # all of them where both images are the same
    assert any(middling)  # the mean of the distances would be another threshold


@pytest.mark.parametrize(("settings", "expected"), [
    ({"changed": 2}, {0, 1, 2}), ({"changed": 2, "rule": "exact"}, {2}), ({}, {0, 1, 2}),
])  # fmt: skip
def test_images_of_a_pair_differ_in_so_many_factors(settings: dict[str, Any], expected: set[int]) -> None:
    pairs = play("ada_gvae", 1, batch_size=80, pairs=40, **settings).moves[0].batch["pairs"]
    differing = [sum(a != b for a, b in zip(levels(one), levels(other), strict=True)) for one, other in pairs]
    assert set(differing) == expected
    assert max(expected) < len(SPACE.names)


def posterior(mean: list[float], variance: list[float]):
    return torch.tensor([mean], dtype=torch.float64), torch.tensor([variance], dtype=torch.float64).log()


FIRST = posterior([0.0, 1.0, -2.0, 0.5], [1.0, 0.25, 1.0, 0.5])
SECOND = posterior([0.2, 2.0, 2.0, 0.5], [1.0, 0.5, 4.0, 0.5])


def test_the_harmonic_average_is_the_product_of_gaussians_with_twice_its_variance() -> None:
    """The product of the densities on a grid: its mean, and half the variance that Ada-ML-VAE takes."""
    grid = np.linspace(-30, 30, 600_001)
    (mean1, log1), (mean2, log2) = FIRST, SECOND
    mean, log_variance = averaged(FIRST, SECOND, "harmonic")
    for latent in range(4):
        log_product = sum(
            -0.5 * (grid - float(m[0, latent])) ** 2 / float(v[0, latent].exp())
            for m, v in ((mean1, log1), (mean2, log2))
        )
        weights = np.exp(log_product - log_product.max())
        weights /= weights.sum()
        centre = (weights * grid).sum()
        assert float(mean[0, latent]) == pytest.approx(centre, abs=1e-9)
        assert float(log_variance[0, latent].exp()) == pytest.approx(2 * (weights * (grid - centre) ** 2).sum())


def test_an_image_with_itself_shares_all_and_stays_as_it_is() -> None:
    given = posteriors(3, 5)
    for average in ("arithmetic", "harmonic"):
        one, other, same = share(given, given, average)
        assert bool(same.all())
        for mean, log_variance in (one, other):
            torch.testing.assert_close((mean, log_variance), given)
