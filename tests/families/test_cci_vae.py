"""CCI-VAE: a step against the paper's equation, and its capacity by hand."""

import math

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
from tests.families.posteriors import outputs_of
from unbraid.families.cci_vae import capacity, cci_vae

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


RECONSTRUCTION = torch.tensor([100.0, 104.0], dtype=torch.float64)


ZERO = torch.zeros(2, 1, dtype=torch.float64)


@pytest.mark.parametrize(("step", "expected"), [(0, 0.0), (1, 0.00025), (25000, 6.25), (100000, 25.0), (300000, 25.0)])
def test_capacity_rises_in_a_straight_line_and_stays(step: int, expected: float) -> None:
    assert float(capacity(step, c_max=25.0, capacity_steps=100000)) == pytest.approx(expected, rel=1e-6)
    many = {"c_max": torch.tensor(25.0), "capacity_steps": torch.tensor(100000.0)}
    assert float(capacity(torch.tensor(step), **many)) == pytest.approx(expected, rel=1e-6)


def means_of_kl(kl: float) -> Tensor:
    """Two posteriors of unit variance whose KL is `kl` on average: 0.5 * mean^2, once 0 and once twice `kl`."""
    return torch.tensor([[0.0], [2 * math.sqrt(kl)]], dtype=torch.float64)


@pytest.mark.parametrize(("step", "distance"), [(0, 5.0), (20, 3.0), (50, 0.0), (70, 2.0), (1000, 5.0)])
def test_cci_vae_by_hand(step: int, distance: float) -> None:
    """Reconstruction 102, KL 5 on average (0 and 10), capacity step / 10 up to 10, gamma 1000."""
    outputs = outputs_of(means_of_kl(5.0), ZERO, ZERO)
    loss, logs = cci_vae(outputs, RECONSTRUCTION, step=step, gamma=1000.0, c_max=10.0, capacity_steps=100.0)
    assert float(loss) == pytest.approx(102 + 1000 * distance, rel=1e-6)
    assert [float(logs[name]) for name in ("reconstruction", "kl")] == pytest.approx([102, 5])
    assert float(logs["capacity"]) == pytest.approx(min(step / 10, 10))


@pytest.mark.parametrize(("step", "sign"), [(0, 1), (1000, -1)])
def test_cci_vae_draws_the_kl_towards_the_capacity_from_both_sides(step: int, sign: int) -> None:
    mean = means_of_kl(5.0).requires_grad_()
    loss, _ = cci_vae(
        outputs_of(mean, ZERO, ZERO), RECONSTRUCTION, step=step, gamma=7.0, c_max=10.0, capacity_steps=100.0
    )
    (gradient,) = torch.autograd.grad(loss, mean)
    torch.testing.assert_close(gradient, sign * 7 * mean.detach() / 2)
