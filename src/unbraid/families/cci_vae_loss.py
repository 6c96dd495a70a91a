"""The CCI-VAE: a VAE whose capacity is raised step by step (called CC-VAE by some)."""

import torch
from torch import Tensor

from unbraid.families.divergences import gaussian_kl
from unbraid.families.gaussian_vae import VAEOutputs


def capacity(step: Tensor | int, *, c_max: Tensor | float, capacity_steps: Tensor | float) -> Tensor:
    """What the KL should be after `step` steps, nats: a straight line from 0 to `c_max`, flat from `capacity_steps` on.

    Example:
        >>> float(capacity(500, c_max=25.0, capacity_steps=1000))
        12.5
    """
    progress = step / capacity_steps
    if not isinstance(progress, Tensor):
        progress = torch.tensor(progress, dtype=torch.float64)
    return c_max * progress.clamp(max=1.0)


def cci_vae(
    outputs: VAEOutputs,
    reconstruction: Tensor,
    *,
    step: Tensor | int,
    gamma: Tensor | float,
    c_max: Tensor | float,
    capacity_steps: Tensor | float,
) -> tuple[Tensor, dict[str, Tensor]]:
    """Reconstruction plus the distance of the KL from a capacity that grows.

    Args:
        outputs: of GaussianVAE.
        reconstruction: (n,) negative log-likelihoods of the images, nats.
        step: how many steps came before.
        gamma: weight of the distance, 1000 in UDR.
        c_max: capacity at the end, nats.
        capacity_steps: steps it takes to get there, 100 000 in UDR.

    Returns:
        The loss, and by name "reconstruction", "kl" and "capacity". The distance is that of the mean KL of the batch,
        not the mean of the images' distances.

    Reference:
        Burgess et al. 2018, eq. 8; UDR eq. 5 and table 3.
    """
    fit = reconstruction.mean()
    kl = gaussian_kl(outputs.mean, outputs.log_variance).sum(-1).mean()
    target = capacity(step, c_max=c_max, capacity_steps=capacity_steps).to(kl)
    return fit + gamma * (kl - target).abs(), {"reconstruction": fit, "kl": kl, "capacity": target}
