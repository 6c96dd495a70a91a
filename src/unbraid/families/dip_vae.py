"""DIP-VAE I and II."""

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from unbraid.families.common import GLOROT
from unbraid.families.family import Batch, Context, Hyper, Hyperparameter, LossOutput
from unbraid.families.vae import beta_vae, outputs_and_reconstruction, vae_family


def covariance(mean: Tensor) -> Tensor:
    """Covariance (n_latents, n_latents) of the rows of `mean` (n, n_latents), divided by n."""
    with torch.autocast(mean.device.type, enabled=False):  # products would be taken in half precision
        centred = mean - mean.mean(0)
        return centred.T @ centred / len(mean)


def dip_vae_loss(
    modules: nn.ModuleDict, batch: Batch, hyper: Hyper, step: Any, context: Context, of_samples: bool
) -> LossOutput:
    """Negative ELBO plus the penalty on a covariance over the batch: of posterior means (I) or of samples (II).

    That of samples has the mean posterior variances besides. The logs "off_diagonal" (pairs i, j and j, i both count)
    and "diagonal" are sums of squares, unweighted.

    Reference:
        Kumar et al. 2018, eq. 6 and 7; UDR eq. 12 and 13. The covariance of the batch is divided by its size.
    """
    outputs, reconstruction = outputs_and_reconstruction(modules, batch, hyper, context)
    matrix = covariance(outputs.mean)
    if of_samples:
        matrix = matrix + torch.diag_embed(outputs.log_variance.exp().mean(0))
    loss, logs = beta_vae(outputs, reconstruction)
    variances = matrix.diagonal()
    off_diagonal = matrix.square().sum() - variances.square().sum()
    diagonal = (variances - 1).square().sum()
    loss = loss + hyper["lambda_od"] * off_diagonal + hyper["lambda_d"] * diagonal
    return loss, {**logs, "off_diagonal": off_diagonal, "diagonal": diagonal}, {}


UDR_LAMBDAS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0)

OFF_DIAGONAL = Hyperparameter(10.0, "weight of covariances between latents", 0.0, 1e6)
DIAGONAL = "weight of the distances of variances from 1"

DIP_VAE_I = vae_family(
    "DIP-VAE I, covariance of posterior means",
    partial(dip_vae_loss, of_samples=False),
    {"lambda_od": OFF_DIAGONAL, "lambda_d": Hyperparameter(100.0, DIAGONAL, 0.0, 1e6)},
    source="Kumar et al. 2018, eq. 6",
    cites=("kumar2018variational",),
    formula=(
        r"-\mathbb{E}_{q(z|x)} \log p(x|z) + \sum_j \mathrm{KL}_j + \lambda_{od} \sum_{i \ne j} "
        r"\mathrm{Cov}[\mu]_{ij}^2 + \lambda_d \sum_i \left( \mathrm{Cov}[\mu]_{ii} - 1 \right)^2",
        r"$\mathrm{Cov}[\mu]$ is the covariance of the posterior means over the batch.",
    ),
    presets={
        "udr": tuple({**GLOROT, "lambda_od": od, "lambda_d": 10 * od} for od in UDR_LAMBDAS),
        "lsbd": ({**GLOROT, "latents": 4, "lambda_od": 1.0, "lambda_d": 10.0},),
    },
)

DIP_VAE_II = vae_family(
    "DIP-VAE II, covariance of the aggregate posterior",
    partial(dip_vae_loss, of_samples=True),
    {"lambda_od": OFF_DIAGONAL, "lambda_d": Hyperparameter(10.0, DIAGONAL, 0.0, 1e6)},
    source="Kumar et al. 2018, eq. 7",
    cites=("kumar2018variational",),
    formula=(
        r"-\mathbb{E}_{q(z|x)} \log p(x|z) + \sum_j \mathrm{KL}_j + \lambda_{od} \sum_{i \ne j} "
        r"\mathrm{Cov}[z]_{ij}^2 + \lambda_d \sum_i \left( \mathrm{Cov}[z]_{ii} - 1 \right)^2, \qquad "
        r"\mathrm{Cov}[z] = \mathrm{Cov}[\mu] + \mathbb{E}\left[ \mathrm{diag}\,\sigma^2 \right]",
        "The covariance is that of the aggregate posterior.",
    ),
    presets={
        "udr": tuple({**GLOROT, "lambda_od": od, "lambda_d": od} for od in UDR_LAMBDAS),
        "lsbd": ({**GLOROT, "latents": 4, "lambda_od": 1.0, "lambda_d": 1.0},),
    },
)
