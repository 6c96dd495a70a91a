"""The tables of docs/leaderboard.md follow from the records in results/."""

from pathlib import Path

import pytest

from tests.results.examples import COMMIT, measured, put
from unbraid.bench.suite import LAPTOP


def test_each_set_has_a_table_of_the_models_that_were_measured_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pages import leaderboard

    monkeypatch.setattr(leaderboard, "FOLDER", tmp_path)
    assert leaderboard.tables() == "There is no record of this version yet."
    for model, value, told in (("unbraid__vae", 0.5, {}), ("my-lab__x", 0.25, {"supervision": "9 labels"})):
        by_set = {"rooms-16": {name: f"1{text}" for name, text in told.items()}}
        beside = {"chance": 0.01, "baselines": {"random projection": 0.1, "PCA": 0.3}, "seconds": 12.0}
        scores = [
            {
                "metric": column, "dataset": label, "setting": "beta=2",
                "measured": measured(value, value - 0.125, value + 0.125, COMMIT) | beside | by_set.get(label, told),
            }
            for label in LAPTOP.sets
            for column in LAPTOP.columns
            if (model, label) != ("my-lab__x", "cars-16")
        ]  # fmt: skip
        history = [{"date": "2026-01-02", "reason": "first record"}]
        about = {"schema": 2, "model": model, "revision": COMMIT[:12], "study": LAPTOP.study}
        put(tmp_path, {**about, "scores": scores, "history": history})
    sprites, rooms, cars, trained = leaderboard.tables().split("\n\n### ")
    assert sprites.startswith("### sprites-16")
    assert rooms.splitlines()[4:] == [
        f"| unbraid__vae | 1.0 |{' .50 [.38, .62] |' * 6}",
        f"| my-lab__x | 2.0 |{' .25 [.12, .38] † |' * 6}",
        f"| chance | - |{' .01 |' * 6}",
        f"| random projection | - |{' .10 |' * 6}",
        f"| PCA | - |{' .30 |' * 6}",
    ]
    assert "my-lab__x" not in cars
    assert trained.splitlines()[4:] == [
        f"| my-lab__x | beta=2 | 9 labels; 19 labels | 12 | {COMMIT[:12]} |",
        f"| unbraid__vae | beta=2 |  | 12 | {COMMIT[:12]} |",
    ]
