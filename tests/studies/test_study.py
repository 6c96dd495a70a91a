"""A study from its YAML to its table: what it gives, how it grows, what it survives."""

import errno
import json
import os
import random
import resource
import shutil
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import unbraid
from tests.processes import forkserver, workers_of
from tests.studies import study_examples as examples
from tests.studies.study_examples import SMALL, same_but_for_times, written
from unbraid import Study, load_run
from unbraid.base.errors import ModelsFailed
from unbraid.cli.app import app
from unbraid.files import marks
from unbraid.files.run_files import CONFIG, SCORES, STATUS
from unbraid.files.whole_files import DiskFull
from unbraid.metrics import METRICS
from unbraid.studies import run_scores as scores
from unbraid.studies import store
from unbraid.studies.shards import claimed
from unbraid.studies.status import remembered, study_status
from unbraid.studies.study_record import StudyProgress


def here(folder: Path, text: str = SMALL, **arguments: object) -> Study:
    """The study run in this process, without workers."""
    folder.mkdir(exist_ok=True)
    study = Study.load(written(folder, text), out=folder / "out")
    study.run(processes=0, **arguments)  # pyright: ignore[reportArgumentType]
    return study


SHORT = "latents=3, steps=6, batch_size=8"
DENSE = "latents=3, network=dense, beta={}, steps=6, batch_size=8"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return here(tmp_path_factory.mktemp("whole"))


@pytest.fixture
def copy(whole: Study, tmp_path: Path) -> Path:
    """A folder with the YAML, and the results that may be spoilt."""
    shutil.copytree(whole.folder, tmp_path / "out")
    written(tmp_path)
    return tmp_path


def times(folder: Path, name: str = STATUS) -> dict[str, int]:
    return {path.parent.name: path.stat().st_mtime_ns for path in folder.glob(f"out/runs/*/{name}")}


def test_every_run_is_a_row_of_what_its_folder_holds(whole):
    runs, frame = whole.runs(), whole.results()
    assert [(run.family, run.setting, run.seed, run.state) for run in runs] == [
        ("beta_vae", DENSE.format(1), 0, "finished"), ("beta_vae", DENSE.format(1), 1, "finished"),
        ("beta_vae", DENSE.format(4), 0, "finished"), ("beta_vae", DENSE.format(4), 1, "finished"),
        ("pca", SHORT, 0, "finished"), ("pca", SHORT, 1, "finished"),
    ]  # fmt: skip
    assert list(frame.run) == [run.id for run in runs]
    assert list(frame.columns[:25]) == [
        "run", "family", "setting", "seed", "state", "reason", "dataset", "dataset_options", "content", "steps",
        "batch_size", "hold_out", "device", "precision", "training_version", "unbraid", "commit", "torch", "numpy",
        "processor", "accelerator", "computed_with", "ranked_by", "above_baselines", "seconds",
    ]  # fmt: skip
    for run, (_, row) in zip(runs, frame.iterrows(), strict=True):
        loaded = load_run(run.path)
        card = unbraid.score(loaded.codes(), metrics=["mig", "dci_lasso"])
        assert row["mig.score"] == card["mig"].score
        assert row["dci_lasso.informativeness"] == card["dci_lasso"].informativeness
        assert row["factors"] == card.diagnosis.column
        assert row["hyper.latents"] == 3
        config = loaded.config
        assert json.loads(row["dataset_options"]) == config["dataset"]["options"] == {"positions": 8, "shrink": 4}
        assert [row[name] for name in ("dataset", "content", "steps", "batch_size", "device", "precision")] == [
            "square", config["dataset"]["content"], 6, 8, "cpu", "float32",
        ]  # fmt: skip
        assert (row["training_version"], row["unbraid"]) == (config["training_version"], unbraid.__version__)
        assert json.loads(row["computed_with"]) == {name: dict(each) for name, each in card.computed_with.items()}
        assert pd.isna(row["hold_out"])
        assert pd.isna(row["ranked_by"])
        if run.family == "beta_vae":
            assert row["train.kl"] == loaded.curves()["kl"][-1]
            assert DENSE.format(f"{row['hyper.beta']:g}") == run.setting
        else:
            assert np.isnan(row["hyper.beta"])
            assert np.isnan(row["train.kl"])
    assert frame["mig.score"].nunique() >= 5  # the seeds of PCA are the same model
    kept = pd.read_parquet(whole.folder / store.RESULTS)
    assert same_but_for_times(kept, frame)
    assert kept["seconds"].equals(frame["seconds"])


def test_a_run_is_the_one_that_train_makes(whole, tmp_path):
    settings = {"beta": 4, "network": "dense", "latents": 3, "steps": 6, "batch_size": 8, "precision": "float32"}
    source = {"name": "square", "positions": 8, "shrink": 4}
    (run,) = unbraid.train("beta_vae", source, seeds=[1], out=tmp_path, device="cpu", processes=0, **settings)
    same = whole.folder / "runs" / run.path.name
    for name in ("weights.safetensors", "codes.safetensors", "config.json"):
        assert (same / name).read_bytes() == (run.path / name).read_bytes()


@pytest.mark.slow
def test_workers_come_to_the_same_table_though_one_is_killed_at_work(whole, tmp_path):
    written(tmp_path)
    study = Study.load(tmp_path / "study.yaml", out=tmp_path / "out")
    sent: list[StudyProgress] = []
    killed: list[int] = []

    def report(progress: StudyProgress) -> None:
        sent.append(progress)
        if progress.steps_taken and not killed:
            killed.extend(workers_of(os.getpid()))
            os.kill(killed[0], signal.SIGKILL)

    study.run(processes=1, progress=report)
    assert len(killed) == 1
    assert same_but_for_times(study.results(), whole.results())
    assert (sent[0].n_done, sent[-1].n_done, sent[-1].n_runs) == (0, 6, 6)
    assert sent[-1].done_steps == sent[-1].steps == 36
    assert {step for one in sent for step in one.steps_taken.values()} <= set(range(7))


def test_what_is_added_later_is_all_that_is_done(copy):
    before, scored = times(copy), times(copy, SCORES)
    text = SMALL.replace("seeds: 2", "seeds: 3").replace("beta: [1, 4]", "beta: [1, 4, 16]")
    study = here(copy, text)
    after = times(copy)
    assert len(after) == 12
    assert {name: after[name] for name in before} == before
    assert {name: when for name, when in times(copy, SCORES).items() if name in scored} == scored
    assert list(study.results()["state"]) == ["finished"] * 12
    fewer = here(copy, SMALL.replace("seeds: 2", "seeds: [1]"))
    assert times(copy) == after
    assert len(fewer.results()) == 3
    assert study_status(fewer.snapshot()).left == 9
    assert same_but_for_times(here(copy).results(), pd.read_parquet(copy / "out" / store.RESULTS))


def test_a_metric_added_later_is_computed_and_the_others_are_kept(copy, monkeypatch):
    trained = times(copy)
    kept = {path: json.loads(path.read_text()) for path in copy.glob(f"out/runs/*/{SCORES}")}
    study = here(copy, SMALL.replace("dci_lasso]", "dci_lasso, sap, 'tests.studies.study_examples:spread']"))
    assert times(copy) == trained
    for path, before in kept.items():
        after = json.loads(path.read_text())
        assert list(after["metrics"]) == ["mig", "dci_lasso", "sap", "tests.studies.study_examples:spread"]
        assert {name: after["metrics"][name] for name in before["metrics"]} == before["metrics"]
    frame = study.results()
    codes = load_run(study.runs()[0].path).codes()
    assert frame["tests.studies.study_examples:spread.score"][0] == pytest.approx(codes.codes.std())
    assert frame["sap.score"][0] == unbraid.score(codes, metrics=["sap"])["sap"].score

    newer = {**METRICS, "mig": replace(METRICS["mig"], version=METRICS["mig"].version + 1)}
    monkeypatch.setattr("unbraid.metrics._shared.metric_arguments.METRICS", newer)
    here(copy)
    for path, before in kept.items():
        after = json.loads(path.read_text())["metrics"]
        assert after["mig"]["version"] == newer["mig"].version
        assert after["dci_lasso"] == before["metrics"]["dci_lasso"]


def _run_to_its_death(folder: Path, files: int) -> None:
    """Kills itself when it has touched so many files of the results."""
    left = [files]

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if event in ("open", "os.rename", "os.mkdir", "os.remove") and f"{folder / 'out'}/" in str(arguments[0]):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    here(folder)


def _run_with_small_files(folder: Path) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, resource.RLIM_INFINITY))
    try:
        here(folder)
    except DiskFull:
        os._exit(28)
    except OSError as error:
        os._exit(29 if error.errno == errno.EFBIG else 30)


def _hold(folder: Path, held: object) -> None:
    with claimed(folder):
        held.set()  # pyright: ignore[reportAttributeAccessIssue]
        time.sleep(60)


@pytest.fixture(scope="module")
def processes():
    return forkserver()


DRAWN = random.Random(4)
MOMENTS = {"twice": [70, 40], "five times": [DRAWN.randint(10, 90) for _ in range(5)]}


@pytest.mark.lengthy
@pytest.mark.parametrize("often", ["twice", pytest.param("five times", marks=pytest.mark.slow)])
def test_killed_at_any_moment_it_comes_to_the_same_table(whole, tmp_path, processes, often):
    """Killed wherever it opens, renames or makes a file, at most one run apart."""
    kept: dict[str, int] = {}
    for moment in MOMENTS[often]:
        process = processes.Process(target=_run_to_its_death, args=(tmp_path, moment))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        done = times(tmp_path)
        assert kept.items() <= done.items()
        kept = {name: when for name, when in done.items() if not name.endswith(".part")}
    assert 0 < len(kept) < 6
    study = here(tmp_path)
    assert kept.items() <= times(tmp_path).items()
    assert same_but_for_times(study.results(), whole.results())
    assert not list(tmp_path.glob("out/runs/*.part"))
    assert not list(tmp_path.glob("out/runs/*/.*"))
    assert not list(tmp_path.glob("out/failed/*"))


@pytest.mark.lengthy
def test_a_full_disk_stops_it_with_one_line_and_nothing_is_lost(whole, tmp_path, processes):
    written(tmp_path)
    process = processes.Process(target=_run_with_small_files, args=(tmp_path,))
    process.start()
    process.join(300)
    assert process.exitcode == 28
    assert not times(tmp_path)
    assert not list(tmp_path.glob("out/failed/*"))
    assert same_but_for_times(here(tmp_path).results(), whole.results())


def written_at(folder: Path) -> dict[Path, int]:
    """When each file was written last, but for locks, which some versions of filelock touch as they try them."""
    files = [path for path in folder.rglob("*") if not path.name.startswith(".lock")]
    return {path: path.stat().st_mtime_ns for path in files}


@pytest.mark.lengthy
def test_a_second_one_on_the_same_folder_is_turned_away(copy, processes):
    held = processes.Event()
    process = processes.Process(target=_hold, args=(copy / "out", held), daemon=True)
    process.start()
    assert held.wait(300)
    before = written_at(copy / "out")
    with pytest.raises(ValueError, match="out: another process is at work on this study"):
        here(copy, SMALL.replace("seeds: 2", "seeds: 3"))
    assert written_at(copy / "out") == before
    process.kill()
    process.join()
    here(copy)


BAD = """
  - {name: vae, network: "tests.studies.study_examples:%s", latents: 3}
seeds: 2"""


def bad(name: str) -> str:
    return SMALL.replace("\nseeds: 2", BAD % name)


def test_a_run_that_fails_is_kept_with_its_reason_and_stops_no_other(whole, tmp_path, monkeypatch):
    study = here(tmp_path, bad("refusing"))
    runs = study.runs()
    assert [run.state for run in runs] == ["finished"] * 6 + ["failed"] * 2
    assert [run.reason for run in runs[6:]] == ["RuntimeError: the network will not"] * 2
    frame = study.results()
    assert frame["mig.score"].isna().tolist() == [False] * 6 + [True] * 2
    assert frame["reason"][6] == "RuntimeError: the network will not"
    shared = [name for name in whole.results() if name not in ("seconds", "reason", "computed_with", "ranked_by")]
    done = frame[shared][:6].astype({"n_rows": int})  # a column that lacks some is of floats
    pd.testing.assert_frame_equal(done, whole.results()[shared], check_exact=True)
    kept = json.loads((study.folder / "failed" / f"{runs[6].id}.json").read_text())
    assert {name: kept[name] for name in ("id", "family", "setting", "seed", "attempts")} == {
        "id": runs[6].id, "family": "vae", "setting": runs[6].setting, "seed": 0,
        "attempts": 1,
    }  # fmt: skip
    assert "in _refuse" in kept["details"]

    done: list[str] = []
    monkeypatch.setattr(examples, "_refuse", lambda: done.append("tried"))
    here(tmp_path, bad("refusing"))
    assert not done
    monkeypatch.undo()
    here(tmp_path, bad("refusing"), retry="failed")
    assert json.loads((study.folder / "failed" / f"{runs[6].id}.json").read_text())["attempts"] == 2


@pytest.mark.lengthy
def test_what_failed_and_then_succeeds_is_forgotten(tmp_path, monkeypatch):
    study = here(tmp_path, bad("refusing"))
    assert len(list((study.folder / "failed").iterdir())) == 2
    monkeypatch.setattr(examples, "_refuse", lambda: None)
    study = here(tmp_path, bad("refusing"), retry="failed")
    assert {run.state for run in study.runs()} == {"finished"}
    assert not list((study.folder / "failed").iterdir())


def test_a_metric_that_fails_takes_no_model_out_of_the_study(whole, tmp_path, monkeypatch):
    broken = "tests.studies.study_examples:broken"
    reason = "ZeroDivisionError: nothing to divide by"
    text = SMALL.replace("dci_lasso]", f"'{broken}', dci_lasso]\nudr: {{similarity: spearman, compare: all}}")
    study = here(tmp_path, text)
    runs, frame = study.runs(), study.results()
    assert [(run.state, run.reason) for run in runs] == [("finished", f"metric {broken}: {reason}")] * 6
    assert [dict(run.failed_metrics) for run in runs] == [{broken: reason}] * 6
    assert not (study.folder / "failed").exists()
    assert frame[f"{broken}.score"].isna().all()
    assert frame["reason"].tolist() == [run.reason for run in runs]
    assert frame["udr.score"].notna().all()
    shared = [name for name in whole.results() if name not in ("seconds", "reason", "computed_with", "ranked_by")]
    pd.testing.assert_frame_equal(frame[shared], whole.results()[shared], check_exact=True)

    trained, scored = times(tmp_path), times(tmp_path, SCORES)
    monkeypatch.setattr(examples, "broken", examples.spread)  # of the same file: not a change
    here(tmp_path, text)
    assert times(tmp_path, SCORES) == scored
    study = here(tmp_path, text, retry="failed")
    assert times(tmp_path) == trained
    assert {(run.state, run.reason, not run.failed_metrics) for run in study.runs()} == {("finished", None, True)}
    spreads = [load_run(run.path).codes().codes.std() for run in study.runs()]
    assert study.results()[f"{broken}.score"].tolist() == pytest.approx(spreads)


def test_a_gap_that_changes_gives_new_numbers(tmp_path):
    text = (
        SMALL.replace("[mig, dci_lasso]", "[mig, zero_shot]")
        .replace("beta: [1, 4]", "beta: 1")
        .replace("seeds: 2", "seeds: 1")
    )
    found = []
    for gap in ("y > 5 and x > 5", "y > 3 and x > 3"):
        study = here(tmp_path, f"{text}\nzero_shot: {{held_out: '{gap}', n_rows: 64}}")
        codes = load_run(study.runs()[0].path).codes()
        frame = study.results()
        assert frame["zero_shot.score"][0] == unbraid.score(codes, metrics="zero_shot", held_out=gap)["zero_shot"].score
        found.append(frame)
    assert (found[0]["zero_shot.score"] != found[1]["zero_shot.score"]).all()
    assert found[0]["mig.score"].equals(found[1]["mig.score"])

    # Until it is run, a study with another gap has no number rather than that of another gap.
    (tmp_path / "out" / "study.yaml").write_text(f"{text}\nzero_shot: {{held_out: 'y > 4', n_rows: 64}}")
    looked_at = Study.load(tmp_path / "out")
    assert {run.state for run in looked_at.runs()} == {"waiting"}
    assert looked_at.results()["mig.score"].equals(found[0]["mig.score"])
    assert "zero_shot.score" not in looked_at.results()


def _run_long(folder: Path) -> None:
    text = SMALL.replace("mig, dci_lasso", "'tests.studies.study_examples:slow'")
    Study.load(written(folder, text), out=folder / "out").run(processes=1)


@pytest.mark.slow
def test_killed_outright_it_leaves_no_worker_behind(tmp_path, processes):
    """Killed while its worker computes a metric for a minute, and has nothing to say."""
    process = processes.Process(target=_run_long, args=(tmp_path,))
    process.start()
    begun = time.monotonic()
    while not times(tmp_path):
        assert process.is_alive()
        assert time.monotonic() - begun < 300
        time.sleep(0.05)
    workers = workers_of(process.pid)
    assert len(workers) == 1
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    begun = time.monotonic()
    while Path(f"/proc/{workers[0]}/exe").exists():
        assert time.monotonic() - begun < 60
        time.sleep(0.05)
    assert {run.state for run in Study.load(tmp_path / "out").runs()} == {"waiting"}


def test_damaged_scores_are_computed_again(copy):
    study = Study.load(copy / "out")
    run = study.runs()[0]
    (run.path / SCORES).write_text("{")
    for _ in range(2):
        with pytest.warns(UserWarning, match=r"scores.json: not the scores of .*counts as missing"):
            assert study.runs()[0].state == "waiting"
    with pytest.warns(UserWarning, match=r"scores.json: not the scores of .*counts as missing"):
        here(copy)
    assert study.runs()[0].state == "finished"


@pytest.mark.parametrize("name", [STATUS, CONFIG])
def test_a_run_without_one_of_its_records_is_a_failed_one_among_the_others(whole, copy, name):
    run = Study.load(copy / "out").runs()[0]
    (run.path / name).unlink()
    said = f"{run.path / name} is damaged (it is missing); delete the folder and train again"
    for _ in ("read", "remembered"):
        done = CliRunner().invoke(app, ["study", "status", str(copy / "out"), "--json", "-"])
        assert done.exit_code == 3
        assert [(each["state"], each["reason"]) for each in json.loads(done.stdout)] == [
            ("failed", said), *[("finished", None)] * 5,
        ]  # fmt: skip
    frame, before = Study.load(copy / "out").results(), whole.results()
    assert frame["mig.score"].tolist()[1:] == before["mig.score"].tolist()[1:]
    ranked = CliRunner().invoke(app, ["rank", str(copy / "out"), "--json", "-"])
    assert isinstance(ranked.exception, ModelsFailed)
    assert json.loads(ranked.stdout)["left_out"] == {run.id: f"failed: {said}"}
    shutil.rmtree(run.path)
    assert {each.state for each in here(copy).runs()} == {"finished"}


def test_a_folder_without_records_that_the_study_does_not_list_stops_nothing(copy):
    study = Study.load(copy / "out")
    shutil.copytree(study.runs()[0].path, copy / "out/runs/0123456789abcdef")
    (copy / "out/runs/0123456789abcdef" / STATUS).unlink()
    assert study_status(study.snapshots()[0]).left == 0


@pytest.mark.parametrize("name", [STATUS, CONFIG])
def test_a_damaged_record_costs_its_own_run(whole, copy, name):
    runs = Study.load(copy / "out").runs()
    shutil.copytree(runs[1].path, copy / "out/runs/0123456789abcdef")  # not of this study, and damaged as well
    for path in (runs[1].path, copy / "out/runs/0123456789abcdef"):
        (path / name).write_text("{")
    said = f"{runs[1].path / name} is damaged ("
    out, picture = str(copy / "out"), str(copy / "boxes.svg")
    for _ in ("read", "remembered"):
        done = CliRunner().invoke(app, ["study", "status", out, "--json", "-"])
        rows = [(each["state"], (each["reason"] or "")[: len(said)]) for each in json.loads(done.stdout)]
        assert (done.exit_code, rows) == (3, [("finished", ""), ("failed", said), *[("finished", "")] * 4])
    frame, before = Study.load(out).results(), whole.results()
    assert frame["mig.score"].drop(1).tolist() == before["mig.score"].drop(1).tolist()
    for command in (["rank", out, "--json", "-"], ["compare", out, "--json", "-"], ["report", out],
                    ["figure", "boxes", out, "--out", picture]):  # fmt: skip
        done = CliRunner().invoke(app, command)
        assert isinstance(done.exception, ModelsFailed), command
        assert not done.exception.every
        (line,) = done.exception.lines
        assert line.startswith(said)
        if "--json" in command:
            (row,) = json.loads(done.stdout)["failed"]
            assert row["path"] == str(runs[1].path)
            assert row["reason"].startswith(said)
    for run in runs:
        (run.path / name).write_text("{")
    for command in (["rank", out], ["compare", out], ["report", out], ["figure", "boxes", out, "--out", picture]):
        done = CliRunner().invoke(app, command)
        assert isinstance(done.exception, ModelsFailed), command
        assert done.exception.every
        assert done.exception.lines[0].startswith(f"{runs[0].path / name} is damaged (")
        assert done.exception.lines[0].endswith("(and 5 more alike)")
    for run in runs:
        shutil.rmtree(run.path)
    assert {each.state for each in here(copy).runs()} == {"finished"}


def spoilt(path: Path) -> None:
    """Other content of the same length and time."""
    whole, about = path.read_bytes(), path.stat()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))


def test_a_damaged_run_whose_folder_is_deleted_is_trained_again_by_the_same_command(whole, copy, monkeypatch):
    monkeypatch.setattr(marks, "SETTLED", 0.0)  # files of this very moment count as old enough
    run = Study.load(copy / "out").runs()[0]
    spoilt(run.path / "codes.safetensors")
    more = SMALL.replace("dci_lasso]", "dci_lasso, sap]")
    failed = here(copy, more).runs()[0]
    assert failed.state == "failed"
    assert "codes.safetensors is damaged" in failed.reason
    assert "delete the folder and train again" in failed.reason
    trained = times(copy)
    assert here(copy, more).runs()[0].state == "failed"  # a folder that is there waits for --retry failed
    shutil.rmtree(run.path)
    assert Study.load(copy / "out").runs()[0].state == "waiting"
    assert remembered(copy / "out")[0].runs[0].state == "waiting"
    study = here(copy, more)
    assert {each.state for each in study.runs()} == {"finished"}
    assert {name: when for name, when in times(copy).items() if name != run.id} == {
        name: when for name, when in trained.items() if name != run.id
    }
    assert study.results()["mig.score"].tolist() == whole.results()["mig.score"].tolist()
    assert not list((copy / "out" / store.FAILED).iterdir())


@pytest.mark.parametrize("name", ["weights.safetensors", "codes.safetensors", "curves.parquet"])
def test_status_again_compares_checksums(copy, name, monkeypatch):
    monkeypatch.setattr(marks, "SETTLED", 0.0)
    run = Study.load(copy / "out").runs()[1]
    spoilt(run.path / name)
    told = []
    for options in ([], ["--again"], []):
        done = CliRunner().invoke(app, ["study", "status", str(copy / "out"), "--json", "-", *options])
        assert done.exit_code == (3 if told else 0)
        told.append([(each["state"], each["reason"]) for each in json.loads(done.stdout)])
    assert told[0] == [("finished", None)] * 6
    assert told[1] == told[2]  # and it is remembered
    assert [state for state, _ in told[1]] == ["finished", "failed", *["finished"] * 4]
    assert told[1][1][1].startswith(f"{run.path / name} is damaged (its checksum is that of other content")


def test_scores_that_are_done_outlast_an_interruption(whole, copy):
    (run,) = [run for run in Study.load(copy / "out").runs() if (run.setting, run.seed) == (DENSE.format(4), 1)]
    (run.path / SCORES).unlink()

    def stop(metric: str, done: int, total: int) -> None:
        assert total == 2
        if metric == "dci_lasso":
            assert done == 1
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scores.complete_scores(run.path, ["mig", "dci_lasso"], progress=stop)
    kept = json.loads((run.path / SCORES).read_text())
    assert list(kept["metrics"]) == ["mig"]
    assert [each.state for each in Study.load(copy / "out").runs()].count("waiting") == 1
    study = here(copy)
    assert same_but_for_times(study.results(), whole.results())
    assert json.loads((run.path / SCORES).read_text())["metrics"]["mig"] == kept["metrics"]["mig"]


def test_the_folder_alone_tells_the_study_where_the_device_differs(whole, monkeypatch):
    """A machine with another precision of its own, and without the dataset, reads the same runs."""
    monkeypatch.setattr("unbraid.studies.study_record.opened_dataset", None)
    monkeypatch.setattr("unbraid.studies.study_record.choose_precision", lambda *_: "bfloat16")
    assert [run.id for run in Study.load(whole.folder).runs()] == [run.id for run in whole.runs()]


def test_a_representation_added_is_a_row(copy):
    folder = copy / "out" / "added" / "mine"
    folder.mkdir(parents=True)
    run = Study.load(copy / "out").runs()[0]
    run_codes = load_run(run.path).codes()
    run_codes.save(folder / "codes.npz")
    about = {"family": "mine", "setting": "gamma=2", "seed": 3, "hyperparameters": {"gamma": 2.0}}
    (folder / "config.json").write_text(json.dumps(about))
    scores.complete_scores(folder, ["mig"])
    row = Study.load(copy / "out").results().iloc[-1]
    assert (row["run"], row["family"], row["setting"], row["seed"]) == ("mine", "mine", "gamma=2", 3)
    assert row["hyper.gamma"] == 2
    assert row["mig.score"] == unbraid.score(run_codes, metrics=["mig"])["mig"].score
    (folder / "config.json").write_text("{")
    for _ in ("read", "remembered"):
        done = CliRunner().invoke(app, ["study", "status", str(copy / "out"), "--json", "-"])
        assert done.exit_code == 3
        (failed,) = [each for each in json.loads(done.stdout) if each["state"] == "failed"]
        assert failed["run"] == "mine"
        assert failed["reason"].startswith(f"{folder / 'config.json'} is damaged (")
    ranked = CliRunner().invoke(app, ["rank", str(copy / "out"), "--json", "-"])
    assert isinstance(ranked.exception, ModelsFailed)
    assert list(json.loads(ranked.stdout)["left_out"]) == ["mine"]
    assert [run.state for run in here(copy).runs()] == ["finished"] * 6 + ["failed"]
