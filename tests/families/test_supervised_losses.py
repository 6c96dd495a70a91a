"""The first loss of the families on circles and pairs, against their formulas written out in NumPy and loops."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tests.training.examples import SPACE, blocks, member
from unbraid.datasets.base import ArrayDataset
from unbraid.factors import FactorSpace
from unbraid.families.building import build_member, make_supply
from unbraid.families.table import FAMILIES
from unbraid.training.draws import Draws, Images
from unbraid.training.population import make_context, make_population
from unbraid.types import FloatArray

DATASET = blocks()
TINY = ArrayDataset(np.ascontiguousarray(DATASET.array[:, ::4, ::4]), SPACE)  # 8 x 8
TURNING = ArrayDataset(TINY.array, FactorSpace(("object", "azimuth"), (27, 9), ("categorical", "cyclic")))


def first_move(
    family: str, dataset: ArrayDataset, player: int = 0, **settings: Any
) -> tuple[nn.ModuleDict, dict[str, FloatArray], dict[str, float]]:
    """Networks before the first step, what the player is given, and the logs of its move."""
    row, member_ = FAMILIES[family], member(family, 4, network="dense", **settings)
    context = make_context(row, [member_], dataset, batch_size=12, steps=50)
    supply = make_supply(row, dataset.space, context.settings, 4)
    draws = Draws([4], context, Images(dataset, torch.device("cpu"), torch.float64), [supply])
    turns = [player.turn for player in row.players]
    step = next(step for step in range(50) if (turn := turns[player]) is None or turn(step, context) == 0)
    batch = {name: value[0].numpy() for name, value in draws.batch(row.players[player], step, 0, 0).items()}
    modules = build_member(row, dataset.image_shape, context.settings, 4).double()
    population = make_population(row, [member_], dataset, context, device=torch.device("cpu"), precision=torch.float64)
    state = {name: value for name, value in population.state(0).items() if name.startswith("model/")}
    for name, value in modules.state_dict().items():
        torch.testing.assert_close(value, state[f"model/{name}"])
    return modules, batch, {name: float(value) for name, value in population.advance(step).items()}


def call(module: Any, values: FloatArray) -> FloatArray:
    with torch.no_grad():
        return module(torch.from_numpy(np.ascontiguousarray(values))).numpy()


def bernoulli(logits: FloatArray, images: FloatArray) -> float:
    """Cross-entropy summed over pixels."""
    return float(np.logaddexp(0, logits).sum() - (logits * images).sum())


def turned(point: FloatArray, turn: float) -> FloatArray:
    angle = 2 * math.pi * turn
    return np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]) @ point


def unit(point: FloatArray) -> FloatArray:
    return point / np.linalg.norm(point)


@pytest.mark.parametrize("anchor", ["samples", "locations"])
@pytest.mark.parametrize(("dataset", "settings", "n_groups"), [
    (TINY, {"euclidean": 2}, 6),
    (TURNING, {"supervision": "turntables", "turntables": 4, "euclidean": 2}, 1),
], ids=["pairs", "turntables"])  # fmt: skip
def test_the_loss_of_groups(dataset: ArrayDataset, settings: dict[str, Any], n_groups: int, anchor: str) -> None:
    """Encode, walk 3 steps, turn back, average, put back onto the circle, turn, decode."""
    circles = sum(kind == "cyclic" for kind in dataset.space.kinds)
    modules, batch, logs = first_move("lsbd_vae", dataset, walk_steps=3, anchor=anchor, gamma=7.0, **settings)
    images, turns = batch["groups"], batch["groups turns"]
    assert images.shape[0] == n_groups
    fit = kl = disorder = 0.0
    for group in range(n_groups):
        n = images.shape[1]
        points, values, located, means = [], [], [], []
        for one in range(n):
            encoded = call(modules["vae"].encoder, images[group, one][None])[0]
            vectors, numbers = encoded[: 2 * circles].reshape(circles, 2), encoded[2 * circles : 3 * circles]
            mean, log_variance = encoded[3 * circles : 3 * circles + 2], encoded[3 * circles + 2 :]
            log_times = -9.5 + 0.5 * np.tanh(numbers)
            located.append([unit(vector) for vector in vectors])
            means.append(mean)
            walked = []
            for circle in range(circles):
                point = unit(vectors[circle])
                for noise in batch["group walk"][group, one, :, circle]:
                    point = unit(point + math.sqrt(math.exp(log_times[circle]) / 3) * noise)
                walked.append(point)
                kl += -0.5 * log_times[circle] + 0.5 * math.log(2 * math.pi) - 0.5
            points.append(walked)
            values.append(mean + np.exp(log_variance / 2) * batch["group noise"][group, one])
            kl += float(0.5 * (mean**2 + np.exp(log_variance) - log_variance - 1).sum())
        back = [[turned(points[one][c], -turns[group, one, c]) for c in range(circles)] for one in range(n)]
        anchors = [unit(np.mean([each[c] for each in back], axis=0)) for c in range(circles)]
        held = np.mean(values, axis=0)
        for one in range(n):
            code = np.concatenate([*[turned(anchors[c], turns[group, one, c]) for c in range(circles)], held])
            fit += bernoulli(call(modules["vae"].decoder, code[None])[0], images[group, one])
        if anchor == "locations":
            back = [[turned(located[one][c], -turns[group, one, c]) for c in range(circles)] for one in range(n)]
            anchors = [unit(np.mean([each[c] for each in back], axis=0)) for c in range(circles)]
            values, held = means, np.mean(means, axis=0)
        off = sum(((back[one][c] - anchors[c]) ** 2).sum() for one in range(n) for c in range(circles))
        disorder += float(off + sum(((values[one] - held) ** 2).sum() for one in range(n))) / n
    n_images = images.shape[0] * images.shape[1]
    expected = fit / n_images + kl / n_images + 7.0 * disorder / n_groups
    assert logs["group_reconstruction"] == pytest.approx(fit / n_images, rel=1e-9)
    assert logs["group_kl"] == pytest.approx(kl / n_images, rel=1e-9)
    assert logs["lsbd"] == pytest.approx(disorder / n_groups, rel=1e-9)
    assert logs["loss/groups"] == pytest.approx(expected, rel=1e-9)


def test_the_loss_of_images_of_no_group() -> None:
    modules, batch, logs = first_move("lsbd_vae", TURNING, 1, supervision="turntables", turntables=4, walk_steps=2)
    encoded = call(modules["vae"].encoder, batch["images"])
    assert encoded.shape == (12, 3 + 2 * 5)
    fit = 0.0
    for image, code, walk, noise in zip(batch["images"], encoded, batch["walk"], batch["noise"], strict=True):
        point = unit(code[:2])
        for step in walk[:, 0]:
            point = unit(point + math.exp((-9.5 + 0.5 * math.tanh(code[2])) / 2) / math.sqrt(2) * step)
        latents = np.concatenate([point, code[3:8] + np.exp(code[8:] / 2) * noise])
        fit += bernoulli(call(modules["vae"].decoder, latents[None])[0], image)
    assert logs["reconstruction"] == pytest.approx(fit / 12, rel=1e-9)
    assert logs["loss/images"] == pytest.approx(logs["reconstruction"] + logs["kl_circles"] + logs["kl_euclidean"])


@pytest.mark.parametrize("family", ["ada_gvae", "ada_ml_vae"])
def test_the_loss_of_pairs(family: str) -> None:
    """Half the sum over both images of cross-entropy and beta KL, from the posteriors after averaging."""
    modules, batch, logs = first_move(family, TINY, latents=4, beta=3.0)
    images = batch["pairs"]
    assert images.shape[:2] == (6, 2)
    total, shared = 0.0, 0
    for pair in range(6):
        encoded = call(modules["vae"].encoder, images[pair])
        means, variances = encoded[:, :4].copy(), np.exp(encoded[:, 4:])
        (m1, m2), (v1, v2) = means, variances
        distance = v1 / v2 + (m2 - m1) ** 2 / v2 - 1 + np.log(v2) - np.log(v1)
        middle = (distance.min() + distance.max()) / 2  # equal images share all
        for latent in np.flatnonzero((distance < middle) | (distance.max() == 0)):
            shared += 1
            if family == "ada_gvae":
                mean, variance = (m1[latent] + m2[latent]) / 2, (v1[latent] + v2[latent]) / 2
            else:
                variance = 2 / (1 / v1[latent] + 1 / v2[latent])
                mean = (m1[latent] / v1[latent] + m2[latent] / v2[latent]) * variance / 2
            means[:, latent], variances[:, latent] = mean, variance
        samples = means + np.sqrt(variances) * batch["noise"][pair]
        fit = bernoulli(call(modules["vae"].decoder, samples), images[pair])
        kl = 0.5 * (means**2 + variances - np.log(variances) - 1).sum()
        total += (fit + 3.0 * kl) / 2
    assert logs["loss/vae"] == pytest.approx(total / 6, rel=1e-9)
    assert logs["shared"] == pytest.approx(shared / 6)
