"""The VAE and beta-VAE."""

from collections.abc import Mapping
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
from unbraid.objectives.beta_vae import beta_vae


def vae_loss(
    modules: nn.ModuleDict,
    batch: Batch,
    hyper: Hyper,
    step: Any,  # noqa: ARG001
    context: Context,
) -> tuple[Tensor, Logs, Logs]:
    outputs, reconstruction = outputs_and_reconstruction(modules, batch, hyper, context)
    loss, logs = beta_vae(outputs, reconstruction, beta=hyper.get("beta", 1.0))
    return loss, logs, {}


# The code of DCI 2018 (models/bvae/model.py) sums squared errors of pixels from -1 to 1, and does not halve them: with
# pixels from 0 to 1 that is a Gaussian of variance 1/8.
DCI: Mapping[str, Any] = MappingProxyType({"network": "resnet", "likelihood": "gaussian", "sigma": 8**-0.5})

VAE = Family(
    title="Variational autoencoder",
    build=build_vae,
    optimizer_steps=(OptimizerStep("vae", ("vae",), vae_loss, (IMAGES, NOISE)),),
    hyperparameters=COMMON,
    encode=encode_vae,
    decode=decode_vae,
    source="Kingma and Welling 2014",
    presets=MappingProxyType({"dci": (DCI,), "lsbd": ({**DISENTANGLEMENT_LIB, "latents": 4},)}),
)

BETA_VAE = Family(
    title="beta-VAE",
    build=build_vae,
    optimizer_steps=(OptimizerStep("vae", ("vae",), vae_loss, (IMAGES, NOISE)),),
    hyperparameters=MappingProxyType({**COMMON, "beta": Hyperparameter(4.0, "weight of the KL divergence", 0.0, 1e6)}),
    encode=encode_vae,
    decode=decode_vae,
    source="Higgins et al. 2017, eq. 4",
    presets=MappingProxyType(
        {
            "udr": tuple({**DISENTANGLEMENT_LIB, "beta": float(beta)} for beta in (1, 2, 4, 6, 8, 16)),
            "dci": ({**DCI, "beta": 6.0},),
            "lsbd": ({**DISENTANGLEMENT_LIB, "latents": 4, "beta": 5.0},),
        }
    ),
)
