"""Codes of known quality over one small grid of factors; what the laws are tested on."""

import numpy as np

from unbraid.base.types import FloatArray, IntArray
from unbraid.data import FactorSpace

SPACE = FactorSpace(("shape", "size", "hue"), (3, 4, 8), ("categorical", "ordinal", "cyclic"))
REPEATS = 24


def grid_factors(repeats: int = REPEATS) -> IntArray:
    """Every combination of the factors, `repeats` times: (96 * repeats, 3)."""
    return np.tile(SPACE.grid(), (repeats, 1))


def perfect_codes(factors: IntArray) -> FloatArray:
    """Each factor in one code, with unit variance and codes in another order than the factors."""
    centred = factors - factors.mean(axis=0)
    return (centred / centred.std(axis=0))[:, ::-1]


def noisy_codes(factors: IntArray, *, seed: int = 0, noise: float = 0.3) -> FloatArray:
    rng = np.random.default_rng(seed)
    return perfect_codes(factors) + noise * rng.standard_normal(factors.shape)


def rotated_codes(factors: IntArray, *, seed: int = 0, noise: float = 0.0) -> FloatArray:
    """Perfect codes turned so that every code mixes all factors."""
    rng = np.random.default_rng(seed)
    angle = np.linalg.qr(np.array([[1.0, 1.0, 1.0], [1.0, -1.0, 0.3], [1.0, 0.2, -1.0]]))[0]
    return perfect_codes(factors) @ angle + noise * rng.standard_normal(factors.shape)


def random_codes(factors: IntArray, *, seed: int = 0) -> FloatArray:
    return np.random.default_rng(seed).standard_normal(factors.shape)


def entangled_codes(factors: IntArray, *, seed: int = 0) -> FloatArray:
    """Neither good nor bad: half perfect, half rotated, some noise, so that a test can fail both ways."""
    return 0.7 * perfect_codes(factors) + 0.3 * rotated_codes(factors, seed=seed, noise=0.5)
