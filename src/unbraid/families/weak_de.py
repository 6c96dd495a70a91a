"""WeakDE: an adversarial autoencoder whose prior becomes one Gaussian per class of the labelled images."""

from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from unbraid.base.types import IntArray
from unbraid.data import FactorTable, Space, few_labels
from unbraid.families.common import COMMON, IMAGES, decode_plain, reconstruction_term
from unbraid.families.family import (
    Adam,
    Batch,
    Context,
    Draw,
    Event,
    Family,
    Hyper,
    Hyperparameter,
    ImageSource,
    Items,
    LossOutput,
    OptimizerStep,
    Part,
    Settings,
    Supervision,
    Supply,
    whole,
)
from unbraid.families.networks import Shape, network_pair, promote
from unbraid.families.supervision import by_hyperparameters, named_factors
from unbraid.families.weak_de_loss import discriminator_loss, generator_loss, relation_loss
from unbraid.families.weak_de_networks import ClassPrior, class_moves, relation_inputs, tanh_layers

ENCODED_AT_ONCE = 512  # images, when the prior is fitted


def combination_facts(space: Space, settings: Settings) -> dict[str, Any]:
    """Which factors make the classes, and into how many ranges the levels of each are cut."""
    names = named_factors(space, settings["classes"])
    kinds = [space.kinds[space.column(name)] for name in names]
    levels = [space.sizes[space.column(name)] for name in names]
    cut = [
        size if kind == "categorical" else min(size, settings["bins"]) for size, kind in zip(levels, kinds, strict=True)
    ]
    n_classes = int(np.prod(cut, dtype=object))
    if n_classes > settings["labels"]:
        raise ValueError(
            f"the levels of {', '.join(names)} make {n_classes} classes, more than labels {settings['labels']}: "
            "name fewer in classes, or take fewer bins"
        )
    n_relations = sum(1 if kind == "categorical" else 2 for kind in kinds)
    return {"class_factors": list(names), "kinds": kinds, "ranges": cut, "relations": n_relations}


def classes_of(space: Space, settings: Settings, positions: IntArray) -> IntArray:
    """The class (n,) of each image: the combination of its ranges, in C order."""
    levels = space.factors(positions)
    ranges = []
    for name, n_ranges in zip(settings["class_factors"], settings["ranges"], strict=True):
        column = space.column(name)
        ranges.append(levels[:, column].astype(np.int64) * n_ranges // space.sizes[column])
    return np.asarray(np.ravel_multi_index(tuple(ranges), tuple(settings["ranges"])))


def make_labels(space: Space, settings: Settings, seed: int) -> Supply:
    """Some images, spread evenly over the classes, and the class of each."""
    classes = classes_of(space, settings, np.arange(len(space)))
    by_class = FactorTable(("class",), ("categorical",), classes[:, None])
    with by_hyperparameters(n="labels"):
        positions = few_labels(by_class, settings["labels"], by=["class"], seed=seed)
    return Supply({"labelled": Items(positions, {"classes": classes[positions]})}, {"labels": len(positions)})


def build_weak_de(shape: Shape, settings: Settings) -> nn.ModuleDict:
    latents, n_relations = settings["latents"], settings["relations"]
    encoder, decoder = network_pair(settings["network"], shape, latents, latents)
    sizes = (settings["adversary_width"], settings["adversary_depth"])
    return nn.ModuleDict(
        {
            "encoder": encoder,
            "decoder": decoder,
            "discriminator": tanh_layers(latents, 1, *sizes),
            "relations": tanh_layers(latents + n_relations, latents, *sizes),
            "prior": ClassPrior(class_moves(settings["ranges"], settings["kinds"]), latents),
        }
    )


def encode_weak_de(modules: nn.ModuleDict, images: Tensor, settings: Settings) -> tuple[Tensor, None]:
    return promote(modules["encoder"](images)), None


def warmup_steps(context: Context) -> int:
    return round(context.settings["warmup"] * context.steps)


def since_warmup(step: int, context: Context) -> int | None:
    begin = warmup_steps(context)
    return step - begin if step >= begin else None


def fit_prior(modules: nn.ModuleDict, supply: Supply, images: ImageSource, hyper: Hyper, context: Context) -> None:
    """From now on the prior is that of the labelled images as they are encoded now."""
    labelled = supply.items["labelled"]
    parts = np.array_split(labelled.positions, -(-len(labelled.positions) // ENCODED_AT_ONCE))
    codes = torch.cat([promote(modules["encoder"](images(part))) for part in parts])
    classes = torch.from_numpy(labelled.known["classes"]).to(codes.device)
    cast(ClassPrior, modules["prior"]).fit(codes, classes, float(hyper["spread"]))


def of_autoencoder(modules: nn.ModuleDict, batch: Batch, hyper: Hyper, step: Any, context: Context) -> LossOutput:
    decoded = promote(modules["decoder"](promote(modules["encoder"](batch["images"]))))
    fit = reconstruction_term(decoded, batch["images"], hyper, context.settings).mean()
    return fit, {"reconstruction": fit}, {}


def of_relations(modules: nn.ModuleDict, batch: Batch, hyper: Hyper, step: Any, context: Context) -> LossOutput:
    prior = cast(ClassPrior, modules["prior"])
    classes = prior.choose(batch["from"])
    before = prior.sample(classes, batch["from noise"])
    after = prior.sample(prior.moved(classes), batch["to noise"])
    return relation_loss(promote(modules["relations"](relation_inputs(before))), after), {}, {}


def of_generator(modules: nn.ModuleDict, batch: Batch, hyper: Hyper, step: Any, context: Context) -> LossOutput:
    codes = promote(modules["encoder"](batch["images"]))
    return generator_loss(_judged(modules, codes)), {}, {"codes": codes}


def of_discriminator(modules: nn.ModuleDict, batch: Batch, hyper: Hyper, step: Any, context: Context) -> LossOutput:
    """Told apart: the codes of the generator's move, and samples of the prior of this step."""
    prior = cast(ClassPrior, modules["prior"])
    mixture = prior.sample(prior.choose(batch["prior class"]), batch["prior noise"])
    cube = 2 * batch["prior cube"] - 1
    begun = torch.as_tensor(step, device=cube.device) >= warmup_steps(context)
    samples = torch.where(begun, mixture, cube)
    return *discriminator_loss(_judged(modules, batch["codes"]), _judged(modules, samples)), {}


def _judged(modules: nn.ModuleDict, codes: Tensor) -> Tensor:
    return promote(modules["discriminator"](codes)).squeeze(-1)


PAIRED = ("relations", "latents")


def draw_prior(modules: nn.ModuleDict, settings: Settings, normal: Tensor, uniform: Tensor) -> Tensor:
    """Of the Gaussian of any class that was fitted; uniform on the cube, where the warm-up never ended."""
    prior = cast(ClassPrior, modules["prior"])
    drawn = prior.sample(prior.choose(uniform[:, 0]), normal)
    return torch.where(prior.known.sum() > 0, drawn, 2 * uniform - 1)


WEAK_DE = Family(
    title="WeakDE",
    build=build_weak_de,
    optimizer_steps=(
        OptimizerStep("autoencoder", ("encoder", "decoder"), of_autoencoder, (IMAGES,)),
        OptimizerStep(
            "relations",
            ("relations",),
            of_relations,
            (
                Draw("from", "uniform", ("relations",)),
                Draw("from noise", "normal", PAIRED),
                Draw("to noise", "normal", PAIRED),
            ),
            turn=since_warmup,
        ),
        OptimizerStep("generator", ("encoder",), of_generator, (IMAGES,), Adam("adversarial_learning_rate")),
        OptimizerStep(
            "discriminator",
            ("discriminator",),
            of_discriminator,
            (
                Draw("prior cube", "uniform", ("latents",)),
                Draw("prior class", "uniform"),
                Draw("prior noise", "normal", ("latents",)),
            ),
            Adam("adversarial_learning_rate"),
        ),
    ),
    hyperparameters={
        **COMMON,
        "latents": whole(8, "number of latents", 1, 1000),
        "classes": Hyperparameter(
            "all", "factors whose combinations are the classes, such as shape+position_x", kind="text"
        ),
        "bins": whole(3, "ranges into which the levels of each are cut, if not categorical", 2, 1e6),
        "labels": whole(20_000, "images whose classes are told", 1, 1e8),
        "warmup": Hyperparameter(
            1 / 6, "fraction of the training after which the prior is fitted", 0.0, 1.0, structural=True
        ),
        "spread": Hyperparameter(0.1, "what the covariance of a class is multiplied by", 0.0, 1e3),
        "adversarial_learning_rate": Hyperparameter(1e-4, "of the Adams of generator and discriminator", 0.0, 1.0),
        "adversary_width": whole(1024, "units of hidden layers of discriminator and relations", 1, 1e5),
        "adversary_depth": whole(4, "hidden layers of both", 1, 100),
    },
    encode=encode_weak_de,
    decode=decode_plain,
    by_length="its warm-up is a part of all steps",
    source="Valenti and Bacciu 2022",
    supervision=Supervision("labels", "factors with levels, whose combinations are classes", ("labels",), make_labels),
    facts=combination_facts,
    events=(Event(warmup_steps, fit_prior),),
    parts=lambda settings: (Part("z", "point", settings["latents"]),),
    draw_prior=draw_prior,
    presets={"sprites": ({"classes": "shape+position_x+position_y"},)},
    notes=(
        "Samples of the prior are of every class alike; in the published code they are all of the first, by a fault. "
        "Until the warm-up is over the prior is uniform on the cube from -1 to 1.",
        "Classes are fitted as N(mean, spread * covariance + 0.0001); those without a labelled image are left out.",
        "There is no weight of the adversarial losses (0.2 as published): they have Adams of their own, which divide "
        "it out. Set adversarial_learning_rate.",
        "Relations are one level up and down, around where a factor is cyclic, and the next of a categorical one; "
        "they are learned from samples of the prior and change no code.",
    ),
)
