"""Codes and factors that know nothing of each other, at every size."""

from itertools import product

import numpy as np

from unbraid.base.types import FloatArray, IntArray, Kind

SIZES = (3, 2, 5, 4, 10)
KINDS: tuple[Kind, ...] = ("ordinal", "categorical", "ordinal", "cyclic", "categorical")
Case = tuple[int, int, int, bool]  # rows, codes, factors, whether classes are skewed
ALL: list[Case] = list(product((50, 150, 1_000, 10_000), (1, 3, 10, 50, 128), (1, 3, 10), (False, True)))
FEW: list[Case] = [
    (50, 3, 3, False), (50, 50, 1, True), (150, 128, 3, False), (150, 10, 10, True), (1_000, 1, 1, False),
    (1_000, 10, 3, True),
]  # fmt: skip


def noise(case: Case, seed: int = 0) -> tuple[FloatArray, IntArray, tuple[Kind, ...]]:
    """Gaussian codes, and factors of 2 to 10 levels of which each is equally common or a quarter of the last."""
    n_samples, n_codes, n_factors, skewed = case
    rng = np.random.default_rng((*case, seed))
    factors = np.empty((n_samples, n_factors), dtype=int)
    for factor in range(n_factors):
        size = SIZES[factor % len(SIZES)]
        shares = 4.0 ** -np.arange(size) if skewed else np.ones(size)
        factors[:, factor] = rng.choice(size, n_samples, p=shares / shares.sum())
        factors[:2, factor] = [0, 1]  # never constant
    return rng.standard_normal((n_samples, n_codes)), factors, tuple(KINDS[k % len(KINDS)] for k in range(n_factors))
