"""Divergences between posterior and prior."""

from torch import Tensor


def gaussian_kl(mean: Tensor, log_variance: Tensor) -> Tensor:
    """KL of N(mean, exp(log_variance)) from the standard normal, per latent and image: (n, n_latents), nats."""
    return 0.5 * (mean.square() + log_variance.exp() - log_variance - 1)
