"""Four processes that draw factors, and ten encoders of them, after Joshi et al. 2026, "Who Guards the Guardians?".

Their D1 to D4 and E1 to E10 (github.com/shrutij01/identifiability-guard), made anew from what its documentation says:
four Gaussian factors; conditions of 3, where theirs is 10, so that entangled codes are as readable as plain ones; and
the factor that a lossy encoder loses is one that no other depends on.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from unbraid.base.types import FloatArray
from unbraid.data import Representation

ROWS = 1000
FACTORS = 4
NAMES = ("first", "second", "third", "fourth")
CORRELATION = 0.5
CONDITION = 3.0  # largest singular value of a mixing matrix over the smallest

Process: TypeAlias = Callable[[np.random.Generator], FloatArray]
Encoder: TypeAlias = Callable[[FloatArray, np.random.Generator], FloatArray]

BENT: tuple[Callable[[FloatArray], FloatArray], ...] = (  # each has an inverse
    np.tanh,
    np.exp,
    lambda x: np.sign(x) * np.sqrt(np.abs(x)),
    lambda x: x**3,
)


def independent(rng: np.random.Generator) -> FloatArray:
    """D1: standard normal."""
    return rng.standard_normal((ROWS, FACTORS))


def correlated(rng: np.random.Generator) -> FloatArray:
    """D2: every two correlate by a half."""
    shared = rng.standard_normal((ROWS, 1))
    return np.sqrt(CORRELATION) * shared + np.sqrt(1 - CORRELATION) * independent(rng)


def one_from_one(rng: np.random.Generator) -> FloatArray:
    """D3: the second is a function of the first."""
    factors = independent(rng)
    factors[:, 1] = np.tanh(2 * factors[:, 0])
    return factors


def one_from_two(rng: np.random.Generator) -> FloatArray:
    """D4: the third is the product of the first and the second."""
    factors = independent(rng)
    factors[:, 2] = factors[:, 0] * factors[:, 1]
    return factors


def scaled(factors: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Each column in units and with a sign of its own, in another order."""
    units = rng.uniform(0.5, 2.0, factors.shape[1]) * rng.choice([-1, 1], factors.shape[1])
    return (factors * units)[:, rng.permutation(factors.shape[1])]


def bent(factors: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Each column through a function that has an inverse, in another order."""
    columns = [BENT[k % len(BENT)](column) for k, column in enumerate(factors.T)]
    return np.column_stack(columns)[:, rng.permutation(factors.shape[1])]


def mixed(factors: FloatArray, n_codes: int, rng: np.random.Generator) -> FloatArray:
    """Every factor in every code, by a matrix of full rank."""
    left = np.linalg.qr(rng.standard_normal((n_codes, FACTORS)))[0]
    right = np.linalg.qr(rng.standard_normal((FACTORS, FACTORS)))[0]
    return factors @ (left * np.linspace(1.0, 1.0 / CONDITION, FACTORS) @ right).T


PROCESSES: Mapping[str, Process] = MappingProxyType(
    {
        "independent": independent, "correlated": correlated, "one from one": one_from_one,
        "one from two": one_from_two,
    }
)  # fmt: skip
ENCODERS: Mapping[str, Encoder] = MappingProxyType(
    {
        "plain": scaled,  # E1
        "bent": bent,  # E2
        "entangled": lambda factors, rng: mixed(factors, FACTORS, rng),  # E3
        "lossy": lambda factors, rng: scaled(factors[:, :-1], rng),  # E4
        "copied": lambda factors, rng: scaled(np.tile(factors, 2), rng),  # E5
        "bent twice": lambda factors, rng: np.column_stack([bent(factors, rng), bent(factors[:, ::-1], rng)]),  # E6
        "entangled, wide": lambda factors, rng: mixed(factors, 2 * FACTORS, rng),  # E7
        "sine and cosine": lambda factors, _: np.column_stack([np.sin(factors), np.cos(factors)]),  # E8
        "Gaussian noise": lambda factors, rng: rng.standard_normal(factors.shape),  # E9
        "uniform noise": lambda factors, rng: rng.uniform(-1.0, 1.0, factors.shape),  # E10
    }
)


def named(process: str, encoder: str) -> str:
    """What the case of a process and an encoder is called."""
    return f"{process}: {encoder}"


def _case(process: Process, encoder: Encoder) -> Callable[[np.random.Generator], Representation]:
    def case(rng: np.random.Generator) -> Representation:
        factors = process(rng)
        codes = encoder(factors, rng)
        return Representation(
            codes, factors, log_variances=np.full(codes.shape, -4.0), names=NAMES, kinds=("continuous",) * FACTORS
        )

    return case


PROCESS_CASES: Mapping[str, Callable[[np.random.Generator], Representation]] = MappingProxyType(
    {
        named(process, encoder): _case(draw, encode)
        for process, draw in PROCESSES.items()
        for encoder, encode in ENCODERS.items()
    }
)
