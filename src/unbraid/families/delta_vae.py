"""Delta-VAE: latents on circles, without supervision; and what LSBD-VAE shares with it."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, cast

import torch
from torch import Tensor, nn

from unbraid.data import Space
from unbraid.families.common import COMMON, in_half_precision, reconstruction_term
from unbraid.families.delta_vae_loss import delta_vae
from unbraid.families.delta_vae_networks import CirclePosterior, DeltaVAE, random_walk
from unbraid.families.family import (
    Batch,
    Context,
    Draw,
    Family,
    Hyper,
    Hyperparameter,
    LossOutput,
    OptimizerStep,
    Part,
    Settings,
    choice,
    whole,
)
from unbraid.families.likelihoods import decoded_images
from unbraid.families.networks import Shape, network_pair

IDENTITIES = 5  # lines for what does not turn, as in LSBD section 6

CIRCULAR: Mapping[str, Hyperparameter] = MappingProxyType(
    {name: each for name, each in COMMON.items() if name != "latents"}
    | {
        "learning_rate": Hyperparameter(1e-3, "of Adam", 0.0, 1.0),
        "circles": whole(0, "latents on circles; 0: one per cyclic factor", 0, 100),
        "euclidean": whole(-1, f"Gaussian latents; -1: {IDENTITIES} where a factor is not cyclic, else none", -1, 1000),
        "log_t_low": Hyperparameter(-10.0, "least logarithm of the time t that a circle's posterior spreads", -50, 0),
        "log_t_high": Hyperparameter(-9.0, "largest", -50, 0),
        "log_t_base": choice(
            "e", "of these logarithms: the authors' code takes e, the paper's table prints powers of ten", "e", "ten"
        ),
        "walk_steps": whole(10, "steps of the random walk", 1, 1000),
    }
)


def latent_facts(space: Space, settings: Settings) -> dict[str, Any]:
    """How many circles and lines, where the settings leave it to the factors."""
    cyclic = [name for name, kind in zip(space.names, space.kinds, strict=True) if kind == "cyclic"]
    circles, euclidean = settings["circles"] or len(cyclic), settings["euclidean"]
    if euclidean < 0:
        euclidean = IDENTITIES if len(cyclic) < len(space.names) else 0
    if circles == 0:
        found = (
            f"none of its factors {', '.join(space.names)} is cyclic" if space.names else "its images have no factors"
        )
        raise ValueError(f"{found}; say how many circles=... to learn")
    return {"circles": circles, "euclidean": euclidean}


def build_delta_vae(shape: Shape, settings: Settings) -> nn.ModuleDict:
    """A DeltaVAE under the name "vae"."""
    circles, euclidean = settings["circles"], settings["euclidean"]
    pair = network_pair(settings["network"], shape, 3 * circles + 2 * euclidean, 2 * circles + euclidean)
    return nn.ModuleDict({"vae": DeltaVAE(*pair, circles, euclidean)})


def bounds(hyper: Hyper, context: Context) -> tuple[Any, Any]:
    """Of the natural logarithm of t."""
    unit = 1.0 if context.settings["log_t_base"] == "e" else math.log(10)
    return unit * hyper["log_t_low"], unit * hyper["log_t_high"]


def encode_delta_vae(modules: nn.ModuleDict, images: Tensor, settings: Settings) -> tuple[Tensor, None]:
    """Locations on the circles, cosine and sine of each, then means of the Gaussian latents."""
    posterior = cast(DeltaVAE, modules["vae"]).encode(images, 0.0, 0.0)
    return torch.cat([posterior.location.flatten(-2), posterior.mean], dim=-1), None


def decode_delta_vae(modules: nn.ModuleDict, codes: Tensor, settings: Settings) -> Tensor:
    """The mean image."""
    vae = cast(DeltaVAE, modules["vae"])
    circles = settings["circles"]
    points, values = codes.split((2 * circles, settings["euclidean"]), dim=-1)
    return decoded_images(vae.decode(points.unflatten(-1, (circles, 2)), values), settings["likelihood"])


def circle_parts(settings: Settings) -> tuple[Part, ...]:
    """A circle per subgroup, named by its factor where it has one; then the Gaussian latents."""
    names = settings.get("turning") or [f"circle {number}" for number in range(settings["circles"])]
    circles = tuple(Part(name, "circle", 2) for name in names)
    lines = settings["euclidean"]
    return (*circles, Part("euclidean", "gaussian", lines)) if lines else circles


def sample(posterior: CirclePosterior, walk: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Points (n, circles, 2) and values (n, euclidean) with the noise (n, steps, circles, 2) and (n, euclidean)."""
    points = random_walk(posterior.location, posterior.log_time, walk.movedim(1, 0))
    return points, posterior.mean + noise * torch.exp(0.5 * posterior.log_variance)


def delta_vae_loss(modules: nn.ModuleDict, batch: Batch, hyper: Hyper, step: Any, context: Context) -> LossOutput:
    vae = cast(DeltaVAE, modules["vae"])
    posterior = vae.encode(batch["images"], *bounds(hyper, context))
    decoded = vae.decode(*sample(posterior, batch["walk"], batch["noise"]))
    fit = reconstruction_term(decoded, batch["images"], hyper, context.settings)
    return *delta_vae(posterior, fit), {}


WALK = ("walk_steps", "circles", 2)

DELTA_VAE = Family(
    title="Delta-VAE, latents on circles",
    build=build_delta_vae,
    optimizer_steps=(
        OptimizerStep(
            "vae",
            ("vae",),
            delta_vae_loss,
            (Draw("images", "images"), Draw("walk", "normal", WALK), Draw("noise", "normal", ("euclidean",))),
        ),
    ),
    hyperparameters=CIRCULAR,
    encode=encode_delta_vae,
    decode=decode_delta_vae,
    source="Perez Rey et al. 2020",
    diverges_when_stacked=in_half_precision,
    facts=latent_facts,
    parts=circle_parts,
    presets={
        "lsbd": ({"circles": 2, "euclidean": 0},),
        "lsbd_objects": ({"circles": 1, "euclidean": IDENTITIES, "log_t_high": -5.0},),
    },
    notes=("Codes are the locations, two per circle, then the means; there are no log-variances.",),
)
