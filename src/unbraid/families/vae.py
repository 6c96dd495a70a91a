"""The VAE and beta-VAE, and what the families around them build on."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from unbraid.families.common import COMMON, GLOROT, IMAGES, NOISE, reconstruction_term
from unbraid.families.divergences import gaussian_kl
from unbraid.families.family import (
    Batch,
    Context,
    Family,
    Hyper,
    Hyperparameter,
    LossOutput,
    OptimizerStep,
    Settings,
    Value,
)
from unbraid.families.likelihoods import decoded_images
from unbraid.families.networks import Shape, network_pair, promote


class VAEOutputs(NamedTuple):
    """Posterior, sample and decoded images of one batch, in single precision or better."""

    mean: Tensor  # (n, n_latents), of the posterior
    log_variance: Tensor  # (n, n_latents)
    sample: Tensor  # (n, n_latents), drawn from the posterior with the noise given
    decoded: Tensor  # of the shape of the images, unbounded: logits (Bernoulli) or means (Gaussian)


class GaussianVAE(nn.Module):
    """Diagonal Gaussian encoder with any decoder.

    Args:
        encoder: images -> (n, 2 n_latents): means, then log-variances.
        decoder: (n, n_latents) -> the shape of the images.
    """

    def __init__(self, encoder: nn.Module, decoder: nn.Module) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def encode(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Posterior means and log-variances, (n, n_latents) each."""
        mean, log_variance = promote(self.encoder(images)).chunk(2, dim=-1)
        return mean, log_variance

    def decode(self, codes: Tensor) -> Tensor:
        """Outputs of the decoder, unbounded; of the shape of the images."""
        return promote(self.decoder(codes))

    def forward(self, images: Tensor, noise: Tensor) -> VAEOutputs:
        """Noise (n, n_latents), standard normal, is an argument: a step can be replayed, and stacked by vmap."""
        mean, log_variance = self.encode(images)
        sample = mean + noise * torch.exp(0.5 * log_variance)
        return VAEOutputs(mean, log_variance, sample, self.decode(sample))


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


def build_vae(shape: Shape, settings: Settings) -> nn.ModuleDict:
    """A GaussianVAE under the name "vae"."""
    latents = settings["latents"]
    encoder, decoder = network_pair(settings["network"], shape, 2 * latents, latents)
    return nn.ModuleDict({"vae": GaussianVAE(encoder, decoder)})


def encode_vae(modules: nn.ModuleDict, images: Tensor, settings: Settings) -> tuple[Tensor, Tensor]:
    """Posterior means and log-variances."""
    return cast(GaussianVAE, modules["vae"]).encode(images)


def decode_vae(modules: nn.ModuleDict, codes: Tensor, settings: Settings) -> Tensor:
    """The mean image."""
    return decoded_images(cast(GaussianVAE, modules["vae"]).decode(codes), settings["likelihood"])


def outputs_and_reconstruction(
    modules: nn.ModuleDict, batch: Batch, hyper: Hyper, context: Context
) -> tuple[VAEOutputs, Tensor]:
    """The VAE's outputs on "images" with "noise", and the reconstruction term per image (n,)."""
    outputs = modules["vae"](batch["images"], batch["noise"])
    return outputs, reconstruction_term(outputs.decoded, batch["images"], hyper, context.settings)


def vae_family(
    title: str,
    loss: Callable[[nn.ModuleDict, Batch, Hyper, Any, Context], LossOutput],
    hyperparameters: Mapping[str, Hyperparameter],
    source: str,
    presets: Mapping[str, tuple[Mapping[str, Value], ...]] | None = None,
    cites: tuple[str, ...] = (),
    formula: tuple[str, str] = ("", ""),
) -> Family:
    """A family of Gaussian VAEs that one loss trains, with hyperparameters beside the common ones."""
    return Family(
        title=title,
        build=build_vae,
        optimizer_steps=(OptimizerStep("vae", ("vae",), loss, (IMAGES, NOISE)),),
        hyperparameters={**COMMON, **hyperparameters},
        encode=encode_vae,
        decode=decode_vae,
        source=source,
        cites=cites,
        formula=formula,
        presets=presets or {},
    )


def vae_loss(modules: nn.ModuleDict, batch: Batch, hyper: Hyper, step: Any, context: Context) -> LossOutput:
    outputs, reconstruction = outputs_and_reconstruction(modules, batch, hyper, context)
    return *beta_vae(outputs, reconstruction, beta=hyper.get("beta", 1.0)), {}


# The code of DCI 2018 (models/bvae/model.py) sums squared errors of pixels from -1 to 1, and does not halve them: with
# pixels from 0 to 1 that is a Gaussian of variance 1/8.
DCI: Mapping[str, Any] = MappingProxyType({"network": "resnet", "likelihood": "gaussian", "sigma": 8**-0.5})

VAE = vae_family(
    "Variational autoencoder",
    vae_loss,
    {},
    source="Kingma and Welling 2014",
    cites=("kingma2014auto",),
    formula=(
        r"-\mathbb{E}_{q(z|x)} \log p(x|z) + \sum_j \mathrm{KL}_j",
        "",
    ),
    presets={"dci": (DCI,), "lsbd": ({**GLOROT, "latents": 4},)},
)

BETA_VAE = vae_family(
    "beta-VAE",
    vae_loss,
    {"beta": Hyperparameter(4.0, "weight of the KL divergence", 0.0, 1e6)},
    source="Higgins et al. 2017, eq. 4",
    cites=("higgins2017beta",),
    formula=(
        r"-\mathbb{E}_{q(z|x)} \log p(x|z) + \beta \sum_j \mathrm{KL}_j",
        r"$\beta > 1$ presses on the capacity of all latents alike.",
    ),
    presets={
        "udr": tuple({**GLOROT, "beta": float(beta)} for beta in (1, 2, 4, 6, 8, 16)),
        "dci": ({**DCI, "beta": 6.0},),
        "lsbd": ({**GLOROT, "latents": 4, "beta": 5.0},),
    },
)
