"""DIP-VAE I and II."""

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
from unbraid.objectives.dip_vae import dip_vae_i, dip_vae_ii


def dip_vae_i_loss(
    modules: nn.ModuleDict,
    batch: Batch,
    hyper: Hyper,
    step: Any,  # noqa: ARG001
    context: Context,
) -> tuple[Tensor, Logs, Logs]:
    given = outputs_and_reconstruction(modules, batch, hyper, context)
    return *dip_vae_i(*given, lambda_od=hyper["lambda_od"], lambda_d=hyper["lambda_d"]), {}


def dip_vae_ii_loss(
    modules: nn.ModuleDict,
    batch: Batch,
    hyper: Hyper,
    step: Any,  # noqa: ARG001
    context: Context,
) -> tuple[Tensor, Logs, Logs]:
    given = outputs_and_reconstruction(modules, batch, hyper, context)
    return *dip_vae_ii(*given, lambda_od=hyper["lambda_od"], lambda_d=hyper["lambda_d"]), {}


UDR_LAMBDAS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0)

DIP_VAE_I = Family(
    title="DIP-VAE I, covariance of posterior means",
    build=build_vae,
    optimizer_steps=(OptimizerStep("vae", ("vae",), dip_vae_i_loss, (IMAGES, NOISE)),),
    hyperparameters=MappingProxyType(
        {
            **COMMON,
            "lambda_od": Hyperparameter(10.0, "weight of covariances between latents", 0.0, 1e6),
            "lambda_d": Hyperparameter(100.0, "weight of the distances of variances from 1", 0.0, 1e6),
        }
    ),
    encode=encode_vae,
    decode=decode_vae,
    source="Kumar et al. 2018, eq. 6",
    presets=MappingProxyType(
        {
            "udr": tuple({**DISENTANGLEMENT_LIB, "lambda_od": od, "lambda_d": 10 * od} for od in UDR_LAMBDAS),
            "lsbd": ({**DISENTANGLEMENT_LIB, "latents": 4, "lambda_od": 1.0, "lambda_d": 10.0},),
        }
    ),
)

DIP_VAE_II = Family(
    title="DIP-VAE II, covariance of the aggregate posterior",
    build=build_vae,
    optimizer_steps=(OptimizerStep("vae", ("vae",), dip_vae_ii_loss, (IMAGES, NOISE)),),
    hyperparameters=MappingProxyType(
        {
            **COMMON,
            "lambda_od": Hyperparameter(10.0, "weight of covariances between latents", 0.0, 1e6),
            "lambda_d": Hyperparameter(10.0, "weight of the distances of variances from 1", 0.0, 1e6),
        }
    ),
    encode=encode_vae,
    decode=decode_vae,
    source="Kumar et al. 2018, eq. 7",
    presets=MappingProxyType(
        {
            "udr": tuple({**DISENTANGLEMENT_LIB, "lambda_od": od, "lambda_d": od} for od in UDR_LAMBDAS),
            "lsbd": ({**DISENTANGLEMENT_LIB, "latents": 4, "lambda_od": 1.0, "lambda_d": 1.0},),
        }
    ),
)
