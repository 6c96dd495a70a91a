"""Posteriors to try objectives on."""

import torch
from torch import Tensor

from unbraid.families.vae import VAEOutputs


def outputs_of(mean: Tensor, log_variance: Tensor, noise: Tensor) -> VAEOutputs:
    return VAEOutputs(mean, log_variance, mean + noise * torch.exp(0.5 * log_variance), mean.new_zeros(len(mean), 1))


def posteriors(n: int, n_latents: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Means with correlated columns and log-variances between -3 and 0, double precision."""
    generator = torch.Generator().manual_seed(seed)
    mean = torch.randn(n, n_latents, generator=generator, dtype=torch.float64)
    mean[:, 1:] += 0.8 * mean[:, :-1]
    return mean, -3 * torch.rand(n, n_latents, generator=generator, dtype=torch.float64)


def normal(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
