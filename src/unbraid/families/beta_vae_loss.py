"""The beta-VAE and, at beta = 1, the VAE."""

from torch import Tensor

from unbraid.families.divergences import gaussian_kl
from unbraid.families.gaussian_vae import VAEOutputs


def beta_vae(
    outputs: VAEOutputs, reconstruction: Tensor, *, beta: Tensor | float = 1.0
) -> tuple[Tensor, dict[str, Tensor]]:
    """Negative ELBO with the KL weighted by `beta`.

    Args:
        outputs: of GaussianVAE.
        reconstruction: (n,) negative log-likelihoods of the images, nats.
        beta: weight of the KL, 1 for the plain VAE.

    Returns:
        The mean over the batch of reconstruction + beta * KL, and the two means by name: "reconstruction", "kl".

    Reference:
        Higgins et al. 2017, eq. 4; Kingma and Welling 2014 at beta = 1.
    """
    fit = reconstruction.mean()
    kl = gaussian_kl(outputs.mean, outputs.log_variance).sum(-1).mean()
    return fit + beta * kl, {"reconstruction": fit, "kl": kl}
