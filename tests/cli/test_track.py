"""Scores as runs of trackers, read back from what these wrote."""

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import unbraid
from tests.conftest import Cli
from unbraid.cli.app import app
from unbraid.studies import tracking
from unbraid.studies.tracking import TrackedRun, Tracker

RNG = np.random.default_rng(0)
FACTORS = RNG.integers(0, 3, (200, 2))
CODES = FACTORS + 0.2 * RNG.standard_normal((200, 2))


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for seed in (0, 1):
        place = tmp_path / "runs" / f"m{seed}"
        place.mkdir(parents=True)
        np.savez(place / "codes.npz", codes=CODES + seed, factors=FACTORS)
        (place / "config.yaml").write_text(f"beta: {4 + seed}\nseed: {seed}\n")
    return tmp_path


def rows(folder: Path, query: str) -> list[tuple]:
    with closing(sqlite3.connect(folder / "tracking/mlflow/mlflow.db")) as database:
        return database.execute(query).fetchall()


@pytest.mark.lengthy
def test_each_model_is_a_run_and_told_again_replaces_it(models: Path) -> None:
    pytest.importorskip("mlflow")
    for _ in range(2):
        found = CliRunner().invoke(app, ["score", "runs/", "--metrics", "mig,sap", "--track", "mlflow"])
        assert found.exit_code == 0, found.output
    alive = "from runs where lifecycle_stage = 'active'"
    assert rows(models, "select name from experiments where experiment_id > 0") == [("unbraid score",)]
    assert sorted(rows(models, f"select name {alive}")) == [("m0 seed 0",), ("m1 seed 0",)]
    expected = unbraid.score(CODES, FACTORS, metrics=["mig", "sap"])
    for name in ("mig", "sap"):
        values = rows(
            models, f"select value from metrics where key = '{name}.score' and run_uuid in (select run_uuid {alive})"
        )
        assert [value for (value,) in values] == pytest.approx([expected[name].score] * 2)
    settings = rows(models, f"select value from params where key = 'beta' and run_uuid in (select run_uuid {alive})")
    assert sorted(settings) == [("4",), ("5",)]


def test_a_models_own_seed_and_steps_are_those_of_its_config(
    models: Path, monkeypatch: pytest.MonkeyPatch, unbraid_cli: Cli
) -> None:
    (models / "runs" / "m0").rename(models / "runs" / "beta=0.5")
    (models / "runs" / "beta=0.5" / "config.yaml").write_text("seed: 7\nsteps: 300\nrows: 9\n")
    told: list[TrackedRun] = []
    monkeypatch.setattr(tracking, "TRACKERS", {"tensorboard": Tracker(lambda record, _: told.append(record), ())})
    assert unbraid_cli("score", "runs/beta=0.5", "--metrics", "mig", "--track", "tensorboard")[0] == 0
    expected = {"codes": "runs/beta=0.5", "rows": 200, "seed": 0, "config.rows": 9, "config.seed": 7, "steps": 300}
    assert (told[0].settings, told[0].name, told[0].end) == (expected, "beta=0.5 seed 0", 0)
