"""A metric that raises an error costs its own row, and never the card."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unbraid
from tests.examples import entangled_codes, grid_factors

NAME = "tests.scoring.test_failed_metrics:own"
FACTORS = grid_factors(2)
CODES = entangled_codes(FACTORS)
REASON = "ZeroDivisionError: division by zero"


def own(codes: Any, factors: Any) -> float:
    raise NotImplementedError


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.scoring.test_failed_metrics.own", lambda *_: 1 / 0)


@pytest.fixture
def failing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """All is well the first time, which is that of the rows as they are."""
    calls: list[int] = []

    def once(*_: Any) -> float:
        calls.append(1)
        return 1.0 if len(calls) == 1 else 1 / 0

    monkeypatch.setattr("tests.scoring.test_failed_metrics.own", once)


@pytest.mark.usefixtures("failing")
def test_it_costs_its_own_row() -> None:
    card = unbraid.score(CODES, FACTORS, metrics=[NAME, "mig", "d_lsbd"])
    assert list(card) == ["mig"]
    assert list(card.skipped) == ["d_lsbd"]
    assert card.failed[NAME].reason == REASON
    assert "1 / 0" in card.failed[NAME].details
    assert card["mig"].score == unbraid.metrics.mig(CODES, FACTORS).score
    assert f"{NAME}   failed: {REASON}" in str(card)
    with pytest.raises(KeyError, match=f"{NAME} failed: {REASON}"):
        card[NAME]


@pytest.mark.usefixtures("failing")
def test_it_can_be_asked_to_cost_the_card() -> None:
    with pytest.raises(ValueError, match=f"metric {NAME} failed: {REASON}") as caught:
        unbraid.score(CODES, FACTORS, metrics=["mig", NAME], on_error="raise")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    with pytest.raises(ValueError, match="on_error must be 'keep' or 'raise'; got 'skip'"):
        unbraid.score(CODES, FACTORS, on_error="skip")  # pyright: ignore[reportArgumentType]


def test_unsound_input_is_no_fault_of_a_metric() -> None:
    for wrong in (np.full_like(CODES, np.nan), CODES[:-1], CODES.astype(str)):
        with pytest.raises(ValueError, match=r"^codes "):
            unbraid.score(wrong, FACTORS)
    with pytest.raises(
        ValueError, match=r"held_out must be one boolean per row, shape \(192,\); got bool of shape \(3,\)"
    ):
        unbraid.score(CODES, FACTORS, metrics=["mig", "zero_shot"], held_out=np.ones(3, bool))


def test_an_interrupt_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> float:
        raise KeyboardInterrupt

    monkeypatch.setattr("tests.scoring.test_failed_metrics.own", interrupted)
    with pytest.raises(KeyboardInterrupt):
        unbraid.score(CODES, FACTORS, metrics=["mig", NAME])


@pytest.mark.usefixtures("failing_again")
def test_where_it_fails_on_shuffled_rows_its_null_is_missing(tmp_path: Path) -> None:
    card = unbraid.score(CODES, FACTORS, metrics=[NAME, "mig"], null=3)
    assert card.scored["mig"].null is not None
    assert card.scored[NAME].null is None
    assert card.scored[NAME].no_null.startswith("ZeroDivisionError")
    assert card.scored[NAME].notes[0].startswith("no null: ZeroDivisionError")
    card.save(tmp_path / "scores.json")
    held = unbraid.ScoreCard.load(tmp_path / "scores.json").scored[NAME]
    assert (held.no_null, held.notes) == (card.scored[NAME].no_null, card.scored[NAME].notes)
    with pytest.raises(ValueError, match=f"metric {NAME} failed: ZeroDivisionError"):
        unbraid.score(CODES, FACTORS, metrics=[NAME, "mig"], null=3, on_error="raise")


@pytest.mark.usefixtures("failing_again")
def test_where_it_fails_on_parts_of_the_rows_its_interval_is_missing() -> None:
    card = unbraid.score(CODES, FACTORS, metrics=[NAME, "mig"], confidence=(0.95, 3))
    assert card.scored["mig"].intervals is not None
    assert card.scored[NAME].no_interval.startswith("part of the rows cannot be scored: ")


@pytest.mark.usefixtures("failing_again")
def test_where_it_fails_on_a_baseline_that_score_is_missing(tmp_path: Path) -> None:
    card = unbraid.score(CODES, FACTORS, metrics=[NAME, "mig"], baselines={"flipped": -CODES})
    assert list(card.scored["mig"].baselines) == ["flipped"]
    assert dict(card.scored[NAME].baselines) == {}
    assert card.scored[NAME].notes[0].startswith("no score of the baseline flipped: ZeroDivisionError")
    card.save(tmp_path / "scores.json")
    held = unbraid.ScoreCard.load(tmp_path / "scores.json").scored[NAME]
    assert (held.no_baselines, held.notes) == (card.scored[NAME].no_baselines, card.scored[NAME].notes)
