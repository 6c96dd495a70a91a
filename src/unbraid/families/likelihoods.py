"""Likelihoods of images under the outputs of a decoder."""

import math
from typing import Literal, TypeAlias

from torch import Tensor
from torch.nn import functional

Likelihood: TypeAlias = Literal["bernoulli", "gaussian"]


def bernoulli_nll(logits: Tensor, images: Tensor) -> Tensor:
    """-log p(x) with independent Bernoulli pixels; grey pixels in [0, 1] count as probabilities. Nats, (n,)."""
    return functional.binary_cross_entropy_with_logits(logits, images, reduction="none").flatten(1).sum(-1)


def gaussian_nll(means: Tensor, images: Tensor, sigma: Tensor | float = 1.0) -> Tensor:
    """-log p(x) with independent Gaussian pixels of standard deviation `sigma`, constant term included. Nats, (n,)."""
    squares = (images - means).square().flatten(1)
    log_sigma = sigma.log() if isinstance(sigma, Tensor) else math.log(sigma)
    return 0.5 * squares.sum(-1) / sigma**2 + squares.shape[1] * (log_sigma + 0.5 * math.log(2 * math.pi))


def negative_log_likelihood(
    decoded: Tensor, images: Tensor, likelihood: Likelihood = "bernoulli", sigma: Tensor | float = 1.0
) -> Tensor:
    """-log p(x) per image (n,), nats."""
    return bernoulli_nll(decoded, images) if likelihood == "bernoulli" else gaussian_nll(decoded, images, sigma)


def decoded_images(decoded: Tensor, likelihood: Likelihood = "bernoulli") -> Tensor:
    """The mean image: probabilities of a Bernoulli decoder, the means themselves of a Gaussian one."""
    return decoded.sigmoid() if likelihood == "bernoulli" else decoded
