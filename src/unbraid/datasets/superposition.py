"""Activations made of more features than they have dimensions, as those of language models are thought to be.

Features are random directions, few of which are present in a row. They may come together (`correlation`), and only
with their parent (`hierarchical`).
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from unbraid.base.arguments import check_number, check_whole, generator
from unbraid.base.repr import Shown
from unbraid.base.types import FloatArray

__all__ = ["Superposition", "superposition"]

MOST_CELLS = 2**31  # of rows and features: 8 GiB in single precision


@dataclass(frozen=True, eq=False, repr=False)
class Superposition(Shown):
    activations: FloatArray  # (n_rows, n_dimensions) float32
    features: FloatArray  # (n_features, n_dimensions) float32, of length 1
    firing: FloatArray  # (n_rows, n_features) float32, how strongly each is present; 0 where it is not


def superposition(
    n_features: int = 128,
    n_dimensions: int = 64,
    n_rows: int = 10_000,
    *,
    rate: float = 0.05,
    correlation: float = 0.0,
    group: int = 8,
    hierarchical: bool = False,
    noise: float = 0.0,
    seed: int = 0,
) -> Superposition:
    """Draw activations x = sum over features of strength times direction, plus noise.

    Args:
        n_features: of which each is a random direction of length 1.
        n_dimensions: of the activations.
        n_rows: of the activations.
        rate: share of the rows in which each feature is present, above 0 and below 1.
        correlation: of the normal variables behind the features of a group, 0 to below 1: a feature is present where
            its own is above the quantile of `rate`. Features of different groups are independent.
        group: features that follow one another make groups of this many.
        hierarchical: the first feature of each group is the parent of the others, which are present only where it is.
            A parent is present in sqrt(rate) of the rows, and a child in sqrt(rate) of these: in `rate` of all, if
            `correlation` is 0.
        noise: deviation of normal noise on each dimension.
        seed: of directions, strengths and noise.

    Returns:
        Superposition. Where a feature is present, its strength is uniform from .5 to 1.5.

    Raises:
        ValueError: a number out of range, or more than 2^31 rows times features.

    Reference:
        Elhage et al. 2022, "Toy Models of Superposition". The choice of copula, groups and strengths is our own.

    Example:
        >>> drawn = superposition(6, 3, 1000, rate=0.1)
        >>> drawn.activations.shape, drawn.firing.shape, round(float((drawn.firing > 0).mean()), 1)
        ((1000, 3), (1000, 6), 0.1)
    """
    check_whole("n_features", n_features, 1, 2**20)
    check_whole("n_dimensions", n_dimensions, 1, 2**16)
    check_whole("n_rows", n_rows, 1, max(MOST_CELLS // n_features, 1), why="2^31 rows times features")
    check_number("rate", rate, above=0.0, below=1.0)
    check_number("correlation", correlation, least=0.0, below=1.0)
    check_whole("group", group, 1)
    check_number("noise", noise, least=0.0)
    rng = generator(seed)
    features = rng.standard_normal((n_features, n_dimensions), dtype=np.float32)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    member = np.arange(n_features) // group
    behind = rng.standard_normal((n_rows, n_features), dtype=np.float32)
    if correlation:
        together = rng.standard_normal((n_rows, member[-1] + 1), dtype=np.float32)
        behind = np.sqrt(1 - correlation) * behind + np.sqrt(correlation) * together[:, member]
    present = behind > -ndtri(np.sqrt(rate) if hierarchical else rate)
    if hierarchical:
        present &= present[:, member * group]
    firing = np.where(present, rng.uniform(0.5, 1.5, present.shape), 0.0).astype(np.float32)
    activations = firing @ features
    if noise:
        activations += noise * rng.standard_normal(activations.shape, dtype=np.float32)
    return Superposition(activations, features, firing)
