"""QLAE and QVAE: losses by loops over numbers, and gradients through the straight-through estimator by hand."""

import math

import numpy as np
import pytest
import torch
from numpy.random import default_rng

from unbraid.families.codebook import Codebook, evenly_spaced, straight_through
from unbraid.families.qlae import qlae
from unbraid.families.qvae import kl_from_uniform, qvae

RNG = default_rng(0)
LATENTS, VALUES, FITS = RNG.normal(size=(5, 3)), RNG.normal(size=(3, 4)), RNG.uniform(10, 20, size=5)


def nearest_by_loops(latents: np.ndarray, values: np.ndarray) -> np.ndarray:
    found = np.empty_like(latents)
    for row, column in np.ndindex(latents.shape):
        own = values[column % len(values)]
        found[row, column] = min(own, key=lambda value, at=latents[row, column]: abs(value - at))
    return found


@pytest.mark.parametrize("shared", [False, True])
def test_the_nearest_value_of_each_latents_own_codebook(shared: bool) -> None:
    values = VALUES[:1] if shared else VALUES
    found = Codebook(torch.tensor(values)).nearest(torch.tensor(LATENTS))
    np.testing.assert_array_equal(found.detach(), nearest_by_loops(LATENTS, values))


def test_codebooks_start_evenly_between_minus_a_half_and_a_half() -> None:
    np.testing.assert_allclose(evenly_spaced(2, 5), [[-0.5, -0.25, 0, 0.25, 0.5]] * 2)


def test_the_loss_of_qlae() -> None:
    """Weights count per number in an image; both distances are means over latents and images."""
    latents = torch.tensor(LATENTS)
    quantized = torch.tensor(nearest_by_loops(LATENTS, VALUES))
    fits = torch.tensor(FITS)
    loss, logs = qlae(latents, quantized, fits, 48, quantization_weight=0.3, commitment_weight=0.02)
    distance = sum((LATENTS[at] - quantized.numpy()[at]) ** 2 for at in np.ndindex(5, 3)) / 15
    assert loss.item() == pytest.approx(FITS.mean() + 48 * (0.3 + 0.02) * distance, rel=1e-12)
    assert logs.keys() == {"reconstruction", "quantization", "commitment"}
    assert float(logs["quantization"]) == float(logs["commitment"]) == pytest.approx(distance, rel=1e-12)


def test_gradients_through_the_straight_through_estimator() -> None:
    """A decoder a . q and squared errors e: the reconstruction moves z by 2 e a, as if q were z, and no value.

    Values move by their distance from the latents alone, and latents by the commitment besides.
    """
    slopes, target, n = np.array([1.5, -0.7, 0.4]), np.array([0.3, -1.0, 0.2, 2.0, 0.1]), 48
    latents, codebook = torch.tensor(LATENTS, requires_grad=True), Codebook(torch.tensor(VALUES))
    quantized = codebook.nearest(latents)
    seen = straight_through(latents, quantized)
    errors = (seen * torch.tensor(slopes)).sum(1) - torch.tensor(target)
    loss, _ = qlae(latents, quantized, errors.square(), n, quantization_weight=0.3, commitment_weight=0.02)
    loss.backward()
    by_loops = nearest_by_loops(LATENTS, VALUES)
    np.testing.assert_allclose(seen.detach(), by_loops, rtol=1e-12)
    error = by_loops @ slopes - target
    of_latents = 2 * error[:, None] * slopes / 5 + n * 0.02 * 2 * (LATENTS - by_loops) / 15
    np.testing.assert_allclose(latents.grad, of_latents, rtol=1e-10)
    of_values = np.zeros_like(VALUES)
    for row, column in np.ndindex(5, 3):
        place = int(np.flatnonzero(VALUES[column] == by_loops[row, column])[0])
        of_values[column, place] += n * 0.3 * 2 * (by_loops[row, column] - LATENTS[row, column]) / 15
    assert codebook.values.grad is not None
    np.testing.assert_allclose(codebook.values.grad, of_values, rtol=1e-10, atol=1e-12)


def test_the_divergence_from_the_uniform_distribution() -> None:
    """0 where all values are alike, log 4 where one is certain, and log 2 where two of four are."""
    shares = torch.tensor([[0.25] * 4, [1 - 3e-12, 1e-12, 1e-12, 1e-12], [0.5, 0.5, 1e-12, 1e-12]], dtype=torch.float64)
    np.testing.assert_allclose(kl_from_uniform(shares.log()), [0, math.log(4), math.log(2)], atol=1e-9)


def test_the_loss_of_qvae() -> None:
    codebook = Codebook(torch.tensor(VALUES[:1]))
    log_shares = codebook.log_shares(torch.tensor(LATENTS)).detach()
    loss, logs = qvae(log_shares, torch.tensor(FITS), beta=3.0)
    divergence = 0.0
    for z in LATENTS.ravel():
        weights = [math.exp(-((z - v) ** 2)) for v in VALUES[0]]
        for weight in weights:
            p = weight / sum(weights)
            divergence += p * math.log(p * 4) / 5
    assert float(logs["kl"]) == pytest.approx(divergence, rel=1e-12)
    assert float(loss) == pytest.approx(FITS.mean() + 3 * divergence, rel=1e-12)


def test_relaxed_values_are_those_of_a_cold_draw_and_as_frequent_as_their_shares() -> None:
    """The largest of shares with Gumbel noise is each value as often as its share says; five standard errors."""
    codebook, n = Codebook(torch.tensor(VALUES[:1])), 20_000
    log_shares = codebook.log_shares(torch.full((n, 1), 0.4, dtype=torch.float64))
    uniform = torch.tensor(default_rng(1).random((n, 1, 4)))
    drawn = codebook.relaxed(log_shares, uniform, 1e-3).detach().numpy().ravel()
    shares = np.exp(-((0.4 - VALUES[0]) ** 2))
    for value, share in zip(VALUES[0], shares / shares.sum(), strict=True):
        seen = (np.abs(drawn - value) < 1e-3).mean()
        assert abs(seen - share) < 5 * math.sqrt(share * (1 - share) / n)


def test_the_prior_draws_every_value_alike() -> None:
    uniform = torch.tensor([[0.0, 0.26, 0.999], [1.0, 0.5, 0.75]], dtype=torch.float64)
    found = Codebook(torch.tensor(VALUES)).draw(uniform)
    np.testing.assert_array_equal(
        found.detach(), [[VALUES[0, 0], VALUES[1, 1], VALUES[2, 3]], [VALUES[0, 3], VALUES[1, 2], VALUES[2, 3]]]
    )
