"""Delta-VAE: two steps against Perez Rey et al. 2020, and what lies on its circles."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.families.circles import SETTINGS, Image
from tests.families.members import Move, Weights, play
from tests.families.plain import Mover, Terms, bernoulli, check, decoder, mean_of
from tests.families.posteriors import normal
from unbraid.families.delta_vae import circle_kl, random_walk, to_circle


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


def wrapped_normal(angle: np.ndarray, variance: float) -> np.ndarray:
    """Its density: Brownian motion on the circle after the time `variance`, exactly."""
    turns = 2 * math.pi * np.arange(-20, 21)[:, None]
    return np.exp(-0.5 * (angle + turns) ** 2 / variance).sum(0) / math.sqrt(2 * math.pi * variance)


@pytest.mark.parametrize(("time", "error"), [(1e-3, 1e-9), (0.02, 1e-9), (0.1, 1e-9), (1.0, 0.006)])
def test_kl_on_the_circle_is_that_of_the_wrapped_normal_while_t_is_small(time: float, error: float) -> None:
    angle = np.linspace(-math.pi, math.pi, 200_001)[:-1]
    density = wrapped_normal(angle, time)
    parts = np.where(density > 0, density * np.log(np.maximum(density, 1e-300) * 2 * math.pi), 0.0)
    exact = parts.sum() * (angle[1] - angle[0])
    ours = float(circle_kl(torch.tensor(math.log(time), dtype=torch.float64)))
    assert ours == pytest.approx(exact, abs=error)
    assert ours <= exact + 1e-9


@pytest.mark.parametrize("time", [1e-4, 0.01, 0.1])
def test_random_walks_spread_as_the_wrapped_normal_does(time: float) -> None:
    """Its cosine moments are exp(-k^2 t / 2); 100 000 walks of 10 steps, from 100 degrees."""
    n, start = 100_000, math.radians(100)
    location = torch.tensor([math.cos(start), math.sin(start)], dtype=torch.float64).expand(n, 2)
    log_time = torch.full((n,), math.log(time), dtype=torch.float64)
    points = random_walk(location, log_time, normal(10, n, 2))
    torch.testing.assert_close(points.square().sum(-1), torch.ones(n, dtype=torch.float64))
    angle = torch.atan2(points[:, 1], points[:, 0]) - start
    assert float(angle.sin().mean()) == pytest.approx(0, abs=4 * math.sqrt(time / n))
    for k in (1, 2):
        spread = 1 - float((k * angle).cos().mean())
        assert spread == pytest.approx(1 - math.exp(-(k**2) * time / 2), rel=0.02)


def test_a_vector_without_a_direction_is_no_fault() -> None:
    vectors = torch.tensor([[0.0, 0.0], [3.0, 4.0], [1e-3, 0.0]], dtype=torch.float64, requires_grad=True)
    points = to_circle(vectors)
    torch.testing.assert_close(points.detach(), torch.tensor([[0.0, 0], [0.6, 0.8], [1, 0]], dtype=torch.float64))
    (gradient,) = torch.autograd.grad(points.sum(), vectors)
    assert torch.isfinite(gradient).all()
