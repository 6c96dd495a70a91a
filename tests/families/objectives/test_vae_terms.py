"""The KL in closed form, and the penalties of CCI-VAE and DIP-VAE by hand."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.families.objectives.posteriors import normal, outputs_of, posteriors
from unbraid.families.cci_vae import capacity, cci_vae
from unbraid.families.dip_vae import covariance, covariance_penalty, dip_vae_i, dip_vae_ii
from unbraid.families.divergences import gaussian_kl
from unbraid.families.vae import beta_vae

RECONSTRUCTION = torch.tensor([100.0, 104.0], dtype=torch.float64)
ZERO = torch.zeros(2, 1, dtype=torch.float64)


@pytest.mark.parametrize(("mean", "variance"), [(0.0, 1.0), (1.5, 1.0), (-0.7, 0.04), (0.2, 6.0)])
def test_kl_is_the_integral_of_its_definition(mean: float, variance: float) -> None:
    z = np.linspace(mean - 40, mean + 40, 400001)
    log_q = -0.5 * ((z - mean) ** 2 / variance + math.log(2 * math.pi * variance))
    log_p = -0.5 * (z**2 + math.log(2 * math.pi))
    expected = (np.exp(log_q) * (log_q - log_p)).sum() * (z[1] - z[0])
    posterior = torch.tensor([[mean, variance]], dtype=torch.float64)
    kl = gaussian_kl(posterior[:, :1], posterior[:, 1:].log())
    assert kl.shape == (1, 1)
    assert float(kl) == pytest.approx(expected, abs=1e-9)


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


def test_beta_vae_by_hand_and_at_beta_one_the_vae() -> None:
    outputs = outputs_of(means_of_kl(5.0), ZERO, ZERO)
    assert float(beta_vae(outputs, RECONSTRUCTION, beta=4.0)[0]) == pytest.approx(102 + 4 * 5)
    assert float(beta_vae(outputs, RECONSTRUCTION)[0]) == pytest.approx(102 + 5)


def test_covariance_is_that_of_numpy_divided_by_n() -> None:
    mean, _ = posteriors(9, 4)
    np.testing.assert_allclose(covariance(mean), np.cov(np.asarray(mean).T, bias=True), rtol=1e-12)


def test_penalty_counts_both_triangles() -> None:
    """[[2, 3], [3, 5]]: off the diagonal 9 + 9, on it 1 + 16."""
    off_diagonal, diagonal = covariance_penalty(torch.tensor([[2.0, 3.0], [3.0, 5.0]]))
    assert (float(off_diagonal), float(diagonal)) == (18.0, 17.0)


def test_dip_vae_by_hand() -> None:
    """Means (1, 1) and (-1, -3), variances 1/2 and 3/2 in both latents.

    Covariance of the means [[1, 2], [2, 4]]: off the diagonal 8, on it 0 + 9. Posterior variances add 1 on average:
    [[2, 2], [2, 5]]: 8, and 1 + 16.
    """
    mean = torch.tensor([[1.0, 1.0], [-1.0, -3.0]], dtype=torch.float64)
    log_variance = torch.tensor([[0.5, 0.5], [1.5, 1.5]], dtype=torch.float64).log()
    outputs = outputs_of(mean, log_variance, normal(2, 2))
    kl = float(gaussian_kl(mean, log_variance).sum(1).mean())
    for objective, diagonal in ((dip_vae_i, 9), (dip_vae_ii, 17)):
        loss, logs = objective(outputs, RECONSTRUCTION, lambda_od=2.0, lambda_d=20.0)
        assert float(loss) == pytest.approx(102 + kl + 2 * 8 + 20 * diagonal)
        assert [float(logs[name]) for name in ("kl", "off_diagonal", "diagonal")] == pytest.approx([kl, 8, diagonal])
