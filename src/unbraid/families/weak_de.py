"""WeakDE: an adversarial autoencoder whose prior becomes one Gaussian per class of the labelled images."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from unbraid.base.types import IntArray
from unbraid.data import FactorTable, Space, few_labels
from unbraid.families.common import COMMON, IMAGES, decode_plain, discriminator_loss, reconstruction_term
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

RIDGE = 1e-4  # added to the variances of every class: some have fewer images than codes


def tanh_layers(n_inputs: int, n_outputs: int, width: int, depth: int) -> nn.Sequential:
    """Hidden layers with hyperbolic tangents, and a linear output."""
    layers: list[nn.Module] = []
    for before, after in pairwise([n_inputs, *[width] * depth]):
        layers += [nn.Linear(before, after), nn.Tanh()]
    return nn.Sequential(*layers, nn.Linear(width, n_outputs))


class ClassPrior(nn.Module):
    """A Gaussian per class, fitted once; nothing here is trained.

    Args:
        moves: (n_relations, n_classes) of `class_moves`.
        n_latents: of the codes.
    """

    means: Tensor  # (n_classes, n_latents)
    roots: Tensor  # (n_classes, n_latents, n_latents), lower triangles whose squares are the covariances
    known: Tensor  # (n_classes,), 1 where the class was fitted
    moves: Tensor  # (n_relations, n_classes)

    def __init__(self, moves: IntArray, n_latents: int) -> None:
        super().__init__()
        n_classes = moves.shape[1]
        self.register_buffer("means", torch.zeros(n_classes, n_latents))
        self.register_buffer("roots", torch.zeros(n_classes, n_latents, n_latents))
        self.register_buffer("known", torch.zeros(n_classes))
        self.register_buffer("moves", torch.tensor(moves))

    def fit(self, codes: Tensor, classes: Tensor, spread: float) -> None:
        """Each class that has images becomes N(mean, spread * covariance + ridge) of its codes.

        Codes too large for the ridge to be seen beside them give a class whose samples are NaN.

        Args:
            codes: (n, n_latents).
            classes: (n,) whole numbers.
            spread: what covariances are multiplied by, 0.1 in the authors' code.
        """
        codes = codes.double()
        ridge = RIDGE * torch.eye(codes.shape[1], dtype=codes.dtype, device=codes.device)
        self.known.zero_()
        for chosen in classes.unique().tolist():
            own = codes[classes == chosen]
            centred = own - own.mean(0)
            covariance = centred.T @ centred / max(1, len(own) - 1)
            self.means[chosen] = own.mean(0).to(self.means)
            root, failed = torch.linalg.cholesky_ex(spread * covariance + ridge)
            self.roots[chosen] = torch.where(failed > 0, math.nan, root).to(self.roots)
            self.known[chosen] = 1

    def choose(self, uniform: Tensor) -> Tensor:
        """Classes (...) from numbers (...) on (0, 1): every fitted one alike."""
        upto = self.known.cumsum(0) / self.known.sum().clamp(min=1)
        return (uniform[..., None] >= upto).sum(-1).clamp(max=len(upto) - 1)

    def sample(self, classes: Tensor, noise: Tensor) -> Tensor:
        """Codes (..., n_latents) of these classes (...), from standard normal noise."""
        # A sum and no matrix product, which autocast would take in half precision.
        return self.means[classes] + (self.roots[classes] * noise[..., None, :]).sum(-1)

    def moved(self, classes: Tensor) -> Tensor:
        """Where each relation leads classes (..., n_relations), one column per relation; nowhere, if unfitted."""
        relations = torch.arange(len(self.moves), device=classes.device)
        targets = self.moves[relations, classes]
        return torch.where(self.known[targets] > 0, targets, classes)


def class_moves(sizes: Sequence[int], kinds: Sequence[str]) -> IntArray:
    """Class numbers after each relation: (n_relations, n_classes).

    Classes are the combinations of levels in C order. A categorical factor has one relation, the next of its levels
    and after the last the first; others have two, one level up and one down, which go around where the factor is
    cyclic and stay at the ends where it is not.

    Args:
        sizes: levels of each factor.
        kinds: of each factor.

    Example:
        >>> class_moves((3,), ("ordinal",)).tolist(), class_moves((3,), ("categorical",)).tolist()
        ([[1, 2, 2], [0, 0, 1]], [[1, 2, 0]])
    """
    levels = np.stack(np.unravel_index(np.arange(np.prod(sizes)), tuple(sizes)))
    moves = []
    for place, (size, kind) in enumerate(zip(sizes, kinds, strict=True)):
        for way in (1,) if kind == "categorical" else (1, -1):
            target = levels.copy()
            moved = target[place] + way
            target[place] = moved % size if kind in ("categorical", "cyclic") else moved.clip(0, size - 1)
            moves.append(np.ravel_multi_index(tuple(target), tuple(sizes)))
    return np.stack(moves)


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
    """Fit the prior to the codes of the labelled images."""
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
    """Squared distance of a code that its relation, one-hot, should move from a code of the class it leads to.

    Both are samples of the prior, as in the authors' code.
    """
    prior = cast(ClassPrior, modules["prior"])
    classes = prior.choose(batch["from"])
    before = prior.sample(classes, batch["from noise"])
    after = prior.sample(prior.moved(classes), batch["to noise"])
    which = torch.eye(before.shape[1], dtype=before.dtype, device=before.device).expand(len(before), -1, -1)
    predicted = promote(modules["relations"](torch.cat([before, which], dim=-1)))
    return (predicted - after).square().sum(-1).mean(), {}, {}


def of_generator(modules: nn.ModuleDict, batch: Batch, hyper: Hyper, step: Any, context: Context) -> LossOutput:
    """Cross-entropy of taking codes for samples of the prior (Makhzani et al. 2015, "Adversarial Autoencoders")."""
    codes = promote(modules["encoder"](batch["images"]))
    return functional.softplus(-_judged(modules, codes)).mean(), {}, {"codes": codes}


def of_discriminator(modules: nn.ModuleDict, batch: Batch, hyper: Hyper, step: Any, context: Context) -> LossOutput:
    """Codes of the generator's step against samples of the prior."""
    prior = cast(ClassPrior, modules["prior"])
    mixture = prior.sample(prior.choose(batch["prior class"]), batch["prior noise"])
    cube = 2 * batch["prior cube"] - 1
    begun = torch.as_tensor(step, device=cube.device) >= warmup_steps(context)
    samples = torch.where(begun, mixture, cube)
    logits = _judged(modules, batch["codes"])
    loss, accuracy = discriminator_loss(_judged(modules, samples), logits)
    return loss, {"accuracy": accuracy}, {}


def _judged(modules: nn.ModuleDict, codes: Tensor) -> Tensor:
    return promote(modules["discriminator"](codes)).squeeze(-1)


PAIRED = ("relations", "latents")


def draw_prior(modules: nn.ModuleDict, settings: Settings, normal: Tensor, uniform: Tensor) -> Tensor:
    """Samples of the fitted Gaussians, every class alike; uniform on the cube if the warm-up never ended."""
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
        "labels": whole(20_000, "labelled images", 1, 1e8),
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
    cites=("valenti2022leveraging",),
    formula=(
        r"\mathrm{BCE}(p(E(x)), x), \quad \mathrm{BCE}(A(E(x)), 1), \qquad p(z) = \frac{1}{|k|} \sum_k "
        r"\mathcal{N}\left( \mathrm{mean}\, Z_k, \; c \, \mathrm{Cov}\, Z_k \right)",
        "$A$ tells codes from samples of the prior. After a warm-up the prior becomes one Gaussian per "
        "combination $k$ of factor values, fitted once to the codes $Z_k$ of labelled images.",
    ),
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
