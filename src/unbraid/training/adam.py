"""Adam for one member or for stacked members, each with settings of its own."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

Number = float | Tensor  # a Tensor is (n_members,), double precision


@dataclass(frozen=True)
class AdamSettings:
    """Numbers for one member, or one entry per stacked member."""

    learning_rate: Number
    beta1: Number
    beta2: Number
    epsilon: Number
    weight_decay: Number = 0.0

    def at_rate(self, factor: Number) -> "AdamSettings":
        """Settings with the learning rate scaled by `factor`."""
        return (
            self
            if isinstance(factor, float) and factor == 1
            else replace(self, learning_rate=self.learning_rate * factor)
        )

    def with_shared_moments(self) -> "AdamSettings":
        """Settings with plain numbers for both betas and epsilon, if all members agree on them."""
        named = {"beta1": self.beta1, "beta2": self.beta2, "epsilon": self.epsilon}
        values = {name: torch.as_tensor(number).unique().tolist() for name, number in named.items()}
        if any(len(numbers) > 1 for numbers in values.values()):
            return self
        return replace(self, **{name: number for name, (number,) in values.items()})


@torch.no_grad()
def decay_weights(weights: Sequence[Tensor], settings: AdamSettings, alive: Tensor | None = None) -> None:
    """Decay weights in place: multiply by 1 - learning rate * weight decay; comes before Adam's step.

    Args:
        weights: of one member, or each with the members in front.
        settings: numbers, or one per stacked member.
        alive: (n_members,) bool; the weights of the others stay as they are.

    Reference:
        Loshchilov and Hutter 2019, "Decoupled Weight Decay Regularization", algorithm 2, as `torch.optim.AdamW` does.
    """
    left = 1 - settings.learning_rate * settings.weight_decay
    if alive is not None:
        left = torch.where(alive, left, torch.ones((), dtype=torch.float64, device=alive.device))
    for weight in weights:
        weight.mul_(_over(left, weight))


@torch.no_grad()
def adam_update(
    parameters: Sequence[Tensor],
    gradients: Sequence[Tensor],
    first: Sequence[Tensor],
    second: Sequence[Tensor],
    settings: AdamSettings,
    count: int | Tensor,
    alive: Tensor | None = None,
) -> None:
    """One step in place: parameters and both moments.

    Args:
        parameters, gradients, first, second: of one member, or each with the members in front.
        settings: numbers, or one per stacked member.
        count: updates including this one, from 1.
        alive: (n_members,) bool; the parameters of the others stay as they are, even where gradients are NaN.

    Reference:
        Kingma and Ba 2015, algorithm 1; epsilon is added after the bias correction, as `torch.optim.Adam` does.
    """
    numbers = settings.learning_rate, settings.beta1, settings.beta2, settings.epsilon
    shared = not any(isinstance(number, Tensor) for number in numbers)
    if alive is None and shared and parameters and parameters[0].device.type == "cpu":
        _fused(parameters, gradients, first, second, settings, int(count))
        return
    if (
        alive is not None
        and alive.device.type == "cuda"
        and not any(isinstance(number, Tensor) for number in numbers[1:])
    ):
        _fused_stacked(parameters, gradients, first, second, settings, count, alive)
        return
    beta1, beta2 = settings.beta1, settings.beta2
    rate = settings.learning_rate / (1 - beta1**count)
    root = (1 - beta2**count) ** 0.5
    if alive is not None:
        rate = torch.where(alive, rate, torch.zeros((), dtype=torch.float64, device=alive.device))
        gradients = [torch.where(_over(alive, tensor), tensor, 0) for tensor in gradients]
    for parameter, gradient, mean, square in zip(parameters, gradients, first, second, strict=True):
        if isinstance(beta1, Tensor):
            mean.add_((gradient - mean) * _over(1 - beta1, mean))
            square.mul_(_over(beta2, square)).add_(gradient.square() * _over(1 - torch.as_tensor(beta2), square))
        else:
            mean.lerp_(gradient, 1 - beta1)
            square.mul_(beta2).addcmul_(gradient, gradient, value=1 - float(beta2))
        divisor = square.sqrt().div_(_over(root, square)).add_(_over(settings.epsilon, square))
        if isinstance(rate, Tensor):
            parameter.sub_((mean / divisor).mul_(_over(rate, mean)))
        else:
            parameter.addcdiv_(mean, divisor, value=-float(rate))


def _fused(
    parameters: Sequence[Tensor],
    gradients: Sequence[Tensor],
    first: Sequence[Tensor],
    second: Sequence[Tensor],
    settings: AdamSettings,
    count: int,
) -> None:
    """PyTorch's fused CPU kernel, which takes a third of the time. It ignores strides: gradients are aligned first."""
    aligned = [
        gradient if gradient.stride() == parameter.stride() else torch.empty_like(parameter).copy_(gradient)
        for parameter, gradient in zip(parameters, gradients, strict=True)
    ]
    counts = [torch.tensor(float(count))] * len(parameters)
    torch.ops.aten._fused_adam_(
        [*parameters], aligned, [*first], [*second], [], counts,
        lr=float(settings.learning_rate), beta1=float(settings.beta1), beta2=float(settings.beta2),
        eps=float(settings.epsilon), weight_decay=0.0, amsgrad=False, maximize=False,
    )  # fmt: skip


def _fused_stacked(
    parameters: Sequence[Tensor],
    gradients: Sequence[Tensor],
    first: Sequence[Tensor],
    second: Sequence[Tensor],
    settings: AdamSettings,
    count: int | Tensor,
    alive: Tensor,
) -> None:
    """PyTorch's fused GPU kernel. It takes one learning rate: a move at rate 1 is scaled by each member's rate."""
    counts = torch.as_tensor(count, dtype=torch.float32, device=alive.device)
    moves = [torch.zeros_like(parameter) for parameter in parameters]
    masked = [
        torch.empty_like(move).copy_(torch.where(_over(alive, gradient), gradient, 0))
        for move, gradient in zip(moves, gradients, strict=True)
    ]
    torch.ops.aten._fused_adam_(
        moves, masked, [*first], [*second], [], [counts] * len(moves),
        lr=1.0, beta1=float(settings.beta1), beta2=float(settings.beta2),
        eps=float(settings.epsilon), weight_decay=0.0, amsgrad=False, maximize=False,
    )  # fmt: skip
    rate = torch.where(alive, settings.learning_rate, 0.0)
    for parameter, move in zip(parameters, moves, strict=True):
        parameter.addcmul_(move, _over(rate, move))


def _over(number: Any, like: Tensor) -> Any:
    """Per-member numbers in the shape and precision to be combined with `like`; others as they are."""
    if not isinstance(number, Tensor):
        return number
    shaped = number.reshape(-1, *[1] * (like.dim() - 1))
    return shaped if shaped.dtype == torch.bool else shaped.to(like.dtype)
