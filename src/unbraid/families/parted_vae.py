"""PartedVAE: latents of their own for what depends on a class; classes may be labelled, for some images."""

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from unbraid.data import Space, few_labels
from unbraid.families.block_prior import draw_blocks, log_blocks
from unbraid.families.common import COMMON, IMAGES, always, decode_plain, reconstruction_term
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
from unbraid.families.parted_vae_loss import class_cross_entropy, parted_vae
from unbraid.families.parted_vae_networks import (
    SHARPEST,
    ClassPriors,
    PartedHeads,
    PartedPosterior,
    likeliest_classes,
    relaxed_classes,
    sharpness,
)
from unbraid.families.supervision import by_hyperparameters, named_factors


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
    _, logits = _features_and_logits(modules, batch["labelled"])
    loss = class_cross_entropy(logits, batch["labelled levels"], context.settings["sizes"]).mean()
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
        "labels": whole(0, "images whose classes are told; 0: unsupervised", 0, 1e8),
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
