"""PartedVAE in training: what labels change, and what the first step is."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.training.training_examples import SPACE, TINY, member
from unbraid.data import FactorSpace
from unbraid.families.building import make_supply
from unbraid.families.family_table import FAMILIES
from unbraid.training import loop
from unbraid.training.loop import Plan, train_here
from unbraid.training.population import make_context

ROW = FAMILIES["parted_vae"]


def test_without_labels_it_is_the_family_that_knows_of_none(monkeypatch) -> None:
    """The same weights to the bit as from a row without the optimizer step of labels and without supervision."""
    bare = replace(ROW, optimizer_steps=ROW.optimizer_steps[1:], supervision=None)
    monkeypatch.setattr(loop, "find_family", {"parted_vae": ROW, "bare": bare}.__getitem__)
    weights, losses = [], []
    for family, labels in (("parted_vae", 0), ("bare", 0), ("parted_vae", 30)):
        plan = Plan(family, steps=4, batch_size=16, device="cpu", precision="float32")
        done = train_here(plan, [member("parted_vae", 2, network="dense", labels=labels)], TINY)[0]
        weights.append(done.weights)
        losses.append(done.curves)
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[1])
    assert losses[0].keys() == losses[1].keys()
    assert all((losses[0][name] == losses[1][name]).all() for name in losses[0])
    assert "cross_entropy" in losses[2]
    assert not all(torch.equal(weights[0][name], weights[2][name]) for name in weights[0])


def test_labels_are_even_in_the_classes_and_counted() -> None:
    chosen = member("parted_vae", classes="shade+position_x", labels=54)
    context = make_context(ROW, [chosen], TINY, batch_size=8, steps=10)
    assert context.settings["sizes"] == [3, 9]
    supply = make_supply(ROW, SPACE, context.settings, 0)
    assert supply
    assert supply.used == {"labels": 54}
    labelled = supply.items["labelled"]
    levels = SPACE.factors(labelled.positions)
    np.testing.assert_array_equal(labelled.known["levels"], levels[:, [2, 0]])
    assert np.unique(levels[:, [2, 0]], axis=0, return_counts=True)[1].tolist() == [2] * 27


@pytest.mark.parametrize(("classes", "labels", "sizes", "names"), [
    ("shape+size", 5, [3, 4], ["shape", "size"]), ("categorical", 5, [3], ["shape"]), ("4", 0, [4], ["u1"]),
    ("4+2", 0, [4, 2], ["u1", "u2"]), ("all", 0, [3, 4], ["shape", "size"]),
])  # fmt: skip
def test_classes_are_named_factors_or_numbers(classes, labels, sizes, names) -> None:
    space = FactorSpace(("shape", "size", "one"), (3, 4, 1), ("categorical", "ordinal", "categorical"))
    assert ROW.facts
    facts = ROW.facts(space, {"classes": classes, "labels": labels, "class_latents": 2, "latents": 5})
    assert facts["sizes"] == sizes
    assert facts["categoricals"] == names
    assert facts["n_classes"] == sum(sizes)
    assert facts["codes"] == 5 + 2 * len(sizes)
