"""Learned rotations: members of SO(n), in the order and with the signs that are published."""

from itertools import combinations

import pytest
import torch
from torch import Tensor

from unbraid.families.quessard import ActionRotations, rotation_matrices


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


def test_angles_start_within_the_published_range_whatever_their_speed() -> None:
    actions = ActionRotations(500, 4, speed=10.0)
    assert actions.angles.shape == (500, 6)
    assert 0.75 < actions.angles.abs().max() <= torch.pi / 4
    assert actions.parameters_of_angles.abs().max() <= torch.pi / 40


def test_under_adam_angles_move_by_speed_times_the_learning_rate() -> None:
    actions = ActionRotations(1, 3, speed=10.0)
    before = actions.angles.detach().clone()
    optimiser = torch.optim.Adam(actions.parameters(), lr=1e-3)
    actions.angles.sum().backward()
    optimiser.step()
    torch.testing.assert_close(actions.angles, before - 1e-2, rtol=1e-4, atol=1e-6)
