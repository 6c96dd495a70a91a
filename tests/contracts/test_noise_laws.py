"""What independent noise scores: at any size as the metric states, or the result says that it cannot be read."""

import numpy as np
import pytest

from tests.contracts.noise import ALL, FEW, Case, noise
from unbraid.metrics import METRICS, NotDefined
from unbraid.metrics._chance import UNREADABLE, notes_on_noise
from unbraid.metrics._inputs import check_inputs

PLAIN = {name for name, metric in METRICS.items() if not metric.needs}
# To be emptied: these do not obey yet.
NOT_YET = {
    "explicitness", "linear_accuracy", "mlp_accuracy", "nk",
}  # fmt: skip
STATED = sorted(name for name in PLAIN - NOT_YET if METRICS[name].chance is not None)


def check(name: str, case: Case) -> None:
    metric = METRICS[name]
    codes, factors, kinds = noise(case)
    assert metric.chance is not None
    score, spread = metric.chance(check_inputs(codes, factors, kinds))
    try:
        result = metric.function(codes, factors, kinds=kinds)
    except NotDefined:
        return
    if any(UNREADABLE in note for note in result.notes):
        return
    assert getattr(result, metric.headline) == pytest.approx(score, abs=metric.strays + 4 * spread)


@pytest.mark.parametrize("case", FEW, ids=str)
@pytest.mark.parametrize("name", STATED)
def test_noise_scores_what_is_stated_or_cannot_be_read(name: str, case: Case) -> None:
    check(name, case)


@pytest.mark.slow
@pytest.mark.parametrize("case", ALL, ids=str)
@pytest.mark.parametrize("name", STATED)
def test_noise_at_every_size(name: str, case: Case) -> None:
    check(name, case)


@pytest.mark.parametrize("name", STATED)
def test_what_can_be_read_is_read(name: str) -> None:
    """A note on every result would obey the law and say nothing: many rows, few codes and levels have none."""
    metric = METRICS[name]
    codes, factors, kinds = noise((4_000, 3, 3, False))
    result = metric.function(codes, factors, kinds=kinds)
    assert metric.chance is not None
    notes = (*result.notes, *notes_on_noise(metric.chance(check_inputs(codes, factors, kinds))))
    assert not [note for note in notes if UNREADABLE in note]
    assert np.isfinite(getattr(result, metric.headline))
