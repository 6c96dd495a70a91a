"""QVAE: the negative ELBO of latents that each take one of a few values."""

import math

from torch import Tensor


def kl_from_uniform(log_shares: Tensor) -> Tensor:
    """KL of distributions (..., n_values), given as logarithms, from the uniform one; nats, 0 to log n_values."""
    return (log_shares.exp() * log_shares).sum(-1) + math.log(log_shares.shape[-1])


def qvae(log_shares: Tensor, reconstruction: Tensor, *, beta: Tensor | float = 1.0) -> tuple[Tensor, dict[str, Tensor]]:
    """Negative ELBO with the KL weighted by `beta`, nats per image.

    Args:
        log_shares: (n, n_latents, n_values), logarithms of the posterior over values.
        reconstruction: (n,) negative log-likelihoods of the images, nats.
        beta: weight of the KL from values that are all equally likely.

    Returns:
        The mean over the batch of reconstruction + beta * KL, and the two means by name: "reconstruction", "kl".

    Reference:
        Baykal et al. 2024, the QVAE: their FactorQVAE without its total correlation. The authors' code takes means over
        pixels and over latents; here both are sums.
    """
    fit = reconstruction.mean()
    kl = kl_from_uniform(log_shares).sum(-1).mean()
    return fit + beta * kl, {"reconstruction": fit, "kl": kl}
