"""FactorVAE: the total correlation by a discriminator between samples and dimension-wise permuted samples."""

from torch import Tensor
from torch.nn import functional

from unbraid.families.beta_vae_loss import beta_vae
from unbraid.families.gaussian_vae import VAEOutputs


def density_ratio(logits: Tensor) -> Tensor:
    """log D / (1 - D) from the discriminator's two logits (n, 2), the first for samples of q(z): (n,).

    Its mean over samples of q(z) estimates the total correlation once D is optimal. Before that it may be negative.
    """
    return logits[:, 0] - logits[:, 1]


def factor_vae(
    outputs: VAEOutputs, reconstruction: Tensor, logits: Tensor, *, gamma: Tensor | float
) -> tuple[Tensor, dict[str, Tensor]]:
    """The VAE optimizer step's loss: negative ELBO plus the estimated total correlation weighted by `gamma`.

    Args:
        outputs: of GaussianVAE.
        reconstruction: (n,) negative log-likelihoods of the images, nats.
        logits: (n, 2), the discriminator's on `outputs.sample`; gradients must reach the sample through it.
        gamma: weight of the total correlation.

    Returns:
        The loss, and by name "reconstruction", "kl" and "total_correlation" (the discriminator's estimate, nats).

    Reference:
        Kim and Mnih 2018, eq. 2 and algorithm 2.
    """
    loss, logs = beta_vae(outputs, reconstruction)
    correlation = density_ratio(logits).mean()
    return loss + gamma * correlation, {**logs, "total_correlation": correlation}


def permute_dimensions(sample: Tensor, permutation: Tensor) -> Tensor:
    """Samples of the product of marginals: each latent (column) of `sample` (n, n_latents) in an order of its own.

    Args:
        permutation: (n, n_latents) whole numbers, each column a shuffle of 0 .. n - 1.
    """
    return sample.gather(0, permutation)


def discriminator_loss(logits: Tensor, permuted_logits: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    """The discriminator's loss: cross-entropy of telling samples (first logit) from permuted ones (second logit).

    Args:
        logits: (n, 2) on samples of q(z), which should carry no gradient to the encoder.
        permuted_logits: (n, 2) on permuted samples, of another batch.

    Returns:
        The mean of the two cross-entropies, nats (log 2 when it cannot tell), and by name "discriminator" (the same)
        and "accuracy".

    Reference:
        Kim and Mnih 2018, algorithm 2.
    """
    own, permuted = density_ratio(logits), density_ratio(permuted_logits)
    loss = 0.5 * (functional.softplus(-own).mean() + functional.softplus(permuted).mean())
    accuracy = 0.5 * ((own > 0).to(own.dtype).mean() + (permuted < 0).to(own.dtype).mean())
    return loss, {"discriminator": loss, "accuracy": accuracy}
