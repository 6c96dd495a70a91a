"""DIP-VAE I and II."""

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import nn

from unbraid.families.common import DISENTANGLEMENT_LIB, outputs_and_reconstruction, vae_family
from unbraid.families.dip_vae_loss import dip_vae_i, dip_vae_ii
from unbraid.families.family import Batch, Context, Hyper, Hyperparameter, LossOutput


def dip_vae_loss(
    modules: nn.ModuleDict, batch: Batch, hyper: Hyper, step: Any, context: Context, objective: Callable[..., Any]
) -> LossOutput:
    given = outputs_and_reconstruction(modules, batch, hyper, context)
    return *objective(*given, lambda_od=hyper["lambda_od"], lambda_d=hyper["lambda_d"]), {}


UDR_LAMBDAS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0)

OFF_DIAGONAL = Hyperparameter(10.0, "weight of covariances between latents", 0.0, 1e6)
DIAGONAL = "weight of the distances of variances from 1"

DIP_VAE_I = vae_family(
    "DIP-VAE I, covariance of posterior means",
    partial(dip_vae_loss, objective=dip_vae_i),
    {"lambda_od": OFF_DIAGONAL, "lambda_d": Hyperparameter(100.0, DIAGONAL, 0.0, 1e6)},
    source="Kumar et al. 2018, eq. 6",
    presets={
        "udr": tuple({**DISENTANGLEMENT_LIB, "lambda_od": od, "lambda_d": 10 * od} for od in UDR_LAMBDAS),
        "lsbd": ({**DISENTANGLEMENT_LIB, "latents": 4, "lambda_od": 1.0, "lambda_d": 10.0},),
    },
)

DIP_VAE_II = vae_family(
    "DIP-VAE II, covariance of the aggregate posterior",
    partial(dip_vae_loss, objective=dip_vae_ii),
    {"lambda_od": OFF_DIAGONAL, "lambda_d": Hyperparameter(10.0, DIAGONAL, 0.0, 1e6)},
    source="Kumar et al. 2018, eq. 7",
    presets={
        "udr": tuple({**DISENTANGLEMENT_LIB, "lambda_od": od, "lambda_d": od} for od in UDR_LAMBDAS),
        "lsbd": ({**DISENTANGLEMENT_LIB, "latents": 4, "lambda_od": 1.0, "lambda_d": 1.0},),
    },
)
