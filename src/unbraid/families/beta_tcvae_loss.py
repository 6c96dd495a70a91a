"""The beta-TCVAE: index-code information, total correlation and dimension-wise KL, each with its own weight."""

import math
from typing import Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor

from unbraid.families.divergences import log_standard_normal
from unbraid.families.gaussian_vae import VAEOutputs
from unbraid.families.mixtures import mean_log_densities

Estimator: TypeAlias = Literal["weighted", "stratified"]


class KLTerms(NamedTuple):
    """The parts of the KL of posteriors from the prior, means over the batch; their sum is log q(z|x) - log p(z)."""

    index_code_information: Tensor
    total_correlation: Tensor
    dimension_wise_kl: Tensor


def log_weights(n_batch: int, n_train: int, estimator: Estimator, *, device: torch.device | str = "cpu") -> Tensor:
    """Logarithms of the weights of q(z_i | x_j) in the estimate of q(z_i), (n_batch, n_batch): rows i, columns j.

    Raises:
        ValueError: no such estimator; "stratified" with one image a batch or with fewer images than a batch.

    Example:
        >>> [round(float(total), 6) for total in log_weights(3, 10, "weighted").exp().sum(1)]
        [0.1, 0.1, 0.1]
        >>> [round(float(total), 6) for total in log_weights(3, 10, "stratified").exp().sum(1)]
        [1.0, 1.0, 1.0]
    """
    shape = (n_batch, n_batch)
    if estimator == "weighted":
        return torch.full(shape, -math.log(n_train * n_batch), dtype=torch.float64, device=device)
    if estimator != "stratified":
        raise ValueError(f"estimator must be 'weighted' or 'stratified'; got {estimator!r}")
    if not 2 <= n_batch <= n_train:
        raise ValueError(
            f"the stratified estimator needs at least two images a batch and no more than there are to train on; "
            f"got {n_batch} of {n_train}"
        )
    others = n_batch - 1
    place = torch.arange(n_batch, device=device)
    ahead = (place - place[:, None]) % n_batch
    weights = torch.full(shape, 1 / others, dtype=torch.float64, device=device)
    weights = weights.masked_fill(ahead == 0, 1 / n_train)
    return weights.masked_fill(ahead == 1, (n_train - others) / (n_train * others)).log()


def kl_terms(
    outputs: VAEOutputs, *, n_train: int, estimator: Estimator = "weighted", log_prior: Tensor | None = None
) -> KLTerms:
    """Estimates of the three parts of the KL from one batch.

    The aggregate posterior q(z) is the mixture of the posteriors of all `n_train` images; both estimators weigh the
    posteriors of the batch. "weighted" underestimates: its weights sum to 1 / n_train, so that it puts log q(z) too low
    by log n_batch where posteriors do not overlap and up to log n_train where they do. By so much, once for the joint
    and once for each latent, the information comes out too high, the dimension-wise KL too low and the total
    correlation too high: gradients are meant, and values compare only between runs of equal sizes. "stratified"
    estimates q(z) without bias, and log q(z) from below by Jensen's inequality. For values to report see the metric
    `unbraid.metrics.elbo_terms`.

    Args:
        outputs: of GaussianVAE, (n, n_latents) each.
        n_train: number of images in the training set, not in the batch. No default: a wrong one is silent.
        estimator: "weighted" (eq. 5 and 7) or "stratified" (appendix of the later version of the paper).
        log_prior: (n, n_latents) log p(z_j) of `outputs.sample`; the standard normal unless given.

    Reference:
        Chen et al. 2018, "Isolating Sources of Disentanglement in VAEs", eq. 1 and appendix 5.3 (workshop version);
        the stratified estimator is in appendix C.2 of arXiv 1802.04942v5. Differs from the authors' code, which puts
        the weights 1/N and (N - M)/(NM) of the latter into the first two columns instead of the diagonal and the one
        next to it.
    """
    sample = outputs.sample
    weights = log_weights(len(sample), n_train, estimator, device=sample.device).to(sample.dtype)
    posterior, joint, marginals = mean_log_densities(sample, (outputs.mean, outputs.log_variance), weights)
    prior = log_standard_normal(sample) if log_prior is None else log_prior
    return KLTerms(posterior - joint, joint - marginals, marginals - prior.sum(-1).mean())


def beta_tcvae(
    outputs: VAEOutputs,
    reconstruction: Tensor,
    *,
    n_train: int,
    beta: Tensor | float,
    alpha: Tensor | float = 1.0,
    gamma: Tensor | float = 1.0,
    estimator: Estimator = "weighted",
    log_prior: Tensor | None = None,
) -> tuple[Tensor, dict[str, Tensor]]:
    """Reconstruction + alpha * index-code information + beta * total correlation + gamma * dimension-wise KL.

    Args:
        outputs: of GaussianVAE.
        reconstruction: (n,) negative log-likelihoods of the images, nats.
        beta: weight of the total correlation.
        alpha: weight of the information between images and latents.
        gamma: weight of the dimension-wise KL.
        n_train, estimator, log_prior: as in `kl_terms`.

    Returns:
        The loss, and by name "reconstruction", "kl" (the plain sum of the three parts: one draw of the KL),
        "index_code_information", "total_correlation" and "dimension_wise_kl". With all weights 1 the loss is the VAE's
        in expectation, by either estimator: what the parts have in common cancels.

    Reference:
        Chen et al. 2018, eq. 2.
    """
    terms = kl_terms(outputs, n_train=n_train, estimator=estimator, log_prior=log_prior)
    fit = reconstruction.mean()
    loss = fit + alpha * terms.index_code_information + beta * terms.total_correlation
    loss = loss + gamma * terms.dimension_wise_kl
    return loss, {"reconstruction": fit, "kl": torch.stack(terms).sum(), **terms._asdict()}
