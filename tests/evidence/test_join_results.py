"""Which runs of a study stand beside a number of a paper."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

join_results: Any = import_module("join_results")

SCORES = {"scores": [{"setting": "pairs=512", "metric": "mig.score"}, {"setting": "paths=50", "metric": "sap.score"}]}
RUNS = pd.DataFrame(
    {
        "run": ["a", "b", "c"], "family": ["lsbd_vae", "lsbd_vae", "vae"], "seed": [0, 1, 0], "state": "finished",
        "setting": ["pairs=512", "pairs=512", "defaults"], "dataset": "square", "n_rows": 100,
        "hyper.pairs": [512, 512, None], "commit": ["1" * 40, "2" * 40, "1" * 40],
        "computed_with": '{"mig": {"version": 2}}', "mig.score": [0.25, 0.5, 0.9], "sap.score": 0.1,
    }
)  # fmt: skip


def measured(folder: Path, runs: pd.DataFrame, where: dict[str, Any]) -> dict[str, Any]:
    runs.to_csv(folder / "study.csv", index=False)
    join = join_results.Join("study", {"family": "lsbd_vae"} | where, "lsbd-2022__lsbd_vae", "square", "pairs=512")
    return join_results.measured_of(join, SCORES)


@pytest.fixture(autouse=True)
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_results, "TABLES", tmp_path)


def test_seeds_of_one_setting_are_averaged(tmp_path: Path) -> None:
    found = measured(tmp_path, RUNS, {"hyper.pairs": 512})
    assert found.keys() == {"mig.score"}, "the columns that the paper reports for this setting"
    assert (found["mig.score"]["value"], found["mig.score"]["seeds"]) == (0.375, [0, 1])


@pytest.mark.parametrize(
    ("column", "value"), [("state", "waiting"), ("setting", "pairs=256"), ("commit", "1" * 40 + "+changed")]
)
def test_a_run_that_waits_has_another_setting_or_is_of_changed_code_keeps_all_out(
    column: str, value: str, tmp_path: Path
) -> None:
    runs = RUNS.copy()
    runs.loc[runs["seed"] == 1, column] = value
    assert measured(tmp_path, runs, {}) == {}


def test_a_run_without_the_number_counts_for_nothing(tmp_path: Path) -> None:
    found = measured(tmp_path, RUNS.assign(**{"mig.score": [0.25, None, 0.9]}), {})
    assert found["mig.score"]["value"] == 0.25


def test_a_study_without_such_runs_gives_nothing(tmp_path: Path) -> None:
    assert measured(tmp_path, RUNS, {"hyper.pairs": 256}) == {}
    assert measured(tmp_path, RUNS, {"hyper.paths": 50}) == {}


@pytest.mark.parametrize(("scale", "mean"), [("64px", 0.25), ("laptop", 0.375)])
def test_at_the_papers_scale_layers_must_begin_as_the_papers(scale: str, mean: float, tmp_path: Path) -> None:
    runs = RUNS.assign(**{"hyper.supervision": "pairs", "hyper.initialisation": ["glorot", "pytorch", None]})
    runs.to_csv(tmp_path / f"lsbd-square-{scale}.csv", index=False)
    (join,) = (
        join
        for join in join_results.joins()
        if (join.study, join.model, join.setting) == (f"lsbd-square-{scale}", "lsbd-2022__lsbd_vae", "pairs=512")
    )
    assert join_results.measured_of(join, SCORES)["mig.score"]["value"] == mean
