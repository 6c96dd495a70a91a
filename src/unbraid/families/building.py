"""The networks of one member of a family, and its supervision."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from unbraid.base.device import GENERATOR
from unbraid.base.seeds import stream
from unbraid.data import Space
from unbraid.families.family import Family, Settings, Supply, Value


@dataclass(frozen=True)
class Member:
    """Seed and hyperparameters of one member of a population."""

    seed: int
    hyper: Mapping[str, Value]  # every hyperparameter of the family, structural ones equal in one population


def build_member(family: Family, shape: tuple[int, ...], settings: Mapping[str, Any], seed: int) -> nn.ModuleDict:
    """The modules of a member as they are before its first step; a function of the arguments alone."""
    # Before CUDA is in use, `torch.manual_seed` would write down the whole stack for when it will be: 2 ms.
    cuda = torch.cuda.is_initialized()
    seeded = torch.manual_seed if cuda else torch.default_generator.manual_seed
    with GENERATOR, torch.random.fork_rng(devices=range(torch.cuda.device_count()) if cuda else []):
        seeded(stream(seed, "initial weights") & (1 << 63) - 1)
        modules = family.build(shape, settings).train()
        if settings.get("initialisation") == "glorot":
            glorot(modules)
        return modules


def glorot(modules: nn.Module) -> None:
    """Start every linear and convolutional layer as TensorFlow 1 does by default.

    Weights uniform within sqrt(6 / (fan in + fan out)) of 0, biases 0 (Glorot and Bengio 2010, eq. 16; `tf.layers`
    with no initialiser given). All else stays as it was built.
    """
    for layer in modules.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d | nn.ConvTranspose2d):
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


def recorded(family: Family, hyper: Mapping[str, Value]) -> dict[str, Value]:
    """Hyperparameters as config.json has them: without later additions that are at their defaults."""
    rows = family.hyperparameters
    return {name: value for name, value in hyper.items() if not (rows[name].later and value == rows[name].default)}


def weights_of(family: Family, shape: tuple[int, ...], settings: Mapping[str, Any], seed: int) -> dict[str, Tensor]:
    """The weights of a member by name; on the meta device, without memory, where its networks can be built there."""
    return (_without_memory(family, shape, settings) or build_member(family, shape, settings, seed)).state_dict()


def filled_member(
    family: Family, shape: tuple[int, ...], settings: Mapping[str, Any], seed: int, weights: Mapping[str, Tensor]
) -> nn.ModuleDict:
    """The modules of a member with copies of these weights, named as by `weights_of`, in evaluation mode."""
    built = _without_memory(family, shape, settings)
    if built is None or len(built.state_dict()) < sum(1 for _ in (*built.parameters(), *built.buffers())):
        built = build_member(family, shape, settings, seed)  # buffers that are not saved have to be computed
    built.load_state_dict({name: value.clone() for name, value in weights.items()}, assign=True)
    return built.eval()


def _without_memory(family: Family, shape: tuple[int, ...], settings: Mapping[str, Any]) -> nn.ModuleDict | None:
    """The modules of any member on the meta device; None of networks whose constructors read values of weights."""
    try:
        with torch.device("meta"):
            return build_member(family, shape, settings, 0)
    except (RuntimeError, TypeError):
        return None


def structural_settings(family: Family, members: Sequence[Member], space: Space | None = None) -> dict[str, Any]:
    """Settings for `build` and the losses: structural hyperparameters, and the family's facts about `space`, if given.

    Raises:
        ValueError: the members do not agree, and cannot be stacked; or the family cannot learn from these factors.
    """
    first: dict[str, Any] = {
        name: members[0].hyper[name] for name, row in family.hyperparameters.items() if row.is_structural
    }
    for member in members[1:]:
        for name, value in first.items():
            if member.hyper[name] != value:
                raise ValueError(f"stacked members agree in {name}; got {value} and {member.hyper[name]}")
    if family.facts and space is not None:
        with _refusing(family):
            first |= family.facts(space, first)
    return first


def make_supply(family: Family, space: Space, settings: Settings, seed: int) -> Supply | None:
    """The supervision of a member with this seed; None for an unsupervised family.

    Raises:
        ValueError: these factors cannot give it; says why.
    """
    if family.supervision is None:
        return None
    with _refusing(family):
        return family.supervision.make(space, settings, stream(seed, "supervision") & (1 << 63) - 1)


@contextmanager
def _refusing(family: Family) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{family.title} cannot be trained on this dataset: {error}") from None
