"""The gradient penalty by hand, the information bound in closed form, and the signs of both optimizer steps' losses."""

import math

import pytest
import torch
from torch import Tensor

from tests.families.objectives.posteriors import normal
from unbraid.families.info_gan import code_information, critic_loss, generator_loss, gradient_penalty


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
