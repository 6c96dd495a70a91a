"""CCI-VAE: the KL is held at a capacity that rises."""

from typing import Any

import torch
from torch import Tensor, nn

from unbraid.families.common import GLOROT
from unbraid.families.divergences import gaussian_kl
from unbraid.families.family import Batch, Context, Hyper, Hyperparameter, LossOutput
from unbraid.families.vae import outputs_and_reconstruction, vae_family


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


def cci_vae_loss(modules: nn.ModuleDict, batch: Batch, hyper: Hyper, step: Any, context: Context) -> LossOutput:
    """Reconstruction plus gamma times the distance of the KL from a capacity that grows; nats per image.

    The distance is that of the mean KL of the batch, not the mean of the images' distances.

    Reference:
        Burgess et al. 2018, eq. 8; UDR eq. 5 and table 3.
    """
    outputs, reconstruction = outputs_and_reconstruction(modules, batch, hyper, context)
    fit = reconstruction.mean()
    kl = gaussian_kl(outputs.mean, outputs.log_variance).sum(-1).mean()
    target = capacity(step, c_max=hyper["c_max"], capacity_steps=hyper["capacity_steps"]).to(kl)
    loss = fit + hyper["gamma"] * (kl - target).abs()
    return loss, {"reconstruction": fit, "kl": kl, "capacity": target}, {}


CCI_VAE = vae_family(
    "CCI-VAE, capacity raised step by step",
    cci_vae_loss,
    {
        "gamma": Hyperparameter(1000.0, "weight of the KL's distance from the capacity", 0.0, 1e9),
        "c_max": Hyperparameter(25.0, "capacity at the end, nats", 0.0, 1e6),
        "capacity_steps": Hyperparameter(100_000, "steps until the capacity is reached", 1, 1e12, kind="int"),
    },
    source="Burgess et al. 2018, eq. 8",
    cites=("burgess2018understanding",),
    formula=(
        r"-\mathbb{E}_{q(z|x)} \log p(x|z) + \gamma \left| \sum_j \mathrm{KL}_j - C(t) \right|",
        "The capacity $C$ rises in a straight line from 0 to `c_max` over `capacity_steps` steps.",
    ),
    presets={
        "udr": tuple({**GLOROT, "c_max": float(c_max)} for c_max in (5, 10, 25, 50, 75, 100)),
        "lsbd": ({**GLOROT, "latents": 4, "c_max": 15.0, "capacity_steps": 3500},),
    },
)
