"""PartedVAE: latents of their own for what depends on a class."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from unbraid.families.networks import promote

TEMPERATURE = 0.67  # of the relaxed classes
SHARPEST = 8.0  # slope of the masks' sigmoid in the end, and at evaluation


class PartedPosterior(NamedTuple):
    """What the encoder says of n images, in single precision or better."""

    mean: Tensor  # (n, n_latents), of z, which depends on no class
    log_variance: Tensor  # (n, n_latents)
    logits: Tensor  # (n, n_classes), of the classes of all categoricals side by side
    class_mean: Tensor  # (n, n_categoricals, class_latents), of u, which depends on the classes
    class_log_variance: Tensor  # (n, n_categoricals, class_latents)

    def codes(self) -> Tensor:
        """Means of z, then of u: (n, n_latents + n_categoricals * class_latents)."""
        return torch.cat([self.mean, self.class_mean.flatten(1)], dim=-1)

    def log_variances(self) -> Tensor:
        """In the order of the codes."""
        return torch.cat([self.log_variance, self.class_log_variance.flatten(1)], dim=-1)


class PartedHeads(nn.Module):
    """z from the features of an image, and u from the features that the classes leave unmasked.

    Args:
        n_features: of the trunk.
        n_latents: of z.
        sizes: number of classes of each categorical.
        class_latents: of u, for each categorical.

    Reference:
        Hajimiri et al. 2021, as in the authors' code: mask k is sigmoid(s (W_k c_k + b_k)), one number per feature.
    """

    def __init__(self, n_features: int, n_latents: int, sizes: Sequence[int], class_latents: int) -> None:
        super().__init__()
        self.sizes = tuple(sizes)
        self.latents = nn.Linear(n_features, 2 * n_latents)
        self.masks = nn.ModuleList([nn.Linear(size, n_features) for size in sizes])
        self.parts = nn.ModuleList([nn.Linear(n_features, 2 * class_latents) for _ in sizes])

    def forward(self, features: Tensor, logits: Tensor, chosen: Tensor, sharpness: Tensor | float) -> PartedPosterior:
        """Features (n, n_features), logits and chosen classes (n, n_classes each), the masks' slope s."""
        mean, log_variance = promote(self.latents(features)).chunk(2, dim=-1)
        parts = []
        for mask, part, classes in zip(self.masks, self.parts, chosen.split(self.sizes, dim=-1), strict=True):
            parts.append(promote(part(features * torch.sigmoid(sharpness * promote(mask(classes))))))
        class_mean, class_log_variance = torch.stack(parts, dim=1).chunk(2, dim=-1)
        return PartedPosterior(mean, log_variance, logits, class_mean, class_log_variance)


class ClassPriors(nn.Module):
    """A learned Gaussian for u per class: (n_classes, class_latents) means, and log-variances between -3 and 1."""

    def __init__(self, n_classes: int, class_latents: int) -> None:
        super().__init__()
        self.means = nn.Parameter(torch.randn(n_classes, class_latents))
        self.spreads = nn.Parameter(torch.randn(n_classes, class_latents))

    def log_variances(self) -> Tensor:
        return 2 * self.spreads.tanh() - 1


def relaxed_classes(logits: Tensor, uniform: Tensor, sizes: Sequence[int]) -> Tensor:
    """Gumbel-softmax: nearly one-hot samples of each categorical, through which gradients pass.

    Args:
        logits: (n, n_classes).
        uniform: (n, n_classes) on (0, 1).
        sizes: classes of each categorical.

    Reference:
        Jang et al. 2017, "Categorical Reparameterization with Gumbel-Softmax", eq. 2.
    """
    noisy = (logits - (-uniform.log()).log()) / TEMPERATURE
    return torch.cat([each.softmax(-1) for each in noisy.split(tuple(sizes), dim=-1)], dim=-1)


def likeliest_classes(logits: Tensor, sizes: Sequence[int]) -> Tensor:
    """One-hot (n, n_classes): the likeliest class of each categorical."""
    parts = [
        functional.one_hot(each.argmax(-1), size)
        for each, size in zip(logits.split(tuple(sizes), dim=-1), sizes, strict=True)
    ]
    return torch.cat(parts, dim=-1).to(logits.dtype)


def sharpness(step: Tensor | int, mask_steps: Tensor | float) -> Tensor:
    """Slope of the masks' sigmoid: 1 at the first step, 8 from `mask_steps` on, a straight line between.

    Example:
        >>> float(sharpness(500, 1000.0)), float(sharpness(5000, 1000.0))
        (4.5, 8.0)
    """
    progress = torch.as_tensor(step / mask_steps, dtype=torch.float64)
    return 1 + (SHARPEST - 1) * progress.clamp(max=1.0)
