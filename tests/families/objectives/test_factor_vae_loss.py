"""FactorVAE's two losses by hand, and its total correlation against the exact one of a Gaussian."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from tests.families.objectives.posteriors import normal, outputs_of
from unbraid.families.factor_vae import (
    LatentDiscriminator,
    density_ratio,
    discriminator_loss,
    factor_vae,
    permute_dimensions,
)


def test_the_vae_pays_for_logits_that_recognise_its_samples() -> None:
    """Reconstruction 3, KL 0 and 2 in one latent; logits differ by 4 and -1: 3 + 1 + 10 * 1.5."""
    outputs = outputs_of(torch.tensor([[0.0], [2.0]]), torch.zeros(2, 1), torch.zeros(2, 1))
    logits = torch.tensor([[5.0, 1.0], [2.0, 3.0]])
    loss, logs = factor_vae(outputs, torch.tensor([2.0, 4.0]), logits, gamma=10.0)
    assert float(loss) == 19.0
    assert {name: float(value) for name, value in logs.items()} == {
        "reconstruction": 3.0, "kl": 1.0, "total_correlation": 1.5,
    }  # fmt: skip


def test_the_ratio_is_log_d_over_one_minus_d() -> None:
    logits = normal(9, 2)
    probabilities = logits.softmax(1)
    torch.testing.assert_close(density_ratio(logits), (probabilities[:, 0] / probabilities[:, 1]).log())


def test_the_discriminator_is_trained_by_cross_entropy_on_both_kinds() -> None:
    own, permuted = normal(9, 2, seed=2), normal(9, 2, seed=3)
    loss, logs = discriminator_loss(own, permuted)
    first, second = torch.zeros(9, dtype=torch.int64), torch.ones(9, dtype=torch.int64)
    expected = (functional.cross_entropy(own, first) + functional.cross_entropy(permuted, second)) / 2
    torch.testing.assert_close(loss, expected)
    correct = (own.argmax(1) == 0).sum() + (permuted.argmax(1) == 1).sum()
    assert float(logs["accuracy"]) == pytest.approx(float(correct) / 18)
    undecided = torch.zeros(4, 2)
    assert float(discriminator_loss(undecided, undecided)[0]) == pytest.approx(math.log(2))


def test_each_latent_is_permuted_on_its_own() -> None:
    sample = torch.tensor([[10, 1], [20, 2], [30, 3]])
    permutation = torch.tensor([[2, 0], [0, 2], [1, 1]])
    assert permute_dimensions(sample, permutation).tolist() == [[30, 1], [10, 3], [20, 2]]


def test_a_trained_discriminator_finds_the_total_correlation_of_a_gaussian() -> None:
    """Correlation r between two latents of three: -log(1 - r^2) / 2, 0.83 nats for r = 0.9."""
    exact = -0.5 * math.log(1 - 0.9**2)
    generator = torch.Generator().manual_seed(0)

    def draw(n: int) -> Tensor:
        sample = torch.randn(n, 3, generator=generator)
        sample[:, 1] = 0.9 * sample[:, 0] + math.sqrt(1 - 0.9**2) * sample[:, 1]
        return sample

    torch.manual_seed(0)
    discriminator = LatentDiscriminator(3, width=32, depth=2)
    steps = 600
    adam = torch.optim.Adam(discriminator.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(adam, steps)
    for _ in range(steps):
        permutation = torch.rand(256, 3, generator=generator).argsort(0)
        loss, _ = discriminator_loss(
            discriminator(draw(256)), discriminator(permute_dimensions(draw(256), permutation))
        )
        adam.zero_grad()
        loss.backward()
        adam.step()
        schedule.step()
    with torch.no_grad():
        estimate = float(density_ratio(discriminator(draw(50000))).mean())
    assert estimate == pytest.approx(exact, abs=0.06)
