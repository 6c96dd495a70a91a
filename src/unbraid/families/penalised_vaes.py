"""Families that train one VAE with another penalty: CCI-VAE, beta-TCVAE, DIP-VAE I and II."""

from types import MappingProxyType
from typing import Any

from torch import Tensor, nn

from unbraid.families.base import Batch, Context, Family, Hyper, Hyperparameter, Logs, Player, Settings
from unbraid.families.vae import COMMON, IMAGES, NOISE, build_vae, decode_vae, encode_vae, outputs_and_reconstruction
from unbraid.models.flows import FactorialFlow
from unbraid.models.networks import Shape
from unbraid.objectives.beta_tcvae import beta_tcvae
from unbraid.objectives.cci_vae import cci_vae
from unbraid.objectives.dip_vae import dip_vae_i, dip_vae_ii


def cci_vae_loss(
    modules: nn.ModuleDict, batch: Batch, hyper: Hyper, step: Any, context: Context
) -> tuple[Tensor, Logs, Logs]:
    outputs, reconstruction = outputs_and_reconstruction(modules, batch, hyper, context)
    loss, logs = cci_vae(
        outputs,
        reconstruction,
        step=step,
        gamma=hyper["gamma"],
        c_max=hyper["c_max"],
        capacity_steps=hyper["capacity_steps"],
    )
    return loss, logs, {}


CCI_VAE = Family(
    title="CCI-VAE, capacity raised step by step",
    build=build_vae,
    players=(Player("vae", ("vae",), cci_vae_loss, (IMAGES, NOISE)),),
    hyperparameters=MappingProxyType(
        {
            **COMMON,
            "gamma": Hyperparameter(1000.0, "weight of the KL's distance from the capacity", 0.0, 1e9),
            "c_max": Hyperparameter(25.0, "capacity at the end, nats", 0.0, 1e6),
            "capacity_steps": Hyperparameter(100_000, "steps until the capacity is reached", 1, 1e12, kind="int"),
        }
    ),
    encode=encode_vae,
    decode=decode_vae,
    source="Burgess et al. 2018, eq. 8",
    presets=MappingProxyType(
        {
            "udr": tuple({"c_max": float(c_max)} for c_max in (5, 10, 25, 50, 75, 100)),
            "lsbd": ({"c_max": 15.0, "capacity_steps": 3500},),
        }
    ),
)


def build_beta_tcvae(shape: Shape, settings: Settings) -> nn.ModuleDict:
    """A GaussianVAE and, if the prior is learned, a FactorialFlow under the name "prior"."""
    modules = build_vae(shape, settings)
    if settings["prior"] == "factorial_flow":
        modules["prior"] = FactorialFlow(settings["latents"])
    return modules


def beta_tcvae_loss(
    modules: nn.ModuleDict,
    batch: Batch,
    hyper: Hyper,
    step: Any,  # noqa: ARG001
    context: Context,
) -> tuple[Tensor, Logs, Logs]:
    outputs, reconstruction = outputs_and_reconstruction(modules, batch, hyper, context)
    loss, logs = beta_tcvae(
        outputs,
        reconstruction,
        n_train=context.n_images,
        beta=hyper["beta"],
        alpha=hyper["alpha"],
        gamma=hyper["gamma"],
        estimator=context.settings["estimator"],
        log_prior=modules["prior"](outputs.sample) if "prior" in modules else None,
    )
    return loss, logs, {}


BETA_TCVAE = Family(
    title="beta-TCVAE",
    build=build_beta_tcvae,
    players=(Player("vae", ("vae", "prior"), beta_tcvae_loss, (IMAGES, NOISE)),),
    hyperparameters=MappingProxyType(
        {
            **COMMON,
            "beta": Hyperparameter(6.0, "weight of the total correlation", 0.0, 1e6),
            "alpha": Hyperparameter(1.0, "weight of the information between images and latents", 0.0, 1e6),
            "gamma": Hyperparameter(1.0, "weight of the dimension-wise KL", 0.0, 1e6),
            "estimator": Hyperparameter(
                "weighted", "of log q(z) from a batch", kind="choice", choices=("weighted", "stratified")
            ),
            "prior": Hyperparameter(
                "normal",
                "standard normal, or one learned normalizing flow per latent",
                kind="choice",
                choices=("normal", "factorial_flow"),
            ),
        }
    ),
    encode=encode_vae,
    decode=decode_vae,
    source="Chen et al. 2018, eq. 2",
    presets=MappingProxyType({"udr": tuple({"beta": float(beta)} for beta in (1, 2, 4, 6, 8, 10))}),
    notes=(
        "Curves of the three parts are the estimator's: compare them between runs of equal batch and data sizes only.",
    ),
)


def dip_vae_i_loss(
    modules: nn.ModuleDict,
    batch: Batch,
    hyper: Hyper,
    step: Any,  # noqa: ARG001
    context: Context,
) -> tuple[Tensor, Logs, Logs]:
    given = outputs_and_reconstruction(modules, batch, hyper, context)
    return *dip_vae_i(*given, lambda_od=hyper["lambda_od"], lambda_d=hyper["lambda_d"]), {}


def dip_vae_ii_loss(
    modules: nn.ModuleDict,
    batch: Batch,
    hyper: Hyper,
    step: Any,  # noqa: ARG001
    context: Context,
) -> tuple[Tensor, Logs, Logs]:
    given = outputs_and_reconstruction(modules, batch, hyper, context)
    return *dip_vae_ii(*given, lambda_od=hyper["lambda_od"], lambda_d=hyper["lambda_d"]), {}


UDR_LAMBDAS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0)

DIP_VAE_I = Family(
    title="DIP-VAE I, covariance of posterior means",
    build=build_vae,
    players=(Player("vae", ("vae",), dip_vae_i_loss, (IMAGES, NOISE)),),
    hyperparameters=MappingProxyType(
        {
            **COMMON,
            "lambda_od": Hyperparameter(10.0, "weight of covariances between latents", 0.0, 1e6),
            "lambda_d": Hyperparameter(100.0, "weight of the distances of variances from 1", 0.0, 1e6),
        }
    ),
    encode=encode_vae,
    decode=decode_vae,
    source="Kumar et al. 2018, eq. 6",
    presets=MappingProxyType({"udr": tuple({"lambda_od": od, "lambda_d": 10 * od} for od in UDR_LAMBDAS)}),
)

DIP_VAE_II = Family(
    title="DIP-VAE II, covariance of the aggregate posterior",
    build=build_vae,
    players=(Player("vae", ("vae",), dip_vae_ii_loss, (IMAGES, NOISE)),),
    hyperparameters=MappingProxyType(
        {
            **COMMON,
            "lambda_od": Hyperparameter(10.0, "weight of covariances between latents", 0.0, 1e6),
            "lambda_d": Hyperparameter(10.0, "weight of the distances of variances from 1", 0.0, 1e6),
        }
    ),
    encode=encode_vae,
    decode=decode_vae,
    source="Kumar et al. 2018, eq. 7",
    presets=MappingProxyType({"udr": tuple({"lambda_od": od, "lambda_d": od} for od in UDR_LAMBDAS)}),
)
