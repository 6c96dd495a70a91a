"""Quessard's objective by hand."""

import math

import pytest
import torch

from unbraid.families.quessard import entanglement, quessard, rotation_matrices, unroll


def test_entanglement_is_zero_for_actions_of_a_single_plane_and_else_the_other_squares() -> None:
    assert entanglement(torch.tensor([[0.0, -2.0, 0.0], [0.5, 0.0, 0.0]])) == 0
    # (1 + 4 + 9) - 9 = 5 and 0: mean 2.5.
    assert entanglement(torch.tensor([[1.0, -3.0, 2.0], [0.0, 0.0, 1.0]])).item() == pytest.approx(2.5)


def test_trajectories_are_unrolled_from_their_first_code_and_keep_its_length() -> None:
    """Quarter turns up (action 0) and down (action 1): up, up, down ends at one quarter."""
    matrices = rotation_matrices(torch.tensor([[math.pi / 2], [-math.pi / 2]], dtype=torch.float64), 2)
    first = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    codes = unroll(first, matrices, torch.tensor([[0, 0, 1], [1, 0, 0]]))
    assert codes.shape == (2, 4, 2)
    torch.testing.assert_close(codes[0], torch.tensor([[1.0, 0], [0, -1], [-1, 0], [0, -1]], dtype=torch.float64))
    torch.testing.assert_close(codes[1], torch.tensor([[0.0, 1], [-1, 0], [0, 1], [1, 0]], dtype=torch.float64))
    torch.testing.assert_close(codes.norm(dim=-1), torch.ones(2, 4, dtype=torch.float64))


def test_the_loss_is_per_pixel_and_divides_all_frames_by_the_number_of_actions() -> None:
    """Two trajectories of three frames, ten pixels: sum over frames 6 and 12, / (10 * 2) each, mean .45; + .5 * 4."""
    errors = torch.tensor([[1.0, 2.0, 3.0], [4.0, 4.0, 4.0]])
    loss, logs = quessard(errors, torch.tensor([[2.0, 3.0]]), n_pixels=10, strength=0.5)
    assert loss.item() == pytest.approx(0.45 + 2)
    assert logs["reconstruction"].item() == pytest.approx(3)
    assert logs["entanglement"].item() == pytest.approx(4)
