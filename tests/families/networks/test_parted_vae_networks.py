"""Masks, classes and the order of codes of PartedVAE."""

import math
from typing import Any

import pytest
import torch

from unbraid.families.parted_vae import (
    ClassPriors,
    PartedHeads,
    likeliest_classes,
    relaxed_classes,
    sharpness,
)


def test_relaxed_classes_are_drawn_as_often_as_their_logits_say() -> None:
    """The largest of a relaxed sample is class k with probability softmax_k, whatever the temperature."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.tensor([1.0, 0.0, -1.0, 0.5, 0.0], dtype=torch.float64)
    n = 40_000
    uniform = torch.rand(n, 5, generator=generator, dtype=torch.float64)
    drawn = relaxed_classes(logits.expand(n, 5), uniform, (3, 2))
    torch.testing.assert_close(drawn[:, :3].sum(1), torch.ones(n, dtype=torch.float64))
    torch.testing.assert_close(drawn[:, 3:].sum(1), torch.ones(n, dtype=torch.float64))
    shares = likeliest_classes(drawn, (3, 2)).mean(0)
    expected = torch.cat([logits[:3].softmax(0), logits[3:].softmax(0)])
    assert (shares - expected).abs().max() < 4 * math.sqrt(0.25 / n)


def test_the_relaxation_by_hand() -> None:
    """Equal logits; -log(-log u) is 0 at u = 1 / e and 1 at u = exp(-1 / e): softmax of (0, 1) / .67."""
    uniform = torch.tensor([[math.exp(-1), math.exp(-math.exp(-1))]], dtype=torch.float64)
    drawn = relaxed_classes(torch.zeros(1, 2, dtype=torch.float64), uniform, (2,))
    assert drawn[0, 1].item() == pytest.approx(1 / (1 + math.exp(-1 / 0.67)))


def test_each_categorical_has_its_one_likeliest_class() -> None:
    logits = torch.tensor([[0.0, 2.0, 1.0, 5.0, 6.0]])
    assert likeliest_classes(logits, (3, 2)).tolist() == [[0, 1, 0, 0, 1]]


def test_slope_of_masks_is_a_function_of_the_step() -> None:
    assert [float(sharpness(step, 1000.0)) for step in (0, 500, 1000, 9000)] == [1, 4.5, 8, 8]
    assert float(sharpness(torch.tensor(250), 1000.0)) == 2.75


@pytest.mark.parametrize("slope", [1.0, 8.0])
def test_each_part_sees_features_under_the_mask_of_its_own_classes(slope: float) -> None:
    torch.manual_seed(0)
    heads: Any = PartedHeads(6, 2, (3, 2), 4)
    features, logits = torch.randn(5, 6), torch.randn(5, 5)
    chosen = likeliest_classes(logits, (3, 2))
    posterior = heads(features, logits, chosen, slope)
    latents = features @ heads.latents.weight.T + heads.latents.bias
    torch.testing.assert_close(posterior.mean, latents[:, :2])
    torch.testing.assert_close(posterior.log_variance, latents[:, 2:])
    for place, classes in enumerate((chosen[:, :3], chosen[:, 3:])):
        mask = 1 / (1 + torch.exp(-slope * (classes @ heads.masks[place].weight.T + heads.masks[place].bias)))
        part = (features * mask) @ heads.parts[place].weight.T + heads.parts[place].bias
        torch.testing.assert_close(posterior.class_mean[:, place], part[:, :4])
        torch.testing.assert_close(posterior.class_log_variance[:, place], part[:, 4:])
    codes = posterior.codes()
    torch.testing.assert_close(
        codes, torch.cat([latents[:, :2], posterior.class_mean[:, 0], posterior.class_mean[:, 1]], 1)
    )
    assert posterior.log_variances().shape == codes.shape == (5, 10)


def test_log_variances_of_priors_stay_between_minus_3_and_1() -> None:
    priors = ClassPriors(3, 2)
    with torch.no_grad():
        priors.spreads.copy_(torch.tensor([[-50.0, 50.0], [0.0, 0.5], [1.0, -1.0]]))
    found = priors.log_variances()
    assert found[0].tolist() == [-3, 1]
    assert found[1].tolist() == pytest.approx([-1, 2 * math.tanh(0.5) - 1])
