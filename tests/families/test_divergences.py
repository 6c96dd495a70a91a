"""Divergences from priors that are no single Gaussian, against SciPy's quadrature and closed forms."""

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm
from torch import Tensor

from unbraid.families.beta_tcvae import FactorialFlow
from unbraid.families.divergences import (
    gaussian_kl,
    kl_by_quadrature,
    kl_from,
    log_mixture,
    log_normal,
    log_standard_normal,
)

MEANS = torch.tensor([[0.3, -1.0, 2.0], [0.0, 4.0, -0.5]], dtype=torch.float64)
LOG_VARIANCES = torch.tensor([[-0.5, 0.2, -3.0], [-6.0, -1.0, -2.0]], dtype=torch.float64)


def divergence(mean: float, deviation: float, log_density: float | object) -> float:
    """Integral of q (log q - log p), ten deviations either way."""

    def integrand(value: float) -> float:
        own = norm.logpdf(value, mean, deviation)
        return float(np.exp(own) * (own - log_density(value)))  # pyright: ignore[reportCallIssue]

    points = [mean - 3 * deviation, mean, mean + 3 * deviation]
    return quad(integrand, mean - 10 * deviation, mean + 10 * deviation, points=points, limit=400)[0]


def test_quadrature_is_the_closed_form_where_there_is_one() -> None:
    found = kl_by_quadrature(MEANS, LOG_VARIANCES, log_standard_normal)
    torch.testing.assert_close(found, gaussian_kl(MEANS, LOG_VARIANCES))
    means, log_variances = torch.tensor([1.0, -2.0, 0.5]), torch.tensor([0.7, -1.0, 0.0])
    found = kl_by_quadrature(MEANS, LOG_VARIANCES, lambda values: log_normal(values, means, log_variances))
    torch.testing.assert_close(found, kl_from(MEANS, LOG_VARIANCES, means, log_variances).double())


@pytest.mark.parametrize("apart", [0.0, 3.0])
def test_divergence_from_a_mixture_of_which_a_code_may_lie_between_two(apart: float) -> None:
    components = apart * torch.tensor([[0.0, 1.0, -1.0], [1.5, 0.0, 2.0], [-1.0, 2.0, 0.3]], dtype=torch.float64)
    log_variances = torch.tensor([[0.0, -0.7, 0.3], [-0.4, 0.2, 0.0], [0.1, 0.0, -0.2]], dtype=torch.float64)
    found = kl_by_quadrature(MEANS, LOG_VARIANCES, lambda values: log_mixture(values, components, log_variances))
    for (row, latent), value in np.ndenumerate(found.numpy()):

        def log_density(at: float, latent: int = latent) -> float:
            deviations = np.exp(log_variances[:, latent].numpy() / 2)
            return float(np.log(norm.pdf(at, components[:, latent].numpy(), deviations).mean()))

        mean, deviation = MEANS[row, latent].item(), float(np.exp(LOG_VARIANCES[row, latent].item() / 2))
        assert value == pytest.approx(divergence(mean, deviation, log_density), abs=2e-5)


def test_divergence_from_a_flow() -> None:
    torch.manual_seed(0)
    flow = FactorialFlow(3).double()
    for parameter in flow.parameters():
        torch.nn.init.normal_(parameter, std=0.3)

    def log_density(at: float, latent: int) -> float:
        return flow(torch.full((1, 3), at, dtype=torch.float64))[0, latent].item()

    with torch.no_grad():
        found = kl_by_quadrature(MEANS, LOG_VARIANCES, flow)
        assert float((found - gaussian_kl(MEANS, LOG_VARIANCES)).abs().min()) > 0.03
        for (row, latent), value in np.ndenumerate(found.numpy()[:1]):
            mean, deviation = MEANS[row, latent].item(), float(np.exp(LOG_VARIANCES[row, latent].item() / 2))
            expected = divergence(mean, deviation, lambda at, latent=latent: log_density(at, latent))
            assert value == pytest.approx(expected, abs=1e-4)


def test_no_latent_is_looked_at_by_another() -> None:
    """A mixture is taken one dimension at a time: the marginals, whatever goes with what."""
    components = torch.tensor([[0.0, 5.0], [3.0, -5.0]])
    values = torch.tensor([[0.0, -5.0]])
    found = log_mixture(values, components, torch.zeros(2, 2))
    expected: Tensor = torch.tensor([[norm.pdf(0) + norm.pdf(3), norm.pdf(0) + norm.pdf(10)]]).div(2).log()
    torch.testing.assert_close(found.double(), expected.double(), rtol=1e-5, atol=1e-6)
