"""Divergences between posterior and prior."""

from torch import Tensor


def gaussian_kl(mean: Tensor, log_variance: Tensor) -> Tensor:
    """KL of N(mean, exp(log_variance)) from the standard normal, per latent and image: (n, n_latents), nats."""
    return 0.5 * (mean.square() + log_variance.exp() - log_variance - 1)


def kl_from(mean: Tensor, log_variance: Tensor, prior_mean: Tensor, prior_log_variance: Tensor) -> Tensor:
    """KL of one diagonal Gaussian from another, nats, elementwise; shapes broadcast."""
    squares = (mean - prior_mean).square() + log_variance.exp()
    return 0.5 * (squares * (-prior_log_variance).exp() - 1 + prior_log_variance - log_variance)
