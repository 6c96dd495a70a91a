"""Steps of a member written out in plain loops.

A test writes each optimizer step's loss from the paper's equations, one image at a time, on nothing but the images
seen and the random numbers drawn. `check` differentiates that, takes Adam's steps by hand, and holds every logged
term, every gradient and every weight of the project to the outcome.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from tests.families.members import PIXELS, SPACE, Move, Played, Weights

Terms: TypeAlias = dict[str, Tensor]
Pair: TypeAlias = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Mover:
    """An optimizer step as its paper describes it.

    `loss(weights, move)` is what it minimises and the terms that are logged; `trains` are the networks that it moves,
    by the beginning of their names; the rest are Adam's numbers, and AdamW's decay of what is named `weight`.
    """

    loss: Callable[[Weights, Move], tuple[Tensor, Terms]]
    trains: tuple[str, ...]
    rate: float = 1e-4
    beta1: float = 0.9
    beta2: float = 0.999
    decay: float = 0.0


def check(
    played: Played,
    movers: Mapping[str, Mover],
    order: Sequence[str],
    events: Mapping[int, Callable[[Weights], Weights]] | None = None,
) -> None:
    """Hold all that was played to the plain losses.

    Args:
        played: by the project.
        movers: each optimizer step by name.
        order: names of all optimizer steps that should have moved, in order.
        events: what changes weights before the optimizer steps move at a step: the new values of some.
    """
    assert [move.mover for move in played.moves] == list(order)
    weights = dict(played.start)
    first, second = ({name: _zeros_of(weights, each.trains) for name, each in movers.items()} for _ in range(2))
    counts = dict.fromkeys(movers, played.first_step)
    sums: list[dict[str, list[float]]] = [{} for _ in played.logs]
    pending = dict(events or {})
    for move in played.moves:
        if move.step in pending:
            weights |= pending.pop(move.step)(weights)
        assert_same(move.weights, weights, f"weights found by {move.mover} at step {move.step}")
        mover = movers[move.mover]
        trained = [name for name in weights if name.startswith(mover.trains)]
        leaves = {name: weights[name].clone().requires_grad_() for name in trained}
        loss, terms = mover.loss({**weights, **leaves}, move)
        gradients = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True, materialize_grads=True)
        for name, value in {f"loss/{move.mover}": loss, **terms}.items():
            sums[move.step - played.first_step].setdefault(name, []).append(value.item())
        counts[move.mover] += 1
        for name, gradient in zip(trained, gradients, strict=True):
            mean = mover.beta1 * first[move.mover][name] + (1 - mover.beta1) * gradient
            square = mover.beta2 * second[move.mover][name] + (1 - mover.beta2) * gradient**2
            first[move.mover][name], second[move.mover][name] = mean, square
            unbiased = mean / (1 - mover.beta1 ** counts[move.mover])
            spread = square / (1 - mover.beta2 ** counts[move.mover])
            left = 1 - mover.rate * mover.decay * name.endswith(".weight")
            weights[name] = left * weights[name] - mover.rate * unbiased / (spread.sqrt() + 1e-8)
    for logged, plain in zip(played.logs, sums, strict=True):
        means = {name: sum(values) / len(values) for name, values in plain.items()}
        assert logged.keys() == means.keys()
        for name, value in means.items():
            assert math.isclose(logged[name], value, rel_tol=1e-9, abs_tol=1e-11), (name, logged[name], value)
    expected = {f"model/{name}": value for name, value in weights.items()}
    for moment, optimizer_steps in (("first", first), ("second", second)):
        for move, values in optimizer_steps.items():
            expected |= {f"{moment}/{move}/{name}": value for name, value in values.items()}
    assert_same(played.state, expected, "in the end")


def assert_same(mine: Weights, plain: Weights, where: str) -> None:
    assert mine.keys() == plain.keys(), where
    for name, value in plain.items():
        torch.testing.assert_close(
            mine[name], value, rtol=1e-7, atol=1e-11, msg=lambda text, name=name: f"{name}, {where}: {text}"
        )


def _zeros_of(weights: Weights, trains: tuple[str, ...]) -> dict[str, Tensor]:
    return {name: torch.zeros_like(value) for name, value in weights.items() if name.startswith(trains)}


# What was seen.


def position(image: Tensor) -> int:
    """Which image of the dataset this is, (2, 1, 3) in [0, 1] with the channels in front."""
    table = torch.from_numpy(PIXELS).double().permute(0, 3, 1, 2) / 255
    found = [number for number, one in enumerate(table) if torch.equal(one, image)]
    assert len(found) == 1
    return found[0]


def levels(image: Tensor) -> list[int]:
    """Its angle, hue and shape."""
    number = position(image)
    return [number // 12, number // 3 % 4, number % 3]


# Networks, one image at a time.


def action(before: Tensor, after: Tensor, step: int = 1) -> int:
    """Which action leads from image to image: 2 k up the k-th cyclic factor, 2 k + 1 down."""
    actions = []
    for k in range(2):
        for way in (1, -1):
            moved = levels(before)
            moved[k] = (moved[k] + way * step) % SPACE.sizes[k]
            if moved == levels(after):
                actions.append(2 * k + (way < 0))
    assert len(actions) == 1
    return actions[0]


def dense(weights: Weights, name: str, values: Tensor) -> Tensor:
    rows, biases = weights[f"{name}.weight"], weights[f"{name}.bias"]
    return torch.stack([(row * values).sum() + bias for row, bias in zip(rows, biases, strict=True)])


def encoder(weights: Weights, name: str, image: Tensor) -> Tensor:
    position(image)
    return encoder_of_any(weights, name, image)


def encoder_of_any(weights: Weights, name: str, image: Tensor) -> Tensor:
    return dense(weights, f"{name}.3", torch.tanh(dense(weights, f"{name}.1", image.flatten())))


def decoder(weights: Weights, name: str, codes: Tensor) -> Tensor:
    return dense(weights, f"{name}.2", torch.tanh(dense(weights, f"{name}.0", codes)))


def gaussian(weights: Weights, image: Tensor) -> Pair:
    """Mean and log-variance of each latent, by the VAE's encoder."""
    outputs = encoder(weights, "vae.encoder", image)
    half = len(outputs) // 2
    return outputs[:half], outputs[half:]


def drawn(posterior: Pair, noise: Tensor) -> Tensor:
    mean, log_variance = posterior
    return mean + torch.sqrt(torch.exp(log_variance)) * noise


# Terms of losses, nats.


def bernoulli(logits: Tensor, image: Tensor) -> Tensor:
    """-log p(x) of pixels that are 1 with probability 1 / (1 + e^-logit)."""
    total = torch.zeros((), dtype=torch.float64)
    for logit, pixel in zip(logits, image.flatten(), strict=True):
        probability = 1 / (1 + torch.exp(-logit))
        total = total - pixel * torch.log(probability) - (1 - pixel) * torch.log(1 - probability)
    return total


def normal_pixels(means: Tensor, image: Tensor, sigma: float) -> Tensor:
    """-log p(x) of pixels around `means` with standard deviation sigma."""
    total = torch.zeros((), dtype=torch.float64)
    for mean, pixel in zip(means, image.flatten(), strict=True):
        total = total - log_normal(pixel, mean, torch.tensor(sigma**2, dtype=torch.float64))
    return total


def log_normal(value: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    return -((value - mean) ** 2) / (2 * variance) - torch.log(2 * math.pi * variance) / 2


def kl_normal(mean: Tensor, log_variance: Tensor, other_mean: Tensor, other_variance: Tensor) -> Tensor:
    """KL of N(mean, e^log_variance) from N(other_mean, other_variance), summed over latents."""
    variance = torch.exp(log_variance)
    each = variance / other_variance + (other_mean - mean) ** 2 / other_variance - 1
    return ((each + torch.log(other_variance) - torch.log(variance)) / 2).sum()


def kl_standard(posterior: Pair) -> Tensor:
    mean, log_variance = posterior
    return kl_normal(mean, log_variance, torch.zeros_like(mean), torch.ones_like(mean))


def mean_of(values: Sequence[Tensor]) -> Tensor:
    total = torch.zeros((), dtype=torch.float64)
    for value in values:
        total = total + value
    return total / len(values)


def vae_terms(weights: Weights, move: Move) -> tuple[Tensor, Tensor]:
    """Reconstruction and KL, means over the batch."""
    fits, divergences = [], []
    for image, noise in zip(move.batch["images"], move.batch["noise"], strict=True):
        posterior = gaussian(weights, image)
        fits.append(bernoulli(decoder(weights, "vae.decoder", drawn(posterior, noise)), image))
        divergences.append(kl_standard(posterior))
    return mean_of(fits), mean_of(divergences)
