"""Tiny members of any family: 6 pixels, hidden layers of 5, and weights that are chosen here.

`play` trains one for a few steps and keeps all that its optimizer steps were given; `coded` encodes and decodes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from unbraid.data import FactorSpace
from unbraid.data.image_dataset import ArrayDataset
from unbraid.families.building import Member, build_member
from unbraid.families.family import code_parts
from unbraid.families.family_table import FAMILIES
from unbraid.families.networks import NETWORKS
from unbraid.families.resnet import layer_norm, resnet_encoder
from unbraid.files.trust import Trusted
from unbraid.training.population import make_context, make_population

__all__ = ["FAMILIES", "NETWORKS", "layer_norm"]

Weights: TypeAlias = Mapping[str, Tensor]  # by name, "vae.encoder.1.weight"

SPACE = FactorSpace(("angle", "hue", "shape"), (5, 4, 3), ("cyclic", "cyclic", "categorical"))
PIXELS = np.random.default_rng(1).integers(0, 256, size=(60, 1, 3, 2), dtype=np.uint8)  # height 1, width 3, 2 channels
DATASET = ArrayDataset(PIXELS, SPACE)
N_PIXELS, HIDDEN, BATCH = 6, 5, 4
# As much supervision as 60 images have.
SMALL: dict[str, dict[str, Any]] = {
    "ada_gvae": {"pairs": 60}, "ada_ml_vae": {"pairs": 60}, "lsbd_vae": {"pairs": 20},
    "quessard": {"trajectories": 50}, "forward_vae": {"transitions": 100}, "weak_de": {"labels": 60},
    "factor_vae": {"discriminator_width": 4},
}  # fmt: skip


def tiny_pair(shape: tuple[int, ...], n_outputs: int, n_latents: int) -> tuple[nn.Module, nn.Module]:
    """One hidden layer of 5 with hyperbolic tangents each way: smooth, so that no slope hides another."""
    height, width, channels = shape
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(N_PIXELS, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, n_outputs))
    decoder = nn.Sequential(
        nn.Linear(n_latents, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, N_PIXELS), nn.Unflatten(1, (channels, height, width))
    )
    return encoder, decoder


@dataclass(frozen=True, eq=False)
class Move:
    """One move of an optimizer step: what it was given and the weights that it found."""

    mover: str
    step: int
    batch: Mapping[str, Tensor]
    weights: Weights


@dataclass(frozen=True, eq=False)
class Played:
    """Some steps of one member."""

    first_step: int
    moves: list[Move]
    logs: list[dict[str, float]]  # of each step
    start: Weights
    state: Weights  # in the end, with Adam's moments


def play(
    family: str,
    steps: int = 1,
    *,
    first_step: int = 0,
    total: int = 100,
    batch_size: int = BATCH,
    space: FactorSpace = SPACE,
    **hyper: Any,
) -> Played:
    """Take steps `first_step` .. `first_step + steps - 1` of a training of `total`, in double precision.

    `space` gives other factors to the same images. Parameters start at normal numbers drawn here, none at a value where
    a fault would not show.
    """
    moves: list[Move] = []
    population = _population(family, moves, total, batch_size, hyper, space=space)
    state = population.state(0)
    trained = {name.split("/", 2)[2] for name in state if name.startswith("first/")}
    state |= {
        f"model/{name}": value for name, value in _chosen({name: state[f"model/{name}"] for name in trained}).items()
    }
    population.load_state(0, state)
    logs = []
    for step in range(first_step, first_step + steps):
        logs.append({name: float(value) for name, value in population.advance(step).items()})
    assert population.diverged() == [None]
    start = {name.removeprefix("model/"): value for name, value in state.items() if name.startswith("model/")}
    return Played(first_step, moves, logs, start, population.state(0))


def draws_of(family: str, steps: int, *, batch_size: int, seed: int = 5, **hyper: Any) -> list[Move]:
    """The moves of a training that computes no losses, for the sake of what the optimizer steps are given."""
    moves: list[Move] = []
    population = _population(family, moves, steps, batch_size, hyper, idle=True, seed=seed)
    for step in range(steps):
        population.advance(step)
    return moves


@dataclass(frozen=True, eq=False)
class Coded:
    """The first images of the dataset and what a member with weights chosen here makes of them."""

    images: Tensor
    weights: Weights
    codes: Tensor
    log_variances: Tensor | None
    decoded: Tensor
    parts: list[tuple[str, str, int]]  # name, kind and size


def coded(family: str, **hyper: Any) -> Coded:
    """Encode four images and decode their codes, as is done after training; a family without training is fitted."""
    row, member = FAMILIES[family], _member(family, hyper)
    context = make_context(row, [member], DATASET, batch_size=BATCH, steps=1)
    modules = build_member(row, DATASET.image_shape, context.settings, 0).double().eval()
    table = torch.from_numpy(PIXELS).double().permute(0, 3, 1, 2) / 255
    if row.fit:
        row.fit(modules, lambda positions: table[positions], context)
    else:
        modules.load_state_dict({**modules.state_dict(), **_chosen(dict(modules.named_parameters()))})
    with torch.no_grad():
        codes, log_variances = row.encode(modules, table[:BATCH], context.settings)
        decoded = row.decode(modules, codes, context.settings)
    parts = [(part.name, part.kind, part.size) for part in code_parts(row, context.settings)]
    return Coded(table[:BATCH], modules.state_dict(), codes, log_variances, decoded, parts)


def untrained(family: str, seed: int = 0, **hyper: Any) -> Weights:
    """The weights of a member before its first step."""
    return _built(family, DATASET.image_shape, _member(family, hyper), seed).state_dict()


def untrained_at(shape: tuple[int, ...], family: str, **hyper: Any) -> nn.ModuleDict:
    """The networks of a family for images of this shape, with its default sizes."""
    defaults = {name: each.default for name, each in FAMILIES[family].hyperparameters.items()}
    return _built(family, shape, Member(0, {**defaults, **hyper}), 0)


def resnet_critic(shape: tuple[int, ...], n_outputs: int) -> nn.Module:
    return resnet_encoder(shape, n_outputs, layer_norm)


def _built(family: str, shape: tuple[int, ...], member: Member, seed: int) -> nn.ModuleDict:
    context = make_context(FAMILIES[family], [member], DATASET, batch_size=BATCH, steps=1)
    return build_member(FAMILIES[family], shape, context.settings, seed)


def _chosen(weights: Weights) -> dict[str, Tensor]:
    rng = np.random.default_rng(2)
    return {name: torch.from_numpy(rng.normal(0, 0.6, tuple(weights[name].shape))) for name in sorted(weights)}


def _member(family: str, hyper: Mapping[str, Any], seed: int = 5) -> Member:
    defaults = {name: each.default for name, each in FAMILIES[family].hyperparameters.items()}
    if "network" in defaults:
        defaults["network"] = Trusted(f"{__name__}:tiny_pair")
    assert hyper.keys() <= defaults.keys()
    return Member(seed, {**defaults, **SMALL.get(family, {}), **hyper})


def population_with(family: str, loss: Any, hypers: Sequence[Mapping[str, Any]], move: str = "vae") -> Any:
    """Members that differ in these hyperparameters, one of whose steps minimises `loss`; several are stacked."""
    optimizer_steps = FAMILIES[family].optimizer_steps
    row = replace(
        FAMILIES[family],
        optimizer_steps=tuple(replace(each, loss=loss) if each.name == move else each for each in optimizer_steps),
    )
    return _made(row, [_member(family, hyper) for hyper in hypers], 100, BATCH)


def _population(
    family: str,
    moves: list[Move],
    total: int,
    batch_size: int,
    hyper: Mapping[str, Any],
    *,
    idle: bool = False,
    seed: int = 5,
    space: FactorSpace = SPACE,
) -> Any:
    row = FAMILIES[family]
    row = replace(row, optimizer_steps=tuple(_watched(move, moves, idle) for move in row.optimizer_steps))
    return _made(row, [_member(family, hyper, seed)], total, batch_size, space)


def _made(row: Any, members: list[Member], total: int, batch_size: int, space: FactorSpace = SPACE) -> Any:
    dataset = ArrayDataset(PIXELS, space)
    context = make_context(row, members, dataset, batch_size=batch_size, steps=total)
    options: dict[str, Any] = {"device": torch.device("cpu"), "precision": torch.float64}
    return make_population(row, members, dataset, context, **options)


def _watched(move: Any, moves: list[Move], idle: bool) -> Any:
    def loss(modules: nn.ModuleDict, batch: Mapping[str, Tensor], hyper: Any, step: int, context: Any) -> Any:
        weights = {name: value.detach().clone() for name, value in modules.state_dict().items()}
        moves.append(Move(move.name, step, {name: value.clone() for name, value in batch.items()}, weights))
        if idle:
            return sum(0 * parameter.sum() for parameter in modules.parameters()), {}, {}
        return move.loss(modules, batch, hyper, step, context)

    return replace(move, loss=loss)
