"""InfoGAN: a step of critic and generator against Gulrajani et al. 2017, algorithm 1, and Chen et al. 2016, eq. 5."""

import math

import pytest
import torch
from torch import Tensor

from tests.families.members import Move, Weights, play
from tests.families.plain import Mover, Terms, check, decoder, dense, mean_of, position
from unbraid.families.info_gan import gradient_penalty

LATENTS, RATE, GRADIENT, INFORMATION = 2, 2e-3, 8.0, 3.0
SETTINGS = {
    "latents": LATENTS, "learning_rate": RATE, "gradient_weight": GRADIENT, "information_weight": INFORMATION,
}  # fmt: skip
MOVES = ["critic"] * 5 + ["generator"]


def judged(weights: Weights, image: Tensor) -> tuple[Tensor, Tensor]:
    """The score of an image of pixels in [-1, 1], and Q's means."""
    outputs = dense(weights, "critic.3", torch.tanh(dense(weights, "critic.1", image)))
    return outputs[0], outputs[1:]


def slope(weights: Weights, image: Tensor) -> Tensor:
    """Of the score with respect to the image, by the chain rule: W1' ((1 - h^2) * w2)."""
    hidden = torch.tanh(dense(weights, "critic.1", image))
    bent = (1 - hidden**2) * weights["critic.3.weight"][0]
    return torch.stack([(column * bent).sum() for column in weights["critic.1.weight"].T])


def log_q(means: Tensor, codes: Tensor) -> Tensor:
    """log Q(c|x), normal with standard deviation 1."""
    return -((codes - means) ** 2).sum() / 2 - len(codes) * math.log(2 * math.pi) / 2


class Game:
    def __init__(self, code_prior: str, likelihood: str = "bernoulli") -> None:
        self.code_prior, self.likelihood = code_prior, likelihood
        self.seen: list[int] = []

    def codes(self, move: Move) -> list[Tensor]:
        drawn = move.batch[f"{move.mover} {self.code_prior} codes"]
        return [2 * each - 1 for each in drawn] if self.code_prior == "uniform" else [*drawn]

    def entropy(self) -> float:
        """Of all codes of an image."""
        one = math.log(2) if self.code_prior == "uniform" else 0.5 * math.log(2 * math.pi * math.e)
        return LATENTS * one

    def made(self, weights: Weights, codes: Tensor) -> Tensor:
        outputs = decoder(weights, "generator", codes)
        return 2 / (1 + torch.exp(-outputs)) - 1 if self.likelihood == "bernoulli" else 2 * outputs - 1

    def critic(self, weights: Weights, move: Move) -> tuple[Tensor, Terms]:
        self.seen += [position(image) for image in move.batch["images"]]
        scores, made_scores, penalties, information = [], [], [], []
        for image, mix, codes in zip(move.batch["images"], move.batch["mix"], self.codes(move), strict=True):
            real, fake = 2 * image.flatten() - 1, self.made(weights, codes)
            between = (1 - mix) * real + mix * fake
            length = torch.sqrt((slope(weights, between) ** 2).sum())
            score, means = judged(weights, fake)
            scores.append(judged(weights, real)[0])
            made_scores.append(score)
            penalties.append((length - 1) ** 2)
            information.append(log_q(means, codes) + self.entropy())
        distance, penalty, bound = mean_of(scores) - mean_of(made_scores), mean_of(penalties), mean_of(information)
        logs = {"wasserstein": distance, "gradient_penalty": penalty, "code_information": bound}
        return -distance + GRADIENT * penalty - INFORMATION * bound, logs

    def generator(self, weights: Weights, move: Move) -> tuple[Tensor, Terms]:
        scores, information = [], []
        for codes in self.codes(move):
            score, means = judged(weights, self.made(weights, codes))
            scores.append(score)
            information.append(log_q(means, codes) + self.entropy())
        return -mean_of(scores) - INFORMATION * mean_of(information), {"generator_score": mean_of(scores)}


@pytest.mark.parametrize("code_prior", ["uniform", "normal"])
@pytest.mark.parametrize("likelihood", ["bernoulli", "gaussian"])
def test_two_steps_of_five_moves_of_the_critic_and_one_of_the_generator(code_prior: str, likelihood: str) -> None:
    game = Game(code_prior, likelihood)
    played = play("info_gan", 2, code_prior=code_prior, likelihood=likelihood, **SETTINGS)
    movers = {
        "critic": Mover(game.critic, ("critic.",), RATE, 0.0, 0.9),
        "generator": Mover(game.generator, ("generator.",), RATE, 0.0, 0.9),
    }
    check(played, movers, 2 * MOVES)
    assert len(set(game.seen)) > 4  # the critic's batches are new ones


def test_codes_are_drawn_anew_at_every_move_of_either_player() -> None:
    """Gulrajani et al. 2017, algorithm 1: the generator samples codes that the critic was not just trained on."""
    moves = play("info_gan", 2, **SETTINGS).moves
    for kind in ("uniform", "normal"):
        assert len({move.batch[f"{move.mover} {kind} codes"].sum().item() for move in moves}) == 12
    assert len({move.batch["mix"].sum().item() for move in moves if move.mover == "critic"}) == 10


def test_a_flat_critic_has_a_finite_gradient() -> None:
    slope = torch.zeros(2, requires_grad=True)
    penalty = gradient_penalty(lambda images: images @ slope, torch.rand(6, 2), torch.rand(6, 2), torch.rand(6))
    (gradient,) = torch.autograd.grad(penalty, slope)
    assert float(penalty.detach()) == pytest.approx(1.0, abs=1e-5)
    assert bool(gradient.isfinite().all())
