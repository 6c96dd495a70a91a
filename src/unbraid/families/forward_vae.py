"""ForwardVAE: a VAE supervised by the action between two images, and by the plane that each action turns."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import selu

from unbraid.data import Space, walks
from unbraid.families.common import COMMON, in_half_precision
from unbraid.families.divergences import gaussian_kl
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
    Settings,
    Supervision,
    Supply,
    whole,
)
from unbraid.families.networks import Shape
from unbraid.families.supervision import by_hyperparameters, cyclic_of, grid_of
from unbraid.families.vae import GaussianVAE, build_vae

DECAY = 0.995  # of the weight of the KL, per step
LOG_DECAY = torch.log(torch.tensor(DECAY, dtype=torch.float64)).item()


def plane_matrices(blocks: Tensor, planes: Sequence[int], n: int) -> Tensor:
    """One matrix per action: the identity but for a free 2 x 2 block on the action's plane.

    Args:
        blocks: (n_actions, 2, 2).
        planes: of each action; plane k is spanned by latents 2 k and 2 k + 1.
        n: number of latents.

    Returns:
        (n_actions, n, n).

    Example:
        >>> plane_matrices(torch.tensor([[[2.0, 3.0], [4.0, 5.0]]]), (1,), 4)[0].long().tolist()
        [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 2, 3], [0, 0, 4, 5]]
    """
    identity = torch.eye(n, dtype=blocks.dtype, device=blocks.device)
    matrices = []
    for block, plane in zip(blocks.unbind(0), planes, strict=True):
        place = identity[:, 2 * plane : 2 * plane + 2]
        matrices.append(identity - place @ place.T + place @ block @ place.T)
    return torch.stack(matrices)


class ActionBlocks(nn.Module):
    """A free 2 x 2 block per action, all ones at the start as in the authors' code."""

    def __init__(self, n_actions: int) -> None:
        super().__init__()
        self.blocks = nn.Parameter(torch.ones(n_actions, 2, 2))


def plane_facts(space: Space, settings: Settings) -> dict[str, Any]:
    """Two actions and a plane of two latents for each cyclic factor."""
    planes = len(cyclic_of(space))
    latents = settings["latents"] or 2 * planes
    if latents < 2 * planes:
        raise ValueError(f"its {planes} cyclic factors need {2 * planes} latents, two each; got latents {latents}")
    return {"latents": latents, "planes": [action // 2 for action in range(2 * planes)]}


def make_transitions(space: Space, settings: Settings, seed: int) -> Supply:
    """One long random walk, cut into pairs of neighbouring images with the action between them."""
    with by_hyperparameters(length="transitions", step="action_step"):
        series = walks(grid_of(space), 1, settings["transitions"] + 1, step=settings["action_step"], seed=seed)
    before, actions, after = series.transitions()
    items = Items(np.stack([before, after], axis=1), {"actions": actions})
    return Supply({"transitions": items}, {"transitions": len(actions)})


def build_forward_vae(shape: Shape, settings: Settings) -> nn.ModuleDict:
    modules = build_vae(shape, settings)
    modules["actions"] = ActionBlocks(len(settings["planes"]))
    return modules


def encode_forward_vae(
    modules: nn.ModuleDict,
    images: Tensor,
    settings: Settings,
) -> tuple[Tensor, Tensor]:
    """Posterior means and log-variances."""
    means, log_deviations = _posterior(modules, images)
    return means, 2 * log_deviations


def _posterior(modules: nn.ModuleDict, images: Tensor) -> tuple[Tensor, Tensor]:
    """Means, and logarithms of standard deviations, none below -1.758.

    The noise cannot fade away, so that codes must stay far apart for the images to be told from each other. Without
    this bound they shrink until any matrix predicts the next one well.
    """
    outputs = cast(GaussianVAE, modules["vae"]).encode(images)
    means, log_deviations = (selu(values) for values in outputs)
    return means, log_deviations


def decode_forward_vae(modules: nn.ModuleDict, codes: Tensor, settings: Settings) -> Tensor:
    return cast(GaussianVAE, modules["vae"]).decode(codes).sigmoid()


def forward_vae_loss(modules: nn.ModuleDict, batch: Batch, hyper: Hyper, step: Any, context: Context) -> LossOutput:
    """Mean squared errors of the image and of the next mean, and a KL that fades away.

    Reference:
        Caselles-Dupre et al. 2019, section 4, as in the authors' code: all three terms are means over their
        elements, the KL over latents, too. What the KL takes for a log-variance, sampling takes for the logarithm of
        the standard deviation, there as here: with the noise of the former reading nothing is learned. The next mean
        is not detached.
    """
    vae, settings = cast(GaussianVAE, modules["vae"]), context.settings
    images, noise = batch["transitions"], batch["noise"]
    posterior = _posterior(modules, images.flatten(0, 1))
    means, log_deviations = (values.unflatten(0, images.shape[:2]) for values in posterior)
    sample = means[:, 0] + noise[:, 0] * torch.exp(log_deviations[:, 0])
    blocks = cast(ActionBlocks, modules["actions"]).blocks
    matrices = plane_matrices(blocks, settings["planes"], settings["latents"])[batch["transitions actions"].long()]
    predicted = (matrices @ sample[..., None]).squeeze(-1)
    squares = (vae.decode(sample).sigmoid() - images[:, 0]).square().flatten(1).mean(-1)
    mean, following = means[:, 0], means[:, 1]
    kl = gaussian_kl(mean, log_deviations[:, 0])
    forward = (predicted - following).square().mean()
    # As a power of e, since `step` may be a tensor of whole numbers.
    fading = torch.exp(torch.as_tensor(step, dtype=mean.dtype, device=mean.device) * LOG_DECAY)
    loss = squares.mean() + hyper["beta"] * fading * kl.mean() + forward
    return loss, {"reconstruction": squares.mean(), "kl": kl.sum(-1).mean(), "forward": forward}, {}


FORWARD_VAE = Family(
    title="ForwardVAE",
    pixels_from_0_to_1=True,
    build=build_forward_vae,
    optimizer_steps=(
        OptimizerStep(
            "vae",
            ("vae", "actions"),
            forward_vae_loss,
            (Draw("transitions", "given"), Draw("noise", "normal", ("latents",), of="transitions")),
        ),
    ),
    hyperparameters={
        "latents": whole(0, "number of latents; 0: two per cyclic factor", 0, 1000),
        "network": COMMON["network"],
        "learning_rate": Hyperparameter(1e-3, "of Adam", 0.0, 1.0),
        "beta": Hyperparameter(1.0, "weight of the KL at the first step; it falls by 0.5 % a step", 0.0, 1e6),
        "transitions": whole(10_000, "steps of one random walk", 1, 1e8),
        "action_step": whole(1, "levels that an action moves its factor", 1, 1e6),
    },
    encode=encode_forward_vae,
    decode=decode_forward_vae,
    version=2,  # turns of a cyclic factor whose last level is its first again
    source="Caselles-Dupre et al. 2019, section 4",
    cites=("caselles2019symmetry",),
    formula=(
        r"-\mathbb{E}_{q(z|x)} \log p(x|z) + \beta \, \alpha^s \sum_j \mathrm{KL}_j + \left\| A_a z_t - \mu_{t+1} "
        r"\right\|^2",
        "$A_a$ is one linear map per action, free on the plane that the action is given and the identity "
        r"elsewhere; $\alpha^s$ fades the divergence out over the steps $s$.",
    ),
    diverges_when_stacked=in_half_precision,
    supervision=Supervision(
        "actions", "a full grid of factors, at least one of them cyclic", ("transitions",), make_transitions
    ),
    facts=plane_facts,
    notes=(
        "Which plane each action turns is given, two latents per cyclic factor in order; the 2 x 2 matrices are "
        "learned and need not be rotations.",
        "A step takes batch_size / 2 transitions of two images each, shuffled; the published run takes 128 in order "
        "for 35 epochs of 10 000.",
        "As published, means and logarithms of standard deviations pass through SELU, and the KL takes the latter for "
        "log-variances; other layers have ReLU here.",
    ),
)
