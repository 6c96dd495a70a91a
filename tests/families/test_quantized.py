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
from unbraid.families.qlae import evenly_spaced

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


def test_codebooks_start_evenly_between_minus_a_half_and_a_half() -> None:
    np.testing.assert_allclose(evenly_spaced(2, 5), [[-0.5, -0.25, 0, 0.25, 0.5]] * 2)


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
