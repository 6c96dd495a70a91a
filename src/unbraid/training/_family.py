"""What a family is made of; see `unbraid.training.families` for how to add one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from torch import Tensor, nn

from unbraid.models.networks import Shape

Value: TypeAlias = float | int | str
Settings: TypeAlias = Mapping[str, Any]
Hyper: TypeAlias = Mapping[str, Any]  # numbers as floats or 0-d tensors, structural values as they are
Batch: TypeAlias = Mapping[str, Tensor]
Logs: TypeAlias = dict[str, Tensor]
ImageSource: TypeAlias = Callable[[Any], Tensor]  # positions (n,) -> images (n, c, h, w) float in [0, 1]


@dataclass(frozen=True)
class Hyperparameter:
    """One knob of a family.

    A `structural` one shapes the networks or picks a formula: it reaches the code as a plain Python value and is the
    same for all members that are stacked. Every other is a number that may differ between stacked members.
    """

    default: Value
    help: str
    low: float = float("-inf")  # bounds are inclusive
    high: float = float("inf")
    kind: Literal["float", "int", "choice"] = "float"
    choices: tuple[str, ...] = ()  # of a choice; "" at the end means that any other text is passed on as well
    structural: bool = False  # choices always are

    @property
    def is_structural(self) -> bool:
        return self.structural or self.kind == "choice"


@dataclass(frozen=True)
class Draw:
    """Something random that a player is given every time it moves, the batch in front.

    `images`: (batch, c, h, w) in [0, 1], or (batch, n_features); every image once before any twice.
    `normal`, `uniform`: (batch, *shape), uniform on (0, 1).
    `permutation`: (batch, *shape) whole numbers, each column a shuffle of 0 .. batch - 1 of its own.

    Entries of `shape` are numbers, or names of settings such as "latents".
    """

    name: str
    kind: Literal["images", "normal", "uniform", "permutation"]
    shape: tuple[int | str, ...] = ()


@dataclass(frozen=True)
class Adam:
    """Adam's settings: numbers, or names of hyperparameters, which then may differ between stacked members."""

    learning_rate: float | str = "learning_rate"
    beta1: float | str = 0.9
    beta2: float | str = 0.999
    epsilon: float | str = 1e-8


@dataclass(frozen=True)
class Context:
    """What is the same at every step and for every stacked member."""

    settings: Settings  # structural hyperparameters, among them "latents", "likelihood" and "network"
    n_images: int
    batch_size: int
    steps: int


@dataclass(frozen=True)
class Player:
    """One loss, the modules it trains and how; see `unbraid.training.families` for what the loss receives."""

    name: str
    trains: tuple[str, ...]
    loss: Callable[[nn.ModuleDict, Batch, Hyper, Any, Context], tuple[Tensor, Logs, Logs]]
    draws: tuple[Draw, ...]
    adam: Adam = field(default_factory=Adam)
    repeats: int = 1


@dataclass(frozen=True)
class Family:
    """One row of the table of families."""

    title: str
    build: Callable[[Shape, Settings], nn.ModuleDict]
    players: tuple[Player, ...]
    hyperparameters: Mapping[str, Hyperparameter]
    encode: Callable[[nn.ModuleDict, Tensor, Settings], tuple[Tensor, Tensor | None]]
    decode: Callable[[nn.ModuleDict, Tensor, Settings], Tensor]
    source: str
    presets: Mapping[str, tuple[Mapping[str, Value], ...]] = field(default_factory=dict)
    fit: Callable[[nn.ModuleDict, ImageSource, Context], None] | None = None
    notes: tuple[str, ...] = ()
