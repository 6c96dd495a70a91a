"""What every executor promises, whatever it runs on."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.studies import ray_in_process
from tests.studies import study_examples as examples
from tests.studies.study_examples import SMALL, written
from unbraid import Study, load_run
from unbraid.datasets import FactorDataset
from unbraid.files.run_files import CODES, SCORES, WEIGHTS
from unbraid.studies.execution import all_tasks
from unbraid.studies.executors import EXECUTORS, Outcome, Task, TaskProgress, local, ray
from unbraid.studies.executors.work import perform

# Arguments for each executor in a test: as small as it gets.
OPTIONS: dict[str, Mapping[str, Any]] = {"local": {"processes": 1}, "ray": {}}
FEW = SMALL.replace("beta: [1, 4]", "beta: [4]")
BAD = """
  - {name: vae, network: "tests.studies.study_examples:refusing", latents: 3}
  - {name: vae, network: "tests.studies.study_examples:dying", latents: 3}
seeds: 1"""


@dataclass
class Session:
    """One use of an executor."""

    tasks: list[Task]
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    steps: list[TaskProgress] = field(default_factory=list)


def tasks_in(folder: Path, text: str = SMALL) -> tuple[list[Task], dict[str, FactorDataset]]:
    study = Study.load(written(folder, text), out=folder)
    tasks, datasets, _ = all_tasks(study.part(), *study.part().resolve_environment())
    (folder / "runs").mkdir()
    return tasks, datasets


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("local", marks=pytest.mark.lengthy),
        "ray in this process",
        pytest.param("ray", marks=pytest.mark.slow),
    ],
)
def executor(request: pytest.FixtureRequest) -> Iterator[str]:
    """Its name; Ray without a cluster stands for it from day to day."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "TRIES", 1)
        patch.setattr(ray, "TRIES", 1)
        if request.param == "ray":
            patch.setenv("RAY_ADDRESS", request.getfixturevalue("cluster").address)
        elif request.param not in OPTIONS:
            patch.setitem(sys.modules, "ray", ray_in_process.library())
            patch.setattr(examples, "_die", ray_in_process.kill)
        yield request.param.partition(" ")[0]


@pytest.fixture(scope="module")
def session(executor: str, tmp_path_factory: pytest.TempPathFactory) -> Session:
    """Four runs: two that end well, one that raises, one that kills its process."""
    tasks, datasets = tasks_in(tmp_path_factory.mktemp(executor), FEW.replace("\nseeds: 2", BAD))
    done = Session([*tasks[-2:], *tasks[:-2]])
    for outcome in EXECUTORS[executor](done.tasks, datasets, report=done.steps.append, **OPTIONS[executor]):
        assert outcome.id not in done.outcomes
        done.outcomes[outcome.id] = outcome
        if outcome.state != "failed":
            assert load_run(next(task.target for task in tasks if task.id == outcome.id)).status["state"] == "finished"
    return done


def test_every_executor_has_its_contract_tested() -> None:
    assert set(OPTIONS) == set(EXECUTORS)


def test_every_task_has_one_outcome(session: Session) -> None:
    assert set(session.outcomes) == {task.id for task in session.tasks}
    assert [session.outcomes[task.id].state for task in session.tasks] == ["failed"] * 2 + ["finished"] * 2


def test_what_goes_wrong_is_told_in_one_line(session: Session) -> None:
    refused, died = (session.outcomes[task.id] for task in session.tasks[:2])
    assert refused.reason == "RuntimeError: the network will not"
    assert "in _refuse" in refused.details
    assert died.reason
    assert "\n" not in died.reason
    assert not any(task.target.exists() for task in session.tasks[:2])


def test_its_runs_are_those_of_this_process_to_the_bit(session: Session, tmp_path: Path) -> None:
    tasks, datasets = tasks_in(tmp_path, FEW.replace("seeds: 2", "seeds: 1"))
    for task in tasks:
        perform(datasets, [task], lambda _: None)
    for task, theirs in zip(tasks, session.tasks[2:], strict=True):
        assert task.id == theirs.id
        for name in (WEIGHTS, CODES):
            assert (task.target / name).read_bytes() == (theirs.target / name).read_bytes()
        assert (theirs.target / SCORES).exists()
        assert not theirs.working.exists()


def test_it_tells_how_far_the_runs_are(session: Session) -> None:
    told = {step.id: step for step in session.steps}
    assert told[session.tasks[2].id].step == 6
    assert all(0 <= step.step <= 6 for step in session.steps)


@pytest.mark.slow
@pytest.mark.parametrize("executor", sorted(OPTIONS), indirect=True)
def test_a_straggler_gives_its_place_to_others(executor: str, tmp_path: Path) -> None:
    """The first run hangs, and there is one process."""
    hanging = '\n  - {name: vae, network: "tests.studies.study_examples:hanging", latents: 3}\nseeds: 1\ntime_limit: 20'
    tasks, datasets = tasks_in(tmp_path, SMALL.replace("\nseeds: 2", hanging))
    assert {task.time_limit for task in tasks} == {20}
    outcomes = {each.id: each for each in EXECUTORS[executor]([tasks[-1], *tasks[:-1]], datasets, **OPTIONS[executor])}
    assert [outcomes[task.id].state for task in tasks] == ["finished"] * 3 + ["failed"]
    assert (outcomes[tasks[-1].id].reason or "").startswith("time_limit: it took longer than 20 s; with a longer one")


def test_what_it_cannot_do_it_says_at_the_call(executor: str, tmp_path: Path) -> None:
    tasks, datasets = tasks_in(tmp_path, SMALL)
    tasks = [replace(task, config={**task.config, "device": "cpuu"}) for task in tasks]
    with pytest.raises(ValueError, match="cpuu"):
        EXECUTORS[executor](tasks, datasets, **OPTIONS[executor])
    assert not list((tmp_path / "runs").iterdir())


def test_nothing_to_do_is_done_at_once(executor: str) -> None:
    assert list(EXECUTORS[executor]([], {}, **OPTIONS[executor])) == []
