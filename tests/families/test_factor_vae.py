"""FactorVAE: two steps of both optimizer steps against algorithm 2 of Kim and Mnih 2018."""

import torch
from torch import Tensor

from tests.families.members import Move, Weights, play
from tests.families.plain import Mover, Terms, check, dense, drawn, gaussian, mean_of, position, vae_terms
from unbraid.families.factor_vae import (
    LatentDiscriminator,
)

LATENTS, GAMMA = 3, 4.0
SETTINGS = {"latents": LATENTS, "gamma": GAMMA, "discriminator_width": 4, "discriminator_depth": 2}


def probability(weights: Weights, z: Tensor) -> Tensor:
    """D(z), that z is a sample of q(z): the first of two logits against the second."""
    for layer in ("0", "2"):
        hidden = dense(weights, f"discriminator.layers.{layer}", z)
        z = torch.where(hidden > 0, hidden, 0.2 * hidden)
    first, second = dense(weights, "discriminator.layers.4", z)
    return torch.exp(first) / (torch.exp(first) + torch.exp(second))


class Algorithm:
    """What the discriminator is shown of the first batch is the sample with which the VAE took its step."""

    def __init__(self) -> None:
        self.samples: list[Tensor] = []
        self.images: list[int] = []

    def vae(self, weights: Weights, move: Move) -> tuple[Tensor, Terms]:
        fit, divergence = vae_terms(weights, move)
        samples = [drawn(gaussian(weights, image), noise) for image, noise in _pairs(move, "images", "noise")]
        ratios = [torch.log(probability(weights, z) / (1 - probability(weights, z))) for z in samples]
        correlation = mean_of(ratios)
        self.samples = [z.detach() for z in samples]
        self.images = [position(image) for image in move.batch["images"]]
        logs = {"reconstruction": fit, "kl": divergence, "total_correlation": correlation}
        return fit + divergence + GAMMA * correlation, logs

    def discriminator(self, weights: Weights, move: Move) -> tuple[Tensor, Terms]:
        assert {position(image) for image in move.batch["second images"]} != set(self.images)
        again = [
            drawn(gaussian(weights, image), noise) for image, noise in _pairs(move, "second images", "second noise")
        ]
        order, n = move.batch["order"], len(again)
        assert all(sorted(column.tolist()) == list(range(n)) for column in order.T)
        permuted = [torch.stack([again[int(order[i, d])][d] for d in range(LATENTS)]) for i in range(n)]
        own = [probability(weights, z) for z in self.samples]
        other = [probability(weights, z) for z in permuted]
        loss = -(mean_of([torch.log(each) for each in own]) + mean_of([torch.log(1 - each) for each in other])) / 2
        right = [(each > 0.5).double() for each in own] + [(each < 0.5).double() for each in other]
        return loss, {"accuracy": mean_of(right)}


def _pairs(move: Move, images: str, noise: str) -> list[tuple[Tensor, Tensor]]:
    return list(zip(move.batch[images], move.batch[noise], strict=True))


def test_two_steps_of_both_players() -> None:
    played = play("factor_vae", 2, **SETTINGS, learning_rate=1e-2, discriminator_learning_rate=3e-3)
    algorithm = Algorithm()
    movers = {
        "vae": Mover(algorithm.vae, ("vae.",), 1e-2),
        "discriminator": Mover(algorithm.discriminator, ("discriminator.",), 3e-3, 0.5, 0.9),
    }
    check(played, movers, ["vae", "discriminator"] * 2)


def test_columns_are_permuted_apart_and_anew() -> None:
    orders = [move.batch["order"] for move in play("factor_vae", 3, batch_size=12, **SETTINGS).moves[1::2]]
    columns = [tuple(column.tolist()) for order in orders for column in order.T]
    assert len(set(columns)) == 3 * LATENTS
    assert tuple(range(12)) not in columns


def test_logits_are_single_precision_under_autocast() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        assert LatentDiscriminator(4, width=8, depth=2)(torch.zeros(3, 4)).dtype == torch.float32
