"""ForwardVAE: first steps against the paper and the published code, and its objective by hand."""

import math

import torch
from torch import Tensor

from tests.families.members import N_PIXELS, Move, Weights, play
from tests.families.plain import Mover, Terms, action, check, decoder, encoder, mean_of

LATENTS = 5  # of the ForwardVAE, one more than the planes take


def selu(values: Tensor) -> Tensor:
    """Klambauer et al. 2017."""
    scale, alpha = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717
    return scale * torch.where(values > 0, values, alpha * (torch.exp(values) - 1))


def forward_loss(weights: Weights, move: Move) -> tuple[Tensor, Terms]:
    """Means over pixels and latents; the KL fades by .995 a step; the next mean is no constant."""
    squares, divergences, forwards = [], [], []
    for images, noise in zip(move.batch["transitions"], move.batch["noise"], strict=True):
        before, after = (encoder(weights, "vae.encoder", image) for image in images)
        n = len(before) // 2
        mean, log_deviation, following = selu(before[:n]), selu(before[n:]), selu(after[:n])
        z = mean + torch.exp(log_deviation) * noise[0]
        outputs = decoder(weights, "vae.decoder", z)
        pixels = 1 / (1 + torch.exp(-outputs))
        squares.append(((pixels - images[0].flatten()) ** 2).sum() / N_PIXELS)
        divergences.append(-(1 + log_deviation - mean**2 - torch.exp(log_deviation)).sum() / 2)
        done = action(images[0], images[1])
        first = 2 * (done // 2)  # the plane of the action's factor
        block = weights["actions.blocks"][done]
        predicted = [z[d] for d in range(n)]
        for row in (0, 1):
            predicted[first + row] = block[row, 0] * z[first] + block[row, 1] * z[first + 1]
        forwards.append(((torch.stack(predicted) - following) ** 2).sum() / n)
    fit, divergence, forward = mean_of(squares), mean_of(divergences), mean_of(forwards)
    total = fit + 2.0 * 0.995**move.step * divergence / LATENTS + forward
    return total, {"reconstruction": fit, "kl": divergence, "forward": forward}


def test_two_steps_of_the_forward_vae_and_one_later() -> None:
    """Caselles-Dupre et al. 2019, section 4, as in the authors' code."""
    settings = {"transitions": 50, "beta": 2.0, "latents": LATENTS}
    mover = Mover(forward_loss, ("vae.", "actions."), 1e-3)
    check(play("forward_vae", 2, batch_size=8, **settings), {"vae": mover}, ["vae", "vae"])
    late = play("forward_vae", 1, first_step=600, batch_size=8, **settings)
    assert math.isclose(0.995**600, 0.0494, rel_tol=1e-3)
    check(late, {"vae": mover}, ["vae"])
