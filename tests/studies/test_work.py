"""The work of a task, alone or stacked with others."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from tests.studies.study_examples import SMALL, written
from unbraid import Study, load_run
from unbraid.files.run_files import SCORES
from unbraid.files.whole_files import DiskFull
from unbraid.studies.estimate import estimate
from unbraid.studies.execution import all_tasks
from unbraid.studies.executors import local, ray
from unbraid.studies.executors.local import packs
from unbraid.studies.executors.work import Task, TaskProgress, perform
from unbraid.training.workers import WorkerDied


@pytest.fixture
def tasks_of(tmp_path):
    def tasks(name: str, text: str = SMALL):
        folder = tmp_path / name
        (folder / "runs").mkdir(parents=True)
        study = Study.load(written(tmp_path, text), out=folder / "study")
        return all_tasks(study.part(), *study.part().resolve_environment())[:2]

    return tasks


def test_what_can_be_stacked_is_packed_together(tasks_of):
    text = SMALL.replace(
        "\nseeds: 2", "\n  - {name: beta_vae, beta: 2, latents: 4}\n  - {name: vae, latents: 3}\nseeds: 3"
    )
    tasks, _ = tasks_of("a", text)
    found = [[(task.config["family"], task.config["seed"]) for task in pack] for pack in packs(tasks, 4)]
    beta = [("beta_vae", 0), ("beta_vae", 1), ("beta_vae", 2)]
    assert found == [
        [*beta, beta[0]], beta[1:],  # six of one structure, by four
        [("pca", seed) for seed in range(3)],
        beta,
        [("vae", seed) for seed in range(3)],
    ]  # fmt: skip


def test_what_is_trained_is_scored_where_its_device_is_not(tasks_of, monkeypatch):
    def refuse(device: str) -> torch.device:
        raise ValueError(f"no {device} here")

    tasks, datasets = tasks_of("a")
    perform(datasets, tasks[:1], lambda _: None)
    there = [replace(task, config={**task.config, "device": "cuda"}) for task in tasks[:2]]
    monkeypatch.setattr(local, "choose_device", refuse)
    (tasks[0].target / SCORES).unlink()
    assert [each.state for each in local.run(there[:1], datasets, processes=0)] == ["finished"]
    assert (tasks[0].target / SCORES).exists()
    with pytest.raises(ValueError, match="no cuda here"):
        local.run(there, datasets, processes=0)


def test_what_strays_when_stacked_is_trained_alone(tasks_of):
    text = SMALL.replace(
        "\nseeds: 2",
        "\n  - {name: beta_tcvae, prior: factorial_flow, latents: 3}\n  - {name: beta_tcvae, latents: 3}\nseeds: 2",
    )
    tasks, _ = tasks_of("a", text)
    found = [[task.config["hyperparameters"].get("prior") for task in pack] for pack in packs(tasks, 4)]
    assert found.count(["factorial_flow"]) == 2
    assert found.count(["normal"] * 2) == 1


def test_runs_done_together_are_those_done_alone(tasks_of):
    """To float precision: a stack sums in another order."""
    together, datasets = tasks_of("together")
    told: list[TaskProgress] = []
    outcomes = perform(datasets, together[:4], told.append)
    assert [outcome.id for outcome in outcomes] == [task.id for task in together[:4]]
    assert {step.id for step in told} == {task.id for task in together[:4]}
    alone, _ = tasks_of("alone")
    for task, other in zip(together[:4], alone[:4], strict=True):
        assert perform(datasets, [other], lambda _: None)[0].state == "finished"
        np.testing.assert_allclose(
            load_run(task.target).codes().codes, load_run(other.target).codes().codes, rtol=1e-4, atol=1e-5
        )


def test_of_a_stack_that_fails_only_the_guilty_fail(tasks_of, monkeypatch):
    """Memory that suffices for two at a time, and never for the third."""
    tasks, datasets = tasks_of("a")
    real, asked = perform.__globals__["train_here"], []

    def scarce(plan, members, *given, **named):
        asked.append([(member.hyper["beta"], member.seed) for member in members])
        if len(members) > 2 or (4.0, 0) in asked[-1]:
            raise MemoryError("no room")
        return real(plan, members, *given, **named)

    monkeypatch.setitem(perform.__globals__, "train_here", scarce)
    outcomes = perform(datasets, tasks[:4], lambda _: None)
    assert [outcome.state for outcome in outcomes] == ["finished", "finished", "failed", "finished"]
    assert outcomes[2].reason == (
        "out of memory: a smaller batch_size, smaller networks, or fewer processes at a time need less; "
        "--retry failed goes on from its last checkpoint (no room)"
    )
    assert [len(members) for members in asked] == [4, 2, 2, 1, 1]


def test_on_an_accelerator_runs_are_stacked_then_scored(tasks_of, monkeypatch):
    """A device that is none of the CPU, but for the arithmetic."""
    tasks, datasets = tasks_of("a", SMALL.replace("seeds: 2", "seeds: 3"))
    monkeypatch.setattr(local, "choose_device", lambda _: torch.device("cuda"))
    monkeypatch.setattr(local, "_memory", lambda _: 1 << 40)
    real, asked = perform.__globals__["train_here"], []

    def counting(plan, members, *given, **named):
        asked.append(len(members))
        return real(plan, members, *given, **named)

    monkeypatch.setitem(perform.__globals__, "train_here", counting)
    outcomes = list(local.run(tasks, datasets, processes=0, pack=4))
    assert asked == [4, 2, 3]
    assert sorted(outcome.id for outcome in outcomes) == sorted(task.id for task in tasks)
    assert {outcome.state for outcome in outcomes} == {"finished"}
    assert all((task.target / SCORES).exists() for task in tasks)


def test_several_accelerators_share_the_runs(tasks_of, monkeypatch):
    """By processes that see one each; they are counted in the books alone, and what follows is done in this process."""
    tasks, datasets = tasks_of("a", SMALL.replace("seeds: 2", "seeds: 3"))
    monkeypatch.setattr(local, "choose_device", lambda _: torch.device("cuda"))
    monkeypatch.setattr(local, "_memory", lambda _: 1 << 40)
    monkeypatch.setattr(local, "visible_devices", lambda: ["0", "3"])
    begun = []

    def here(function, jobs, shared, *, n_workers, variables=({},), **_):
        sizes = [len(job) if isinstance(job, list) else 0 for job in jobs]
        begun.append((function.__name__, n_workers, [*variables], sizes))
        for number, job in enumerate(jobs):
            died = len(begun) == 1 and number == 0
            yield number, WorkerDied("it was killed") if died else function(shared, job, lambda _: None)

    monkeypatch.setattr(local, "run_jobs", here)
    outcomes = list(local.run(tasks, datasets, processes=2))
    each = [{"CUDA_VISIBLE_DEVICES": "0"}, {"CUDA_VISIBLE_DEVICES": "3"}]
    assert begun[:2] == [("train", 2, each, [5, 1, 3]), ("train", 2, each, [1] * 5)]
    assert {name for name, *_ in begun[2:]} == {"perform"}
    assert sorted(outcome.id for outcome in outcomes) == sorted(task.id for task in tasks)
    assert {outcome.state for outcome in outcomes} == {"finished"}
    assert all((task.target / SCORES).exists() for task in tasks)


def test_a_full_disk_is_raised_and_is_no_failure_of_the_run(tasks_of, monkeypatch):
    tasks, datasets = tasks_of("a")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(perform.__globals__, "write_run", full)
    with pytest.raises(DiskFull, match="no space left; with more of it the same command continues"):
        perform(datasets, tasks[:1], lambda _: None)
    monkeypatch.undo()
    monkeypatch.setitem(perform.__globals__, "complete_scores", full)
    with pytest.raises(DiskFull, match="no space left"):
        perform(datasets, tasks[:1], lambda _: None)


def test_each_kind_of_run_is_measured_once_however_many_there_are(tmp_path, monkeypatch):
    asked: list[list[str]] = []

    def cost(tasks: Sequence[Task], _: object) -> tuple[float, float]:
        asked.append([task.config["family"] for task in tasks])
        return 1.0, 0.5

    monkeypatch.setattr("unbraid.studies.estimate._cost", cost)
    text = SMALL.replace("seeds: 2", "seeds: 70").replace("[mig, dci_lasso]", "[]")
    found = estimate(Study.load(written(tmp_path, text), out=tmp_path / "out").part(), processes=2)
    assert asked == [["beta_vae"], ["pca"]]
    assert [(row.runs, row.seconds) for row in found.rows] == [(70, 70 * 4.0)] * 3
    assert found.processes == 2

    # Of a cluster that trains runs stacked, a stack of the size that it would have there.
    @contextmanager
    def asking(tasks: Sequence[Task], _: object, *, pack: int) -> Iterator[Any]:
        shares = {task.id: 1.0 for task in tasks}
        nodes = [{"CPU": 4.0, "GPU": 2.0}, {"CPU": 4.0, "GPU": 1.0}]
        yield 3, lambda waiting: ray._groups(waiting, shares, nodes, pack), lambda function, *given: function(*given)

    for pack, stacked in ((64, 64), (16, 16)):
        asked.clear()
        monkeypatch.setattr("unbraid.studies.estimate.probe_cluster", asking)
        monkeypatch.setattr("unbraid.studies.estimate._memory", lambda _: 1 << 20)
        found = estimate(Study.load(tmp_path / "study.yaml", out=tmp_path / "out").part(), "ray", pack=pack)
        assert asked == [["beta_vae"] * stacked, ["pca"]]
        assert found.processes == 3
