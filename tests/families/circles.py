"""What Delta-VAE and LSBD-VAE have in common, in plain loops: latents on circles and on lines."""

import math

import torch
from torch import Tensor

from tests.families.members import Weights
from tests.families.plain import encoder, kl_standard

LINES, STEPS = 2, 3
LOW, HIGH = -4.0, -1.0  # of log t
SETTINGS = {"euclidean": LINES, "walk_steps": STEPS, "log_t_low": LOW, "log_t_high": HIGH}


def unit(vector: Tensor) -> Tensor:
    return vector / torch.sqrt((vector**2).sum())


class Image:
    """One image's location, time, mean and log-variance, its sample and its KL."""

    def __init__(self, weights: Weights, image: Tensor, walk: Tensor, noise: Tensor) -> None:
        circles = walk.shape[1]
        outputs = encoder(weights, "vae.encoder", image)
        self.locations, self.points, self.kl_circles = [], [], torch.zeros((), dtype=torch.float64)
        for circle in range(circles):
            point = unit(outputs[2 * circle : 2 * circle + 2])
            self.locations.append(point)
            number = outputs[2 * circles + circle]
            log_time = (LOW + HIGH) / 2 + (HIGH - LOW) / 2 * torch.tanh(number)
            for step in range(STEPS):
                point = unit(point + torch.exp(log_time / 2) / math.sqrt(STEPS) * walk[step, circle])
            self.points.append(point)
            self.kl_circles = self.kl_circles - log_time / 2 + math.log(2 * math.pi) / 2 - 1 / 2
        rest = outputs[3 * circles :]
        self.mean, log_variance = rest[:LINES], rest[LINES:]
        self.values = self.mean + torch.exp(log_variance / 2) * noise
        self.kl_lines = kl_standard((self.mean, log_variance))


def turned(point: Tensor, turn: float) -> Tensor:
    """By a share of a full turn, counter-clockwise."""
    cosine, sine = math.cos(2 * math.pi * turn), math.sin(2 * math.pi * turn)
    return torch.stack([cosine * point[0] - sine * point[1], sine * point[0] + cosine * point[1]])
