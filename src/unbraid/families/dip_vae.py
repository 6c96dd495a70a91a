"""DIP-VAE I and II."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from unbraid.families.common import DISENTANGLEMENT_LIB
from unbraid.families.family import Batch, Context, Hyper, Hyperparameter, LossOutput
from unbraid.families.vae import VAEOutputs, beta_vae, outputs_and_reconstruction, vae_family


def covariance(mean: Tensor) -> Tensor:
    """Covariance (n_latents, n_latents) of the rows of `mean` (n, n_latents), divided by n."""
    with torch.autocast(mean.device.type, enabled=False):  # products would be taken in half precision
        centred = mean - mean.mean(0)
        return centred.T @ centred / len(mean)


def dip_vae_i(
    outputs: VAEOutputs, reconstruction: Tensor, *, lambda_od: Tensor | float, lambda_d: Tensor | float
) -> tuple[Tensor, dict[str, Tensor]]:
    """Negative ELBO plus the penalty on the covariance of posterior means over the batch.

    Args:
        outputs: of GaussianVAE.
        reconstruction: (n,) negative log-likelihoods of the images, nats.
        lambda_od: weight of the squares off the diagonal; pairs i, j and j, i both count.
        lambda_d: weight of the diagonal's squared distances from 1; 10 lambda_od in UDR.

    Returns:
        The loss, and by name "reconstruction", "kl", "off_diagonal" and "diagonal" (the two sums, unweighted).

    Reference:
        Kumar et al. 2018, eq. 6; UDR eq. 12. The covariance is that of the batch, divided by its size.
    """
    return _with_penalty(outputs, reconstruction, covariance(outputs.mean), lambda_od, lambda_d)


def dip_vae_ii(
    outputs: VAEOutputs, reconstruction: Tensor, *, lambda_od: Tensor | float, lambda_d: Tensor | float
) -> tuple[Tensor, dict[str, Tensor]]:
    """As `dip_vae_i` with the covariance of z itself: that of the means plus the mean posterior variances.

    `lambda_d` is `lambda_od` in UDR.

    Reference:
        Kumar et al. 2018, eq. 7; UDR eq. 13.
    """
    spread = torch.diag_embed(outputs.log_variance.exp().mean(0))
    return _with_penalty(outputs, reconstruction, covariance(outputs.mean) + spread, lambda_od, lambda_d)


def _with_penalty(
    outputs: VAEOutputs, reconstruction: Tensor, matrix: Tensor, lambda_od: Tensor | float, lambda_d: Tensor | float
) -> tuple[Tensor, dict[str, Tensor]]:
    loss, logs = beta_vae(outputs, reconstruction)
    variances = matrix.diagonal()
    off_diagonal = matrix.square().sum() - variances.square().sum()
    diagonal = (variances - 1).square().sum()
    loss = loss + lambda_od * off_diagonal + lambda_d * diagonal
    return loss, {**logs, "off_diagonal": off_diagonal, "diagonal": diagonal}


def dip_vae_loss(
    modules: nn.ModuleDict, batch: Batch, hyper: Hyper, step: Any, context: Context, objective: Callable[..., Any]
) -> LossOutput:
    terms = outputs_and_reconstruction(modules, batch, hyper, context)
    return *objective(*terms, lambda_od=hyper["lambda_od"], lambda_d=hyper["lambda_d"]), {}


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
