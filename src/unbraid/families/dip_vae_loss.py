"""DIP-VAE I and II: the covariance of the aggregate posterior is drawn towards the identity."""

import torch
from torch import Tensor

from unbraid.families.beta_vae_loss import beta_vae
from unbraid.families.gaussian_vae import VAEOutputs


def covariance(mean: Tensor) -> Tensor:
    """Covariance (n_latents, n_latents) of the rows of `mean` (n, n_latents), divided by n."""
    with torch.autocast(mean.device.type, enabled=False):  # products would be taken in half precision
        centred = mean - mean.mean(0)
        return centred.T @ centred / len(mean)


def covariance_penalty(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Sums of the squares of a covariance matrix off the diagonal, and of its diagonal's distances from 1."""
    diagonal = matrix.diagonal()
    return matrix.square().sum() - diagonal.square().sum(), (diagonal - 1).square().sum()


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
    off_diagonal, diagonal = covariance_penalty(matrix)
    loss = loss + lambda_od * off_diagonal + lambda_d * diagonal
    return loss, {**logs, "off_diagonal": off_diagonal, "diagonal": diagonal}
