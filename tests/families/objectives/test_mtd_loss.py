"""Each term of MTD by hand. It is a reconstruction: these are this project's formulas, not the authors'."""

import math

import numpy as np
import pytest
import torch
from torch.distributions import Normal, kl_divergence

from tests.families.objectives.posteriors import normal
from unbraid.families.mtd import cross_covariance, mtd, one_hot, separation, swap_loss, told

NONE = {f"{name}_weight": 0.0 for name in ("content", "value", "separation", "independence", "bias", "swap")}
LEVELS = torch.tensor([[0, 0], [0, 1], [1, 1], [1, 1], [0, 0]])
VALUES = (normal(2, 2, seed=5), normal(3, 2, seed=6))  # a factor of 2 values, one of 3 of which one is not seen
MEAN, LOG_VARIANCE, FIT = normal(5, 7, seed=7), normal(5, 7, seed=8), normal(5, seed=9).abs()


def loss_with(swap: float = 0.0, **weights: float) -> tuple[float, dict[str, torch.Tensor]]:
    loss, logs = mtd(
        MEAN, LOG_VARIANCE, LEVELS, VALUES, FIT, swap,
        content=3, value_sigma=0.5, distance=2.5, **{**NONE, **weights},
    )  # fmt: skip
    return loss.item(), logs


def test_1_reconstruction_and_the_content_from_the_standard_normal() -> None:
    assert loss_with()[0] == pytest.approx(FIT.mean().item())
    own = Normal(MEAN[:, :3], (LOG_VARIANCE[:, :3] / 2).exp())
    kl = kl_divergence(own, Normal(torch.zeros(3).double(), torch.ones(3).double())).sum().item() / 5
    loss, logs = loss_with(content_weight=2.0)
    assert loss == pytest.approx(FIT.mean().item() + 2 * kl)
    assert logs["kl_content"].item() == pytest.approx(kl)


def test_2_each_block_is_drawn_to_the_gaussian_of_its_value() -> None:
    kl = 0.0
    for image in range(5):
        for k, start in ((0, 3), (1, 5)):
            own = Normal(MEAN[image, start : start + 2], (LOG_VARIANCE[image, start : start + 2] / 2).exp())
            target = VALUES[k][LEVELS[image, k]]
            kl += kl_divergence(own, Normal(target, torch.full((2,), 0.5).double())).sum().item() / 5
    loss, logs = loss_with(value_weight=3.0)
    assert loss == pytest.approx(FIT.mean().item() + 3 * kl)
    assert logs["kl_values"].item() == pytest.approx(kl)


def test_2_values_nearer_than_the_distance_are_pushed_apart() -> None:
    """Distances 5, 3 and 4 of a triangle: 4.5 lacks 1.5 and .5."""
    triangle = torch.tensor([[0.0, 0.0], [3.0, 4.0], [3.0, 0.0]], dtype=torch.float64)
    assert separation(triangle, 4.5).item() == pytest.approx(1.5**2 + 0.5**2)
    expected = sum(
        max(0.0, 2.5 - math.dist(values[i].tolist(), values[j].tolist())) ** 2
        for values in VALUES for j in range(len(values)) for i in range(j)
    )  # fmt: skip
    assert loss_with(separation_weight=2.0)[0] == pytest.approx(FIT.mean().item() + 2 * expected)


def test_values_at_the_same_place_have_a_finite_gradient() -> None:
    means = torch.zeros(2, 2, dtype=torch.float64, requires_grad=True)
    assert torch.isfinite(torch.autograd.grad(separation(means, 1.0), means)[0]).all()


def test_3_a_block_tells_what_its_group_means_differ_by() -> None:
    """Values 1, 3 | 6, 10: means 2 and 8 around 5, so 9; the variance is 11.5, a third of it by chance."""
    values = torch.tensor([[1.0], [3.0], [6.0], [10.0]])
    groups = one_hot(torch.tensor([0, 0, 2, 2]), 3, values)
    assert told(values, groups).item() == pytest.approx(9 - 11.5 / 3)


def by_loops(values: np.ndarray, groups: np.ndarray, among: np.ndarray) -> float:
    total = 0.0
    for part in np.unique(among):
        own, labels = values[among == part], groups[among == part]
        centred = own - own.mean(0)
        seen = np.unique(labels)
        between = sum((labels == each).sum() * (centred[labels == each].mean(0) ** 2).sum() for each in seen)
        total += between - (len(seen) - 1) / max(1, len(own) - 1) * (centred**2).sum()
    return total / len(values)


def test_3_nothing_is_told_on_average_by_labels_at_random_however_many() -> None:
    """The mean over all 720 orders of 6 labels is 0, of 2, 4 or 6 values."""
    from itertools import permutations

    values = normal(6, 2, seed=3)
    for labels in ([0, 0, 0, 0, 1, 1], [0, 1, 2, 2, 3, 3], [0, 1, 2, 3, 4, 5]):
        found = [told(values, one_hot(torch.tensor(each), 6, values)) for each in permutations(labels)]
        assert torch.stack(found).mean().item() == pytest.approx(0, abs=1e-12)


def test_3_and_4_sum_over_other_factors_and_the_content() -> None:
    blocks = [MEAN[:, :3].numpy(), MEAN[:, 3:5].numpy(), MEAN[:, 5:].numpy()]
    first, second = LEVELS.numpy().T
    everything = np.zeros(5)
    informed = sum(
        by_loops(block, levels, everything)
        for block, levels in ((blocks[0], first), (blocks[0], second), (blocks[1], second), (blocks[2], first))
    )
    joint = np.cov(MEAN.numpy().T, bias=True)
    covariance = (joint[:3, 3:5] ** 2).sum() + (joint[:3, 5:] ** 2).sum() + (joint[3:5, 5:] ** 2).sum()
    bias = by_loops(blocks[1], second, first) + by_loops(blocks[2], first, second)
    assert loss_with(independence_weight=2.0)[0] == pytest.approx(FIT.mean().item() + 2 * (informed + covariance))
    loss, logs = loss_with(bias_weight=3.0)
    assert loss == pytest.approx(FIT.mean().item() + 3 * bias)
    assert logs["bias"].item() == pytest.approx(bias)


def test_4_values_that_occur_together_are_not_told() -> None:
    """The block holds its own factor alone; the other factor mostly agrees with that. 3 counts it, 4 does not."""
    own = torch.tensor([0, 0, 0, 1, 1, 1])
    other = torch.tensor([0, 0, 1, 1, 1, 0])
    block = 2.0 * own[:, None].double()
    groups, parts = one_hot(other, 2, block), one_hot(own, 2, block)
    assert told(block, groups, parts).item() == pytest.approx(0)
    leaking = block + other[:, None]
    assert told(leaking, groups, parts).item() > 0.1
    more = torch.cat([own, own[[0, 1, 3, 4]]]), torch.cat([other, other[[0, 1, 3, 4]]])
    block = 2.0 * more[0][:, None].double()
    assert told(block, one_hot(more[1], 2, block)).item() > 0.1


def test_blocks_of_one_column_each_by_hand() -> None:
    one, other = torch.tensor([[0.0], [2.0]]), torch.tensor([[1.0, 5.0], [4.0, 5.0]])
    assert cross_covariance([one, other]).item() == pytest.approx(1.5**2)


def test_5_swap_by_hand() -> None:
    again, target = torch.tensor([[1.0, 2.0], [0.0, 0.0]]), torch.tensor([[0.0, 0.0], [0.0, 3.0]])
    assert swap_loss(again, target).item() == pytest.approx((5 + 9) / 2)
    assert loss_with(swap=0.7, swap_weight=2.0)[0] == pytest.approx(FIT.mean().item() + 1.4)
