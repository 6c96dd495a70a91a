"""InfoGAN: a step of critic and generator against Gulrajani et al. 2017, algorithm 1, and Chen et al. 2016, eq. 5."""

import math

import pytest
import torch
from torch import Tensor

from tests.families.members import Move, Weights, play
from tests.families.plain import Mover, Terms, check, decoder, dense, mean_of, position
from tests.families.posteriors import normal
from unbraid.families.info_gan import code_information, critic_loss, generator_loss, gradient_penalty

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


def test_penalty_of_a_linear_critic() -> None:
    """A score 3 x + 4 y has a slope of length 5 everywhere: (5 - 1)^2."""
    slope = torch.tensor([3.0, 4.0])
    penalty = gradient_penalty(lambda images: images @ slope, torch.rand(6, 2), torch.rand(6, 2), torch.rand(6))
    assert float(penalty) == pytest.approx(16.0, rel=1e-6)


def test_penalty_is_taken_between_real_and_made_images() -> None:
    """Scores |x|^2 / 2 have the slope x. Real (3, 0, 0, 0), made (0, 4, 0, 0) as 2 x 2 images; a quarter of the way
    x = (2.25, 1, 0, 0); at 0 the real image, at 1 the made one."""
    real = torch.tensor([3.0, 0, 0, 0]).reshape(1, 1, 2, 2).expand(3, 1, 2, 2)
    fake = torch.tensor([0, 4.0, 0, 0]).reshape(1, 1, 2, 2).expand(3, 1, 2, 2)
    mix = torch.tensor([0.25, 0.0, 1.0])
    penalty = gradient_penalty(lambda images: images.flatten(1).square().sum(1) / 2, real, fake, mix)
    expected = ((math.hypot(2.25, 1) - 1) ** 2 + (3 - 1) ** 2 + (4 - 1) ** 2) / 3
    assert float(penalty) == pytest.approx(expected, rel=1e-6)


def test_penalty_trains_the_critic_and_neither_set_of_images() -> None:
    """(|w| - 1)^2 has the derivative 2 (|w| - 1) w / |w|."""
    slope = torch.tensor([3.0, 4.0], requires_grad=True)
    real, fake = torch.rand(6, 2, requires_grad=True), torch.rand(6, 2, requires_grad=True)
    penalty = gradient_penalty(lambda images: images @ slope, real, fake, torch.rand(6))
    by_slope, by_real, by_fake = torch.autograd.grad(penalty, (slope, real, fake), allow_unused=True)
    torch.testing.assert_close(by_slope, 2 * 4 * torch.tensor([0.6, 0.8]))
    assert by_real is None
    assert by_fake is None


def test_a_flat_critic_has_a_finite_gradient() -> None:
    slope = torch.zeros(2, requires_grad=True)
    penalty = gradient_penalty(lambda images: images @ slope, torch.rand(6, 2), torch.rand(6, 2), torch.rand(6))
    (gradient,) = torch.autograd.grad(penalty, slope)
    assert float(penalty.detach()) == pytest.approx(1.0, abs=1e-5)
    assert bool(gradient.isfinite().all())


@pytest.mark.parametrize("noise", [0.5, 2.0])
def test_bound_on_the_information_about_normal_codes(noise: float) -> None:
    """Codes N(0, 1) seen through noise s: the best Q has mean c's expectation and errs by v = s^2 / (1 + s^2), so the
    bound is (1 - v) / 2 per code, below the true log(1 + 1 / s^2) / 2."""
    codes = normal(200000, 2)
    seen = codes + noise * normal(200000, 2, seed=2)
    variance = noise**2 / (1 + noise**2)
    entropy = 0.5 * math.log(2 * math.pi * math.e)
    bound = float(code_information(seen / (1 + noise**2), codes, code_entropy=entropy))
    assert bound == pytest.approx(2 * (1 - variance) / 2, abs=0.01)
    assert bound < 2 * 0.5 * math.log(1 + 1 / noise**2)


def test_bound_saturates_when_the_mean_is_the_code() -> None:
    codes: Tensor = normal(5, 3)
    bound = code_information(codes, codes, code_entropy=math.log(2))
    assert float(bound) == pytest.approx(3 * (math.log(2) - 0.5 * math.log(2 * math.pi)))


def test_losses_by_hand() -> None:
    """Real 5 on average, made 2: distance 3. Critic: 10 * 0.3 - 3 - 6 * 0.5; generator: -2 - 6 * 0.5."""
    real, fake = torch.tensor([4.0, 6.0]), torch.tensor([1.0, 3.0])
    penalty, information = torch.tensor(0.3), torch.tensor(0.5)
    loss, logs = critic_loss(real, fake, penalty, information)
    assert float(loss) == pytest.approx(-3.0)
    assert {name: float(value) for name, value in logs.items()} == pytest.approx(
        {"wasserstein": 3.0, "gradient_penalty": 0.3, "code_information": 0.5}
    )
    loss, logs = generator_loss(fake, information)
    assert float(loss) == -5.0
    assert float(logs["generator_score"]) == 2.0
