"""FactorVAE: a VAE and a discriminator that estimates its total correlation."""

from typing import Any, cast

from torch import Tensor, nn

from unbraid.families.common import COMMON, GLOROT, IMAGES, NOISE, discriminator_loss
from unbraid.families.family import (
    Adam,
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
from unbraid.families.networks import Shape, promote
from unbraid.families.vae import (
    GaussianVAE,
    beta_vae,
    build_vae,
    decode_vae,
    encode_vae,
    outputs_and_reconstruction,
)


def density_ratio(logits: Tensor) -> Tensor:
    """log D / (1 - D) from the discriminator's two logits (n, 2), the first for samples of q(z): (n,).

    Its mean over samples of q(z) estimates the total correlation once D is optimal. Before that it may be negative.
    """
    return logits[:, 0] - logits[:, 1]


class LatentDiscriminator(nn.Module):
    """Six hidden layers of 1000 with leaky ReLU 0.2, two logits (UDR table 4b, Kim and Mnih 2018 appendix A).

    Args:
        n_latents: of the samples it is shown.
        width, depth: of the hidden layers.
    """

    def __init__(self, n_latents: int, width: int = 1000, depth: int = 6) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for before in (n_latents, *[width] * (depth - 1)):
            layers += [nn.Linear(before, width), nn.LeakyReLU(0.2)]
        self.layers = nn.Sequential(*layers, nn.Linear(width, 2))

    def forward(self, sample: Tensor) -> Tensor:
        """Samples (n, n_latents) -> logits (n, 2): of q(z), of the product of its marginals."""
        return promote(cast(Tensor, self.layers(sample)))


def build_factor_vae(shape: Shape, settings: Settings) -> nn.ModuleDict:
    """A GaussianVAE and a LatentDiscriminator under the name "discriminator"."""
    modules = build_vae(shape, settings)
    modules["discriminator"] = LatentDiscriminator(
        settings["latents"], settings["discriminator_width"], settings["discriminator_depth"]
    )
    return modules


def vae_loss(modules: nn.ModuleDict, batch: Batch, hyper: Hyper, step: Any, context: Context) -> LossOutput:
    """Negative ELBO plus the discriminator's estimate of the total correlation, weighted by gamma; nats per image.

    Reference:
        Kim and Mnih 2018, eq. 2 and algorithm 2.
    """
    outputs, reconstruction = outputs_and_reconstruction(modules, batch, hyper, context)
    logits = modules["discriminator"](outputs.sample)
    loss, logs = beta_vae(outputs, reconstruction)
    correlation = density_ratio(logits).mean()
    return loss + hyper["gamma"] * correlation, {**logs, "total_correlation": correlation}, {"sample": outputs.sample}


def of_discriminator(modules: nn.ModuleDict, batch: Batch, hyper: Hyper, step: Any, context: Context) -> LossOutput:
    """Samples of the VAE's step against permuted samples of a second batch, encoded after that step."""
    mean, log_variance = cast(GaussianVAE, modules["vae"]).encode(batch["second images"])
    sample = mean + batch["second noise"] * (0.5 * log_variance).exp()
    permuted = sample.detach().gather(0, batch["order"])  # each latent in an order of its own
    discriminator = modules["discriminator"]
    ratios = density_ratio(discriminator(batch["sample"])), density_ratio(discriminator(permuted))
    loss, accuracy = discriminator_loss(*ratios)
    return loss, {"accuracy": accuracy}, {}


FACTOR_VAE = Family(
    title="FactorVAE",
    build=build_factor_vae,
    optimizer_steps=(
        OptimizerStep("vae", ("vae",), vae_loss, (IMAGES, NOISE)),
        OptimizerStep(
            "discriminator",
            ("discriminator",),
            of_discriminator,
            (
                Draw("second images", "images"),
                Draw("second noise", "normal", ("latents",)),
                Draw("order", "permutation", ("latents",)),
            ),
            Adam("discriminator_learning_rate", 0.5, 0.9),
        ),
    ),
    hyperparameters={
        **COMMON,
        "gamma": Hyperparameter(10.0, "weight of the total correlation", 0.0, 1e6),
        "discriminator_learning_rate": Hyperparameter(1e-4, "of the discriminator's Adam", 0.0, 1.0),
        "discriminator_width": whole(1000, "units of the discriminator's hidden layers", 1, 1e5),
        "discriminator_depth": whole(6, "hidden layers of the discriminator", 1, 100),
    },
    encode=encode_vae,
    decode=decode_vae,
    source="Kim and Mnih 2018, algorithm 2",
    cites=("kim2018disentangling",),
    formula=(
        r"-\mathbb{E}_{q(z|x)} \log p(x|z) + \sum_j \mathrm{KL}_j + \gamma \, \mathbb{E}_{q(z)} \log "
        r"\frac{D(z)}{1 - D(z)}",
        "The discriminator $D$ is trained to tell samples of $q(z)$ from samples whose dimensions are permuted, "
        "each on its own, over the batch.",
    ),
    presets={
        "udr": tuple({**GLOROT, "gamma": float(gamma)} for gamma in (10, 20, 30, 40, 50, 100)),
        "lsbd": ({**GLOROT, "latents": 4, "gamma": 1.0},),
    },
)
