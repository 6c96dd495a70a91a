"""Codes and factors of every sort that metrics must take, drawn from a seed and a few choices."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from unbraid.base.types import KINDS, FloatArray, Kind

SCALES = (1e-20, 1e-6, 1.0, 1e6, 1e20)
EXTRAS = ("none", "dead", "twin", "ties", "outlier", "levels", "rare", "tiny", "huge")


@dataclass(frozen=True)
class Case:
    seed: int
    n_samples: int
    n_codes: int
    kinds: tuple[Kind, ...]
    extra: str
    dtype: type
    order: str

    @property
    def factors(self) -> FloatArray:
        rng = np.random.default_rng((self.seed, 0))
        columns = []
        for place, kind in enumerate(self.kinds):
            shares = np.array([0.6, 0.3, 0.1]) if (self.seed + place) % 2 else np.ones(4) / 4
            levels = rng.choice(len(shares), self.n_samples, p=shares).astype(float)
            levels[:8] = np.arange(8) % len(shares)  # each level twice
            columns.append(rng.standard_normal(self.n_samples) if kind == "continuous" else levels)
        if self.extra == "rare" and self.kinds[0] != "continuous":
            columns[0][0] = 7.0
        return np.stack(columns, axis=1)

    @property
    def codes(self) -> FloatArray:
        rng, factors = np.random.default_rng((self.seed, 1)), self.factors
        mixing = rng.standard_normal((factors.shape[1], self.n_codes)) * (rng.random((1, self.n_codes)) < 0.7)
        codes = factors @ mixing + rng.standard_normal((self.n_samples, self.n_codes))
        if self.extra == "dead":
            codes[:, 0] = 0.1
        elif self.extra == "twin":
            codes[:, -1] = codes[:, 0]
        elif self.extra == "ties":
            codes = np.rint(codes)
        elif self.extra == "outlier":
            codes[3, 0] = 1e3
        elif self.extra in ("tiny", "huge"):
            codes[:, 0] *= 1e-30 if self.extra == "tiny" else 1e30
        elif self.extra == "levels":
            codes = factors[:, rng.integers(factors.shape[1], size=self.n_codes)] * 1.0
        return np.array(codes, dtype=self.dtype, order=self.order)  # type: ignore[call-overload]


CASES: Any = st.builds(
    Case,
    seed=st.integers(0, 10_000),
    n_samples=st.integers(30, 70),
    n_codes=st.integers(1, 5),
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=3).map(tuple),
    extra=st.sampled_from(EXTRAS),
    dtype=st.sampled_from([np.float32, np.float64]),
    order=st.sampled_from("CF"),
)
