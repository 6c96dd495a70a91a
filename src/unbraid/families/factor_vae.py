"""FactorVAE: a VAE and a discriminator that estimates its total correlation."""

from typing import Any, cast

from torch import nn

from unbraid.families.common import (
    COMMON,
    DISENTANGLEMENT_LIB,
    IMAGES,
    NOISE,
    build_vae,
    decode_vae,
    encode_vae,
    outputs_and_reconstruction,
)
from unbraid.families.discriminators import LatentDiscriminator
from unbraid.families.factor_vae_loss import discriminator_loss, factor_vae, permute_dimensions
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
from unbraid.families.gaussian_vae import GaussianVAE
from unbraid.families.networks import Shape


def build_factor_vae(shape: Shape, settings: Settings) -> nn.ModuleDict:
    """A GaussianVAE and a LatentDiscriminator under the name "discriminator"."""
    modules = build_vae(shape, settings)
    modules["discriminator"] = LatentDiscriminator(
        settings["latents"], settings["discriminator_width"], settings["discriminator_depth"]
    )
    return modules


def vae_loss(modules: nn.ModuleDict, batch: Batch, hyper: Hyper, step: Any, context: Context) -> LossOutput:
    outputs, reconstruction = outputs_and_reconstruction(modules, batch, hyper, context)
    loss, logs = factor_vae(outputs, reconstruction, modules["discriminator"](outputs.sample), gamma=hyper["gamma"])
    return loss, logs, {"sample": outputs.sample}


def of_discriminator(modules: nn.ModuleDict, batch: Batch, hyper: Hyper, step: Any, context: Context) -> LossOutput:
    """Told apart: samples of the VAE's move, and permuted samples of a second batch, encoded after it."""
    mean, log_variance = cast(GaussianVAE, modules["vae"]).encode(batch["second images"])
    sample = mean + batch["second noise"] * (0.5 * log_variance).exp()
    permuted = permute_dimensions(sample.detach(), batch["order"])
    discriminator = modules["discriminator"]
    loss, logs = discriminator_loss(discriminator(batch["sample"]), discriminator(permuted))
    return loss, {"accuracy": logs["accuracy"]}, {}


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
    presets={
        "udr": tuple({**DISENTANGLEMENT_LIB, "gamma": float(gamma)} for gamma in (10, 20, 30, 40, 50, 100)),
        "lsbd": ({**DISENTANGLEMENT_LIB, "latents": 4, "gamma": 1.0},),
    },
)
