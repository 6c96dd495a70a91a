"""Ada-GVAE and Ada-ML-VAE: trained on pairs of images that share some factors."""

import math
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import torch
from torch import Tensor, nn

from unbraid.data import Space, weak_pairs
from unbraid.families.common import COMMON, GLOROT, reconstruction_term
from unbraid.families.family import (
    Batch,
    Context,
    Draw,
    Family,
    Hyper,
    Hyperparameter,
    Items,
    LossOutput,
    OptimizerStep,
    Settings,
    Supervision,
    Supply,
    choice,
    whole,
)
from unbraid.families.supervision import by_hyperparameters, grid_of
from unbraid.families.vae import GaussianVAE, VAEOutputs, beta_vae, build_vae, decode_vae, encode_vae

Average: TypeAlias = Literal["arithmetic", "harmonic"]
Posterior: TypeAlias = tuple[Tensor, Tensor]  # means and log-variances, (n, n_latents) each


def distance(first: Posterior, second: Posterior) -> Tensor:
    """Twice the KL of the first posterior from the second, by latent: (n, n_latents), nats."""
    (mean1, log1), (mean2, log2) = first, second
    return torch.exp(log1 - log2) + (mean2 - mean1).square() * torch.exp(-log2) - 1 + log2 - log1


def shared(distances: Tensor) -> Tensor:
    """Which latents count as equal: those nearer to the least distance of their pair than to the largest.

    Args:
        distances: (n, n_latents).

    Returns:
        (n, n_latents) bool: distance < (min + max) / 2. All where all distances are equal.
    """
    low, high = distances.amin(-1, keepdim=True), distances.amax(-1, keepdim=True)
    return (distances < (low + high) / 2) | (low == high)


def averaged(first: Posterior, second: Posterior, average: Average) -> Posterior:
    """The posterior that both images get for what they share.

    "arithmetic": means of the means and of the variances (Ada-GVAE). "harmonic": the precision-weighted mean with
    the harmonic mean of the variances (Ada-ML-VAE), which is twice the variance of the product of the Gaussians.
    """
    (mean1, log1), (mean2, log2) = first, second
    if average == "arithmetic":
        return (mean1 + mean2) / 2, torch.logaddexp(log1, log2) - math.log(2)
    log_variance = math.log(2) - torch.logaddexp(-log1, -log2)
    weight = torch.sigmoid(log2 - log1)  # of the first: its precision over the sum of both
    return weight * mean1 + (1 - weight) * mean2, log_variance


def share(first: Posterior, second: Posterior, average: Average) -> tuple[Posterior, Posterior, Tensor]:
    """Both posteriors with the shared latents averaged, and which those are (n, n_latents).

    The distance decides which, and is looked at in one direction only, as the published code does.

    Reference:
        Locatello et al. 2020, "Weakly-Supervised Disentanglement Without Compromises", section 4; the threshold is
        that of disentanglement_lib (weak_vae.py), two bins of equal width.
    """
    same = shared(distance(first, second))
    both = averaged(first, second, average)
    one, other = (
        (torch.where(same, both[0], mean), torch.where(same, both[1], log_variance))
        for mean, log_variance in (first, second)
    )
    return one, other, same


PAIRS = Draw("pairs", "given")
NOISE = Draw("noise", "normal", ("latents",), of="pairs")


def make_pairs(space: Space, settings: Settings, seed: int) -> Supply:
    """Pairs of images that share factors; which ones is not recorded."""
    changed = settings["changed"] or None
    with by_hyperparameters(n="pairs"):
        pairs = weak_pairs(grid_of(space), settings["pairs"], changed=changed, rule=settings["rule"], seed=seed)
    positions = np.stack([pairs.first, pairs.second], axis=1)
    return Supply({"pairs": Items(positions)}, {"pairs": settings["pairs"]})


def ada_vae_loss(
    modules: nn.ModuleDict, batch: Batch, hyper: Hyper, step: Any, context: Context, average: Average
) -> LossOutput:
    vae = cast(GaussianVAE, modules["vae"])
    images = batch["pairs"].flatten(0, 1)
    mean, log_variance = (values.unflatten(0, (-1, 2)) for values in vae.encode(images))
    one, other, same = share((mean[:, 0], log_variance[:, 0]), (mean[:, 1], log_variance[:, 1]), average)
    mean, log_variance = (torch.stack(both, dim=1).flatten(0, 1) for both in zip(one, other, strict=True))
    sample = mean + batch["noise"].flatten(0, 1) * torch.exp(0.5 * log_variance)
    outputs = VAEOutputs(mean, log_variance, sample, vae.decode(sample))
    fit = reconstruction_term(outputs.decoded, images, hyper, context.settings)
    loss, logs = beta_vae(outputs, fit, beta=hyper["beta"])
    return loss, {**logs, "shared": same.to(loss.dtype).sum(-1).mean()}, {}


ADA_GVAE = Family(
    title="Ada-GVAE",
    build=build_vae,
    optimizer_steps=(OptimizerStep("vae", ("vae",), partial(ada_vae_loss, average="arithmetic"), (PAIRS, NOISE)),),
    hyperparameters={
        **COMMON,
        "beta": Hyperparameter(1.0, "weight of the KL divergence", 0.0, 1e6),
        "pairs": whole(100_000, "pairs of images, with replacement", 1, 1e8),
        "changed": whole(0, "factors that may change; 0: drawn for each pair", 0, 1000),
        "rule": choice(
            "one-or-k",
            "one factor or all of these, each drawn anew; or exactly these, each to another level",
            "one-or-k",
            "exact",
        ),
    },
    encode=encode_vae,
    decode=decode_vae,
    source="Locatello et al. 2020",
    cites=("locatello2020weakly", "hosoya2019group"),
    formula=(
        r"\frac{1}{2} \sum_{i=1}^{2} \left( -\mathbb{E}_{\tilde{q}_i} \log p(x_i | z) + \beta \, "
        r"\mathrm{KL}\left( \tilde{q}_i \,\|\, p \right) \right), \qquad \tilde{q}_{ij} = \mathcal{N}\left( "
        r"\frac{\mu_{1j} + \mu_{2j}}{2}, \frac{\sigma_{1j}^2 + \sigma_{2j}^2}{2} \right) \text{ where latent } j "
        r"\text{ is shared}",
        "The two images of a pair differ in some factors. A latent counts as shared when the divergence of the "
        "two posteriors is below the middle between the smallest and the largest of all latents.",
    ),
    presets={"lsbd": ({**GLOROT, "latents": 4, "changed": 2},)},
    notes=(
        "batch_size counts images: 64 are 32 pairs. In disentanglement_lib it counts pairs, so its 64 are 128 here.",
        "The published training draws pairs without end; here a run has as many as `pairs` says, over and over.",
    ),
    supervision=Supervision("pairs", "a full grid of factors", ("pairs",), make_pairs),
)

ADA_ML_VAE = replace(
    ADA_GVAE,
    title="Ada-ML-VAE",
    cites=("locatello2020weakly", "bouchacourt2018multi"),
    formula=(
        r"\frac{1}{2} \sum_{i=1}^{2} \left( -\mathbb{E}_{\tilde{q}_i} \log p(x_i | z) + \beta \, "
        r"\mathrm{KL}\left( \tilde{q}_i \,\|\, p \right) \right), \qquad \tilde{\sigma}_j^2 = \frac{2 "
        r"\sigma_{1j}^2 \sigma_{2j}^2}{\sigma_{1j}^2 + \sigma_{2j}^2}, \quad \tilde{\mu}_j = "
        r"\frac{\tilde{\sigma}_j^2}{2} \left( \frac{\mu_{1j}}{\sigma_{1j}^2} + \frac{\mu_{2j}}{\sigma_{2j}^2} "
        r"\right)",
        "As `ada_gvae`, with the means of shared latents weighted by their precision.",
    ),
    optimizer_steps=(OptimizerStep("vae", ("vae",), partial(ada_vae_loss, average="harmonic"), (PAIRS, NOISE)),),
)
