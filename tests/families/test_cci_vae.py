"""CCI-VAE: a step against the paper's equation, and its capacity by hand."""

import pytest
import torch
from torch import Tensor

from tests.families.members import Move, Weights, play
from tests.families.plain import (
    Mover,
    Terms,
    check,
    vae_terms,
)

ONE = ["vae"]


@pytest.mark.parametrize(
    ("first_step", "expected"), [(0, 0.0), (1, 0.05), (150, 7.5), (399, 19.95), (400, 20.0), (900, 20.0)]
)
def test_the_capacity_of_the_cci_vae_rises_in_a_straight_line_and_stays(first_step: int, expected: float) -> None:
    """Burgess et al. 2018, eq. 8; UDR eq. 10 and table 3: gamma times the distance of the KL from C.

    The KL lies above the capacity at first and below it in the end, so that both slopes are seen.
    """

    def loss(weights: Weights, move: Move) -> tuple[Tensor, Terms]:
        fit, divergence = vae_terms(weights, move)
        capacity = torch.tensor(20.0 * min(move.step / 400, 1.0), dtype=torch.float64)
        assert capacity.item() == pytest.approx(expected)
        assert (divergence.item() > expected) == (first_step < 100)
        distance = torch.maximum(divergence - capacity, capacity - divergence)
        return fit + 30.0 * distance, {"reconstruction": fit, "kl": divergence, "capacity": capacity}

    played = play("cci_vae", first_step=first_step, latents=3, gamma=30.0, c_max=20.0, capacity_steps=400)
    check(played, {"vae": Mover(loss, ("vae.",))}, ONE)
