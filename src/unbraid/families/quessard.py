"""Quessard's environment model: codes of length 1 that actions rotate."""

from typing import Any, cast

from torch import Tensor, nn
from torch.nn import functional

from unbraid.data import Space, walks
from unbraid.families.common import COMMON, always
from unbraid.families.family import (
    Batch,
    Context,
    Draw,
    Family,
    Hyper,
    Hyperparameter,
    Items,
    LossOutput,
    OptimizerStep,
    Part,
    Settings,
    Supervision,
    Supply,
    whole,
)
from unbraid.families.likelihoods import bernoulli_nll
from unbraid.families.networks import Shape, network_pair, promote
from unbraid.families.quessard_loss import quessard, unroll
from unbraid.families.rotations import ActionRotations
from unbraid.families.supervision import by_hyperparameters, cyclic_of, grid_of


def make_trajectories(space: Space, settings: Settings, seed: int) -> Supply:
    """Random walks whose actions are known."""
    n, length = settings["trajectories"], settings["trajectory_length"]
    with by_hyperparameters(n="trajectories", length="trajectory_length", step="action_step"):
        series = walks(grid_of(space), n, length + 1, step=settings["action_step"], seed=seed)
    assert series.actions is not None
    items = Items(series.index, {"actions": series.actions}, per_batch=settings["trajectories_at_once"])
    return Supply({"trajectories": items}, {"trajectories": n, "actions": series.actions.size})


def build_quessard(shape: Shape, settings: Settings) -> nn.ModuleDict:
    n = settings["latents"]
    encoder, decoder = network_pair(settings["network"], shape, n, n)
    actions = ActionRotations(settings["n_actions"], n, settings["angle_speed"])
    return nn.ModuleDict({"encoder": encoder, "decoder": decoder, "actions": actions})


def encode_quessard(modules: nn.ModuleDict, images: Tensor, settings: Settings) -> tuple[Tensor, None]:
    """Vectors of length 1."""
    return functional.normalize(promote(modules["encoder"](images)), dim=-1), None


def decode_quessard(modules: nn.ModuleDict, codes: Tensor, settings: Settings) -> Tensor:
    return promote(modules["decoder"](codes)).sigmoid()


def quessard_loss(modules: nn.ModuleDict, batch: Batch, hyper: Hyper, step: Any, context: Context) -> LossOutput:
    images, actions = batch["trajectories"], batch["trajectories actions"]
    rotations = cast(ActionRotations, modules["actions"])
    first, _ = encode_quessard(modules, images[:, 0], context.settings)
    codes = unroll(first, rotations(), actions)
    logits = promote(modules["decoder"](codes.flatten(0, 1)))
    errors = bernoulli_nll(logits, images.flatten(0, 1)).unflatten(0, images.shape[:2])
    n_pixels = images[0, 0].numel()
    return *quessard(errors, rotations.angles, n_pixels=n_pixels, strength=hyper["entanglement_weight"]), {}


QUESSARD = Family(
    title="Environment model of rotations (Quessard)",
    pixels_from_0_to_1=True,
    build=build_quessard,
    optimizer_steps=(
        OptimizerStep("model", ("encoder", "decoder", "actions"), quessard_loss, (Draw("trajectories", "given"),)),
    ),
    hyperparameters={
        **{name: each for name, each in COMMON.items() if name not in {"likelihood", "sigma", "reconstruction_weight"}},
        "latents": whole(4, "dimension of the codes", 2, 100),
        "learning_rate": Hyperparameter(1e-3, "of Adam", 0.0, 1.0),
        "angle_speed": Hyperparameter(
            10.0, "the angles learn this many times as fast as the networks", 1e-3, 1e3, structural=True
        ),
        "entanglement_weight": Hyperparameter(0.01, "of the planes beside each action's largest", 0.0, 1e6),
        "trajectories": whole(48_000, "random walks", 1, 1e8),
        "trajectory_length": whole(5, "actions of each", 1, 1e4),
        "trajectories_at_once": whole(16, "of a step", 1, 1e5),
        "action_step": whole(1, "levels that an action moves its factor", 1, 1e6),
    },
    encode=encode_quessard,
    decode=decode_quessard,
    version=2,  # turns of a cyclic factor whose last level is its first again
    source="Quessard et al. 2020, sections 3-4",
    diverges_when_stacked=always,
    supervision=Supervision(
        "actions", "a full grid of factors, at least one of them cyclic", ("trajectories",), make_trajectories
    ),
    facts=lambda space, _: {"n_actions": 2 * len(cyclic_of(space))},  # of each factor up and down
    parts=lambda settings: (Part("z", "sphere", settings["latents"]),),
    notes=(
        "Only the first image of a trajectory is encoded; batch_size is not used. The loss is in nats per pixel, as "
        "published; the reconstruction in the curves is per image.",
        "The published run takes 3 000 steps of 16 new trajectories: 48 000. Learning rates are those of the authors' "
        "teapot notebook (0.001, angles 0.01); their Flatland has 0.01 for both, on a smaller network.",
    ),
)
