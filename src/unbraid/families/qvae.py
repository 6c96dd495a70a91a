"""QVAE: a VAE each of whose latents takes one of a few values, which all latents share."""

import math
from typing import Any

import torch
from torch import nn

from unbraid.families.codebook import Codebook, codebook_of, draw_values, encode_quantized, quantized_parts
from unbraid.families.common import COMMON, IMAGES, decode_plain, reconstruction_term
from unbraid.families.family import (
    Batch,
    Context,
    Draw,
    Family,
    Hyper,
    Hyperparameter,
    LossOutput,
    OptimizerStep,
    Settings,
    whole,
)
from unbraid.families.networks import Shape, network_pair, promote


def build_qvae(shape: Shape, settings: Settings) -> nn.ModuleDict:
    """An encoder, a decoder and one codebook for all latents, standard normal at first."""
    latents = settings["latents"]
    encoder, decoder = network_pair(settings["network"], shape, latents, latents)
    codebook = Codebook(torch.randn(1, settings["values"]))
    return nn.ModuleDict({"encoder": encoder, "decoder": decoder, "codebook": codebook})


def qvae_loss(modules: nn.ModuleDict, batch: Batch, hyper: Hyper, step: Any, context: Context) -> LossOutput:
    """Negative ELBO, nats per image, with the KL from values that are all equally likely weighted by beta.

    Reference:
        Baykal et al. 2024, the QVAE: their FactorQVAE without its total correlation. The authors' code takes means over
        pixels and over latents; here both are sums.
    """
    images, codebook = batch["images"], codebook_of(modules)
    log_shares = codebook.log_shares(promote(modules["encoder"](images)))
    decoded = promote(modules["decoder"](codebook.relaxed(log_shares, batch["noise"], hyper["temperature"])))
    fit = reconstruction_term(decoded, images, hyper, context.settings).mean()
    from_uniform = (log_shares.exp() * log_shares).sum(-1) + math.log(log_shares.shape[-1])
    kl = from_uniform.sum(-1).mean()
    return fit + hyper["beta"] * kl, {"reconstruction": fit, "kl": kl}, {}


# The authors' code weighs the mean over latents of the KL against the mean over pixels of squared errors, by .001 for
# Shapes3D and .00005 for MPI3D. Times the 12 288 numbers of an image, over 12 and 14 latents, that is beta here, where
# a Gaussian of variance 1/2 makes the reconstruction the sum of squared errors.
SQUARES = {"likelihood": "gaussian", "sigma": 0.5**0.5}

QVAE = Family(
    title="QVAE, quantized VAE",
    build=build_qvae,
    optimizer_steps=(
        OptimizerStep(
            "vae",
            ("encoder", "decoder", "codebook"),
            qvae_loss,
            (IMAGES, Draw("noise", "uniform", ("latents", "values"))),
        ),
    ),
    hyperparameters={
        **COMMON,
        "learning_rate": Hyperparameter(1e-3, "of Adam", 0.0, 1.0),
        "beta": Hyperparameter(1.0, "weight of the KL divergence", 0.0, 1e6),
        "values": whole(64, "values that latents can take, the same for all", 2, 10_000),
        "temperature": Hyperparameter(1.0, "of the Gumbel-softmax that draws values in training", 1e-3, 1e3),
    },
    encode=encode_quantized,
    decode=decode_plain,
    draw_prior=draw_values,
    source="Baykal et al. 2024",
    cites=("baykal2024disentanglement", "hsu2023disentanglement"),
    formula=(
        r"-\mathbb{E}_{q(z|x)} \log p(x|z) + \beta \sum_j \mathrm{KL}\left( q(z_j|x) \,\|\, \mathrm{uniform} "
        r"\right), \qquad q(z_j = v|x) \propto \exp\left( -(e_j(x) - v)^2 \right)",
        "$v$ is one of the learned values, which all latents share, and $e$ the encoder. Values are drawn by a "
        "Gumbel-softmax.",
    ),
    parts=quantized_parts,
    presets={
        "shapes3d": ({**SQUARES, "latents": 12, "beta": 1e-3 * 64 * 64 * 3 / 12},),
        "mpi3d": ({**SQUARES, "latents": 14, "beta": 5e-5 * 64 * 64 * 3 / 14},),
    },
    notes=(
        "Hsu et al. 2023, who brought in QLAE, have no QVAE. This is the QVAE of Baykal et al. 2024: their FactorQVAE "
        "without its total correlation. One codebook serves all latents, and in training values are drawn by a "
        "Gumbel-softmax of minus the squared distances.",
        "Codes are the quantized latents: of each image the values nearest to the encoder's outputs.",
        "The authors' learning rate falls along a cosine for 50 000 steps and rises again for as many; here it is "
        "constant unless `schedule` says otherwise.",
    ),
)
