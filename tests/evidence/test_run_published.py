"""The papers' studies in slices: what has ended on one machine is not run again on the next."""

from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

make_claims: Any = import_module("make_claims")
run_published: Any = import_module("run_published")

STUDY = {
    "name": "slices",
    "dataset": {"name": "sprites", "shrink": 4},
    "families": [{"name": "vae"}, {"name": "beta_vae", "beta": [2, 4], "seeds": [7]}],
    "seeds": [0, 1],
    "steps": 30,
    "metrics": ["mig"],
}


def test_runs_that_have_ended_leave_the_study() -> None:
    ended = {("vae", "steps=30", 1), ("beta_vae", "beta=2, steps=30", 7)}
    entries = run_published.unfinished(STUDY, ended)["families"]
    assert entries == [{"name": "vae", "seeds": [0]}, {"name": "beta_vae", "beta": 4, "seeds": [7]}]


def test_a_run_whose_held_out_models_wait_has_not_ended() -> None:
    table = pd.DataFrame({"family": "vae", "setting": "steps=30", "seed": [0, 1, 2]})
    table["state"] = ["finished", "finished", "failed"]
    assert make_claims.ended(make_claims.with_unanswered(table, "zero_shot")) == {("vae", "steps=30", 2)}
    table["zero_shot.lasso.gap"] = [0.5, None, None]
    assert [seed for _, _, seed in sorted(make_claims.ended(make_claims.with_unanswered(table, "zero_shot")))] == [0, 2]


def test_the_table_of_a_study_tells_such_a_run_from_those_that_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = pd.DataFrame({"state": ["finished", "finished"], "zero_shot.lasso.gap": [0.5, None]})

    def study(zero_shot: dict[str, str] | None) -> Any:
        config = SimpleNamespace(name="slices", compositional=None, zero_shot=zero_shot, udr=None)
        return SimpleNamespace(load=lambda _: SimpleNamespace(config=config, results=lambda: runs))

    for zero_shot, state in ((None, "finished"), ({"held_out": "x > 16"}, make_claims.HELD_OUT_WAITS)):
        monkeypatch.setattr(make_claims, "Study", study(zero_shot))
        assert make_claims.gathered(Path("study"))["state"].tolist() == ["finished", state]


def test_a_table_keeps_what_ended_on_an_earlier_machine(tmp_path: Path) -> None:
    table = tmp_path / "slices.csv"
    earlier = pd.DataFrame({"family": "vae", "setting": "steps=30", "seed": [0, 1], "state": ["finished", "waiting"]})
    earlier.assign(score=[0.25, None]).to_csv(table, index=False)
    here = earlier.assign(seed=[0, 1], state=["waiting", "finished"], score=[None, 0.5])
    joined = make_claims.with_earlier(here, table).sort_values("seed")
    assert joined["state"].tolist() == ["finished", "finished"]
    assert joined["score"].tolist() == [0.25, 0.5]
