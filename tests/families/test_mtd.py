"""MTD, reconstructed: two steps against the definitions in its docstrings, which are METHODS 2."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.families.members import SPACE, Move, Weights, play
from tests.families.plain import (
    Mover,
    Terms,
    bernoulli,
    check,
    decoder,
    drawn,
    encoder_of_any,
    gaussian,
    kl_normal,
    kl_standard,
    levels,
    mean_of,
)
from tests.families.posteriors import normal
from tests.training.training_examples import SPACE as TINY_SPACE
from tests.training.training_examples import TINY, member
from unbraid.families.building import make_supply
from unbraid.families.family_table import FAMILIES
from unbraid.families.mtd import between_groups, mtd, one_hot, separation
from unbraid.training.population import make_context

CONTENT, SIZE, SPEED, SIGMA, DISTANCE = 2, 2, 2.0, 0.8, 3.0
WEIGHTS: dict[str, Any] = {
    "content_weight": 2.0, "value_weight": 3.0, "separation_weight": 0.4,
    "independence_weight": 5.0, "bias_weight": 6.0,
}  # fmt: skip
BLOCKS = [slice(0, 2), slice(2, 4), slice(4, 6), slice(6, 8)]  # content, angle, hue, shape
SIZES = SPACE.sizes


def zero() -> Tensor:
    return torch.zeros((), dtype=torch.float64)


def variance_between(values: list[Tensor], groups: list[int]) -> Tensor:
    """Summed squared distances of the groups' means from the mean, less the share that chance puts there."""
    n, kinds = len(values), sorted(set(groups))
    mean = torch.stack(values).sum(0) / n
    between = zero()
    for kind in kinds:
        own = [value for value, group in zip(values, groups, strict=True) if group == kind]
        between = between + len(own) * ((torch.stack(own).sum(0) / len(own) - mean) ** 2).sum()
    total = sum((((value - mean) ** 2).sum() for value in values), zero())
    return between - (len(kinds) - 1) / max(n - 1, 1) * total


def mtd_loss(weights: Weights, move: Move, swap_weight: float) -> tuple[Tensor, Terms]:
    images = list(move.batch["images"])
    n, image_levels = len(images), [levels(image) for image in images]
    table = SPEED * weights["value_means.slow"]
    first = [0, SIZES[0], SIZES[0] + SIZES[1]]
    posteriors = [gaussian(weights, image) for image in images]
    fits, contents, values = [], [], []
    for image, posterior, level, noise in zip(images, posteriors, image_levels, move.batch["noise"], strict=True):
        fits.append(bernoulli(decoder(weights, "vae.decoder", drawn(posterior, noise)), image))
        contents.append(kl_standard((posterior[0][:CONTENT], posterior[1][:CONTENT])))
        own = zero()
        for k in range(3):
            place, target = BLOCKS[k + 1], table[first[k] + level[k]]
            own = own + kl_normal(
                posterior[0][place], posterior[1][place], target, torch.tensor([SIGMA**2] * 2, dtype=torch.float64)
            )
        values.append(own)
    apart = zero()
    for k in range(3):
        for one, other in itertools.combinations(range(first[k], first[k] + SIZES[k]), 2):
            between = torch.sqrt(((table[one] - table[other]) ** 2).sum())
            apart = apart + torch.clamp(DISTANCE - between, min=0) ** 2
    means = [[posterior[0][block] for posterior in posteriors] for block in BLOCKS]
    informed = bias = covariance = zero()
    for block in range(4):
        for k in range(3):
            if block == k + 1:
                continue
            groups = [level[k] for level in image_levels]
            informed = informed + variance_between(means[block], groups) / n
            if block:
                parts = [level[block - 1] for level in image_levels]
                for part in sorted(set(parts)):
                    among = [i for i in range(n) if parts[i] == part]
                    within = variance_between([means[block][i] for i in among], [groups[i] for i in among])
                    bias = bias + within / n
    for one, other in itertools.combinations(range(4), 2):
        for i in range(2):
            for j in range(2):
                a, b = ([value[d] for value in means[block]] for block, d in ((one, i), (other, j)))
                products = [(x - mean_of(a)) * (y - mean_of(b)) for x, y in zip(a, b, strict=True)]
                covariance = covariance + mean_of(products) ** 2
    fit, kl_content, kl_values = mean_of(fits), mean_of(contents), mean_of(values)
    loss = fit + 2.0 * kl_content + 3.0 * kl_values + 0.4 * apart + 5.0 * (informed + covariance) + 6.0 * bias
    logs = {"reconstruction": fit, "kl_content": kl_content, "kl_values": kl_values, "separation": apart}
    logs |= {"leakage": informed, "cross_covariance": covariance, "bias": bias}
    if swap_weight:
        swaps = []
        chosen = zip(posteriors, move.batch["swap factor"], move.batch["swap value"], strict=True)
        for (mean, _), which, value in chosen:
            k = int(which * 3)
            target = mean.detach().clone()
            target[BLOCKS[k + 1]] = table[first[k] + int(value * SIZES[k])].detach()
            picture = 1 / (1 + torch.exp(-decoder(weights, "vae.decoder", target)))
            again = encoder_of_any(weights, "vae.encoder", picture)[: len(target)]
            swaps.append(((again - target) ** 2).sum())
        logs["swap"] = mean_of(swaps)
        loss = loss + swap_weight * logs["swap"]
    return loss, logs


@pytest.mark.parametrize("swap_weight", [0.0, 1.5])
def test_two_steps(swap_weight: float) -> None:
    played = play(
        "mtd", 2, batch_size=10, content=CONTENT, block_size=SIZE, value_speed=SPEED, value_sigma=SIGMA,
        distance=DISTANCE, swap_weight=swap_weight, **WEIGHTS,
    )  # fmt: skip
    mover = Mover(lambda weights, move: mtd_loss(weights, move, swap_weight), ("vae.", "value_means."))
    check(played, {"vae": mover}, ["vae", "vae"])
    assert len({tuple(level) for level in (levels(image) for image in played.moves[0].batch["images"])}) == 10


def test_values_at_the_same_place_have_a_finite_gradient() -> None:
    means = torch.zeros(2, 2, dtype=torch.float64, requires_grad=True)
    assert torch.isfinite(torch.autograd.grad(separation(means, 1.0), means)[0]).all()


def test_3_nothing_is_told_on_average_by_labels_at_random_however_many() -> None:
    """The mean over all 720 orders of 6 labels is 0, of 2, 4 or 6 values."""
    from itertools import permutations

    values = normal(6, 2, seed=3)
    for labels in ([0, 0, 0, 0, 1, 1], [0, 1, 2, 2, 3, 3], [0, 1, 2, 3, 4, 5]):
        found = [between_groups(values, one_hot(torch.tensor(each), 6, values)) for each in permutations(labels)]
        assert torch.stack(found).mean().item() == pytest.approx(0, abs=1e-12)


def test_4_values_that_occur_together_are_not_told() -> None:
    """The block holds its own factor alone; the other factor mostly agrees with that. 3 counts it, 4 does not."""
    own = torch.tensor([0, 0, 0, 1, 1, 1])
    other = torch.tensor([0, 0, 1, 1, 1, 0])
    block = 2.0 * own[:, None].double()
    groups, parts = one_hot(other, 2, block), one_hot(own, 2, block)
    assert between_groups(block, groups, parts).item() == pytest.approx(0)
    leaking = block + other[:, None]
    assert between_groups(leaking, groups, parts).item() > 0.1
    more = torch.cat([own, own[[0, 1, 3, 4]]]), torch.cat([other, other[[0, 1, 3, 4]]])
    block = 2.0 * more[0][:, None].double()
    assert between_groups(block, one_hot(more[1], 2, block)).item() > 0.1


ROW = FAMILIES["mtd"]


@pytest.mark.parametrize(("labels", "used"), [(0, 243), (40, 40)])
def test_every_image_it_sees_is_labelled(labels: int, used: int) -> None:
    context = make_context(ROW, [member("mtd", labels=labels, factors="shade+position_x")], TINY, batch_size=8, steps=9)
    supply = make_supply(ROW, TINY_SPACE, context.settings, 0)
    assert supply
    assert supply.used == {"labels": used}
    items = supply.items["images"]
    assert len(np.unique(items.positions)) == used
    np.testing.assert_array_equal(items.known["levels"], TINY_SPACE.factors(items.positions)[:, [2, 0]])


def test_parts_are_content_and_a_block_for_each_factor_by_name() -> None:
    context = make_context(ROW, [member("mtd")], TINY, batch_size=8, steps=9)
    assert ROW.parts
    assert [(part.name, part.size) for part in ROW.parts(context.settings)] == [
        ("content", 4), ("position_x", 2), ("position_y", 2), ("shade", 2),
    ]  # fmt: skip
    assert context.settings["latents"] == 10
    assert "not the authors' equations" in ROW.notes[0]
    assert "not the authors' equations" in (mtd.__doc__ or "")
