"""What two images share, by hand and against products of Gaussians."""

import math

import numpy as np
import pytest
import torch

from tests.families.objectives.posteriors import posteriors
from unbraid.families.ada_vae import averaged, distance, share, shared


def posterior(mean: list[float], variance: list[float]):
    return torch.tensor([mean], dtype=torch.float64), torch.tensor([variance], dtype=torch.float64).log()


FIRST = posterior([0.0, 1.0, -2.0, 0.5], [1.0, 0.25, 1.0, 0.5])
SECOND = posterior([0.2, 2.0, 2.0, 0.5], [1.0, 0.5, 4.0, 0.5])
# s1/s2 + (m2 - m1)^2 / s2 - 1 + log s2 - log s1:
DISTANCES = [0.04, 0.5 + 2 - 1 + math.log(2), 0.25 + 4 - 1 + math.log(4), 0.0]


def test_mask_and_averages_by_hand() -> None:
    """Distances .04, 2.193, 4.636 and 0; the middle is 2.318, so that only the third latent counts as changed."""
    found = distance(FIRST, SECOND)
    assert found[0].tolist() == pytest.approx(DISTANCES)
    assert shared(found)[0].tolist() == [True, True, False, True]
    one, other, same = share(FIRST, SECOND, "arithmetic")
    assert same[0].tolist() == [True, True, False, True]
    assert one[0][0].tolist() == pytest.approx([0.1, 1.5, -2.0, 0.5])
    assert other[0][0].tolist() == pytest.approx([0.1, 1.5, 2.0, 0.5])
    assert one[1].exp()[0].tolist() == pytest.approx([1.0, 0.375, 1.0, 0.5])
    assert other[1].exp()[0].tolist() == pytest.approx([1.0, 0.375, 4.0, 0.5])


def test_the_threshold_lies_midway_between_the_least_and_the_largest_distance() -> None:
    distances = torch.tensor([[1.0, 2.9, 3.1, 5.0], [0.0, 0.4, 0.6, 1.0], [2.0, 2.0, 2.0, 2.0]])
    assert shared(distances).tolist() == [[True, True, False, False], [True, True, False, False], [True] * 4]


def test_the_distance_is_twice_the_kl_divergence() -> None:
    (mean1, log1), (mean2, log2) = posteriors(6, 3), posteriors(6, 3, seed=1)
    normals = [torch.distributions.Normal(m, (0.5 * v).exp()) for m, v in ((mean1, log1), (mean2, log2))]
    expected = 2 * torch.distributions.kl_divergence(*normals)
    torch.testing.assert_close(distance((mean1, log1), (mean2, log2)), expected)


def test_the_harmonic_average_is_the_product_of_gaussians_with_twice_its_variance() -> None:
    """The product of the densities on a grid: its mean, and half the variance that Ada-ML-VAE takes."""
    grid = np.linspace(-30, 30, 600_001)
    (mean1, log1), (mean2, log2) = FIRST, SECOND
    mean, log_variance = averaged(FIRST, SECOND, "harmonic")
    for latent in range(4):
        log_product = sum(
            -0.5 * (grid - float(m[0, latent])) ** 2 / float(v[0, latent].exp())
            for m, v in ((mean1, log1), (mean2, log2))
        )
        weights = np.exp(log_product - log_product.max())
        weights /= weights.sum()
        centre = (weights * grid).sum()
        assert float(mean[0, latent]) == pytest.approx(centre, abs=1e-9)
        assert float(log_variance[0, latent].exp()) == pytest.approx(2 * (weights * (grid - centre) ** 2).sum())


def test_an_image_with_itself_shares_all_and_stays_as_it_is() -> None:
    given = posteriors(3, 5)
    for average in ("arithmetic", "harmonic"):
        one, other, same = share(given, given, average)
        assert bool(same.all())
        for mean, log_variance in (one, other):
            torch.testing.assert_close((mean, log_variance), given)


def test_the_largest_distance_never_counts_as_shared() -> None:
    distances = distance(posteriors(50, 4), posteriors(50, 4, seed=1))
    same = shared(distances)
    rows = torch.arange(50)
    assert not same[rows, distances.argmax(1)].any()
    assert same[rows, distances.argmin(1)].all()
