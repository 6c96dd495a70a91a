"""The autoencoder whose latents are points on circles, and Gaussian ones beside them."""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from unbraid.families.networks import promote

SMALLEST = 1e-4  # length under which a vector has no direction that could be trusted


class CirclePosterior(NamedTuple):
    """What the encoder says of n images, in single precision or better."""

    location: Tensor  # (n, n_circles, 2), of length 1
    log_time: Tensor  # (n, n_circles), natural logarithm of the time t that a random walk has spread for
    mean: Tensor  # (n, n_euclidean)
    log_variance: Tensor  # (n, n_euclidean)


class DeltaVAE(nn.Module):
    """Latents on n_circles circles and n_euclidean lines, with any encoder and decoder.

    Args:
        encoder: images -> (n, 3 n_circles + 2 n_euclidean): for each circle a vector of two numbers, whose direction
            is the location; one number per circle for the time; means; log-variances.
        decoder: (n, 2 n_circles + n_euclidean) -> the shape of the images.
        n_circles, n_euclidean: of the latents.

    Reference:
        Perez Rey et al. 2020, "Diffusion Variational Autoencoders"; Tonnaer et al. 2022 (LSBD), section 5. The time's
        number goes through a hyperbolic tangent into an interval, as in the authors' code.
    """

    def __init__(self, encoder: nn.Module, decoder: nn.Module, n_circles: int, n_euclidean: int) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder
        self.n_circles, self.n_euclidean = n_circles, n_euclidean

    def encode(self, images: Tensor, low: Tensor | float, high: Tensor | float) -> CirclePosterior:
        """The posterior of images; `log_time` lies between `low` and `high`."""
        sizes = (2 * self.n_circles, self.n_circles, self.n_euclidean, self.n_euclidean)
        vector, number, mean, log_variance = promote(self.encoder(images)).split(sizes, dim=-1)
        location = to_circle(vector.unflatten(-1, (self.n_circles, 2)))
        log_time = low + (high - low) * (1 + torch.tanh(number)) / 2
        return CirclePosterior(location, log_time, mean, log_variance)

    def decode(self, points: Tensor, values: Tensor) -> Tensor:
        """Points (n, n_circles, 2) and values (n, n_euclidean) to the shape of the images, unbounded."""
        return promote(self.decoder(torch.cat([points.flatten(-2), values], dim=-1)))


def to_circle(vectors: Tensor) -> Tensor:
    """Vectors (..., 2) divided by their length; shorter than 1 only where there is next to no direction."""
    return functional.normalize(vectors, dim=-1, eps=SMALLEST)


def random_walk(location: Tensor, log_time: Tensor, noise: Tensor) -> Tensor:
    """A sample of the posterior: steps off the circle, each followed by the way back.

    z_0 = location and z_{s+1} = to_circle(z_s + sqrt(t / S) noise_s): a Brownian motion for the time t, about, so
    that the variance of the angle is t while t is small.

    Args:
        location: (..., 2) on the circle.
        log_time: (...), of t.
        noise: (S, ..., 2) standard normal.
    """
    length = torch.exp(0.5 * log_time)[..., None] / math.sqrt(len(noise))
    point = location
    for turn in noise:
        point = to_circle(point + length * turn)
    return point
