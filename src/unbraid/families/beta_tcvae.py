"""Beta-TCVAE, with a standard normal or a learned prior."""

from typing import Any, cast

from torch import Tensor, nn

from unbraid.families.beta_tcvae_loss import beta_tcvae
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
from unbraid.families.family import (
    Batch,
    Context,
    Family,
    Hyper,
    Hyperparameter,
    LogDensity,
    LossOutput,
    OptimizerStep,
    Settings,
    choice,
)
from unbraid.families.flows import FactorialFlow
from unbraid.families.networks import Shape


def build_beta_tcvae(shape: Shape, settings: Settings) -> nn.ModuleDict:
    """A GaussianVAE and, if the prior is learned, a FactorialFlow under the name "prior"."""
    modules = build_vae(shape, settings)
    if settings["prior"] == "factorial_flow":
        modules["prior"] = FactorialFlow(settings["latents"])
    return modules


def beta_tcvae_loss(modules: nn.ModuleDict, batch: Batch, hyper: Hyper, step: Any, context: Context) -> LossOutput:
    outputs, reconstruction = outputs_and_reconstruction(modules, batch, hyper, context)
    return *beta_tcvae(
        outputs,
        reconstruction,
        n_train=context.n_images,
        beta=hyper["beta"],
        alpha=hyper["alpha"],
        gamma=hyper["gamma"],
        estimator=context.settings["estimator"],
        log_prior=modules["prior"](outputs.sample) if "prior" in modules else None,
    ), {}


def log_prior(modules: nn.ModuleDict, settings: Settings) -> LogDensity | None:
    """By the flow, where there is one."""
    return modules["prior"] if settings["prior"] == "factorial_flow" else None


def draw_prior(modules: nn.ModuleDict, settings: Settings, normal: Tensor, uniform: Tensor) -> Tensor:
    """Of the flow, where there is one."""
    return cast(FactorialFlow, modules["prior"]).from_base(normal) if settings["prior"] == "factorial_flow" else normal


def _strays(precision: str, settings: Settings) -> bool:
    return precision != "float32" or settings["prior"] == "factorial_flow"


BETA_TCVAE = Family(
    title="beta-TCVAE",
    build=build_beta_tcvae,
    optimizer_steps=(OptimizerStep("vae", ("vae", "prior"), beta_tcvae_loss, (IMAGES, NOISE)),),
    hyperparameters={
        **COMMON,
        "beta": Hyperparameter(6.0, "weight of the total correlation", 0.0, 1e6),
        "alpha": Hyperparameter(1.0, "weight of the information between images and latents", 0.0, 1e6),
        "gamma": Hyperparameter(1.0, "weight of the dimension-wise KL", 0.0, 1e6),
        "estimator": choice("weighted", "of log q(z) from a batch", "weighted", "stratified"),
        "prior": choice(
            "normal", "standard normal, or one learned normalizing flow per latent", "normal", "factorial_flow"
        ),
    },
    encode=encode_vae,
    decode=decode_vae,
    log_prior=log_prior,
    draw_prior=draw_prior,
    source="Chen et al. 2018, eq. 2",
    diverges_when_stacked=_strays,
    presets={"udr": tuple({**DISENTANGLEMENT_LIB, "beta": float(beta)} for beta in (1, 2, 4, 6, 8, 10))},
    notes=(
        "Curves of the three parts are the estimator's: compare them between runs of equal batch and data sizes only.",
    ),
)
