"""MTD in training: its labels, its parts and the swap."""

import numpy as np
import pytest
import torch

from tests.training.training_examples import SPACE, TINY, member
from unbraid.families.building import make_supply
from unbraid.families.family_table import FAMILIES
from unbraid.families.mtd import mtd, swapped
from unbraid.training.population import make_context, make_population

ROW = FAMILIES["mtd"]


@pytest.mark.parametrize(("labels", "used"), [(0, 243), (40, 40)])
def test_every_image_it_sees_is_labelled(labels: int, used: int) -> None:
    context = make_context(ROW, [member("mtd", labels=labels, factors="shade+position_x")], TINY, batch_size=8, steps=9)
    supply = make_supply(ROW, SPACE, context.settings, 0)
    assert supply
    assert supply.used == {"labels": used}
    items = supply.items["images"]
    assert len(np.unique(items.positions)) == used
    np.testing.assert_array_equal(items.known["levels"], SPACE.factors(items.positions)[:, [2, 0]])


def test_parts_are_content_and_a_block_for_each_factor_by_name() -> None:
    context = make_context(ROW, [member("mtd")], TINY, batch_size=8, steps=9)
    assert ROW.parts
    assert [(part.name, part.size) for part in ROW.parts(context.settings)] == [
        ("content", 4), ("position_x", 2), ("position_y", 2), ("shade", 2),
    ]  # fmt: skip
    assert context.settings["latents"] == 10
    assert "not the authors' equations" in ROW.notes[0]
    assert "not the authors' equations" in (mtd.__doc__ or "")


def test_a_swap_puts_one_block_to_the_mean_of_a_value() -> None:
    mean = torch.arange(14.0).reshape(2, 7).requires_grad_()
    values = (torch.tensor([[-1.0, -2.0], [-3.0, -4.0]]), torch.tensor([[-5.0, -6.0], [-7.0, -8.0], [-9.0, -10.0]]))
    found = swapped(mean, values, torch.tensor([0.2, 0.9]), torch.tensor([0.6, 0.5]), 3)
    assert found.tolist() == [[0, 1, 2, -3, -4, 5, 6], [7, 8, 9, 10, 11, -7, -8]]
    assert not found.requires_grad


def test_means_of_values_learn_faster_than_networks() -> None:
    """Adam's first step has the length of the learning rate, here 100 times over."""
    chosen = member("mtd", 4, network="dense", learning_rate=1e-3)
    context = make_context(ROW, [chosen], TINY, batch_size=8, steps=9)
    population = make_population(ROW, [chosen], TINY, context, device=torch.device("cpu"), precision=torch.float64)
    placed = [population.state(0)["model/value_means.slow"] * 100]
    assert placed[0].std().item() == pytest.approx(1, abs=0.4)
    population.advance(0)
    placed.append(population.state(0)["model/value_means.slow"] * 100)
    torch.testing.assert_close((placed[1] - placed[0]).abs(), torch.full((21, 2), 0.1).double(), rtol=1e-4, atol=0)
