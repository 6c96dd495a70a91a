"""QLAE and QVAE: first steps against their equations, one image at a time."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from numpy.random import default_rng
from torch import Tensor

from tests.families.members import N_PIXELS, Move, Weights, play
from tests.families.plain import Mover, Terms, bernoulli, check, decoder, encoder, mean_of
from unbraid.families.codebook import Codebook
from unbraid.families.qlae import evenly_spaced, qlae, straight_through
from unbraid.families.qvae import kl_from_uniform, qvae

TRAINS = ("encoder.", "decoder.", "codebook.")


def nearest(weights: Weights, latents: Tensor) -> Tensor:
    """Of each latent's own codebook, by a loop; a part of the codebook."""
    found = []
    for own, latent in zip(weights["codebook.values"], latents.detach(), strict=True):
        distances = [abs(float(value) - float(latent)) for value in own.detach()]
        found.append(own[distances.index(min(distances))])
    return torch.stack(found)


def qlae_loss(weights: Weights, move: Move, quantization: float, commitment: float) -> tuple[Tensor, Terms]:
    """Hsu et al. 2023, section 3: to the decoder the rounding is a shift by constants."""
    fits, of_values, of_latents = [], [], []
    for image in move.batch["images"]:
        latents = encoder(weights, "encoder", image)
        values = nearest(weights, latents)
        shift = values.detach() - latents.detach()
        fits.append(bernoulli(decoder(weights, "decoder", latents + shift), image))
        of_values.append(mean_of([(v - z.detach()) ** 2 for v, z in zip(values, latents, strict=True)]))
        of_latents.append(mean_of([(v.detach() - z) ** 2 for v, z in zip(values, latents, strict=True)]))
    fit, one, other = mean_of(fits), mean_of(of_values), mean_of(of_latents)
    loss = fit + N_PIXELS * (quantization * one + commitment * other)
    return loss, {"reconstruction": fit, "quantization": one, "commitment": other}


@pytest.mark.parametrize("decay", [0.0, 20.0])
def test_two_steps_of_qlae(decay: float) -> None:
    """Decay shrinks what layers call weight, and neither biases nor values of codebooks."""
    settings = {"quantization_weight": 0.5, "commitment_weight": 0.2, "weight_decay": decay, "learning_rate": 1e-2}
    played = play("qlae", 2, latents=3, values=4, **settings)
    loss = partial(qlae_loss, quantization=0.5, commitment=0.2)
    check(played, {"autoencoder": Mover(loss, TRAINS, 1e-2, decay=decay)}, ["autoencoder"] * 2)


def qvae_loss(weights: Weights, move: Move, beta: float, temperature: float) -> tuple[Tensor, Terms]:
    """Baykal et al. 2024: shares of values by squared distances, one value drawn by a Gumbel-softmax."""
    values = list(weights["codebook.values"][0])
    fits, divergences = [], []
    for image, noise in zip(move.batch["images"], move.batch["noise"], strict=True):
        drawn, divergence = [], torch.zeros((), dtype=torch.float64)
        for latent, uniform in zip(encoder(weights, "encoder", image), noise, strict=True):
            each = [torch.exp(-((latent - value) ** 2)) for value in values]
            shares = [one / sum(each) for one in each]
            for share in shares:
                divergence = divergence + share * torch.log(share * len(values))
            gumbel = [-math.log(-math.log(float(number))) for number in uniform]
            heights = [torch.exp((s.log() + g) / temperature) for s, g in zip(shares, gumbel, strict=True)]
            drawn.append(sum((h / sum(heights) * v for h, v in zip(heights, values, strict=True)), divergence * 0))
        fits.append(bernoulli(decoder(weights, "decoder", torch.stack(drawn)), image))
        divergences.append(divergence)
    fit, kl = mean_of(fits), mean_of(divergences)
    return fit + beta * kl, {"reconstruction": fit, "kl": kl}


def test_two_steps_of_qvae() -> None:
    played = play("qvae", 2, latents=3, values=4, beta=2.5, temperature=0.6)
    check(played, {"vae": Mover(partial(qvae_loss, beta=2.5, temperature=0.6), TRAINS, 1e-3)}, ["vae"] * 2)


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
