"""What trackers wrote, read back from their files: event files, W&B's offline log, MLflow's database."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from tests.studies.study_examples import planned_runs
from unbraid import load_run, train
from unbraid.studies import tracking
from unbraid.studies.study import Study
from unbraid.studies.tracking import TRACKERS, Tracker, TrackingWarning, track_runs, wandb

YAML = """
name: small study
dataset: {name: square, positions: 8, shrink: 4}
families:
  - {name: beta_vae, beta: [1, 4], network: dense, latents: 2}
  - {name: vae, network: dense, latents: 2, learning_rate: 1, likelihood: gaussian, sigma: 1e-3, steps: 40}
steps: 12
batch_size: 8
precision: float32
device: cpu
metrics: [mig]
track: [tensorboard, wandb, mlflow]
"""


def opened(folder: Path, text: str = YAML) -> Study:
    (folder / "study.yaml").write_text(text)
    return Study.load(folder / "study.yaml", out=folder / "out")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Two runs that finished and one that diverged."""
    study = opened(tmp_path_factory.mktemp("study"))
    study.run(processes=0)
    assert [run.state for run in study.runs()] == ["finished", "finished", "diverged"]
    return study


def scores(run: Any) -> dict[str, float]:
    return json.loads((run.path / "scores.json").read_text())["metrics"]["mig"]["values"]


@pytest.mark.lengthy
def test_tensorboard(study):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData  # pyright: ignore[reportAttributeAccessIssue]

    folder = study.require_folder() / "tracking" / "tensorboard"
    for run in study.runs():
        place = folder / run.family / run.setting.replace(" ", "_") / f"seed-{run.seed}-{run.id}"
        events = EventAccumulator(str(place), size_guidance={"scalars": 0}).Reload()
        curves = load_run(run.path).curves()
        for name in curves.keys() - {"step"}:
            points = events.Scalars(f"train/{name}")
            assert [point.step for point in points] == curves["step"].tolist()
            assert [point.value for point in points] == pytest.approx(curves[name].tolist(), rel=1e-6)
        for name, value in scores(run).items() if run.state == "finished" else ():
            assert events.Scalars(f"score/mig.{name}")[0].value == pytest.approx(value)
        content = events.PluginTagToContent("hparams")["_hparams_/session_start_info"]
        settings = HParamsPluginData.FromString(content).session_start_info.hparams
        assert settings["latents"].number_value == run.hyperparameters["latents"]
        assert settings["family"].string_value == run.family
        assert settings["dataset"].string_value == "square"
    assert len(list(folder.rglob("events.*"))) == 3


def wandb_records(folder: Path) -> Iterator[Any]:
    """The offline log: seven bytes, then in blocks of 32 KiB pieces with checksum (4 bytes), length (2) and type (1).

    A piece of type 1 is a whole record; others are the first (2), middle (3) and last (4) of one.
    """
    from wandb.proto.wandb_internal_pb2 import Record  # pyright: ignore[reportAttributeAccessIssue]

    (path,) = folder.glob("*.wandb")
    data = path.read_bytes()
    assert data[:4] == b":W&B"
    place, record = 7, b""
    while place + 7 <= len(data):
        if 32768 - place % 32768 < 7:
            place += 32768 - place % 32768
        length, kind = int.from_bytes(data[place + 4 : place + 6], "little"), data[place + 6]
        record += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):
            yield Record.FromString(record)
            record = b""


def entries(items: Any) -> dict[str, Any]:
    return {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in items}


@pytest.mark.lengthy
def test_wandb(study):
    folder = study.require_folder() / "tracking" / "wandb" / "wandb"
    for run in study.runs():
        (place,) = folder.glob(f"offline-run-*-{run.id}")
        records = list(wandb_records(place))
        (about,) = [record.run for record in records if record.WhichOneof("record_type") == "run"]
        assert (about.run_id, about.project, about.run_group) == (
            run.id, "small study", f"{run.family} {run.setting}".strip(),
        )  # fmt: skip
        config = entries(about.config.update)
        assert {name: config[name] for name in run.hyperparameters} == run.hyperparameters
        rows = [entries(record.history.item) for record in records if record.WhichOneof("record_type") == "history"]
        curves = load_run(run.path).curves()
        assert [row["step"] for row in rows] == curves["step"].tolist()
        summary: dict[str, Any] = {}
        for record in records:
            if record.WhichOneof("record_type") == "summary":
                summary |= entries(record.summary.update)
        assert summary["state"] == run.state
        (end,) = [record.exit for record in records if record.WhichOneof("record_type") == "exit"]
        assert end.exit_code == (run.state == "diverged")
        if run.state == "finished":
            for name in curves:
                key = name if name == "step" else f"train/{name}"
                assert [row[key] for row in rows] == pytest.approx(curves[name].tolist())
            assert {name: summary[f"mig.{name}"] for name in scores(run)} == scores(run)


class Session:
    """A run of W&B that is sent; `sent` is what the server has of runs that it knows."""

    said: ClassVar[list[tuple[str, Any]]]
    sent: ClassVar[dict[str, dict[str, Any]]]

    def __init__(self, **given: Any) -> None:
        self.resumed = given["id"] in self.sent
        self.summary = self.sent.setdefault(given["id"], {})
        self.said.append(("init", given))

    def define_metric(self, *_: Any, **__: Any) -> None: ...

    def log(self, row: dict[str, float]) -> None:
        self.summary.update(row)
        self.said.append(("log", row))

    def finish(self, exit_code: int = 0) -> None:
        self.said.append(("finish", exit_code))


@pytest.fixture
def online(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """What a server of W&B is told."""
    Session.said, Session.sent = [], {}
    stub = SimpleNamespace(init=Session, Settings=lambda **_: None)
    monkeypatch.setattr("unbraid.studies.tracking.wandb.require", lambda *_: stub)
    monkeypatch.setenv("WANDB_MODE", "online")
    return Session.said


@pytest.mark.lengthy
def test_wandb_is_told_while_a_run_trains(study: Study, tmp_path: Path, online: list[tuple[str, Any]]) -> None:
    said = online
    run = study.runs()[0]
    told = opened(tmp_path, YAML.replace("[tensorboard, wandb, mlflow]", "[wandb]"))
    part = told.part()
    planned = {each.id: each for each in planned_runs(part)}
    with tracking.tracked(part, planned, told.runs()) as listener:
        listener.watch(run.id, 0, {})  # nothing to say yet
        assert not said
        for step in (20, 20, 40):
            listener.watch(run.id, step, {"kl": 2.0 + step})
        assert [kind for kind, _ in said] == ["init", "log", "log"]  # before it ends
        assert (said[0][1]["id"], said[0][1]["mode"], said[0][1]["config"]["steps"]) == (run.id, "online", 12)
        assert said[2][1] == {"step": 40, "train/kl": 42.0}
        listener(run)
        assert said[3:] == [("finish", 0)]  # and not once more from the beginning
        assert Session.sent[run.id]["mig.score"] == scores(run)["score"]
        listener.watch(study.runs()[1].id, 20, {"kl": 1.0})
    assert said[-1] == ("finish", 1)  # interrupted


@pytest.mark.lengthy
def test_no_step_is_sent_twice(study: Study, tmp_path: Path, online: list[tuple[str, Any]]) -> None:
    run = study.runs()[2]
    record = tracking.tracked_run("small study", run)
    TRACKERS["wandb"].write(record, tmp_path)
    TRACKERS["wandb"].write(record, tmp_path)  # it got another metric
    live = wandb.Live("small study", SimpleNamespace(**vars(run) | {"config": run.config}), tmp_path)  # pyright: ignore
    for step in (record.steps[-1], record.steps[-1] + 20):  # a training that goes on from an earlier checkpoint
        live.log(int(step), {"kl": 1.0})
    assert len(record.steps) > 1
    steps = [row["step"] for kind, row in online if kind == "log"]
    assert steps == [*record.steps.tolist(), record.steps[-1] + 20]


@pytest.mark.lengthy
def test_a_run_that_is_trained_again_ends_though_its_scores_are_known(
    study: Study, tmp_path: Path, online: list[tuple[str, Any]]
) -> None:
    told, run = opened(tmp_path, YAML.replace("[tensorboard, wandb, mlflow]", "[wandb]")), study.runs()[0]
    planned = {each.id: each for each in planned_runs(told.part())}
    for _ in range(2):
        with tracking.tracked(told.part(), planned, []) as listener:
            listener.watch(run.id, 20, {"kl": 1.0})
            listener(run)
    assert [each for each in online if each[0] == "finish"] == [("finish", 0)] * 2


@pytest.mark.lengthy
def test_damaged_files_are_warnings_and_stop_nothing(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    text = YAML.replace("[tensorboard, wandb, mlflow]", "[tensorboard]")
    copy, runs = opened(tmp_path, text), study.runs()
    (tmp_path / "out" / "tracking").mkdir(parents=True)
    (tmp_path / "out" / "tracking" / "tensorboard.json").write_text('{"a')
    shutil.copytree(runs[0].path, tmp_path / "run")
    (tmp_path / "run" / "curves.parquet").write_bytes(b"")
    part, seen = copy.part(), Tracker(lambda record, _: told.append(record.run.id), ())
    planned = {each.id: each for each in planned_runs(part)}
    monkeypatch.setattr(tracking, "TRACKERS", MappingProxyType({"tensorboard": seen}))
    listener = tracking.Tracking(part, planned)
    with pytest.warns(TrackingWarning, match=rf"tensorboard was not told of run {runs[0].id} \("):
        listener(replace(runs[0], path=tmp_path / "run"))
    listener(runs[1])
    assert told == [runs[1].id]
    assert json.loads((tmp_path / "out" / "tracking" / "tensorboard.json").read_text()).keys() >= {runs[1].id}


def mlflow_rows(study: Study, query: str, *values: Any) -> list[Any]:
    with closing(sqlite3.connect(study.require_folder() / "tracking" / "mlflow" / "mlflow.db")) as database:
        return database.execute(query, values).fetchall()


@pytest.mark.lengthy
def test_mlflow(study):
    assert mlflow_rows(study, "select name from experiments where experiment_id > 0") == [("small study",)]
    assert len(mlflow_rows(study, "select run_uuid from runs")) == 3
    for run in study.runs():
        ((name,),) = mlflow_rows(study, "select run_uuid from tags where key = 'unbraid_run' and value = ?", run.id)
        ((status,),) = mlflow_rows(study, "select status from runs where run_uuid = ?", name)
        assert status == ("FINISHED" if run.state == "finished" else "FAILED")
        settings = dict(mlflow_rows(study, "select key, value from params where run_uuid = ?", name))
        assert {key: settings[key] for key in run.hyperparameters} == {
            key: str(value) for key, value in run.hyperparameters.items()
        }
        points = "select step, value from metrics where run_uuid = ? and key = ? order by step"
        curves = load_run(run.path).curves()
        found = mlflow_rows(study, points, name, "train/loss/vae")
        assert [step for step, _ in found] == curves["step"].tolist()
        assert [value for _, value in found] == pytest.approx(curves["loss/vae"].tolist())
        if run.state == "finished":
            assert mlflow_rows(study, points, name, "mig.score") == [(12, scores(run)["score"])]


def written(study: Study) -> dict[str, int]:
    folder = study.require_folder() / "tracking"
    files = [*folder.rglob("events.*"), *folder.rglob("*.wandb"), folder / "mlflow" / "mlflow.db"]
    return {str(path): path.stat().st_mtime_ns for path in files}


@pytest.mark.lengthy
def test_what_was_told_is_not_told_again_and_what_was_not_is(study, tmp_path):
    before = written(study)
    study.run(processes=0)
    assert written(study) == before
    shutil.copytree(study.require_folder() / "runs", tmp_path / "out" / "runs")
    shutil.copy(study.require_folder() / "study.json", tmp_path / "out")
    # As if it had been killed before the trackers were told: nothing is trained any more, and one tracker asked for.
    late = opened(tmp_path, YAML.replace("[tensorboard, wandb, mlflow]", "[tensorboard]"))
    late.run(processes=0)
    assert len(written_events(late)) == 3
    richer = opened(
        tmp_path, YAML.replace("[tensorboard, wandb, mlflow]", "[tensorboard]").replace("[mig]", "[mig, sap]")
    )
    first = written_events(late)
    richer.run(processes=0)
    changed = written_events(richer)
    assert len(changed) == 3
    assert len(set(changed.values()) & set(first.values())) == 1  # the scores of the one that diverged stay none


def written_events(study: Study) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in (study.require_folder() / "tracking").rglob("events.*")}


def test_a_tracker_that_fails_stops_nothing_and_is_asked_again(tmp_path, monkeypatch):
    told: list[str] = []

    def refuse(*_: object) -> None:
        raise OSError("the tracker\nis away")

    text = YAML.replace("[tensorboard, wandb, mlflow]", "[tensorboard]").replace("beta: [1, 4]", "beta: 1")
    study = opened(tmp_path, text)
    monkeypatch.setattr(tracking, "TRACKERS", MappingProxyType({"tensorboard": Tracker(refuse, ())}))
    with pytest.warns(
        TrackingWarning, match=r"tensorboard was not told of run \w{16} \(OSError: the tracker is away\)"
    ):
        study.run(processes=0)
    assert study.runs()[0].state == "finished"
    seen = Tracker(lambda record, _: told.append(record.name), ())
    monkeypatch.setattr(tracking, "TRACKERS", MappingProxyType({"tensorboard": seen}))
    study.run(processes=0)
    assert [(name.partition(" ")[0], name[-6:]) for name in told] == [("beta_vae", "seed 0"), ("vae", "seed 0")]


def test_runs_of_train_are_written_once_however_often_the_command_is_repeated(tmp_path: Path) -> None:
    event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    settings: dict[str, Any] = {"network": "dense", "steps": 4, "batch_size": 8, "processes": 0}
    images = np.random.default_rng(0).integers(0, 256, (60, 8, 8, 1), dtype=np.uint8)
    (run,) = train("vae", images, out=tmp_path, **settings)
    for _ in range(2):
        (place,) = track_runs([run], ["tensorboard"], tmp_path)
    (events,) = place.rglob("events.*")
    written = event_accumulator.EventAccumulator(str(events.parent)).Reload().Scalars("train/loss/vae")
    np.testing.assert_allclose([point.value for point in written], run.curves()["loss/vae"], rtol=1e-6)
