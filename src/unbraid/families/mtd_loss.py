"""MTD, reconstructed from the abstract and from SNC/NK section 2; not the authors' equations.

Sha and Lukasiewicz 2021, "Multi-type Disentanglement without Adversarial Training", gives its losses in equations that
are not public. Known are: one block of codes per type and one for content, a representation of its own for each value
of each type, losses that make blocks independent without an adversary, and one against values that change together
because they occur together in the data. The formulas below are chosen to do that.
"""

from collections.abc import Sequence
from itertools import combinations

import torch
from torch import Tensor

from unbraid.families.divergences import gaussian_kl, kl_from


def separation(means: Tensor, distance: Tensor | float) -> Tensor:
    """Squares of what the means (n_values, d) of a factor's values lack to be `distance` apart, summed over pairs."""
    first, second = torch.triu_indices(len(means), len(means), offset=1, device=means.device)
    # The root's derivative at 0 would be infinite.
    apart = ((means[first] - means[second]).square().sum(-1) + 1e-12).sqrt()
    return (distance - apart).clamp(min=0).square().sum()


def one_hot(levels: Tensor, size: int, like: Tensor) -> Tensor:
    """(n, size) of whole numbers (n,), of the type of `like`."""
    return (levels[:, None] == torch.arange(size, device=levels.device)).to(like.dtype)


def told(values: Tensor, groups: Tensor, among: Tensor | None = None) -> Tensor:
    """How much of the variance of a block lies between groups, beyond what chance puts there.

    The squared distance of each group's mean from that of all, mean over images, less (n_groups - 1) / (n - 1) of the
    variance: so much is expected of groups that have nothing to do with the values. 0 on average for these, whatever
    the number of groups; a single batch may give less than 0.

    Args:
        values: (n, d).
        groups: (n, n_groups) one-hot; empty ones do not count.
        among: (n, n_parts) one-hot: compare only images of the same part. Default all.

    Returns:
        A scalar, in squared units of the values; summed over the d dimensions.
    """
    parts = among if among is not None else torch.ones_like(values[:, :1])
    counts = parts.sum(0)
    with torch.autocast(values.device.type, enabled=False):  # products would be taken in half precision
        means = parts.T @ values / counts.clamp(min=1)[:, None]
        within = values - parts @ means
        cells = parts.T @ groups
        sums = torch.einsum("np,ng,nd->pgd", parts, groups, within)
        total = parts.T @ within.square().sum(-1)
    between = sums.square().sum(-1).div(cells.clamp(min=1)).sum(-1)
    chance = ((cells > 0).sum(-1) - 1).clamp(min=0) / (counts - 1).clamp(min=1)
    return (between - chance * total).sum() / len(values)


def cross_covariance(blocks: Sequence[Tensor]) -> Tensor:
    """Squared covariances of codes of different blocks (n, d_1), (n, d_2), ..., summed."""
    centred = [block - block.mean(0) for block in blocks]
    with torch.autocast(blocks[0].device.type, enabled=False):
        pairs = [(one.T @ other / len(one)).square().sum() for one, other in combinations(centred, 2)]
    return torch.stack(pairs).sum()


def swap_loss(again: Tensor, target: Tensor) -> Tensor:
    """Squared distance of what is encoded again (n, d) from the codes that were decoded (n, d), mean over images."""
    return (again - target).square().sum(-1).mean()


def mtd(
    mean: Tensor,
    log_variance: Tensor,
    levels: Tensor,
    value_means: Sequence[Tensor],
    reconstruction: Tensor,
    swap: Tensor | float = 0.0,
    *,
    content: int,
    value_sigma: Tensor | float,
    distance: Tensor | float,
    content_weight: Tensor | float = 1.0,
    value_weight: Tensor | float = 1.0,
    separation_weight: Tensor | float = 1.0,
    independence_weight: Tensor | float = 1.0,
    bias_weight: Tensor | float = 1.0,
    swap_weight: Tensor | float = 0.0,
) -> tuple[Tensor, dict[str, Tensor]]:
    """Reconstruction; values of factors in blocks of their own; and blocks that tell nothing about other factors.

    Args:
        mean, log_variance: (n, content + n_factors * d) of the posterior: the content's block, then one per factor.
        levels: (n, n_factors) true levels, whole numbers.
        value_means: (n_values, d) of each factor.
        reconstruction: (n,) negative log-likelihoods of the images, nats.
        swap: of `swap_loss`, where it is wanted.
        content: size of the content's block.
        value_sigma: standard deviation of the Gaussian of each value.
        distance: that the means of a factor's values should be apart.
        content_weight: of the KL of the content from the standard normal.
        value_weight: of the KL of each factor's block from the Gaussian of its value.
        separation_weight: of `separation`.
        independence_weight: of what the mean of each block tells about factors other than its own, by `told`, and of
            `cross_covariance`.
        bias_weight: of what each factor's block tells about the other factors among images that are alike in its own,
            so that values which occur together do not count as told.
        swap_weight: of `swap`.

    Returns:
        The loss, and by name "reconstruction", "kl_content", "kl_values", "separation", "told", "cross_covariance"
        and "bias".

    Reference:
        Reconstructed from the abstract and from SNC/NK section 2; not the authors' equations (Sha and Lukasiewicz
        2021). Means of values in other blocks are those of the batch, corrected for chance.
    """
    n_factors, size = levels.shape[1], value_means[0].shape[1]
    sizes = (content, *[size] * n_factors)
    means, log_variances = mean.split(sizes, dim=-1), log_variance.split(sizes, dim=-1)
    groups = [one_hot(levels[:, k], len(values), mean) for k, values in enumerate(value_means)]
    prior_log_variance = 2 * torch.as_tensor(value_sigma, dtype=mean.dtype, device=mean.device).log()

    fit = reconstruction.mean()
    kl_content = gaussian_kl(means[0], log_variances[0]).sum(-1).mean()
    kl_values = apart = informed = bias = torch.zeros_like(fit)
    for k, values in enumerate(value_means):
        own = kl_from(means[k + 1], log_variances[k + 1], values[levels[:, k]], prior_log_variance)
        kl_values = kl_values + own.sum(-1).mean()
        apart = apart + separation(values, distance)
        informed = informed + told(means[0], groups[k])
        for j in range(n_factors):
            if j != k:
                informed = informed + told(means[j + 1], groups[k])
                bias = bias + told(means[j + 1], groups[k], groups[j])
    covariance = cross_covariance(means)

    loss = fit + content_weight * kl_content + value_weight * kl_values + separation_weight * apart
    loss = loss + independence_weight * (informed + covariance) + bias_weight * bias + swap_weight * swap
    return loss, {
        "reconstruction": fit,
        "kl_content": kl_content,
        "kl_values": kl_values,
        "separation": apart,
        "told": informed,
        "cross_covariance": covariance,
        "bias": bias,
    }
