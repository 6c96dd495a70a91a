"""Delta-VAE: two steps against Perez Rey et al. 2020, and what lies on its circles."""

import math

import pytest
import torch
from torch import Tensor

from tests.families.circles import SETTINGS, Image
from tests.families.members import Move, Weights, play
from tests.families.plain import Mover, Terms, bernoulli, check, decoder, mean_of


def loss(weights: Weights, move: Move) -> tuple[Tensor, Terms]:
    fits, circles, lines = [], [], []
    for image, walk, noise in zip(*(move.batch[name] for name in ("images", "walk", "noise")), strict=True):
        seen = Image(weights, image, walk, noise)
        codes = torch.cat([*seen.points, seen.values])
        fits.append(bernoulli(decoder(weights, "vae.decoder", codes), image))
        circles.append(seen.kl_circles)
        lines.append(seen.kl_lines)
    fit, on_circles, on_lines = mean_of(fits), mean_of(circles), mean_of(lines)
    kl = on_circles + on_lines
    return fit + kl, {"reconstruction": fit, "kl": kl, "kl_circles": on_circles, "kl_euclidean": on_lines}


@pytest.mark.parametrize("base", ["e", "ten"])
def test_two_steps(base: str) -> None:
    """Bounds on t are powers of e, as in the authors' code, or of ten, as the table prints."""
    bounds = {name: SETTINGS[name] / (1 if base == "e" else math.log(10)) for name in ("log_t_low", "log_t_high")}
    played = play("delta_vae", 2, circles=2, log_t_base=base, **{**SETTINGS, **bounds})
    check(played, {"vae": Mover(loss, ("vae.",), 1e-3)}, ["vae", "vae"])
