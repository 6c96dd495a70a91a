"""Learning rate schedules, warm-up of beta, and gradient clipping.

All are functions of the step alone, so that checkpoints need not contain them, except the schedule "plateau", which
depends on the loss: its state is part of a member's state.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from unbraid.families.family import Plateau
from unbraid.training.torch_optimizers import check_optimizer


def check_schedules(hyper: Mapping[str, Any], steps: int) -> None:
    """Raises ValueError for a warm-up that is longer than the training, or what PyTorch's optimizers refuse."""
    for name, what, most in (("rate_warmup", "learning rates", steps), ("beta_warmup", "beta", steps - 1)):
        if steps and hyper.get(name, 0) > most:
            raise ValueError(
                f"{name} must be at most {most} in a training of {steps} steps, or {what} would never be reached; "
                f"got {hyper[name]}"
            )
    check_optimizer(hyper, steps)


def rate_factor(step: int, steps: int, schedule: str, warmup: float) -> float:
    """Factor of the learning rates at step number `step`, from 0.

    During the first `warmup` steps 1 / warmup, 2 / warmup, ... 1. Then, with x the part that is over of all steps
    after these, 1 ("constant", and "plateau" and those of PyTorch, whose own factor comes on top), 1 - x ("linear") or
    (1 + cos(pi x)) / 2 ("cosine": Loshchilov and Hutter 2017, eq. 5, without restarts).
    """
    if step < warmup:
        return (step + 1) / warmup
    over = (step - warmup) / (steps - warmup)
    return {"linear": 1 - over, "cosine": (1 + math.cos(math.pi * over)) / 2}.get(schedule, 1.0)


def new_plateau(n_members: int | None = None) -> Tensor:
    """Initial state of the schedule "plateau" for an optimizer step: (6,), or (n_members, 6).

    Columns: factor of the learning rate, best mean loss of an epoch, epochs in a row without improvement, remaining
    epochs of the cool-down, and of the current epoch the sum of losses and their number.
    """
    state = torch.tensor([1.0, math.inf, 0, 0, 0, 0], dtype=torch.float64)
    return state if n_members is None else state.repeat(n_members, 1)


def plateau_step(state: Tensor, loss: Tensor, rate: float | Tensor, plateau: Plateau, *, ends: bool) -> Tensor:
    """The state after one more loss: the learning rate is halved if the loss of epochs no longer falls.

    An epoch is an improvement if its loss is below (1 - threshold) times the best one. After more than `patience`
    epochs in a row without one, the rate is halved, unless by less than `epsilon`; then `cooldown` epochs do not count.

    Args:
        state: of `new_plateau`.
        loss: of this move, () or (n_members,).
        rate: the learning rate without any factor.
        plateau: of the optimizer step.
        ends: whether the epoch is over with this move.

    Reference:
        `torch.optim.lr_scheduler.ReduceLROnPlateau` with factor 0.5, as Hajimiri et al. 2021 use it.
    """
    factor, best, bad, waits, total, count = state.unbind(-1)
    total, count = total + loss.double(), count + 1
    if ends:
        mean = total / count
        better = mean < best * (1 - plateau.threshold)
        best, bad = torch.where(better, mean, best), torch.where(better, 0, bad + 1)
        bad, waits = torch.where(waits > 0, 0, bad), (waits - 1).clamp(min=0)
        over = bad > plateau.patience
        factor = torch.where(over & (factor * rate / 2 > plateau.epsilon), factor / 2, factor)
        waits, bad = torch.where(over, plateau.cooldown, waits), torch.where(over, 0, bad)
        total, count = torch.zeros_like(total), torch.zeros_like(count)
    return torch.stack([factor, best, bad, waits, total, count], dim=-1)


def beta_factor(step: int, warmup: float) -> float:
    """Factor of beta at step number `step`: 0, 1 / warmup, 2 / warmup, ... 1; 1 without a warm-up."""
    return min(1.0, step / warmup) if warmup else 1.0


def clipped(gradients: Sequence[Tensor], most: float | Tensor) -> list[Tensor]:
    """Gradients scaled so that their joint Euclidean norm is at most `most`; 0: unchanged.

    Args:
        gradients: of one member, or each with the members in front.
        most: a number; or one per stacked member, (n_members,).
    """
    members = len(most) if isinstance(most, Tensor) else 1
    squares = [gradient.reshape(members, -1).square().sum(1) for gradient in gradients]
    norm = torch.stack(squares).sum(0).sqrt()
    limit = torch.as_tensor(most).to(norm)
    scale = torch.where((limit > 0) & (norm > limit), limit / norm, torch.ones_like(norm))
    return [(gradient.reshape(members, -1) * scale[:, None]).reshape(gradient.shape) for gradient in gradients]
