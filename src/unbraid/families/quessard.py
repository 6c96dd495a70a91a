"""Quessard's environment model: codes of length 1 that actions rotate."""

import math
from itertools import combinations
from typing import Any, cast

import torch
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
from unbraid.families.supervision import by_hyperparameters, cyclic_of, grid_of


def rotation_matrices(angles: Tensor, n: int) -> Tensor:
    """Products of rotations in all planes: (..., n (n - 1) / 2) angles to (..., n, n) matrices of SO(n).

    The product runs over planes (1, 2), (1, 3), ..., (n - 1, n) from the left; the rotation in plane (i, j) has
    cos at (i, i) and (j, j), sin at (i, j) and -sin at (j, i).

    Reference:
        Quessard et al. 2020, section 3; order and signs as in the authors' code.

    Example:
        >>> rotation_matrices(torch.tensor([torch.pi / 2]), 2).round().long().tolist()
        [[0, 1], [-1, 0]]
    """
    cosine, sine = angles.cos(), angles.sin()
    product = torch.eye(n, dtype=angles.dtype, device=angles.device).expand(*angles.shape[:-1], n, n)
    for plane, (i, j) in enumerate(combinations(range(n), 2)):
        c, s = cosine[..., plane, None], sine[..., plane, None]
        columns = list(product.unbind(-1))
        columns[i], columns[j] = c * columns[i] - s * columns[j], s * columns[i] + c * columns[j]
        product = torch.stack(columns, dim=-1)
    return product


class ActionRotations(nn.Module):
    """One rotation of n-dimensional codes per action.

    Args:
        n_actions: how many.
        n: dimension of the codes.
        speed: the angles are this times the parameters, and so learn this many times as fast as other parameters
            under the same Adam, whose steps do not depend on the scale of gradients.

    Angles start uniform on (-pi / n, pi / n), from torch's generator.
    """

    def __init__(self, n_actions: int, n: int, speed: float = 1.0) -> None:
        super().__init__()
        self.n, self.speed = n, speed
        start = torch.empty(n_actions, n * (n - 1) // 2).uniform_(-math.pi / n, math.pi / n)
        self.parameters_of_angles = nn.Parameter(start / speed)

    @property
    def angles(self) -> Tensor:
        """(n_actions, n (n - 1) / 2), radians."""
        return self.speed * self.parameters_of_angles

    def forward(self) -> Tensor:
        """(n_actions, n, n)."""
        return rotation_matrices(self.angles, self.n)


def unroll(first: Tensor, matrices: Tensor, actions: Tensor) -> Tensor:
    """Codes of whole trajectories: z_(t + 1) = rho(a_t) z_t.

    Args:
        first: (n, d) codes of the first images.
        matrices: (n_actions, d, d).
        actions: (n, T) whole numbers.

    Returns:
        (n, T + 1, d), the first code included.
    """
    codes = [first]
    for action in actions.unbind(1):
        codes.append((matrices[action.long()] @ codes[-1][..., None]).squeeze(-1))
    return torch.stack(codes, dim=1)


def entanglement(angles: Tensor) -> Tensor:
    """Mean over actions of the squared angles of all planes but the largest; 0 where every action turns one plane.

    Args:
        angles: (n_actions, n_planes) radians.

    Reference:
        Quessard et al. 2020, section 3.2: the regulariser that makes the representation disentangled.
    """
    squares = angles.square()
    return (squares.sum(-1) - squares.amax(-1)).mean()


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
    """Mean error along trajectories plus the weighted entanglement of the actions; nats per pixel.

    Reference:
        Quessard et al. 2020, eq. 1-2 as in the authors' code: T + 1 terms are divided by T.
    """
    images, actions = batch["trajectories"], batch["trajectories actions"]
    rotations = cast(ActionRotations, modules["actions"])
    first, _ = encode_quessard(modules, images[:, 0], context.settings)
    codes = unroll(first, rotations(), actions)
    logits = promote(modules["decoder"](codes.flatten(0, 1)))
    errors = bernoulli_nll(logits, images.flatten(0, 1)).unflatten(0, images.shape[:2])
    entangled = entanglement(rotations.angles)
    frames = errors.shape[1]
    loss = errors.mean() / images[0, 0].numel() * frames / (frames - 1) + hyper["entanglement_weight"] * entangled
    return loss, {"reconstruction": errors.mean(), "entanglement": entangled}, {}


QUESSARD = Family(
    title="Environment model of rotations (Quessard)",
    pixels_from_0_to_1=True,
    build=build_quessard,
    optimizer_steps=(
        OptimizerStep("model", ("encoder", "decoder", "actions"), quessard_loss, (Draw("trajectories", "given"),)),
    ),
    hyperparameters={
        "latents": whole(4, "dimension of the codes", 2, 100),
        "network": COMMON["network"],
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
    cites=("quessard2020learning",),
    formula=(
        r"\frac{1}{T} \sum_{t=0}^{T} \mathrm{BCE}\left( p(\rho_{a_t} \cdots \rho_{a_1} z_0), x_t \right) + "
        r"\lambda \frac{1}{|A|} \sum_a \left( \sum_{i<j} (\theta^a_{ij})^2 - \max_{i<j} (\theta^a_{ij})^2 \right)",
        r"Only the first frame is encoded, to a unit vector $z_0$. Each action $a$ has a matrix $\rho_a$ that is "
        r"a product of rotations by $\theta^a_{ij}$ in all planes; the second term leaves it one plane.",
    ),
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
