"""Gaussian densities, a prior of blocks, and divergences between posterior and prior."""

import math
from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import Tensor

NODES = 64  # of the quadrature


def log_normal(sample: Tensor, mean: Tensor | float, log_variance: Tensor | float) -> Tensor:
    """log N(sample; mean, exp(log_variance)), element by element."""
    log_variance = torch.as_tensor(log_variance)
    return -0.5 * ((sample - mean).square() * torch.exp(-log_variance) + log_variance + math.log(2 * math.pi))


def log_standard_normal(sample: Tensor) -> Tensor:
    """log N(sample; 0, 1), element by element."""
    return -0.5 * (sample.square() + math.log(2 * math.pi))


def log_mixture(values: Tensor, means: Tensor, log_variances: Tensor) -> Tensor:
    """Log density of each value (n, d) under an even mixture of Gaussians, each dimension by itself: (n, d).

    Args:
        values: (n, d).
        means, log_variances: (n_components, d).
    """
    return log_normal(values[:, None], means, log_variances).logsumexp(1) - math.log(len(means))


def log_blocks(codes: Tensor, n_normal: int, means: Iterable[Tensor], log_variances: Iterable[Tensor]) -> Tensor:
    """Log density of each code by itself: the first are standard normal, each block is of any of its classes alike.

    Args:
        codes: (n, n_codes).
        n_normal: how many are standard normal.
        means, log_variances: (n_classes, size) for each block.
    """
    means = tuple(means)
    first, *blocks = codes.split((n_normal, *(mean.shape[1] for mean in means)), dim=-1)
    parts = [log_mixture(*block) for block in zip(blocks, means, log_variances, strict=True)]
    return torch.cat([log_standard_normal(first), *parts], dim=-1)


def draw_blocks(
    normal: Tensor, uniform: Tensor, n_normal: int, means: Iterable[Tensor], deviations: Iterable[Tensor]
) -> Tensor:
    """Codes (n, n_codes) of this prior from noise (n, n_codes) each; a block has deviations (n_classes, size)."""
    codes, start = normal.clone(), n_normal
    for mean, deviation in zip(means, deviations, strict=True):
        block = slice(start, start + mean.shape[1])
        chosen = (uniform[:, start] * len(mean)).long().clamp(max=len(mean) - 1)
        codes[:, block] = mean[chosen] + deviation[chosen] * normal[:, block]
        start = block.stop
    return codes


def gaussian_kl(mean: Tensor, log_variance: Tensor) -> Tensor:
    """KL of N(mean, exp(log_variance)) from the standard normal, per latent and image: (n, n_latents), nats."""
    return 0.5 * (mean.square() + log_variance.exp() - log_variance - 1)


def kl_from(mean: Tensor, log_variance: Tensor, prior_mean: Tensor, prior_log_variance: Tensor) -> Tensor:
    """KL of one diagonal Gaussian from another, nats, elementwise; shapes broadcast."""
    squares = (mean - prior_mean).square() + log_variance.exp()
    return 0.5 * (squares * (-prior_log_variance).exp() - 1 + prior_log_variance - log_variance)


def kl_by_quadrature(mean: Tensor, log_variance: Tensor, log_density: Callable[[Tensor], Tensor]) -> Tensor:
    """KL of N(mean, exp(log_variance)) from any prior with independent latents, (n, n_latents), nats.

    The expectation of the log density is taken by Gauss and Hermite's rule with 64 nodes.

    Args:
        mean, log_variance: (n, n_latents).
        log_density: values (m, n_latents) to the log density of each (m, n_latents).
    """
    nodes, weights = (torch.from_numpy(rule).to(mean.device) for rule in np.polynomial.hermite_e.hermegauss(NODES))
    values = mean + nodes.to(mean.dtype)[:, None, None] * torch.exp(0.5 * log_variance)
    logs = log_density(values.flatten(0, 1)).unflatten(0, values.shape[:2]).double()
    expected = torch.tensordot(weights / weights.sum(), logs, dims=1)
    negative_entropy = -0.5 * (math.log(2 * math.pi * math.e) + log_variance.double())
    return (negative_entropy - expected).to(mean.dtype)
