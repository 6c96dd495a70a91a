"""QLAE and QVAE: first steps against their equations, one image at a time."""

import math
from functools import partial

import pytest
import torch
from torch import Tensor

from tests.families.members import N_PIXELS, Move, Weights, play
from tests.families.plain import Mover, Terms, bernoulli, check, decoder, encoder, mean_of

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
