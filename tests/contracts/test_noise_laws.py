"""What independent noise scores: at any size as the metric states, or the result says that it cannot be read."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from unbraid.base.types import FloatArray, IntArray, Kind
from unbraid.metrics import METRICS, NotDefined
from unbraid.metrics._shared.chance import UNREADABLE, notes_on_noise
from unbraid.metrics._shared.inputs import check_inputs

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


PLAIN = {name for name, metric in METRICS.items() if not metric.needs}
STATED = sorted(name for name in PLAIN if METRICS[name].chance is not None)
OF_POSTERIORS = ("elbo_terms", "mig_exact")


def score_of(name: str, codes: FloatArray, factors: IntArray, kinds: Sequence[Kind], log_variance: float) -> Any:
    own = {"log_variances": np.full(codes.shape, log_variance)} if name in OF_POSTERIORS else {}
    own |= {"method": "quadrature"} if name == "mig_exact" else {}
    own |= {"n_train": 2000, "n_test": 1000} if name == "beta_vae_score" else {}  # its optimum takes seconds
    own |= {"n_trees": 10} if name == "dci_es" else {}
    return METRICS[name].function(codes, factors, kinds=kinds, **own)


def check(name: str, case: Case, log_variance: float = -2.0) -> None:
    metric = METRICS[name]
    codes, factors, kinds = noise(case)
    assert metric.chance is not None
    score, spread = metric.chance(check_inputs(codes, factors, kinds))
    try:
        result = score_of(name, codes, factors, kinds, log_variance)
    except NotDefined:
        return
    if any(UNREADABLE in note for note in result.notes):
        return
    assert getattr(result, metric.headline) == pytest.approx(score, abs=metric.noise_tolerance + 4 * spread)


# What takes a second of the many codes has them among `ALL`.
FEWER = [(name, case) for name in STATED for case in FEW if name not in ("dci_boosted", "nk") or case[1] < 128]


@pytest.mark.parametrize(("name", "case"), FEWER, ids=str)
def test_noise_scores_what_is_stated_or_cannot_be_read(name: str, case: Case) -> None:
    check(name, case)


def test_perceptrons_learn_noise_by_heart_from_thousands_of_rows_too() -> None:
    check("mlp_accuracy", (10_000, 50, 1, True))


@pytest.mark.parametrize("log_variance", [0.0, -3.0, -8.0])
@pytest.mark.parametrize("case", [(50, 3, 3, True), (150, 3, 1, False), (1_000, 1, 3, False)], ids=str)
@pytest.mark.parametrize("name", OF_POSTERIORS)
def test_noise_with_posteriors_scores_what_is_stated_or_cannot_be_read(
    name: str, case: Case, log_variance: float
) -> None:
    check(name, case, log_variance)


@pytest.mark.slow
@pytest.mark.parametrize("log_variance", [0.0, -2.0, -4.0, -8.0])
@pytest.mark.parametrize("case", [case for case in ALL if case[0] < 10_000 and case[1] < 50], ids=str)
@pytest.mark.parametrize("name", OF_POSTERIORS)
def test_noise_with_posteriors_at_every_size(name: str, case: Case, log_variance: float) -> None:
    check(name, case, log_variance)


@pytest.mark.slow
@pytest.mark.parametrize("case", ALL, ids=str)
@pytest.mark.parametrize("name", STATED)
def test_noise_at_every_size(name: str, case: Case) -> None:
    check(name, case)


@pytest.mark.parametrize("name", [*STATED, *OF_POSTERIORS])
def test_what_can_be_read_is_read(name: str) -> None:
    """A note on every result would obey the law and say nothing: many rows, few codes and levels have none."""
    metric = METRICS[name]
    codes, factors, kinds = noise((4_000, 3, 3, False))
    result = score_of(name, codes, factors, kinds, -1.0)
    assert metric.chance is not None
    score = getattr(result, metric.headline)
    notes = (*result.notes, *notes_on_noise(metric.chance(check_inputs(codes, factors, kinds)), score))
    assert not [note for note in notes if UNREADABLE in note]
    assert np.isfinite(score)
