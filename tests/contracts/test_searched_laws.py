"""A counter-example to what a metric declares is searched for, not waited for: ranges and invariances of the table."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from unbraid.base.types import KINDS, FloatArray, Kind
from unbraid.metrics import METRICS, NotDefined, udr

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


PLAIN = sorted(name for name, metric in METRICS.items() if not metric.needs)
FAST = {
    "dci_es": {"n_trees": 5},
    "beta_vae_score": {"n_train": 200, "n_test": 100},
    "factor_vae_score": {"n_train": 200, "n_test": 100},
}
ONE_UNIT = {"irs", "d_lsbd", "independence_score"}  # not each code for itself, but all together
SEARCH: dict[str, Any] = {
    "deadline": None,
    "derandomize": True,
    "database": None,
    "suppress_health_check": list(HealthCheck),
}
TIMES = pytest.mark.parametrize("times", [4, pytest.param(60, marks=pytest.mark.slow)])


def search(law: Callable[[Case], None], times: int) -> None:
    settings(max_examples=times, **SEARCH)(given(case=CASES)(law))()


def headline(name: str, case: Case, codes: FloatArray) -> float | None:
    """None where the metric is not defined."""
    metric = METRICS[name]
    try:
        result = metric.function(codes, case.factors, kinds=case.kinds, **FAST.get(name, {}))
    except NotDefined:
        return None
    per_factor = getattr(result, "per_factor", None)
    assert per_factor is None or (per_factor.shape == (len(case.kinds),) and np.isfinite(per_factor).all())
    return float(getattr(result, metric.headline))


def changed(change: str, codes: FloatArray, seed: int) -> FloatArray:
    rng = np.random.default_rng((seed, 2))
    codes = codes.astype(float)
    if change == "permute":
        return codes[:, rng.permutation(codes.shape[1])]
    if change == "flip":
        return codes * rng.choice([-1.0, 1.0], codes.shape[1])
    if change == "scale":
        # Powers of two: rounding may break ties, which is no fault of a metric.
        return codes * 2.0 ** np.rint(np.log2(rng.choice(SCALES, codes.shape[1])))
    return np.insert(codes, rng.integers(codes.shape[1] + 1), 0.3, axis=1)


def check(name: str, case: Case) -> None:
    metric, codes = METRICS[name], case.codes
    low, high = metric.range
    before = headline(name, case, codes)
    if before is None:
        return
    assert np.isfinite(before)
    assert low - 1e-9 <= before <= high + 1e-9
    for change in sorted(metric.invariant_to):
        after = headline(name, case, changed(change, codes, case.seed))
        assert after == pytest.approx(before, abs=metric.tolerance), change
    assert headline(name, case, np.array(codes, order="C")) == before
    for scale in SCALES if name in ONE_UNIT else ():
        unit = 2.0 ** np.rint(np.log2(scale))
        assert headline(name, case, codes.astype(float) * unit) == pytest.approx(before, abs=1e-9), scale


@pytest.mark.lengthy
@pytest.mark.parametrize("name", PLAIN)
@TIMES
def test_no_case_breaks_what_is_declared(name: str, times: int) -> None:
    search(lambda case: check(name, case), times)


def check_udr(case: Case, alpha: Any) -> None:
    """Signs, order and units of latents say nothing of how much models agree; equal ones may share weights anyhow."""
    assume(case.extra not in ("twin", "levels"))
    models = [case.codes.astype(float), changed("flip", case.codes[:, ::-1], 1), changed("scale", case.codes, 2)]
    scores = udr(models, alpha=alpha).scores
    assert np.isfinite(scores).all()
    assert (scores >= 0).all()
    others = [
        changed(change, model, case.seed) for change, model in zip(("scale", "permute", "flip"), models, strict=True)
    ]
    np.testing.assert_allclose(udr(others, alpha=alpha).scores, scores, atol=1e-6)


@pytest.mark.parametrize("alpha", [pytest.param("cv", marks=pytest.mark.lengthy), 0.1])
@TIMES
def test_no_case_breaks_what_udr_declares(alpha: Any, times: int) -> None:
    search(lambda case: check_udr(case, alpha), times)
