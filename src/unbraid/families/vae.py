"""The VAE and beta-VAE."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from torch import nn

from unbraid.families.beta_vae_loss import beta_vae
from unbraid.families.common import DISENTANGLEMENT_LIB, outputs_and_reconstruction, vae_family
from unbraid.families.family import Batch, Context, Hyper, Hyperparameter, LossOutput


def vae_loss(modules: nn.ModuleDict, batch: Batch, hyper: Hyper, step: Any, context: Context) -> LossOutput:
    outputs, reconstruction = outputs_and_reconstruction(modules, batch, hyper, context)
    return *beta_vae(outputs, reconstruction, beta=hyper.get("beta", 1.0)), {}


# The code of DCI 2018 (models/bvae/model.py) sums squared errors of pixels from -1 to 1, and does not halve them: with
# pixels from 0 to 1 that is a Gaussian of variance 1/8.
DCI: Mapping[str, Any] = MappingProxyType({"network": "resnet", "likelihood": "gaussian", "sigma": 8**-0.5})

VAE = vae_family(
    "Variational autoencoder",
    vae_loss,
    {},
    source="Kingma and Welling 2014",
    presets={"dci": (DCI,), "lsbd": ({**DISENTANGLEMENT_LIB, "latents": 4},)},
)

BETA_VAE = vae_family(
    "beta-VAE",
    vae_loss,
    {"beta": Hyperparameter(4.0, "weight of the KL divergence", 0.0, 1e6)},
    source="Higgins et al. 2017, eq. 4",
    presets={
        "udr": tuple({**DISENTANGLEMENT_LIB, "beta": float(beta)} for beta in (1, 2, 4, 6, 8, 16)),
        "dci": ({**DCI, "beta": 6.0},),
        "lsbd": ({**DISENTANGLEMENT_LIB, "latents": 4, "beta": 5.0},),
    },
)
