"""PartedVAE: latents of their own for what depends on a class; classes may be labelled, for some images."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from unbraid.data import Space, few_labels
from unbraid.families.cci_vae import capacity
from unbraid.families.codebook import gumbel_softmax
from unbraid.families.common import COMMON, IMAGES, always, decode_plain, reconstruction_term
from unbraid.families.divergences import draw_blocks, gaussian_kl, kl_from, log_blocks
from unbraid.families.family import (
    Batch,
    Context,
    Draw,
    Family,
    Hyper,
    Hyperparameter,
    Items,
    LogDensity,
    LossOutput,
    OptimizerStep,
    Part,
    Plateau,
    Settings,
    Supervision,
    Supply,
    whole,
)
from unbraid.families.networks import Shape, network_pair, promote
from unbraid.families.supervision import by_hyperparameters, named_factors

TEMPERATURE = 0.67  # of the relaxed classes
SHARPEST = 8.0  # slope of the masks' sigmoid in the end, and at evaluation


class PartedPosterior(NamedTuple):
    """The posterior of n images, in single precision or better."""

    mean: Tensor  # (n, n_latents), of z, which depends on no class
    log_variance: Tensor  # (n, n_latents)
    logits: Tensor  # (n, n_classes), of the classes of all categoricals side by side
    class_mean: Tensor  # (n, n_categoricals, class_latents), of u, which depends on the classes
    class_log_variance: Tensor  # (n, n_categoricals, class_latents)

    def codes(self) -> Tensor:
        """Means of z, then of u: (n, n_latents + n_categoricals * class_latents)."""
        return torch.cat([self.mean, self.class_mean.flatten(1)], dim=-1)

    def log_variances(self) -> Tensor:
        """In the order of the codes."""
        return torch.cat([self.log_variance, self.class_log_variance.flatten(1)], dim=-1)


class PartedHeads(nn.Module):
    """z from the features of an image, and u from the features that the classes leave unmasked.

    Args:
        n_features: of the trunk.
        n_latents: of z.
        sizes: number of classes of each categorical.
        class_latents: of u, for each categorical.

    Reference:
        Hajimiri et al. 2021, as in the authors' code: mask k is sigmoid(s (W_k c_k + b_k)), one number per feature.
    """

    def __init__(self, n_features: int, n_latents: int, sizes: Sequence[int], class_latents: int) -> None:
        super().__init__()
        self.sizes = tuple(sizes)
        self.latents = nn.Linear(n_features, 2 * n_latents)
        self.masks = nn.ModuleList([nn.Linear(size, n_features) for size in sizes])
        self.parts = nn.ModuleList([nn.Linear(n_features, 2 * class_latents) for _ in sizes])

    def forward(self, features: Tensor, logits: Tensor, chosen: Tensor, sharpness: Tensor | float) -> PartedPosterior:
        """Features (n, n_features), logits and chosen classes (n, n_classes each), the masks' slope s."""
        mean, log_variance = promote(self.latents(features)).chunk(2, dim=-1)
        parts = []
        for mask, part, classes in zip(self.masks, self.parts, chosen.split(self.sizes, dim=-1), strict=True):
            parts.append(promote(part(features * torch.sigmoid(sharpness * promote(mask(classes))))))
        class_mean, class_log_variance = torch.stack(parts, dim=1).chunk(2, dim=-1)
        return PartedPosterior(mean, log_variance, logits, class_mean, class_log_variance)


class ClassPriors(nn.Module):
    """A learned Gaussian for u per class: (n_classes, class_latents) means, and log-variances between -3 and 1."""

    def __init__(self, n_classes: int, class_latents: int) -> None:
        super().__init__()
        self.means = nn.Parameter(torch.randn(n_classes, class_latents))
        self.spreads = nn.Parameter(torch.randn(n_classes, class_latents))

    def log_variances(self) -> Tensor:
        return 2 * self.spreads.tanh() - 1


def relaxed_classes(logits: Tensor, uniform: Tensor, sizes: Sequence[int]) -> Tensor:
    """Nearly one-hot samples (n, n_classes) of each categorical; `logits` and `uniform` are of this shape."""
    parts = zip(logits.split(tuple(sizes), dim=-1), uniform.split(tuple(sizes), dim=-1), strict=True)
    return torch.cat([gumbel_softmax(part, noise, TEMPERATURE) for part, noise in parts], dim=-1)


def likeliest_classes(logits: Tensor, sizes: Sequence[int]) -> Tensor:
    """One-hot (n, n_classes): the likeliest class of each categorical."""
    parts = [
        functional.one_hot(part.argmax(-1), size)
        for part, size in zip(logits.split(tuple(sizes), dim=-1), sizes, strict=True)
    ]
    return torch.cat(parts, dim=-1).to(logits.dtype)


def sharpness(step: Tensor | int, mask_steps: Tensor | float) -> Tensor:
    """Slope of the masks' sigmoid: 1 at the first step, 8 from `mask_steps` on, a straight line between.

    Example:
        >>> float(sharpness(500, 1000.0)), float(sharpness(5000, 1000.0))
        (4.5, 8.0)
    """
    progress = torch.as_tensor(step / mask_steps, dtype=torch.float64)
    return 1 + (SHARPEST - 1) * progress.clamp(max=1.0)


def bhattacharyya(means: Tensor, log_variances: Tensor) -> Tensor:
    """Overlap of every two of n diagonal Gaussians (n, d), the integral of the root of their product: (n, n).

    1 where they are the same, near 0 where they are far apart.

    Reference:
        Bhattacharyya 1946: exp(-D) with D = (m_i - m_j)^2 / (8 v) + (log v - (log v_i + log v_j) / 2) / 2 summed over
        dimensions, v the mean of both variances.
    """
    variances = log_variances.exp()
    between = (variances[:, None] + variances) / 2
    squares = (means[:, None] - means).square() / between / 8
    spreads = (between.log() - (log_variances[:, None] + log_variances) / 2) / 2
    return (-(squares + spreads).sum(-1)).exp()


def too_close(means: Tensor, log_variances: Tensor, threshold: Tensor | float) -> Tensor:
    """How much the overlaps of pairs of Gaussians (n, d) exceed the threshold, summed over pairs."""
    first, second = torch.triu_indices(len(means), len(means), offset=1, device=means.device)
    return (bhattacharyya(means, log_variances)[first, second] - threshold).clamp(min=0).sum()


def parted_vae(
    posterior: PartedPosterior,
    prior_means: Tensor,
    prior_log_variances: Tensor,
    reconstruction: Tensor,
    sizes: Sequence[int],
    *,
    step: Tensor | int,
    z_capacity: Tensor | float,
    u_capacity: Tensor | float,
    capacity_steps: Tensor | float,
    gamma_z: Tensor | float,
    gamma_u: Tensor | float,
    gamma_c: Tensor | float,
    gamma_h: Tensor | float,
    gamma_bc: Tensor | float,
    threshold: Tensor | float,
) -> tuple[Tensor, dict[str, Tensor]]:
    """Reconstruction, two capacities, classes that are used alike, each surely, and whose priors keep apart.

    Args:
        posterior: of the batch.
        prior_means, prior_log_variances: (n_classes, class_latents), the Gaussian of u given each class.
        reconstruction: (n,) negative log-likelihoods of the images, nats.
        sizes: classes of each categorical.
        step: how many steps came before.
        z_capacity, u_capacity: nats that z and u may hold in the end.
        capacity_steps: steps it takes to get there, in a straight line from 0.
        gamma_z, gamma_u: weights of the distances of the KL from the capacities.
        gamma_c: weight of the KL of the batch's mean q(c) from the uniform distribution.
        gamma_h: weight of the entropy of q(c|x).
        gamma_bc: weight of the overlaps above `threshold` between priors of classes of the same categorical.

    Returns:
        The loss, and by name "reconstruction", "kl_z", "kl_u", "class_kl", "class_entropy", "overlap".

    Reference:
        Hajimiri et al. 2021, as in the authors' code (`_loss_function`). The KL of u is that of its one posterior from
        the prior of every class, weighted by q(c|x). SNC/NK call the last term the Bhattacharyya distance from a
        normal; in the code it is the coefficient between the priors of classes.
    """
    fit = reconstruction.mean()
    kl_z = gaussian_kl(posterior.mean, posterior.log_variance).sum(-1).mean()
    kl_u = class_kl = entropy = overlap = torch.zeros_like(fit)
    priors = zip(prior_means.split(tuple(sizes)), prior_log_variances.split(tuple(sizes)), strict=True)
    for place, (logits, (means, log_variances)) in enumerate(
        zip(posterior.logits.split(tuple(sizes), dim=-1), priors, strict=True)
    ):
        mean, log_variance = posterior.class_mean[:, place, None], posterior.class_log_variance[:, place, None]
        log_classes = logits.log_softmax(-1)
        from_each = kl_from(mean, log_variance, means, log_variances).sum(-1)
        kl_u = kl_u + (log_classes.exp() * from_each).sum(-1).mean()
        log_shares = log_classes.logsumexp(0) - math.log(len(logits))
        class_kl = class_kl + (log_shares.exp() * (log_shares + math.log(len(log_shares)))).sum()
        entropy = entropy - (log_classes.exp() * log_classes).sum(-1).mean()
        overlap = overlap + too_close(means, log_variances, threshold)
    z_target, u_target = (
        capacity(step, c_max=c_max, capacity_steps=capacity_steps).to(fit) for c_max in (z_capacity, u_capacity)
    )
    loss = fit + gamma_z * (z_target - kl_z).abs() + gamma_u * (u_target - kl_u).abs()
    loss = loss + gamma_c * class_kl + gamma_h * entropy + gamma_bc * overlap
    return loss, {
        "reconstruction": fit,
        "kl_z": kl_z,
        "kl_u": kl_u,
        "class_kl": class_kl,
        "class_entropy": entropy,
        "overlap": overlap,
    }


def class_facts(space: Space, settings: Settings) -> dict[str, Any]:
    """Which factors are the categoricals, and how many classes each has."""
    text = settings["classes"]
    if all(part.strip().isdecimal() for part in text.split("+")):
        sizes = [int(part) for part in text.split("+")]
        if settings["labels"]:
            raise ValueError(f"labels need classes, names of factors; got {text}")
        if min(sizes) < 2:
            raise ValueError(f"a categorical needs at least two classes; got classes {text}")
        names = [f"u{number}" for number in range(1, len(sizes) + 1)]
    else:
        names = list(named_factors(space, text))
        sizes = [space.sizes[space.column(name)] for name in names]
    u_codes = len(sizes) * settings["class_latents"]
    return {"categoricals": names, "sizes": sizes, "n_classes": sum(sizes), "codes": settings["latents"] + u_codes}


def make_labels(space: Space, settings: Settings, seed: int) -> Supply:
    """The classes of some images, spread evenly over them."""
    n, names = settings["labels"], settings["categoricals"]
    if not n:
        return Supply({"labelled": Items(few_labels(space, 0, seed=seed))}, {"labels": 0})
    with by_hyperparameters(n="labels"):
        positions = few_labels(space, n, by=names, seed=seed)
    levels = space.factors(positions)[:, [space.column(name) for name in names]]
    return Supply({"labelled": Items(positions, {"levels": levels.astype("int64")})}, {"labels": n})


def build_parted_vae(shape: Shape, settings: Settings) -> nn.ModuleDict:
    features, sizes, u_size = settings["features"], settings["sizes"], settings["class_latents"]
    trunk, decoder = network_pair(settings["network"], shape, features, settings["codes"])
    return nn.ModuleDict(
        {
            "trunk": trunk,
            "classes": nn.Linear(features, settings["n_classes"]),
            "heads": PartedHeads(features, settings["latents"], sizes, u_size),
            "priors": ClassPriors(settings["n_classes"], u_size),
            "decoder": decoder,
        }
    )


def _features_and_logits(modules: nn.ModuleDict, images: Tensor) -> tuple[Tensor, Tensor]:
    features = functional.leaky_relu(promote(modules["trunk"](images)), 0.1)
    return features, promote(modules["classes"](features))


def encode_parted_vae(modules: nn.ModuleDict, images: Tensor, settings: Settings) -> tuple[Tensor, Tensor]:
    """Means of z and of u, this under the likeliest classes and the sharpest masks; log-variances."""
    features, logits = _features_and_logits(modules, images)
    posterior = modules["heads"](features, logits, likeliest_classes(logits, settings["sizes"]), SHARPEST)
    return posterior.codes(), posterior.log_variances()


def log_prior(modules: nn.ModuleDict, settings: Settings) -> LogDensity:
    """z is standard normal; u of each categorical comes from the Gaussian of any of its classes, all equally often."""
    priors, sizes = cast(ClassPriors, modules["priors"]), settings["sizes"]
    means, log_variances = priors.means.split(sizes), priors.log_variances().split(sizes)
    return lambda codes: log_blocks(codes, settings["latents"], means, log_variances)


def draw_prior(modules: nn.ModuleDict, settings: Settings, normal: Tensor, uniform: Tensor) -> Tensor:
    """Standard normal z, and u of each categorical from the Gaussian of any of its classes."""
    priors, sizes = cast(ClassPriors, modules["priors"]), settings["sizes"]
    deviations = (0.5 * priors.log_variances()).exp().split(sizes)
    return draw_blocks(normal, uniform, settings["latents"], priors.means.split(sizes), deviations)


def label_loss(modules: nn.ModuleDict, batch: Batch, hyper: Hyper, step: Any, context: Context) -> LossOutput:
    """-log q(c|x) of the true classes, summed over categoricals."""
    _, logits = _features_and_logits(modules, batch["labelled"])
    parts = zip(logits.split(context.settings["sizes"], dim=-1), batch["labelled levels"].unbind(-1), strict=True)
    losses = [functional.cross_entropy(part, level, reduction="none") for part, level in parts]
    loss = torch.stack(losses).sum(0).mean()
    return loss, {"cross_entropy": loss}, {}


def parted_vae_loss(modules: nn.ModuleDict, batch: Batch, hyper: Hyper, step: Any, context: Context) -> LossOutput:
    settings, images = context.settings, batch["images"]
    features, logits = _features_and_logits(modules, images)
    chosen = relaxed_classes(logits, batch["class noise"], settings["sizes"])
    # Codes are read under the sharpest masks, so a short training must get there, too.
    mask_steps = torch.as_tensor(hyper["mask_steps"], dtype=torch.float64).clamp(max=max(1, context.steps / 2))
    slope = sharpness(step, mask_steps).to(features)
    posterior = cast(PartedPosterior, modules["heads"](features, logits, chosen, slope))
    sample = posterior.codes() + batch["noise"] * (0.5 * posterior.log_variances()).exp()
    decoded = promote(modules["decoder"](sample))
    priors = cast(ClassPriors, modules["priors"])
    return *parted_vae(
        posterior,
        priors.means,
        priors.log_variances(),
        reconstruction_term(decoded, images, hyper, settings),
        settings["sizes"],
        step=step,
        **{name: hyper[name] for name in OBJECTIVE},
    ), {}


OBJECTIVE = {
    "z_capacity": Hyperparameter(30.0, "nats that z may hold in the end", 0.0, 1e6),
    "u_capacity": Hyperparameter(5.0, "nats that u may hold in the end", 0.0, 1e6),
    "capacity_steps": Hyperparameter(300_000.0, "steps until both capacities are reached", 1.0, 1e9),
    "gamma_z": Hyperparameter(50.0, "weight of the distance of the KL of z from its capacity", 0.0, 1e6),
    "gamma_u": Hyperparameter(50.0, "weight of the distance of the KL of u from its capacity", 0.0, 1e6),
    "gamma_c": Hyperparameter(100.0, "weight of the KL of the mean q(c) from uniform classes", 0.0, 1e6),
    "gamma_h": Hyperparameter(10.0, "weight of the entropy of q(c|x)", 0.0, 1e6),
    "gamma_bc": Hyperparameter(10.0, "weight of overlaps between priors of classes", 0.0, 1e6),
    "threshold": Hyperparameter(0.1, "Bhattacharyya coefficient up to which an overlap costs nothing", 0.0, 1.0),
}

PARTED_VAE = Family(
    title="PartedVAE",
    build=build_parted_vae,
    optimizer_steps=(
        OptimizerStep(
            "labels",
            ("trunk", "classes"),
            label_loss,
            (Draw("labelled", "given"),),
            turn=lambda step, context: step if context.passes["labelled"] else None,  # where there are labels
            plateau=Plateau(threshold=1e-1, cooldown=2, epsilon=1e-6),
        ),
        OptimizerStep(
            "vae",
            ("trunk", "classes", "heads", "priors", "decoder"),
            parted_vae_loss,
            (IMAGES, Draw("noise", "normal", ("codes",)), Draw("class noise", "uniform", ("n_classes",))),
        ),
    ),
    hyperparameters={
        **COMMON,
        "latents": whole(5, "size of z, which depends on no class", 1, 1000),
        "class_latents": whole(1, "size of u for each categorical", 1, 1000),
        "classes": Hyperparameter(
            "categorical",
            "the categoricals: factors such as shape+hue, all that are categorical, or numbers such as 3+4",
            kind="text",
        ),
        "labels": whole(0, "labelled images; 0: unsupervised", 0, 1e8),
        "features": whole(256, "of the layer from which classes and latents are read", 1, 1e5),
        "learning_rate": Hyperparameter(5e-4, "of both Adams", 0.0, 1.0),
        "mask_steps": Hyperparameter(
            35_000.0, "steps over which masks sharpen, at most half of the training", 1.0, 1e9
        ),
        **OBJECTIVE,
    },
    encode=encode_parted_vae,
    decode=decode_plain,
    log_prior=log_prior,
    draw_prior=draw_prior,
    by_length="its masks sharpen within half of all steps",
    source="Hajimiri et al. 2021",
    cites=("hajimiri2021semi",),
    formula=(
        r"-\mathbb{E}_{q(z|x)} \log p(x|z) + \gamma_z | C_z(t) - \mathrm{KL}_z | + \gamma_u | C_u(t) - "
        r"\mathrm{KL}_u | + \gamma_c \mathrm{KL}\left( \bar{q}(c) \,\|\, p(c) \right) + \gamma_h H[q(c|x)] + "
        r"\gamma_{bc} \sum_{i<j} \max(0, \mathrm{BC}_{ij} - \tau)",
        "$c$ is the class, $u$ what depends on it and $z$ what does not; each class has a learned prior for $u$, "
        r"and $\mathrm{BC}_{ij}$ is the Bhattacharyya coefficient of two of these.",
    ),
    diverges_when_stacked=always,
    supervision=Supervision(
        "labels", "factors with levels to be the classes (only their number, without labels)", ("labels",), make_labels
    ),
    facts=class_facts,
    parts=lambda settings: (
        Part("z", "gaussian", settings["latents"]),
        *(Part(name, "gaussian", settings["class_latents"]) for name in settings["categoricals"]),
    ),
    presets={
        "unsupervised": ({"schedule": "plateau"},),
        "semi_supervised": ({"schedule": "plateau", "labels": 10_000},),
    },
    notes=(
        "With labels, each training step begins with one of cross-entropy on a batch of them; it has moments of Adam "
        "of its own and trains what the classes are read from. Without, nothing differs but that this step is left "
        "out.",
        "Defaults are the authors' for dSprites; presets add their schedule of learning rates. Classes are taken to be "
        "equally frequent. The features come from one more layer than theirs, which lets any network be the trunk.",
        "Codes are the means of z, then of u for each categorical, under the likeliest classes; classes are no codes.",
    ),
)
