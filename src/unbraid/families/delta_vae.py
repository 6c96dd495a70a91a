"""Delta-VAE: latents on circles, without supervision; and what LSBD-VAE shares with it."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from unbraid.data import Space
from unbraid.families.common import COMMON, GLOROT, in_half_precision, reconstruction_term
from unbraid.families.divergences import gaussian_kl
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
from unbraid.families.networks import Shape, network_pair, promote

SMALLEST = 1e-4  # length under which a vector has no direction that could be trusted


class CirclePosterior(NamedTuple):
    """The posterior of n images, in single precision or better."""

    location: Tensor  # (n, n_circles, 2), of length 1
    log_time: Tensor  # (n, n_circles), natural logarithm of the time t that a random walk has spread for
    mean: Tensor  # (n, n_euclidean)
    log_variance: Tensor  # (n, n_euclidean)


class DeltaVAE(nn.Module):
    """Latents on n_circles circles and n_euclidean lines, with any encoder and decoder.

    Args:
        encoder: images -> (n, 3 n_circles + 2 n_euclidean): for each circle a vector of two numbers, whose direction
            is the location; one number per circle for the time; means; log-variances.
        decoder: (n, 2 n_circles + n_euclidean) -> the shape of the images.
        n_circles, n_euclidean: of the latents.

    Reference:
        Perez Rey et al. 2020, "Diffusion Variational Autoencoders"; Tonnaer et al. 2022 (LSBD), section 5. The time's
        number goes through a hyperbolic tangent into an interval, as in the authors' code.
    """

    def __init__(self, encoder: nn.Module, decoder: nn.Module, n_circles: int, n_euclidean: int) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder
        self.n_circles, self.n_euclidean = n_circles, n_euclidean

    def encode(self, images: Tensor, low: Tensor | float, high: Tensor | float) -> CirclePosterior:
        """The posterior of images; `log_time` lies between `low` and `high`."""
        sizes = (2 * self.n_circles, self.n_circles, self.n_euclidean, self.n_euclidean)
        vector, number, mean, log_variance = promote(self.encoder(images)).split(sizes, dim=-1)
        location = to_circle(vector.unflatten(-1, (self.n_circles, 2)))
        log_time = low + (high - low) * (1 + torch.tanh(number)) / 2
        return CirclePosterior(location, log_time, mean, log_variance)

    def decode(self, points: Tensor, values: Tensor) -> Tensor:
        """Points (n, n_circles, 2) and values (n, n_euclidean) to the shape of the images, unbounded."""
        return promote(self.decoder(torch.cat([points.flatten(-2), values], dim=-1)))


def to_circle(vectors: Tensor) -> Tensor:
    """Vectors (..., 2) divided by their length; shorter than 1 only where there is next to no direction."""
    return functional.normalize(vectors, dim=-1, eps=SMALLEST)


def random_walk(location: Tensor, log_time: Tensor, noise: Tensor) -> Tensor:
    """A sample of the posterior: steps off the circle, each followed by the way back.

    z_0 = location and z_{s+1} = to_circle(z_s + sqrt(t / S) noise_s): a Brownian motion for the time t, about, so
    that the variance of the angle is t while t is small.

    Args:
        location: (..., 2) on the circle.
        log_time: (...), of t.
        noise: (S, ..., 2) standard normal.
    """
    length = torch.exp(0.5 * log_time)[..., None] / math.sqrt(len(noise))
    point = location
    for turn in noise:
        point = to_circle(point + length * turn)
    return point


def circle_kl(log_time: Tensor) -> Tensor:
    """KL of Brownian motion on the circle after the time t from the uniform distribution; nats, as `log_time`.

    -log(t) / 2 + log(2 pi) / 2 - 1/2: the entropy of a normal angle of variance t, against log(2 pi). The exact
    distribution is a wrapped normal, whose KL this equals to 1e-9 for t <= 0.1; at t = 1 it is .005 too low.

    Reference:
        Perez Rey et al. 2020, the expansion for small t with d = 1, volume 2 pi and no curvature.
    """
    return 0.5 * (math.log(2 * math.pi) - 1 - log_time)


def delta_vae(posterior: CirclePosterior, reconstruction: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    """Negative ELBO, nats per image.

    Args:
        posterior: of DeltaVAE.
        reconstruction: (n,) negative log-likelihoods of the images.

    Returns:
        The mean of reconstruction + KL, and by name "reconstruction", "kl", "kl_circles" and "kl_euclidean".

    Reference:
        Perez Rey et al. 2020; Tonnaer et al. 2022 (LSBD), section 5.
    """
    fit = reconstruction.mean()
    circles = circle_kl(posterior.log_time).sum(-1).mean()
    euclidean = gaussian_kl(posterior.mean, posterior.log_variance).sum(-1).mean()
    kl = circles + euclidean
    return fit + kl, {"reconstruction": fit, "kl": kl, "kl_circles": circles, "kl_euclidean": euclidean}


IDENTITIES = 5  # lines for what does not turn, as in LSBD section 6

CIRCULAR: Mapping[str, Hyperparameter] = MappingProxyType(
    {name: row for name, row in COMMON.items() if name != "latents"}
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
        reason = (
            f"none of its factors {', '.join(space.names)} is cyclic" if space.names else "its images have no factors"
        )
        raise ValueError(f"{reason}; say how many circles=... to learn")
    return {"circles": circles, "euclidean": euclidean}


def build_delta_vae(shape: Shape, settings: Settings) -> nn.ModuleDict:
    """A DeltaVAE under the name "vae"."""
    circles, euclidean = settings["circles"], settings["euclidean"]
    pair = network_pair(settings["network"], shape, 3 * circles + 2 * euclidean, 2 * circles + euclidean)
    return nn.ModuleDict({"vae": DeltaVAE(*pair, circles, euclidean)})


def bounds(hyper: Hyper, context: Context) -> tuple[Any, Any]:
    """Bounds of the natural logarithm of t."""
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
    cites=("perezrey2020diffusion", "tonnaer2022quantifying"),
    formula=(
        r"-\mathbb{E}_{q(z|x)} \log p(x|z) + \sum_s \left( -\frac{1}{2} \log t_s + \frac{1}{2} \log 2\pi - "
        r"\frac{1}{2} \right)",
        "Latents live on circles: the posterior on circle $s$ is a random walk of duration $t_s$ from the "
        "encoder's location, and the term is its divergence from the uniform distribution, for small $t_s$.",
    ),
    diverges_when_stacked=in_half_precision,
    facts=latent_facts,
    parts=circle_parts,
    presets={
        "lsbd": ({**GLOROT, "circles": 2, "euclidean": 0},),
        "lsbd_objects": ({**GLOROT, "circles": 1, "euclidean": IDENTITIES, "log_t_high": -5.0},),
    },
    notes=("Codes are the locations, two per circle, then the means; there are no log-variances.",),
)
