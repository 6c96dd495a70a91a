"""CCI-VAE: the KL is held at a capacity that rises."""

from types import MappingProxyType
from typing import Any

from torch import Tensor, nn

from unbraid.families.base import Batch, Context, Family, Hyper, Hyperparameter, Logs, OptimizerStep
from unbraid.families.common import (
    COMMON,
    DISENTANGLEMENT_LIB,
    IMAGES,
    NOISE,
    build_vae,
    decode_vae,
    encode_vae,
    outputs_and_reconstruction,
)
from unbraid.objectives.cci_vae import cci_vae


def cci_vae_loss(
    modules: nn.ModuleDict, batch: Batch, hyper: Hyper, step: Any, context: Context
) -> tuple[Tensor, Logs, Logs]:
    outputs, reconstruction = outputs_and_reconstruction(modules, batch, hyper, context)
    loss, logs = cci_vae(
        outputs,
        reconstruction,
        step=step,
        gamma=hyper["gamma"],
        c_max=hyper["c_max"],
        capacity_steps=hyper["capacity_steps"],
    )
    return loss, logs, {}


CCI_VAE = Family(
    title="CCI-VAE, capacity raised step by step",
    build=build_vae,
    optimizer_steps=(OptimizerStep("vae", ("vae",), cci_vae_loss, (IMAGES, NOISE)),),
    hyperparameters=MappingProxyType(
        {
            **COMMON,
            "gamma": Hyperparameter(1000.0, "weight of the KL's distance from the capacity", 0.0, 1e9),
            "c_max": Hyperparameter(25.0, "capacity at the end, nats", 0.0, 1e6),
            "capacity_steps": Hyperparameter(100_000, "steps until the capacity is reached", 1, 1e12, kind="int"),
        }
    ),
    encode=encode_vae,
    decode=decode_vae,
    source="Burgess et al. 2018, eq. 8",
    presets=MappingProxyType(
        {
            "udr": tuple({**DISENTANGLEMENT_LIB, "c_max": float(c_max)} for c_max in (5, 10, 25, 50, 75, 100)),
            "lsbd": ({**DISENTANGLEMENT_LIB, "latents": 4, "c_max": 15.0, "capacity_steps": 3500},),
        }
    ),
)
