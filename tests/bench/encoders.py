"""Encoders of which is known what they do; a suite asks for them by name."""
# ruff: noqa: ARG001 (a suite gives all of them the same arguments)

import sys
from functools import cache
from typing import Any

import numpy as np

from unbraid import datasets

SMALL = {"name": "sprites", "shrink": 4, "without": "position_x > 3 or position_y > 3 or orientation > 0"}
SEEN: list[tuple[Any, int, int]] = []  # images, seed and steps of each call of `noise`
BROKEN: list[int] = []  # seeds at which `noise` raises, and `stopped` is stopped


@cache
def factors_by_image() -> dict[bytes, np.ndarray]:
    dataset = datasets.load(**SMALL)
    rows = np.arange(len(dataset))
    images = (dataset.images(rows).astype(np.float32) / 255).transpose(0, 3, 1, 2)
    return {image.tobytes(): row for image, row in zip(images, dataset.space.factors(rows), strict=True)}


def factors(images, *, seed, steps):
    known = factors_by_image()
    return lambda images: np.array([known[image.tobytes()] for image in images], dtype=float)


def constant(images, *, seed, steps):
    return lambda images: np.zeros((len(images), 3))


def noise(images, *, seed, steps):
    if seed in BROKEN:
        raise RuntimeError("out of memory")
    SEEN.append((images, seed, steps))
    weights = np.random.default_rng(seed).standard_normal((images[0].size, 4))
    return lambda images: images.reshape(len(images), -1) @ weights


def growing(images, *, seed, steps):
    """Its codes depend on its steps."""
    weights = np.random.default_rng(steps).standard_normal((images[0].size, 3))
    return lambda images: images.reshape(len(images), -1) @ weights


def stopped(images, *, seed, steps):
    if seed in BROKEN:
        raise KeyboardInterrupt
    return noise(images, seed=seed, steps=steps)


def flat(images, *, seed, steps):
    return lambda images: images.mean(axis=(1, 2, 3))


def endless(images, *, seed, steps):
    return lambda images: np.full((len(images), 2), np.inf)


def nothing(images, *, seed, steps):
    return None


def leaving(images, *, seed, steps):
    sys.exit(seed)


def leaving_later(images, *, seed, steps):
    return lambda _: sys.exit()


def short(images, *, seed):
    return lambda images: images.reshape(len(images), -1)
