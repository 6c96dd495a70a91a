"""Quessard's model: first steps against the paper, its rotations, and its objective by hand."""

from itertools import combinations

import pytest
import torch
from torch import Tensor

from tests.families.members import N_PIXELS, Move, Weights, play
from tests.families.plain import Mover, Terms, action, bernoulli, check, decoder, encoder, mean_of
from unbraid.families.quessard import rotation_matrices


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


def one_plane(n: int, i: int, j: int, angle: Tensor) -> Tensor:
    matrix = torch.eye(n, dtype=angle.dtype)
    matrix[i, i] = matrix[j, j] = angle.cos()
    matrix[i, j], matrix[j, i] = angle.sin(), -angle.sin()
    return matrix


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_matrices_are_the_product_of_their_planes(n: int) -> None:
    angles = torch.linspace(-2, 3, 2 * n * (n - 1) // 2, dtype=torch.float64).reshape(2, -1)
    for matrix, chosen in zip(rotation_matrices(angles, n), angles, strict=True):
        expected = torch.eye(n, dtype=torch.float64)
        for (i, j), angle in zip(combinations(range(n), 2), chosen, strict=True):
            expected = expected @ one_plane(n, i, j, angle)
        torch.testing.assert_close(matrix, expected)
        torch.testing.assert_close(matrix @ matrix.T, torch.eye(n, dtype=torch.float64))
        assert torch.linalg.det(matrix).item() == pytest.approx(1)
