"""No metric has rows of one group on both sides of a split."""

import inspect
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import unbraid
from unbraid.metrics import BLOCKED, METRICS, Metric
from unbraid.metrics._shared.inputs import NotDefined, split_rows
from unbraid.metrics.r2 import r2
from unbraid.metrics.slots import slot_identifiability
from unbraid.metrics.sparse_codes import sparse_probing

RNG = np.random.default_rng(0)
N_GROUPS, N_ROWS = 24, 6
LABELS = np.array([f"mouse {k}" for k in range(N_GROUPS)])[RNG.permutation(np.repeat(np.arange(N_GROUPS), N_ROWS))]
GROUPS = np.unique(LABELS, return_inverse=True)[1]
FACTORS = np.stack([RNG.integers(0, 2, len(LABELS)), RNG.integers(0, 3, len(LABELS)), GROUPS % 2], axis=1)
CODES = np.hstack([FACTORS + 0.1 * RNG.standard_normal(FACTORS.shape), RNG.standard_normal((len(LABELS), 2))])
KINDS = ("categorical", "ordinal", "ordinal")
ROWS: dict[str, Metric] = {**METRICS, **BLOCKED}
ALONE: dict[str, Callable[..., Any]] = {
    "sparse_probing": lambda **given: sparse_probing(CODES, FACTORS, ks=[1], **given),
    "slot_identifiability": lambda **given: slot_identifiability(CODES[:, :4, None], FACTORS[:, :, None], **given),
    "r2 by kernel": lambda **given: r2(CODES, FACTORS, regressor="kernel", **given),
    "dci_lasso, test rows given": lambda **given: METRICS["dci_lasso"].function(
        CODES, FACTORS, test_codes=CODES, test_factors=FACTORS, **given
    ),
}

Splits = list[tuple[Any, tuple[Any, ...]]]


@pytest.fixture
def splits(monkeypatch: pytest.MonkeyPatch) -> Splits:
    """Groups and parts of every split that is made."""
    made: Splits = []

    def told(n_samples: int, fractions: tuple[float, ...], seed: int, groups: Any = None) -> tuple[Any, ...]:
        parts = split_rows(n_samples, fractions, seed, groups)
        made.append((groups, parts))
        return parts

    for name, module in list(sys.modules.items()):
        if name.startswith("unbraid.metrics") and hasattr(module, "split_rows"):
            monkeypatch.setattr(module, "split_rows", told)
    return made


def called(name: str, **given: Any) -> None:
    if name in ALONE:
        ALONE[name](**given)
        return
    function, extra = ROWS[name].function, {}
    taken = inspect.signature(function).parameters
    offered = {
        "kinds": KINDS, "held_out": (FACTORS[:, 0] > 0) & (FACTORS[:, 1] > 1),
        "log_variances": np.full(CODES.shape, -2.0),
        "code_blocks": [[0], [1], [2]], "factor_blocks": [[0], [1], [2]], "n_train": 50, "n_test": 50, "n_trees": 2,
    }  # fmt: skip
    extra = {key: value for key, value in offered.items() if key in taken}
    with suppress(NotDefined):
        function(CODES, FACTORS, **extra, **given)


TAKING = [
    name for name, row in ROWS.items() if "groups" in inspect.signature(row.function).parameters and name != "udr"
]


@pytest.mark.parametrize("name", [*TAKING, *ALONE])
def test_no_group_is_on_both_sides(name: str, splits: Splits) -> None:
    called(name, groups=LABELS)
    assert splits
    for groups, parts in splits:
        assert groups is not None
        sides = [set(groups[part].tolist()) for part in parts]
        assert sum(map(len, sides)) == len(set().union(*sides)), "a group is in two parts"
        assert sorted(np.concatenate(parts).tolist()) == list(range(len(groups)))


@pytest.mark.parametrize("name", [name for name in ROWS if name not in TAKING and name != "udr"])
def test_what_takes_no_groups_splits_nothing(name: str, splits: Splits) -> None:
    called(name)
    assert not splits


WORTH: dict[str, Callable[[Any], float]] = {
    "linear_accuracy": lambda found: found.score,
    "explicitness": lambda found: found.score,
    "r2": lambda found: found.score,
    "dci_forest": lambda found: 1 - found.informativeness,
    "dci_boosted": lambda found: 1 - found.informativeness,
    "dci_es": lambda found: found.informativeness,
}


@pytest.mark.parametrize("name", list(WORTH))
def test_codes_that_only_know_the_group_are_at_chance(name: str) -> None:
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(60), 10)
    factors = np.tile([0, 1, 2], 20)[rng.permutation(60)][groups][:, None]
    of_groups = rng.standard_normal((60, 3)) if name.startswith("dci") else np.eye(60)
    codes = of_groups[groups] + 0.01 * rng.standard_normal((600, of_groups.shape[1]))
    extra = {"n_trees": 5} if name == "dci_es" else {}
    by_rows, by_groups = (
        WORTH[name](METRICS[name].function(codes, factors, kinds=("categorical",), groups=each, **extra))
        for each in (None, groups)
    )
    assert by_rows > 0.75
    assert by_groups < 0.55  # of three levels; a dozen groups to test on stray


@pytest.mark.parametrize("fractions", [(0.8, 0.2), (0.8, 0.1, 0.1), (0.5, 0.5)])
def test_parts_come_near_their_fractions(fractions: tuple[float, ...]) -> None:
    sizes = np.random.default_rng(0).integers(1, 20, 200)
    groups = np.repeat(np.arange(200), sizes)
    parts = split_rows(len(groups), fractions, 5, groups)
    assert np.array([len(part) for part in parts]) / len(groups) == pytest.approx(fractions, abs=0.01)


def test_every_part_has_a_group_and_too_few_groups_are_told() -> None:
    groups = np.array([0] * 98 + [1, 2])
    for seed in range(5):
        assert all(len(part) for part in split_rows(100, (0.8, 0.1, 0.1), seed, groups))
    with pytest.raises(NotDefined, match="needs 3 groups of rows, so that no group is in two parts; there are 2"):
        split_rows(100, (0.8, 0.1, 0.1), 0, np.minimum(groups, 1))
    card = unbraid.score(CODES, FACTORS, metrics=["mig", "dci_lasso"], groups=GROUPS % 2)
    assert list(card) == ["mig"]
    assert card.skipped == {"dci_lasso": "needs 3 groups of rows, so that no group is in two parts; there are 2"}


def test_groups_of_single_rows_leave_what_is_not_split_as_it_is() -> None:
    rows = np.arange(len(CODES))
    card, plain = (unbraid.score(CODES, FACTORS, metrics=["mig", "med"], groups=each) for each in (rows, None))
    assert all(card[name].score == plain[name].score for name in card)
