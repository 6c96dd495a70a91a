"""CCI-VAE: the KL is held at a capacity that rises."""

from typing import Any

from torch import nn

from unbraid.families.cci_vae_loss import cci_vae
from unbraid.families.common import DISENTANGLEMENT_LIB, outputs_and_reconstruction, vae_family
from unbraid.families.family import Batch, Context, Hyper, Hyperparameter, LossOutput


def cci_vae_loss(modules: nn.ModuleDict, batch: Batch, hyper: Hyper, step: Any, context: Context) -> LossOutput:
    outputs, reconstruction = outputs_and_reconstruction(modules, batch, hyper, context)
    return *cci_vae(
        outputs,
        reconstruction,
        step=step,
        gamma=hyper["gamma"],
        c_max=hyper["c_max"],
        capacity_steps=hyper["capacity_steps"],
    ), {}


CCI_VAE = vae_family(
    "CCI-VAE, capacity raised step by step",
    cci_vae_loss,
    {
        "gamma": Hyperparameter(1000.0, "weight of the KL's distance from the capacity", 0.0, 1e9),
        "c_max": Hyperparameter(25.0, "capacity at the end, nats", 0.0, 1e6),
        "capacity_steps": Hyperparameter(100_000, "steps until the capacity is reached", 1, 1e12, kind="int"),
    },
    source="Burgess et al. 2018, eq. 8",
    presets={
        "udr": tuple({**DISENTANGLEMENT_LIB, "c_max": float(c_max)} for c_max in (5, 10, 25, 50, 75, 100)),
        "lsbd": ({**DISENTANGLEMENT_LIB, "latents": 4, "c_max": 15.0, "capacity_steps": 3500},),
    },
)
