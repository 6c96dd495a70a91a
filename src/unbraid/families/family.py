"""What a family is made of; see `unbraid.families` for how to add one."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np
from torch import Tensor, nn

from unbraid.base.types import FloatArray, IntArray
from unbraid.data import Space
from unbraid.families.networks import Shape
from unbraid.families.torch_classes import canonical
from unbraid.files.trust import is_code, named

Value: TypeAlias = float | int | str
Settings: TypeAlias = Mapping[str, Any]
Hyper: TypeAlias = Mapping[str, Any]  # numbers as floats or 0-d tensors, structural values as they are
Batch: TypeAlias = Mapping[str, Tensor]
Logs: TypeAlias = dict[str, Tensor]
LossOutput: TypeAlias = tuple[Tensor, Logs, Logs]  # to be minimised; for the curves; for later optimizer steps
LogDensity: TypeAlias = Callable[[Tensor], Tensor]  # codes (n, n_codes) -> that of each by itself, (n, n_codes)
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
    kind: Literal["float", "int", "choice", "text"] = "float"
    choices: tuple[str, ...] = ()  # of a choice; "" at the end: or code of the user's own, as module:function
    structural: bool = False  # choices and texts always are
    later: bool = False  # added after the first runs: at its default left out of configs, so that ids stay
    module: str = ""  # of a choice: or a class of this torch module by name, with options

    @property
    def is_structural(self) -> bool:
        return self.structural or self.kind in ("choice", "text")


def whole(default: int, help: str, low: float, high: float) -> Hyperparameter:
    """A structural whole number."""
    return Hyperparameter(default, help, low, high, kind="int", structural=True)


def choice(default: str, help: str, *choices: str) -> Hyperparameter:
    """One of several words; "" among them allows code of the user's own, as package.module:function."""
    return Hyperparameter(default, help, kind="choice", choices=choices)


FAMILY_OPTIMIZER, NO_AUGMENTATION = "family", "none"
BUILT_IN_SCHEDULES = ("constant", "cosine", "linear", "plateau")

# Added to the hyperparameters of every family with optimizer steps, unless it has its own of the same name.
TRAINING: Mapping[str, Hyperparameter] = MappingProxyType(
    {
        "initialisation": Hyperparameter(
            "pytorch",
            "of linear and convolutional layers: as PyTorch does it (the residual network has its own), or Glorot's "
            "uniform with zero biases, as TensorFlow does it",
            kind="choice",
            choices=("pytorch", "glorot"),
            later=True,
        ),
        "optimizer": Hyperparameter(
            FAMILY_OPTIMIZER,
            "Adam as the family's paper sets it; or one of torch.optim with its options, such as "
            "AdamW(weight_decay=0.01), at the learning rates of the family",
            kind="choice",
            choices=(FAMILY_OPTIMIZER,),
            later=True,
            module="torch.optim",
        ),
        "schedule": Hyperparameter(
            "constant",
            "of learning rates, after their warm-up; cosine and linear fall to 0 at the last step, plateau halves them "
            "where the loss falls no more; or one of torch.optim.lr_scheduler, such as StepLR(step_size=1000)",
            kind="choice",
            choices=BUILT_IN_SCHEDULES,
            later=True,
            module="torch.optim.lr_scheduler",
        ),
        "augment": Hyperparameter(
            NO_AUGMENTATION,
            "of the images of every batch, but not of those that are held out, encoded or scored: your own function, "
            "package.module:function, which takes and returns images (n, channels, height, width) from 0 to 1",
            kind="choice",
            choices=(NO_AUGMENTATION, ""),
            later=True,
        ),
        "rate_warmup": Hyperparameter(
            0, "steps over which learning rates rise linearly to their values", 0, 1e12, kind="int", later=True
        ),
        "clip": Hyperparameter(
            0.0,
            "largest norm of an optimizer step's gradient, longer ones are scaled to it; 0: none",
            0.0,
            1e12,
            later=True,
        ),
    }
)
BETA_WARMUP = Hyperparameter(0, "steps over which beta rises linearly from 0", 0, 1e12, kind="int", later=True)


def uses_torch(settings: Mapping[str, Any]) -> bool:
    """Whether an optimizer or a schedule of PyTorch's is asked for, which moves one member at a time."""
    own = settings.get("optimizer", FAMILY_OPTIMIZER) != FAMILY_OPTIMIZER
    return own or settings.get("schedule", "constant") not in BUILT_IN_SCHEDULES


def check_value(name: str, row: Hyperparameter, value: Any) -> Value:
    """The value of a hyperparameter in the type that its row asks for: 4 and 4.0, or 0 and -0.0, are the same run.

    Raises:
        ValueError: of another kind, or out of bounds.
    """
    if row.kind == "choice":
        choices = [choice for choice in row.choices if choice]
        if "" in row.choices and callable(value):
            value = named(value)
        known = isinstance(value, str) and (value in choices or ("" in row.choices and is_code(value)))
        if not known and row.module and isinstance(value, str):
            try:
                return canonical(row.module, value, choices)
            except ValueError as error:
                raise ValueError(f"{name} must be {', '.join(choices)} or a class of {row.module}: {error}") from None
        if not known:
            own = ", or your own as package.module:function" if "" in row.choices else ""
            raise ValueError(f"{name} must be one of {', '.join(choices)}{own}; got {value!r}")
        return value
    if row.kind == "text":
        if not isinstance(value, str | int) or isinstance(value, bool) or not str(value):
            raise ValueError(f"{name} must be a text; got {value!r}")
        return str(value)
    number = not isinstance(value, bool | np.bool_) and isinstance(value, int | float | np.integer | np.floating)
    if not number or not abs(value) <= sys.float_info.max or (row.kind == "int" and value != int(value)):
        raise ValueError(f"{name} must be a {'whole ' if row.kind == 'int' else ''}number; got {value!r}")
    if not row.low <= value <= row.high:
        raise ValueError(f"{name} must lie between {row.low:g} and {row.high:g}; got {value:g}")
    return int(value) if row.kind == "int" else float(value) + 0.0


@dataclass(frozen=True)
class Draw:
    """Random input of an optimizer step, drawn anew whenever it moves; the first axis is the batch.

    `images`: (batch, c, h, w) in [0, 1], or (batch, n_features); every image once before any twice.
    `given`: items of the member's supervision, every item once before any twice: their images (items, ..., c, h, w)
    under `name`, and what is known of them under "name known", such as "groups turns" (items, ...).
    `normal`, `uniform`: (batch, *shape), uniform on (0, 1).
    `permutation`: (batch, *shape) whole numbers, each column a shuffle of 0 .. batch - 1 of its own.

    Entries of `shape` are numbers, or names of settings such as "latents".
    """

    name: str
    kind: Literal["images", "given", "normal", "uniform", "permutation"]
    shape: tuple[int | str, ...] = ()
    of: str = ""  # Items to take, `name` by default; or, for noise, one draw per image of these (items, ..., *shape)


@dataclass(frozen=True)
class Adam:
    """Adam's settings: numbers, or names of hyperparameters, which then may differ between stacked members.

    `weight_decay` is decoupled (AdamW), of the parameters that are named `weight`: those of layers, not their biases.
    """

    learning_rate: float | str = "learning_rate"
    beta1: float | str = 0.9
    beta2: float | str = 0.999
    epsilon: float | str = 1e-8
    weight_decay: float | str = 0.0


@dataclass(frozen=True)
class Plateau:
    """When a learning rate is halved under the schedule "plateau"; an epoch is what shows every image."""

    threshold: float = 1e-2  # share by which an epoch's loss must fall to be better
    patience: int = 1  # epochs that may be no better
    cooldown: int = 4  # epochs after a halving that do not count
    epsilon: float = 1e-7  # smallest step by which it is lowered


@dataclass(frozen=True)
class Context:
    """What is the same at every step and for every stacked member."""

    settings: Settings  # structural hyperparameters, among them "latents", "likelihood" and "network"
    n_images: int
    batch_size: int
    steps: int
    passes: Mapping[str, int] = field(default_factory=dict)  # moves that show all items once, by name of Items

    @property
    def image_pass(self) -> int:
        """Moves that show every image once."""
        return -(-self.n_images // self.batch_size)


@dataclass(frozen=True, eq=False)
class Items:
    """Images of which something is known: n items of one or several images each."""

    positions: IntArray  # (n, ...) of the images in the dataset
    known: Mapping[str, FloatArray | IntArray] = field(default_factory=dict)  # (n, ...) each
    per_batch: int = 0  # items at a time; 0: as many as hold batch_size images, one at least

    def at_a_time(self, batch_size: int) -> int:
        """Items of one batch, all of them at most."""
        images = int(np.prod(self.positions.shape[1:]))
        return min(self.per_batch or max(1, batch_size // images), len(self.positions))


@dataclass(frozen=True, eq=False)
class Supply:
    """The supervision of one member; the same whenever it is made again."""

    items: Mapping[str, Items]
    used: Mapping[str, int]  # amounts, for the run's record: {"pairs": 256}


@dataclass(frozen=True)
class Supervision:
    """The kind of supervision that a family needs.

    `make(space, settings, seed)` chooses that of one member; number and shapes of items do not depend on the seed. It
    raises ValueError with the reason where the factors do not allow it.
    """

    kind: Literal["pairs", "transformations", "labels", "actions"]
    needs: str  # of the dataset, for readers: "a full grid of factors, at least one of them cyclic"
    amounts: tuple[str, ...]  # the hyperparameters that say how much; structural
    make: Callable[[Space, Settings, int], Supply]


@dataclass(frozen=True)
class Event:
    """Something done once to each member, before the optimizer steps of step number `step(context)`, if that comes.

    `apply(modules, supply, images, hyper, context)` changes parameters or buffers in place and draws nothing at
    random; modules are in evaluation mode, without gradients.
    """

    step: Callable[[Context], int]
    apply: Callable[[nn.ModuleDict, Supply, ImageSource, Hyper, Context], None]


@dataclass(frozen=True)
class Part:
    """Codes that belong together.

    "gaussian": posterior means, each code for itself. "point": outputs of a deterministic encoder, each for itself.
    "circle": two codes, cosine and sine of an angle. "sphere": a vector of length 1. "quantized": one of few values,
    each for itself.
    """

    name: str
    kind: Literal["gaussian", "point", "circle", "sphere", "quantized"]
    size: int


@dataclass(frozen=True)
class OptimizerStep:
    """One loss, the modules it trains and how; see `unbraid.families` for what the loss receives."""

    name: str
    trains: tuple[str, ...]
    loss: Callable[[nn.ModuleDict, Batch, Hyper, Any, Context], LossOutput]
    draws: tuple[Draw, ...]
    adam: Adam = field(default_factory=Adam)
    repeats: int = 1
    turn: Callable[[int, Context], int | None] | None = None  # how often it moved before this step; None: it waits
    plateau: Plateau = field(default_factory=Plateau)


@dataclass(frozen=True)
class Family:
    """One row of the table of families. One that is trained in steps has the hyperparameters of TRAINING as well."""

    title: str
    build: Callable[[Shape, Settings], nn.ModuleDict]
    optimizer_steps: tuple[OptimizerStep, ...]
    hyperparameters: Mapping[str, Hyperparameter]
    encode: Callable[[nn.ModuleDict, Tensor, Settings], tuple[Tensor, Tensor | None]]
    decode: Callable[[nn.ModuleDict, Tensor, Settings], Tensor]
    source: str
    cites: tuple[str, ...] = ()  # keys of references.bib, the paper to cite first in front
    formula: tuple[str, str] = ("", "")  # what is minimised, in LaTeX, and a sentence on its symbols
    presets: Mapping[str, tuple[Mapping[str, Value], ...]] = field(default_factory=dict)
    fit: Callable[[nn.ModuleDict, ImageSource, Context], None] | None = None
    notes: tuple[str, ...] = ()
    supervision: Supervision | None = None
    facts: Callable[[Space, Settings], Mapping[str, Any]] | None = None
    events: tuple[Event, ...] = ()
    parts: Callable[[Settings], tuple[Part, ...]] | None = None
    not_stackable_reason: str = ""  # why members cannot be stacked
    # Whether, in this precision, stacked members stray further from the same members alone than docs/training.md says.
    diverges_when_stacked: Callable[[str, Settings], bool] | None = None
    pixels_from_0_to_1: bool = False  # whatever the likelihood, of which it has no choice
    by_length: str = ""  # what depends on the number of steps, so that a finished training cannot go on
    log_prior: Callable[[nn.ModuleDict, Settings], LogDensity | None] | None = None  # None: standard normal
    # Codes (n, n_codes) of the prior from standard normal and uniform noise (n, n_codes) each; None: as `parts` say.
    draw_prior: Callable[[nn.ModuleDict, Settings, Tensor, Tensor], Tensor] | None = None
    version: int = 1  # of what comes out of the same settings; raised whenever a change moves weights, and ids with it

    def __post_init__(self) -> None:
        rows = dict(self.hyperparameters)
        if self.optimizer_steps:
            more = {**TRAINING, "beta_warmup": BETA_WARMUP} if "beta" in rows else TRAINING
            rows |= {name: row for name, row in more.items() if name not in rows}
        object.__setattr__(self, "hyperparameters", MappingProxyType(rows))
        object.__setattr__(self, "presets", MappingProxyType(dict(self.presets)))

    @property
    def cited(self) -> str:
        """Title and source, or the title alone where it contains the source."""
        return self.title if self.source in self.title else f"{self.title} ({self.source})"

    @cached_property
    def swept(self) -> frozenset[str]:
        """Hyperparameters of which a published grid has several values."""
        grids = self.presets.values()
        return frozenset(
            name for grid in grids for name in set().union(*grid) if len({repr(point.get(name)) for point in grid}) > 1
        )

    def stacks(self, precision: str, settings: Settings) -> bool:
        """Whether members are stacked where that is faster, or trained one after the other."""
        return (
            not self.not_stackable_reason
            and not uses_torch(settings)
            and not (self.diverges_when_stacked is not None and self.diverges_when_stacked(precision, settings))
        )


def code_parts(family: Family, settings: Settings) -> tuple[Part, ...]:
    """Parts of a family's codes, in order."""
    return family.parts(settings) if family.parts else (Part("latents", "gaussian", settings["latents"]),)


def completed(family: Family, recorded: Mapping[str, Value]) -> dict[str, Value]:
    """Every hyperparameter: those of config.json, and the defaults of later additions."""
    rows = family.hyperparameters.items()
    return {**{name: row.default for name, row in rows if row.later or name in recorded}, **recorded}
