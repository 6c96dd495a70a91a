"""The variational autoencoder that most families share."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from unbraid.families.networks import promote


class VAEOutputs(NamedTuple):
    """What an objective sees, in single precision or better."""

    mean: Tensor  # (n, n_latents), of the posterior
    log_variance: Tensor  # (n, n_latents)
    sample: Tensor  # (n, n_latents), drawn from the posterior with the noise given
    decoded: Tensor  # of the shape of the images, unbounded: logits (Bernoulli) or means (Gaussian)


class GaussianVAE(nn.Module):
    """Diagonal Gaussian encoder with any decoder.

    Args:
        encoder: images -> (n, 2 n_latents): means, then log-variances.
        decoder: (n, n_latents) -> the shape of the images.
    """

    def __init__(self, encoder: nn.Module, decoder: nn.Module) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def encode(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Posterior means and log-variances, (n, n_latents) each."""
        mean, log_variance = promote(self.encoder(images)).chunk(2, dim=-1)
        return mean, log_variance

    def decode(self, codes: Tensor) -> Tensor:
        """What the decoder says, unbounded; of the shape of the images."""
        return promote(self.decoder(codes))

    def forward(self, images: Tensor, noise: Tensor) -> VAEOutputs:
        """Noise (n, n_latents), standard normal, is an argument: a step can be replayed, and stacked by vmap."""
        mean, log_variance = self.encode(images)
        sample = mean + noise * torch.exp(0.5 * log_variance)
        return VAEOutputs(mean, log_variance, sample, self.decode(sample))
