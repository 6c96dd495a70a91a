"""A prior of blocks: the first codes are standard normal, each block comes from the Gaussian of any of its classes."""

from collections.abc import Iterable

import torch
from torch import Tensor

from unbraid.families.divergences import log_mixture, log_standard_normal


def log_blocks(codes: Tensor, n_normal: int, means: Iterable[Tensor], log_variances: Iterable[Tensor]) -> Tensor:
    """Log density of each code (n, n_codes) by itself; the classes of a block are equally frequent.

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
