"""PartedVAE: steps of both optimizer steps against the objective of Hajimiri et al. 2021, as in the authors' code."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from torch import Tensor

from tests.families.members import SPACE, Move, Weights, play
from tests.families.plain import (
    Mover,
    Terms,
    bernoulli,
    check,
    decoder,
    dense,
    encoder,
    kl_normal,
    kl_standard,
    levels,
    mean_of,
)
from tests.families.posteriors import normal
from tests.training.training_examples import SPACE as TINY_SPACE
from tests.training.training_examples import TINY, member
from unbraid.data import FactorSpace
from unbraid.families.building import make_supply
from unbraid.families.family_table import FAMILIES
from unbraid.families.parted_vae import (
    ClassPriors,
    PartedPosterior,
    bhattacharyya,
    likeliest_classes,
    parted_vae,
    relaxed_classes,
)
from unbraid.training import loop
from unbraid.training.loop import Plan, train_here
from unbraid.training.population import make_context

LATENTS, U, FEATURES = 2, 2, 4
SIZES, COLUMNS = (4, 3), (1, 2)  # hue and shape
WEIGHTS = {"gamma_z": 3.0, "gamma_u": 4.0, "gamma_c": 5.0, "gamma_h": 6.0, "gamma_bc": 7.0, "threshold": 0.3}
CAPACITIES = {"z_capacity": 12.0, "u_capacity": 30.0, "capacity_steps": 500.0, "mask_steps": 350.0}
SETTINGS: dict[str, Any] = {
    "latents": LATENTS, "class_latents": U, "features": FEATURES, "classes": "hue+shape", **WEIGHTS, **CAPACITIES,
}  # fmt: skip
RATE = 5e-4


def zero() -> Tensor:
    return torch.zeros((), dtype=torch.float64)


def features_and_classes(weights: Weights, image: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Features with leaky ReLU .1, and the logits of each categorical."""
    outputs = encoder(weights, "trunk", image)
    features = torch.where(outputs > 0, outputs, 0.1 * outputs)
    logits = dense(weights, "classes", features)
    return features, [logits[:4], logits[4:]]


def log_softmax(logits: Tensor) -> Tensor:
    return logits - torch.log(torch.exp(logits).sum())


def label_loss(weights: Weights, move: Move) -> tuple[Tensor, Terms]:
    losses = []
    for image in move.batch["labelled"]:
        _, logits = features_and_classes(weights, image)
        true = [levels(image)[column] for column in COLUMNS]
        losses.append(-sum((log_softmax(each)[level] for each, level in zip(logits, true, strict=True)), zero()))
    return mean_of(losses), {"cross_entropy": mean_of(losses)}


def overlap(m1: Tensor, v1: Tensor, m2: Tensor, v2: Tensor) -> Tensor:
    """exp(-D), D = (m1 - m2)^2 / (8 v) + (log v - (log v1 + log v2) / 2) / 2 summed over dimensions, v their mean."""
    v = (v1 + v2) / 2
    return torch.exp(-((m1 - m2) ** 2 / v / 8 + (torch.log(v) - (torch.log(v1) + torch.log(v2)) / 2) / 2).sum())


def vae_loss(weights: Weights, move: Move, sharpened_over: float) -> tuple[Tensor, Terms]:
    fits, divergences, from_classes, entropies = [], [], [], []
    shares = [torch.zeros(size, dtype=torch.float64) for size in SIZES]
    slope = 1 + 7 * min(move.step / sharpened_over, 1)
    prior_means, prior_variances = weights["priors.means"], torch.exp(2 * torch.tanh(weights["priors.spreads"]) - 1)
    first = (0, SIZES[0])
    given = zip(move.batch["images"], move.batch["noise"], move.batch["class noise"], strict=True)
    for image, noise, uniform in given:
        features, logits = features_and_classes(weights, image)
        outputs = dense(weights, "heads.latents", features)
        z = (outputs[:LATENTS], outputs[LATENTS:])
        means, log_variances = [z[0]], [z[1]]
        from_class = entropy = zero()
        for k, size in enumerate(SIZES):
            gumbel = -torch.log(-torch.log(uniform[first[k] : first[k] + size]))
            relaxed = torch.exp((logits[k] + gumbel) / 0.67)
            relaxed = relaxed / relaxed.sum()
            mask = 1 / (1 + torch.exp(-slope * dense(weights, f"heads.masks.{k}", relaxed)))
            u = dense(weights, f"heads.parts.{k}", features * mask)
            means.append(u[:U])
            log_variances.append(u[U:])
            log_q = log_softmax(logits[k])
            for i in range(size):
                prior = (prior_means[first[k] + i], prior_variances[first[k] + i])
                from_class = from_class + torch.exp(log_q[i]) * kl_normal(u[:U], u[U:], *prior)
                entropy = entropy - torch.exp(log_q[i]) * log_q[i]
            shares[k] = shares[k] + torch.exp(log_q) / len(move.batch["images"])
        codes = torch.cat(means) + torch.exp(torch.cat(log_variances) / 2) * noise
        fits.append(bernoulli(decoder(weights, "decoder", codes), image))
        divergences.append(kl_standard(z))
        from_classes.append(from_class)
        entropies.append(entropy)
    class_kl = sum((share * torch.log(share * len(each)) for each in shares for share in each), zero())
    too_much = zero()
    for k, size in enumerate(SIZES):
        for i in range(first[k], first[k] + size):
            for j in range(i + 1, first[k] + size):
                shared = overlap(prior_means[i], prior_variances[i], prior_means[j], prior_variances[j])
                too_much = too_much + torch.clamp(shared - WEIGHTS["threshold"], min=0)
    fit, kl_z, kl_u, entropy = (mean_of(each) for each in (fits, divergences, from_classes, entropies))
    progress = min(move.step / 500, 1)
    loss = fit + 3.0 * torch.abs(12 * progress - kl_z) + 4.0 * torch.abs(30 * progress - kl_u)
    loss = loss + 5.0 * class_kl + 6.0 * entropy + 7.0 * too_much
    logs = {"reconstruction": fit, "kl_z": kl_z, "kl_u": kl_u}
    return loss, {**logs, "class_kl": class_kl, "class_entropy": entropy, "overlap": too_much}


def movers(sharpened_over: float = 350.0) -> dict[str, Mover]:
    trunk = ("trunk.", "classes.")
    return {
        "labels": Mover(label_loss, trunk, RATE),
        "vae": Mover(lambda w, m: vae_loss(w, m, sharpened_over), (*trunk, "heads.", "priors.", "decoder."), RATE),
    }


def test_a_step_of_labels_comes_before_every_other() -> None:
    check(play("parted_vae", 2, total=2000, labels=24, **SETTINGS), movers(), ["labels", "vae"] * 2)


@pytest.mark.parametrize("first_step", [0, 200, 3000])
def test_capacities_grow_and_masks_sharpen_without_labels(first_step: int) -> None:
    played = play("parted_vae", 1, first_step=first_step, total=10_000, **SETTINGS)
    check(played, movers(), ["vae"])
    assert (played.logs[0]["kl_z"] > 12 * min(first_step / 500, 1)) == (first_step == 0)  # both slopes are seen
    assert (played.logs[0]["kl_u"] > 30 * min(first_step / 500, 1)) == (first_step < 3000)


def test_masks_are_sharp_after_half_of_a_short_training() -> None:
    check(play("parted_vae", 1, first_step=30, total=100, **SETTINGS), movers(50.0), ["vae"])


def test_the_labels_are_spread_evenly() -> None:
    images = play("parted_vae", 1, batch_size=24, labels=24, **SETTINGS).moves[0].batch["labelled"]
    cells = [tuple(levels(image)[column] for column in COLUMNS) for image in images]
    assert sorted(cells) == sorted(2 * [(hue, shape) for hue in range(4) for shape in range(3)])
    assert math.prod(SIZES) * 5 == len(SPACE)


MEANS = torch.tensor([[0.0, 1.0], [0.7, -1.0], [3.0, 0.5]], dtype=torch.float64)
LOG_VARIANCES = torch.tensor([[0.0, -2.0], [0.9, -0.3], [-2.5, 0.4]], dtype=torch.float64)
GAMMAS = {"gamma_z": 2.0, "gamma_u": 3.0, "gamma_c": 5.0, "gamma_h": 7.0, "gamma_bc": 11.0}


def test_the_overlap_is_the_integral_of_the_root_of_the_product() -> None:
    found = bhattacharyya(MEANS, LOG_VARIANCES)
    for i in range(3):
        for j in range(3):
            expected = 1.0
            for d in range(2):
                p, q = (stats.norm(MEANS[k, d].item(), math.exp(LOG_VARIANCES[k, d].item() / 2)) for k in (i, j))
                expected *= integrate.quad(lambda x, p=p, q=q: math.sqrt(p.pdf(x) * q.pdf(x)), -15, 15, limit=200)[0]
            assert found[i, j].item() == pytest.approx(expected, abs=1e-9)


def test_classes_that_no_image_has_leave_gradients_finite() -> None:
    logits = torch.tensor([[900.0, 0.0, 0.0]] * 4, dtype=torch.float64, requires_grad=True)
    posterior = PartedPosterior(normal(4, 2), normal(4, 2), logits, normal(4, 1, 1), normal(4, 1, 1))
    loss, logs = parted_vae(
        posterior, normal(3, 1), normal(3, 1), normal(4), (3,),
        step=0, z_capacity=1.0, u_capacity=1.0, capacity_steps=10, threshold=0.1, **GAMMAS,
    )  # fmt: skip
    assert logs["class_kl"].item() == pytest.approx(math.log(3))
    assert logs["class_entropy"].item() == pytest.approx(0)
    assert torch.isfinite(torch.autograd.grad(loss, logits)[0]).all()


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


def test_log_variances_of_priors_stay_between_minus_3_and_1() -> None:
    priors = ClassPriors(3, 2)
    with torch.no_grad():
        priors.spreads.copy_(torch.tensor([[-50.0, 50.0], [0.0, 0.5], [1.0, -1.0]]))
    found = priors.log_variances()
    assert found[0].tolist() == [-3, 1]
    assert found[1].tolist() == pytest.approx([-1, 2 * math.tanh(0.5) - 1])


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
    supply = make_supply(ROW, TINY_SPACE, context.settings, 0)
    assert supply
    assert supply.used == {"labels": 54}
    labelled = supply.items["labelled"]
    levels = TINY_SPACE.factors(labelled.positions)
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
    if names[0] == "u1":
        with pytest.raises(ValueError, match="at least two classes"):
            ROW.facts(space, {"classes": f"{classes}+1", "labels": 0, "class_latents": 2, "latents": 5})
