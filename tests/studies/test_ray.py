"""Studies on a real Ray cluster: nodes that are killed, storage that is not shared, shares of GPUs, clear refusals."""

import errno
import json
import logging
import os
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from torch import nn

from tests.conftest import MEMORY
from tests.studies import ray_in_process
from tests.studies.study_examples import SMALL, FailingLater, same_but_for_times, written
from unbraid import Study
from unbraid.families.networks import dense_pair
from unbraid.files.remote import mirror_of
from unbraid.files.run_files import CHECKPOINT as FILE
from unbraid.studies.execution import all_tasks
from unbraid.studies.executors import Outcome, Task, node
from unbraid.studies.executors import ray as executor
from unbraid.studies.executors.work import DiskFull
from unbraid.studies.study_record import StudyProgress

HERE = "tests.studies.test_ray"
SLOW = SMALL.replace("steps: 6", "steps: 400").replace("beta: [1, 4], network: dense", f'network: "{HERE}:gated"')
QUICK = SMALL.replace("  - {name: beta_vae, beta: [1, 4], network: dense, latents: 3}\n", "")


def gated(*arguments: Any) -> tuple[nn.Module, nn.Module]:
    """Dense networks that are slow until there is a file GATE; those made later, for their first steps."""
    encoder, decoder = dense_pair(*arguments)
    if "GATE" in os.environ:
        gate = Path(os.environ["GATE"])
        first = iter(range(15) if gate.exists() else ())

        def wait(*_: Any) -> None:
            if next(first, None) is not None or not gate.exists():
                time.sleep(0.05)

        encoder.register_forward_pre_hook(wait)
    return encoder, decoder


def full(*arguments: Any) -> tuple[nn.Module, nn.Module]:
    """Dense networks that find the disk full."""

    def fail() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    encoder, decoder = dense_pair(*arguments)
    return FailingLater(encoder, fail), decoder


def gpus(codes: np.ndarray, factors: np.ndarray) -> float:
    """A metric: the share of a GPU that the run was given."""
    import ray

    del codes, factors
    return ray.get_runtime_context().get_assigned_resources().get("GPU", 0.0)


@pytest.fixture
def second(cluster: Any) -> Iterator[Any]:
    """A second node, which the test may kill."""
    added = cluster.add_node(num_cpus=1, object_store_memory=MEMORY)
    yield added
    if added in cluster.list_all_nodes():
        cluster.remove_node(added)


@pytest.fixture(scope="module")
def connected(cluster: Any) -> Iterator[None]:
    """As in a notebook that has called ray.init: one connection for all studies, whose workers stay."""
    import ray

    ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
    yield
    ray.shutdown()


def same_files(first: Study, second: Study, *names: str) -> bool:
    pairs = zip(first.runs(), second.runs(), strict=True)
    return all((a.path / name).read_bytes() == (b.path / name).read_bytes() for a, b in pairs for name in names)


def checkpoints(study: Study) -> dict[str, int]:
    """Steps taken, by the run of which there is a checkpoint."""
    steps = {}
    for path in study.require_folder().glob(f"runs/*.part/{FILE}"):
        with safe_open(path, "pt") as file:
            steps[path.parent.stem] = json.loads(file.metadata()["progress"])["step"]
    return steps


def test_a_node_with_another_version_refuses(tmp_path: Path) -> None:
    order = node.Order((Task("a", {}, str(tmp_path)),), "", None, {}, "0.0.1")
    outcome = (node.work(order, {}, lambda _: None).outcomes or {})["a"]
    assert isinstance(outcome, Outcome)
    assert outcome.state == "failed"
    assert "0.0.1" in str(outcome.reason)


@pytest.mark.parametrize("name", ["../x", "a/../../x", "{folder}/x", ".a/x", "b/x"])
def test_files_of_a_node_stay_in_the_folder_of_runs(name: str, tmp_path: Path) -> None:
    """A folder that is there already, and one that arrives; hidden files are those of writes that were cut off."""
    (tmp_path / "outside").mkdir()
    files = {name.format(folder=tmp_path / "outside"): b"x"}
    runs = tmp_path / "study" / "runs"
    runs.mkdir(parents=True)
    if name != "b/x":
        with pytest.raises(ValueError, match="leads out|no path below"):
            node.unpack(files, runs)
        (runs / "a").mkdir()
        with pytest.raises(ValueError, match="leads out|no path below"):
            executor._receive(Task("a", {}, str(runs)), files)
    else:
        node.unpack({**files, "b/y": b"y"}, runs)
        (runs / "b" / ".y.part").write_text("cut off")
        assert node.pack(runs / "b") == {"b/x": b"x", "b/y": b"y"}
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} <= {"x", "y", ".y.part"}
    assert not (tmp_path / "x").exists()
    assert not list((tmp_path / "outside").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("storage", ["shared", "s3"])
def test_stopped_and_then_short_of_a_node_a_study_gives_what_this_machine_gives(
    storage: str, cluster: Any, second: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = tmp_path / "gate"
    variables = executor.worker_variables()
    monkeypatch.setattr(executor, "worker_variables", lambda: {**variables, "GATE": str(gate)})
    monkeypatch.setenv("UNBRAID_DATA", str(tmp_path / "cache"))
    out = "s3://studies/lost" if storage == "s3" else tmp_path / "there"
    if storage == "s3":
        import fsspec

        fsspec.filesystem("s3").mkdir("studies")
    yaml = written(tmp_path, SLOW)
    here, there = Study.load(yaml, out=tmp_path / "here"), Study.load(yaml, out=out)
    here.run(processes=0)

    def stop(sent: StudyProgress) -> None:
        if len(sent.steps_taken) == 2 and min(sent.steps_taken.values()) > 20:  # at 0 they have but found a place
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        there.run("ray", address=cluster.address, progress=stop)
    there = Study.load(yaml, out=out)
    kept = checkpoints(there)
    assert len(kept) == 2
    assert all(0 < step < 400 for step in kept.values())
    said: dict[str, list[int]] = {name: [] for name in kept}

    def kill(sent: StudyProgress) -> None:
        for name, step in sent.steps_taken.items():
            if step and name in said and said[name][-1:] != [step]:
                said[name].append(step)
        if all(steps and steps[-1] > kept[name] + 20 for name, steps in said.items()) and not gate.exists():
            cluster.remove_node(second, allow_graceful=False)
            gate.touch()

    runs = there.run("ray", address=cluster.address, progress=kill)
    assert {run.state for run in runs} == {"finished"}
    assert all(steps[0] > kept[name] for name, steps in said.items()), "both continue from their checkpoints"
    again = [name for name, steps in said.items() if steps != sorted(steps)]
    assert len(again) == 1, "one was on the node that was lost"
    assert min(said[again[0]]) > kept[again[0]], "and continues once more from its checkpoint"
    assert same_but_for_times(here.results(), there.results())
    assert same_files(here, there, "weights.safetensors", "codes.safetensors", "curves.parquet")
    folder = there.require_folder()
    assert not list(folder.glob("runs/*.part"))
    assert (mirror_of(folder) is not None) == (storage == "s3")


def test_a_run_takes_a_whole_gpu_unless_told_otherwise() -> None:
    assert executor._gpus(Task("a", {"device": "cuda"}, ""), None) == 1
    assert executor._gpus(Task("a", {"device": "cuda"}, ""), 0.25) == 0.25
    assert executor._gpus(Task("a", {"device": "cpu"}, ""), None) == 0


def test_packs_are_as_large_as_the_share_of_each_gpu_of_the_cluster(tmp_path: Path) -> None:
    """Two machines of four GPUs, of which one has cores for three only, and one without any."""
    nodes = [{"CPU": 16.0, "GPU": 4.0}, {"CPU": 3.0, "GPU": 4.0}, {"CPU": 64.0}]
    assert [executor._places(nodes, share) for share in (1.0, 0.25, 0.1, 0.0)] == [7, 19, 19, 83]
    text = SMALL.replace("seeds: 2", "seeds: 10")
    study = Study.load(written(tmp_path, text), out=tmp_path / "study")
    tasks = [
        replace(task, config={**task.config, "device": "cuda"})  # of which this machine need have none
        for task in all_tasks(study.part(), *study.part().resolve_environment())[0]
    ]
    shares = dict.fromkeys((task.id for task in tasks), 1.0)
    of = {kind: [task for task in tasks if task.config["family"] == kind] for kind in ("beta_vae", "pca")}
    assert [len(own) for own in of.values()] == [20, 10]
    for n_gpus, pack, expected in (
        (7, 64, [5] * 4 + [5] * 2), (16, 64, [2] * 10 + [2] * 5), (7, 4, [4] * 5 + [4, 4, 2]), (100, 64, [1] * 30),
    ):  # fmt: skip
        found = executor._groups(tasks, shares, [{"CPU": 100.0, "GPU": float(n_gpus)}], pack)
        assert [len(group) for group in found] == expected
        assert [task for group in found for task in group] == of["beta_vae"] + of["pca"]
    only = executor._groups(of["beta_vae"], shares, nodes, 64)
    assert [len(group) for group in only] == [3] * 6 + [2]
    for apart in (dict.fromkeys(shares, 0.5), dict.fromkeys(shares, 0.0)):
        assert executor._groups(tasks, apart, nodes, 64) == [[task] for task in tasks]
    trained = executor._groups(tasks, shares | {tasks[0].id: 0.0}, nodes, 64)
    assert sum(map(len, trained[:-1])) == 29
    assert trained[-1] == [tasks[0]], "it is only to be scored"
    limited = [replace(task, time_limit=9.0) for task in tasks]
    assert executor._groups(limited, shares, nodes, 64) == [[task] for task in limited], "a limit is of one run"


def test_trained_runs_are_scored_where_no_node_has_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", ray_in_process.library())
    Study.load(written(tmp_path, QUICK), out=tmp_path / "study").run(processes=0)
    study = Study.load(written(tmp_path, QUICK.replace("[mig,", "[mig, sap,")), out=tmp_path / "study")
    study.run("ray", gpus_per_run=1.0)
    assert study.results()["sap.score"].notna().to_numpy().all()
    more = Study.load(written(tmp_path, QUICK.replace("seeds: 2", "seeds: 3")), out=tmp_path / "study")
    with pytest.raises(ValueError, match="no node of the cluster offers one core and 1 GPU"):
        more.run("ray", gpus_per_run=1.0)


def test_when_a_pack_dies_each_of_it_goes_on_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Died(Exception):
        pass

    def get(_: object) -> None:
        raise Died("The node died. It says no more")

    library = SimpleNamespace(get=get, exceptions=SimpleNamespace(RayTaskError=KeyError, RayError=Died))
    pack = [Task(name, {}, "") for name in "ab"]
    submitted = object.__new__(executor._Submitted)
    vars(submitted).update(ray=library, over=set(), began={}, tries={"b": 2}, shares={"a": 1.0, "b": 1.0})
    vars(submitted).update(running={"reference": (pack, False)})
    again: list[tuple[list[Task], bool]] = []
    monkeypatch.setattr(submitted, "submit", lambda tasks, *, trained: again.append((tasks, trained)))
    assert [(each.id, each.reason) for each in submitted.outcomes(["reference"])] == [
        ("b", "Died: The node died (3 times); --retry failed goes on from its last checkpoint")
    ]
    assert again == [([pack[0]], False)]
    vars(submitted).update(running={"reference": ([pack[0]], True)})
    assert list(submitted.outcomes(["reference"])) == []
    assert again[1:] == [([pack[0]], True)], "trained by then, it is only scored"


@pytest.mark.slow
@pytest.mark.usefixtures("connected")
@pytest.mark.parametrize("storage", ["shared", "apart"])
def test_packs_are_trained_on_gpus_and_scored_off_them(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, storage: str
) -> None:
    """Two GPUs that exist in Ray's books alone: a run on the CPU may ask for one."""
    if storage == "apart":
        monkeypatch.setattr(executor, "MARK", ".elsewhere")
    text = SMALL.replace("[mig, dci_lasso]", f'[mig, "{HERE}:gpus"]')
    here, there = (Study.load(written(tmp_path, text), out=tmp_path / name) for name in ("here", "there"))
    here.run(processes=0)
    sent: list[tuple[int, bool]] = []
    submit = executor._Submitted.submit

    def counted(self: Any, tasks: Any, files: Any = None, *, trained: bool = False) -> None:
        sent.append((len(tasks), trained))
        submit(self, tasks, files, trained=trained)

    monkeypatch.setattr(executor._Submitted, "submit", counted)
    added = cluster.add_node(num_cpus=1, num_gpus=1, object_store_memory=MEMORY)
    try:
        runs = there.run("ray", gpus_per_run=1.0, pack=3)
    finally:
        cluster.remove_node(added)
    assert [run.state for run in runs] == ["finished"] * 6
    assert {size for size, trained in sent if not trained} == {1, 2, 3}, "of the VAEs three and one, of PCA two"
    assert sum(size for size, trained in sent if trained) >= 6
    frame = there.results()
    assert frame[f"{HERE}:gpus.score"].tolist() == [0.0] * 6
    np.testing.assert_allclose(frame["mig.score"], here.results()["mig.score"], atol=1e-4)
    assert not list((tmp_path / "there" / "runs").glob("*.part"))


@pytest.mark.slow
@pytest.mark.usefixtures("connected")
def test_runs_ask_for_their_share_of_a_gpu(tmp_path: Path) -> None:
    text = QUICK.replace("[mig, dci_lasso]", f'["{HERE}:gpus"]').replace("seeds: 2", "seeds: 1")
    study = Study.load(written(tmp_path, text), out=tmp_path / "study")
    (run,) = study.run("ray", gpus_per_run=0.25)
    assert json.loads((run.path / "scores.json").read_text())["metrics"][f"{HERE}:gpus"]["values"] == {"score": 0.25}


@pytest.mark.slow
@pytest.mark.usefixtures("connected")
def test_without_shared_storage_files_come_back_by_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The node looks for the driver's mark in vain. One run is to be trained, one is trained and to be scored."""
    monkeypatch.setattr(executor, "MARK", ".elsewhere")
    here, there = (Study.load(written(tmp_path, QUICK), out=tmp_path / name) for name in ("here", "there"))
    here.run(processes=0)
    shorter = QUICK.replace("seeds: 2", "seeds: 1").replace("mig, dci_lasso", "mig")
    (first,) = Study.load(written(tmp_path, shorter), out=tmp_path / "there").run(processes=0)
    before = (first.path / "weights.safetensors").stat().st_mtime_ns
    came: list[str] = []
    receive = executor._receive
    monkeypatch.setattr(executor, "_receive", lambda task, files: (came.append(task.id), receive(task, files)))
    there.run("ray")
    assert sorted(came) == sorted(run.id for run in there.runs())
    assert same_but_for_times(here.results(), there.results())
    assert same_files(here, there, "weights.safetensors", "codes.safetensors")
    assert (first.path / "weights.safetensors").stat().st_mtime_ns == before, "only scored, not trained again"
    assert not list((tmp_path / "there" / "runs").glob(".*"))


@pytest.mark.slow
@pytest.mark.usefixtures("connected")
@pytest.mark.parametrize("gpu", [None, 1.0])
def test_runs_go_straight_to_an_object_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gpu: float | None
) -> None:
    import fsspec

    monkeypatch.setenv("UNBRAID_DATA", str(tmp_path / "cache"))
    bucket = f"straight{gpu or ''}".replace(".", "-")
    fsspec.filesystem("s3").mkdir(bucket)
    here = Study.load(written(tmp_path, QUICK), out=tmp_path / "here")
    there = Study.load(written(tmp_path, QUICK), out=f"s3://{bucket}/study")
    here.run(processes=0)
    there.run("ray", gpus_per_run=gpu)
    shutil.rmtree(tmp_path / "cache")
    there = Study.load(f"s3://{bucket}/study")
    assert same_but_for_times(here.results(), there.results())
    assert same_files(here, there, "weights.safetensors", "codes.safetensors")


@pytest.mark.slow
@pytest.mark.usefixtures("connected")
@pytest.mark.parametrize("options", [{}, {"gpus_per_run": 1.0}])
def test_a_full_disk_on_a_node_stops_the_study(tmp_path: Path, options: dict[str, Any]) -> None:
    text = SMALL.replace("network: dense", f'network: "{HERE}:full"')
    study = Study.load(written(tmp_path, text), out=tmp_path / "study")
    with pytest.raises(DiskFull, match="no space left"):
        study.run("ray", **options)
    assert not list((tmp_path / "study").glob("failed/*"))


@pytest.mark.slow
def test_nodes_execute_of_the_current_folder_what_the_user_named_and_nothing_else(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("queue", "unbraid", "yaml"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'w').close()\nraise ImportError")
    (tmp_path / "named_here.py").write_text("from unbraid.families.networks import dense_pair as pair\n")
    text = SMALL.replace("network: dense", 'network: "named_here:pair"').replace("seeds: 2", "seeds: 1")
    monkeypatch.chdir(tmp_path)
    study = Study.load(written(tmp_path, text), out=tmp_path / "study")
    assert {run.state for run in study.run("ray", address=cluster.address)} == {"finished"}
    assert not (tmp_path / "executed").exists()
