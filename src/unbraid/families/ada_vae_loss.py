"""Ada-GVAE and Ada-ML-VAE: posteriors of two images that share what they can be taken to share."""

import math
from typing import Literal, TypeAlias

import torch
from torch import Tensor

Average: TypeAlias = Literal["arithmetic", "harmonic"]
Posterior: TypeAlias = tuple[Tensor, Tensor]  # means and log-variances, (n, n_latents) each


def distance(first: Posterior, second: Posterior) -> Tensor:
    """Twice the KL of the first posterior from the second, by latent: (n, n_latents), nats."""
    (mean1, log1), (mean2, log2) = first, second
    return torch.exp(log1 - log2) + (mean2 - mean1).square() * torch.exp(-log2) - 1 + log2 - log1


def shared(distances: Tensor) -> Tensor:
    """Which latents count as equal: those nearer to the least distance of their pair than to the largest.

    Args:
        distances: (n, n_latents).

    Returns:
        (n, n_latents) bool: distance < (min + max) / 2. All where all distances are equal.
    """
    low, high = distances.amin(-1, keepdim=True), distances.amax(-1, keepdim=True)
    return (distances < (low + high) / 2) | (low == high)


def averaged(first: Posterior, second: Posterior, average: Average) -> Posterior:
    """The posterior that both images get for what they share.

    "arithmetic": means of the means and of the variances (Ada-GVAE). "harmonic": the precision-weighted mean with
    the harmonic mean of the variances (Ada-ML-VAE), which is twice the variance of the product of the Gaussians.
    """
    (mean1, log1), (mean2, log2) = first, second
    if average == "arithmetic":
        return (mean1 + mean2) / 2, torch.logaddexp(log1, log2) - math.log(2)
    log_variance = math.log(2) - torch.logaddexp(-log1, -log2)
    weight = torch.sigmoid(log2 - log1)  # of the first: its precision over the sum of both
    return weight * mean1 + (1 - weight) * mean2, log_variance


def share(first: Posterior, second: Posterior, average: Average) -> tuple[Posterior, Posterior, Tensor]:
    """Both posteriors with the shared latents averaged, and which those are (n, n_latents).

    The distance decides which, and is looked at in one direction only, as the published code does.

    Reference:
        Locatello et al. 2020, "Weakly-Supervised Disentanglement Without Compromises", section 4; the threshold is
        that of disentanglement_lib (weak_vae.py), two bins of equal width.
    """
    same = shared(distance(first, second))
    both = averaged(first, second, average)
    one, other = (
        (torch.where(same, both[0], mean), torch.where(same, both[1], log_variance))
        for mean, log_variance in (first, second)
    )
    return one, other, same
