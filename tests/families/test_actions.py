"""Quessard's model and ForwardVAE, which are told actions: first steps against their papers and published code."""

import math

import torch
from torch import Tensor

from tests.families.members import N_PIXELS, SPACE, Move, Weights, play
from tests.families.plain import Mover, Terms, bernoulli, check, decoder, encoder, levels, mean_of

LATENTS = 5  # of the ForwardVAE, one more than the planes take


def action(before: Tensor, after: Tensor, step: int = 1) -> int:
    """Which action leads from image to image: 2 k up the k-th cyclic factor, 2 k + 1 down."""
    found = []
    for k in range(2):
        for way in (1, -1):
            moved = levels(before)
            moved[k] = (moved[k] + way * step) % SPACE.sizes[k]
            if moved == levels(after):
                found.append(2 * k + (way < 0))
    assert len(found) == 1
    return found[0]


def plane_rotation(n: int, i: int, j: int, angle: Tensor) -> Tensor:
    """cos at (i, i) and (j, j), sin at (i, j), -sin at (j, i)."""
    matrix = torch.eye(n, dtype=torch.float64)
    entries = [(i, i, torch.cos(angle)), (j, j, torch.cos(angle)), (i, j, torch.sin(angle)), (j, i, -torch.sin(angle))]
    for row, column, value in entries:
        place = torch.zeros(n, n, dtype=torch.float64)
        place[row, column] = 1
        matrix = matrix * (1 - place) + place * value
    return matrix


def test_two_steps_of_quessards_model() -> None:
    """Quessard et al. 2020, eq. 1 and 2: T + 1 frames over T, and the planes beside each action's largest."""
    n, length, speed, strength = 3, 4, 2.0, 0.3

    def loss(weights: Weights, move: Move) -> tuple[Tensor, Terms]:
        angles = [speed * row for row in weights["actions.parameters_of_angles"]]
        assert len(angles) == 4  # two actions for each cyclic factor
        matrices = []
        for row in angles:
            matrix, plane = torch.eye(n, dtype=torch.float64), 0
            for i in range(n):
                for j in range(i + 1, n):
                    matrix = matrix @ plane_rotation(n, i, j, row[plane])
                    plane += 1
            matrices.append(matrix)
        assert move.batch["trajectories"].shape[:2] == (3, length + 1)
        errors = []
        for images in move.batch["trajectories"]:
            outputs = encoder(weights, "encoder", images[0])
            codes = outputs / torch.sqrt((outputs**2).sum())
            errors.append(bernoulli(decoder(weights, "decoder", codes), images[0]))
            for t in range(length):
                matrix = matrices[action(images[t], images[t + 1])]
                codes = torch.stack([(row * codes).sum() for row in matrix])
                errors.append(bernoulli(decoder(weights, "decoder", codes), images[t + 1]))
        entangled = mean_of([(row**2).sum() - torch.max(row**2) for row in angles])
        total = sum(errors, torch.zeros(()).double()) / N_PIXELS / (length * 3) + strength * entangled
        return total, {"reconstruction": mean_of(errors), "entanglement": entangled}

    played = play(
        "quessard", 2, latents=n, trajectories=20, trajectory_length=length, trajectories_at_once=3,
        angle_speed=speed, entanglement_weight=strength,
    )  # fmt: skip
    check(played, {"model": Mover(loss, ("encoder.", "decoder.", "actions."), 1e-3)}, ["model", "model"])


def selu(values: Tensor) -> Tensor:
    """Klambauer et al. 2017."""
    scale, alpha = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717
    return scale * torch.where(values > 0, values, alpha * (torch.exp(values) - 1))


def forward_loss(weights: Weights, move: Move) -> tuple[Tensor, Terms]:
    """Means over pixels and latents; the KL fades by .995 a step; the next mean is no constant."""
    squares, divergences, forwards = [], [], []
    for images, noise in zip(move.batch["transitions"], move.batch["noise"], strict=True):
        before, after = (encoder(weights, "vae.encoder", image) for image in images)
        n = len(before) // 2
        mean, log_deviation, following = selu(before[:n]), selu(before[n:]), selu(after[:n])
        z = mean + torch.exp(log_deviation) * noise[0]
        outputs = decoder(weights, "vae.decoder", z)
        pixels = 1 / (1 + torch.exp(-outputs))
        squares.append(((pixels - images[0].flatten()) ** 2).sum() / N_PIXELS)
        divergences.append(-(1 + log_deviation - mean**2 - torch.exp(log_deviation)).sum() / 2)
        done = action(images[0], images[1])
        first = 2 * (done // 2)  # the plane of the action's factor
        block = weights["actions.blocks"][done]
        predicted = [z[d] for d in range(n)]
        for row in (0, 1):
            predicted[first + row] = block[row, 0] * z[first] + block[row, 1] * z[first + 1]
        forwards.append(((torch.stack(predicted) - following) ** 2).sum() / n)
    fit, divergence, forward = mean_of(squares), mean_of(divergences), mean_of(forwards)
    total = fit + 2.0 * 0.995**move.step * divergence / LATENTS + forward
    return total, {"reconstruction": fit, "kl": divergence, "forward": forward}


def test_two_steps_of_the_forward_vae_and_one_later() -> None:
    """Caselles-Dupre et al. 2019, section 4, as in the authors' code."""
    settings = {"transitions": 50, "beta": 2.0, "latents": LATENTS}
    mover = Mover(forward_loss, ("vae.", "actions."), 1e-3)
    check(play("forward_vae", 2, batch_size=8, **settings), {"vae": mover}, ["vae", "vae"])
    late = play("forward_vae", 1, first_step=600, batch_size=8, **settings)
    assert math.isclose(0.995**600, 0.0494, rel_tol=1e-3)
    check(late, {"vae": mover}, ["vae"])
