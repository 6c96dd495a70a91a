"""A model that is to be ranked: its codes, and what decides which of its latents count."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unbraid.base.types import BoolArray, FloatArray
from unbraid.data import Representation
from unbraid.data.representation import BIT, hardly_vary
from unbraid.metrics.udr import varying

FAINT = 0.05  # latents with less than this share of the largest standard deviation may be noise


@dataclass(frozen=True, eq=False)
class Candidate:
    """A model to be ranked."""

    run: str
    family: str
    setting: str  # its hyperparameters as text, "beta=4"
    codes: FloatArray | Callable[[], FloatArray]  # (n_samples, n_codes), or a function that reads them when needed
    kl: FloatArray | None = None  # (n_codes,) nats; None for a model without a posterior
    samples: str = ""  # the same for two candidates when their rows are the same samples
    signal: FloatArray | None = None  # (n_codes,) nats; see `Representation.signal`
    n_codes: int = field(init=False)
    finite: bool = field(init=False)
    digest: str = field(init=False)  # of the codes
    narrow: bool = field(init=False)  # whether it has no posterior, and codes that hardly vary
    varied: BoolArray = field(init=False)  # (n_codes,) whether a code varies; all True with a posterior
    is_faint: bool = field(init=False)  # whether it has no posterior, and some codes vary far less than others

    def __post_init__(self) -> None:
        codes = np.ascontiguousarray(self.matrix())
        _check_codes(self.run, codes)
        object.__setattr__(self, "n_codes", codes.shape[1])
        object.__setattr__(self, "finite", bool(np.isfinite(codes).all()))
        object.__setattr__(self, "narrow", self.kl is None and self.finite and hardly_vary(codes))
        known = self.kl is not None or not self.finite
        object.__setattr__(self, "varied", np.ones(self.n_codes, dtype=bool) if known else varying(codes))
        spreads = np.ones(1) if known or not self.varied.any() else codes[:, self.varied].std(axis=0)
        object.__setattr__(self, "is_faint", bool(spreads.min() < FAINT * spreads.max()))
        content = hashlib.sha256(f"{codes.dtype} {codes.shape}".encode() + codes.tobytes())
        object.__setattr__(self, "digest", content.hexdigest())

    @classmethod
    def from_representation(
        cls,
        run: str,
        family: str,
        setting: str,
        representation: Representation,
        codes: Callable[[], FloatArray] | None = None,
    ) -> "Candidate":
        """The model of a representation; `codes` reads its codes again if they are too large for memory."""
        _check_codes(run, representation.codes)
        factors = np.ascontiguousarray(representation.factors, dtype=float)
        samples = hashlib.sha256(factors.tobytes()).hexdigest() + str(factors.shape)
        samples = samples if representation.names else f"{len(factors)} rows"  # without factors only their number
        kl, signal = representation.mean_kl(), representation.signal()
        return cls(run, family, setting, codes or representation.codes, kl, samples, signal)

    @property
    def tells_nothing(self) -> bool:
        """As `Representation.tells_nothing`."""
        return self.signal is not None and bool(self.signal.sum() < BIT)

    def matrix(self) -> FloatArray:
        return self.codes() if callable(self.codes) else self.codes


def _check_codes(run: str, codes: Any) -> None:
    if codes.ndim != 2 or codes.dtype.kind not in "biuf" or not all(codes.shape):
        raise ValueError(f"{run}: codes must be (n_samples, n_codes) numbers; got {codes.dtype} {codes.shape}")
