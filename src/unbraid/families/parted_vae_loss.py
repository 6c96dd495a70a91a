"""PartedVAE: capacities for what does and what does not depend on a class, and classes that keep apart."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from unbraid.families.cci_vae_loss import capacity
from unbraid.families.divergences import gaussian_kl, kl_from
from unbraid.families.parted_vae_networks import PartedPosterior


def bhattacharyya(means: Tensor, log_variances: Tensor) -> Tensor:
    """Overlap of every two of n diagonal Gaussians (n, d), the integral of the root of their product: (n, n).

    1 where they are the same, near 0 where they are far apart.

    Reference:
        Bhattacharyya 1946: exp(-D) with D = (m_i - m_j)^2 / (8 v) + (log v - (log v_i + log v_j) / 2) / 2 summed over
        dimensions, v the mean of both variances.
    """
    variances = log_variances.exp()
    between = (variances[:, None] + variances) / 2
    squares = (means[:, None] - means).square() / between / 8
    spreads = (between.log() - (log_variances[:, None] + log_variances) / 2) / 2
    return (-(squares + spreads).sum(-1)).exp()


def too_close(means: Tensor, log_variances: Tensor, threshold: Tensor | float) -> Tensor:
    """How much the overlaps of pairs of Gaussians (n, d) exceed the threshold, summed over pairs."""
    first, second = torch.triu_indices(len(means), len(means), offset=1, device=means.device)
    return (bhattacharyya(means, log_variances)[first, second] - threshold).clamp(min=0).sum()


def class_cross_entropy(logits: Tensor, levels: Tensor, sizes: Sequence[int]) -> Tensor:
    """-log q(c|x) of the true classes, summed over categoricals: (n,), nats.

    Args:
        logits: (n, n_classes).
        levels: (n, n_categoricals) true classes, whole numbers.
        sizes: classes of each categorical.
    """
    parts = logits.split(tuple(sizes), dim=-1)
    losses = [
        functional.cross_entropy(part, level, reduction="none")
        for part, level in zip(parts, levels.unbind(-1), strict=True)
    ]
    return torch.stack(losses).sum(0)


def parted_vae(
    posterior: PartedPosterior,
    prior_means: Tensor,
    prior_log_variances: Tensor,
    reconstruction: Tensor,
    sizes: Sequence[int],
    *,
    step: Tensor | int,
    z_capacity: Tensor | float,
    u_capacity: Tensor | float,
    capacity_steps: Tensor | float,
    gamma_z: Tensor | float,
    gamma_u: Tensor | float,
    gamma_c: Tensor | float,
    gamma_h: Tensor | float,
    gamma_bc: Tensor | float,
    threshold: Tensor | float,
) -> tuple[Tensor, dict[str, Tensor]]:
    """Reconstruction, two capacities, classes that are used alike, each surely, and whose priors keep apart.

    Args:
        posterior: of the batch.
        prior_means, prior_log_variances: (n_classes, class_latents), the Gaussian of u given each class.
        reconstruction: (n,) negative log-likelihoods of the images, nats.
        sizes: classes of each categorical.
        step: how many steps came before.
        z_capacity, u_capacity: nats that z and u may hold in the end.
        capacity_steps: steps it takes to get there, in a straight line from 0.
        gamma_z, gamma_u: weights of the distances of the KL from the capacities.
        gamma_c: weight of the KL of the batch's mean q(c) from the uniform distribution.
        gamma_h: weight of the entropy of q(c|x).
        gamma_bc: weight of the overlaps above `threshold` between priors of classes of the same categorical.

    Returns:
        The loss, and by name "reconstruction", "kl_z", "kl_u", "class_kl", "class_entropy", "overlap".

    Reference:
        Hajimiri et al. 2021, as in the authors' code (`_loss_function`). The KL of u is that of its one posterior from
        the prior of every class, weighted by q(c|x). SNC/NK call the last term the Bhattacharyya distance from a
        normal; in the code it is the coefficient between the priors of classes.
    """
    fit = reconstruction.mean()
    kl_z = gaussian_kl(posterior.mean, posterior.log_variance).sum(-1).mean()
    kl_u = class_kl = entropy = overlap = torch.zeros_like(fit)
    priors = zip(prior_means.split(tuple(sizes)), prior_log_variances.split(tuple(sizes)), strict=True)
    for place, (logits, (means, log_variances)) in enumerate(
        zip(posterior.logits.split(tuple(sizes), dim=-1), priors, strict=True)
    ):
        mean, log_variance = posterior.class_mean[:, place, None], posterior.class_log_variance[:, place, None]
        log_classes = logits.log_softmax(-1)
        from_each = kl_from(mean, log_variance, means, log_variances).sum(-1)
        kl_u = kl_u + (log_classes.exp() * from_each).sum(-1).mean()
        log_shares = log_classes.logsumexp(0) - math.log(len(logits))
        class_kl = class_kl + (log_shares.exp() * (log_shares + math.log(len(log_shares)))).sum()
        entropy = entropy - (log_classes.exp() * log_classes).sum(-1).mean()
        overlap = overlap + too_close(means, log_variances, threshold)
    z_target, u_target = (
        capacity(step, c_max=c_max, capacity_steps=capacity_steps).to(fit) for c_max in (z_capacity, u_capacity)
    )
    loss = fit + gamma_z * (z_target - kl_z).abs() + gamma_u * (u_target - kl_u).abs()
    loss = loss + gamma_c * class_kl + gamma_h * entropy + gamma_bc * overlap
    return loss, {
        "reconstruction": fit,
        "kl_z": kl_z,
        "kl_u": kl_u,
        "class_kl": class_kl,
        "class_entropy": entropy,
        "overlap": overlap,
    }
