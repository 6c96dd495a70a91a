"""What changes in the course of a training: learning rates, the weight beta, and gradients that are too long.

Rates and weights are functions of the step alone, so that a training that resumes needs none of them kept.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor


def check_schedules(hyper: Mapping[str, Any], steps: int) -> None:
    """Raises ValueError for a warm-up that would not be over when a training of so many steps ends."""
    for name, what in (("rate_warmup", "learning rates"), ("beta_warmup", "beta")):
        if hyper.get(name, 0) >= steps > 0 and hyper[name]:
            raise ValueError(
                f"{name} must be less than the {steps} steps of the training, or {what} would never be reached; "
                f"got {hyper[name]}"
            )


def rate_factor(step: int, steps: int, schedule: str, warmup: float) -> float:
    """By what learning rates are multiplied at step number `step`, from 0.

    During the first `warmup` steps 1 / warmup, 2 / warmup, ... 1. Then, with x the part that is over of all steps
    after these, 1 ("constant"), 1 - x ("linear") or (1 + cos(pi x)) / 2 ("cosine": Loshchilov and Hutter 2017, eq. 5,
    without restarts).
    """
    if step < warmup:
        return (step + 1) / warmup
    over = (step - warmup) / (steps - warmup)
    return {"constant": 1.0, "linear": 1 - over, "cosine": (1 + math.cos(math.pi * over)) / 2}[schedule]


def beta_factor(step: int, warmup: float) -> float:
    """By what beta is multiplied at step number `step`: 0, 1 / warmup, 2 / warmup, ... 1, and 1 without a warm-up."""
    return min(1.0, step / warmup) if warmup else 1.0


def clipped(gradients: Sequence[Tensor], most: float | Tensor) -> list[Tensor]:
    """Gradients scaled to an Euclidean norm of `most` where that of all of them together is larger; 0: as they are.

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
