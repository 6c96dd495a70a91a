"""PartedVAE: steps of both optimizer steps against the objective of Hajimiri et al. 2021, as in the authors' code."""

import math
from typing import Any

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
    dense,
    encoder,
    kl_normal,
    kl_standard,
    levels,
    mean_of,
)

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
