"""The held-out check of importances against what a permutation test must do."""

import numpy as np
import pytest

from unbraid.metrics._shared import luck
from unbraid.metrics._shared.luck import beats_luck
from unbraid.types import FloatArray, IntArray


def of_values(values: FloatArray) -> tuple[IntArray, FloatArray]:
    return np.zeros(len(values), dtype=np.int64), values


def of_classes(classes: IntArray) -> tuple[IntArray, FloatArray]:
    return classes, np.ones(len(classes))


@pytest.mark.parametrize("n_factors", [1, 4])
@pytest.mark.parametrize("rare", [False, True])
def test_predictions_that_know_nothing_pass_as_often_as_stated(
    monkeypatch: pytest.MonkeyPatch, n_factors: int, rare: bool
) -> None:
    """One in twenty of all factors together, whether classes are even or one has three rows of sixty."""
    monkeypatch.setattr(luck, "SIGNIFICANCE", 0.05)
    rng = np.random.default_rng(0)
    classes = np.repeat([0, 1], [57, 3]) if rare else np.arange(60) % 2
    passed = []
    for seed in range(3000):
        share = 0.05 if rare else 0.5
        second = share + 0.01 * rng.standard_normal(60)
        passed.append(beats_luck(np.column_stack([1 - second, second]), of_classes(classes), n_factors, seed))
    assert 0.5 * 0.05 / n_factors < np.mean(passed) < 1.3 * 0.05 / n_factors


def test_what_is_foretold_passes_and_what_few_rows_could_have_by_luck_does_not() -> None:
    rng = np.random.default_rng(0)
    values = rng.standard_normal(40)
    assert beats_luck(values[:, None], of_values(values), 3, 0)
    assert beats_luck(0.3 * values[:, None], of_values(values), 3, 0)
    # Five rows have 120 orders: one in 120 shuffles does as well.
    assert not beats_luck(values[:5, None], of_values(values[:5]), 1, 0)
    classes = np.arange(40) % 3
    assert beats_luck(np.eye(3)[classes], of_classes(classes), 3, 0)
    assert not beats_luck(np.eye(3)[np.roll(classes, 1)], of_classes(classes), 3, 0)
    single = np.repeat([0, 1], [39, 1])
    assert not beats_luck(np.eye(2)[single], of_classes(single), 1, 0)


def test_a_constant_that_does_as_well_is_enough() -> None:
    """Ten times too far from the mean: better than every shuffle, and worse than the mean."""
    values = np.random.default_rng(0).standard_normal(200)
    assert not beats_luck(10 * values[:, None], of_values(values), 1, 0)
    assert not beats_luck(np.full((200, 1), values.mean()), of_values(values), 1, 0)
    classes = np.arange(200) % 2
    assert not beats_luck(np.full((200, 2), 0.5), of_classes(classes), 1, 0)
