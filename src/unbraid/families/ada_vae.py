"""Ada-GVAE and Ada-ML-VAE: trained on pairs of images that share some factors."""

from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from torch import nn

from unbraid.data import Space, weak_pairs
from unbraid.families.ada_vae_loss import Average, share
from unbraid.families.beta_vae_loss import beta_vae
from unbraid.families.common import (
    COMMON,
    DISENTANGLEMENT_LIB,
    build_vae,
    decode_vae,
    encode_vae,
    reconstruction_term,
)
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
from unbraid.families.gaussian_vae import GaussianVAE, VAEOutputs
from unbraid.families.supervision import by_hyperparameters, grid_of

PAIRS = Draw("pairs", "given")
NOISE = Draw("noise", "normal", ("latents",), of="pairs")


def make_pairs(space: Space, settings: Settings, seed: int) -> Supply:
    """Pairs that share factors, though not which."""
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
    mean, log_variance = (each.unflatten(0, (-1, 2)) for each in vae.encode(images))
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
    presets={"lsbd": ({**DISENTANGLEMENT_LIB, "latents": 4, "changed": 2},)},
    notes=(
        "batch_size counts images: 64 are 32 pairs. In disentanglement_lib it counts pairs, so its 64 are 128 here.",
        "The published training draws pairs without end; here a run has as many as `pairs` says, over and over.",
    ),
    supervision=Supervision("pairs", "a full grid of factors", ("pairs",), make_pairs),
)

ADA_ML_VAE = replace(
    ADA_GVAE,
    title="Ada-ML-VAE",
    optimizer_steps=(OptimizerStep("vae", ("vae",), partial(ada_vae_loss, average="harmonic"), (PAIRS, NOISE)),),
)
