"""PartedVAE in training: what labels change, and what the first step is."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from tests.families.test_supervised_losses import TINY, bernoulli, first_move
from tests.training.examples import SPACE, member
from unbraid.factors import FactorSpace
from unbraid.families.building import build_member, make_supply
from unbraid.families.table import FAMILIES
from unbraid.objectives.parted_vae import parted_vae
from unbraid.training import loop
from unbraid.training.loop import Plan, train_here
from unbraid.training.population import make_context

ROW = FAMILIES["parted_vae"]


def test_without_labels_it_is_the_family_that_knows_of_none(monkeypatch) -> None:
    """The same weights to the bit as from a row without the player of labels and without supervision."""
    bare = replace(ROW, players=ROW.players[1:], supervision=None)
    monkeypatch.setattr(loop, "FAMILIES", {"parted_vae": ROW, "bare": bare})
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


def test_the_first_step_of_an_unlabelled_training() -> None:
    """Trunk, classes, Gumbel noise at temperature .67, masks of slope 1, [z, u] with noise, decoder."""
    built, batch, logs = first_move("parted_vae", TINY, 1, labels=0, classes="2+3", class_latents=2)
    modules: Any = built.requires_grad_(requires_grad=False)
    images = torch.from_numpy(batch["images"])
    features = torch.nn.functional.leaky_relu(modules["trunk"](images), 0.1)
    logits = modules["classes"](features)
    gumbel = -torch.log(-torch.log(torch.from_numpy(batch["class noise"])))
    first, second = (logits + gumbel)[:, :2] / 0.67, (logits + gumbel)[:, 2:] / 0.67
    posterior = modules["heads"](features, logits, torch.cat([first.softmax(1), second.softmax(1)], 1), 1.0)
    assert posterior.class_mean.shape == (12, 2, 2)
    mean = torch.cat([posterior.mean, posterior.class_mean[:, 0], posterior.class_mean[:, 1]], 1)
    spread = torch.cat([posterior.log_variance, *posterior.class_log_variance.unbind(1)], 1)
    decoded = modules["decoder"](mean + torch.from_numpy(batch["noise"]) * torch.exp(spread / 2))
    fit = bernoulli(decoded.numpy(), batch["images"]) / 12
    assert logs["reconstruction"] == pytest.approx(fit)
    expected, parts = parted_vae(
        posterior, modules["priors"].means, 2 * torch.tanh(modules["priors"].spreads) - 1, torch.tensor([fit]), (2, 3),
        step=0, z_capacity=30.0, u_capacity=5.0, capacity_steps=300_000.0, gamma_z=50.0, gamma_u=50.0, gamma_c=100.0,
        gamma_h=10.0, gamma_bc=10.0, threshold=0.1,
    )  # fmt: skip
    assert logs["kl_u"] == pytest.approx(float(parts["kl_u"]))
    assert logs["loss/vae"] == pytest.approx(float(expected))


def test_codes_are_z_then_u_of_the_likeliest_class_under_sharp_masks() -> None:
    context = make_context(ROW, [member("parted_vae", network="dense")], TINY, batch_size=8, steps=10)
    modules: Any = build_member(ROW, TINY.image_shape, context.settings, 0).eval()
    images = torch.from_numpy(TINY.images(np.arange(0, 243, 40))).movedim(-1, 1) / 255
    with torch.no_grad():
        codes, log_variances = ROW.encode(modules, images, context.settings)
        features = torch.nn.functional.leaky_relu(modules["trunk"](images), 0.1)
        heads, best = modules["heads"], modules["classes"](features).argmax(1)
        mask = torch.sigmoid(8 * (heads.masks[0].weight.T[best] + heads.masks[0].bias))
        torch.testing.assert_close(codes[:, :5], heads.latents(features)[:, :5])
        torch.testing.assert_close(codes[:, 5:], heads.parts[0](features * mask)[:, :1])
        assert log_variances is not None
        torch.testing.assert_close(log_variances[:, 5:], heads.parts[0](features * mask)[:, 1:])
    assert ROW.parts
    assert [(part.name, part.kind, part.size) for part in ROW.parts(context.settings)] == [
        ("z", "gaussian", 5), ("shade", "gaussian", 1),
    ]  # fmt: skip
