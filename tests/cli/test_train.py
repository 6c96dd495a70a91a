"""`unbraid train`, `families`, `figure`, and `score` of a run, as a user meets them."""

import errno
import json
import signal
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.processes import forked
from unbraid import load_run, train
from unbraid.base.progress_bar import Forecast, Pace
from unbraid.training.train import readable_logs
from unbraid.training.workers import WorkerDied

DENSE = ("--set", "network=dense", "--set", "latents=3", "--batch-size", "8", "--precision", "float32")


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unbraid.training.workers.n_cores", lambda: 0)


@pytest.mark.lengthy
def test_train_score_and_traverse_by_the_commands_of_the_manual(unbraid_cli, tmp_path: Path) -> None:
    out = tmp_path / "runs"
    command = ("train", "beta_vae", "--dataset", "square", "--set", "beta=1,4", "--steps", "20", "--out", str(out))
    command += ("--data", "positions=16")
    code, printed, error = unbraid_cli(*command, *DENSE)
    assert code == 0, error
    assert printed.splitlines()[-1] == f"in {out}"
    rows = [line.split() for line in printed.splitlines() if "finished" in line]
    assert [(row[1], row[2], row[-1]) for row in rows] == [("0", "1.0", "finished"), ("0", "4.0", "finished")]
    folder = out / rows[1][0]
    assert sorted(each.name for each in out.iterdir() if each.is_dir()) == sorted(row[0] for row in rows)
    config = json.loads((folder / "config.json").read_text())
    assert config["dataset"]["name"] == "square"
    assert config["hyperparameters"]["beta"] == 4
    assert config["steps"] == 20

    code, printed, error = unbraid_cli("score", str(folder), "--metrics", "mig,mig_exact")
    assert code == 0
    assert f"wrote mig, mig_exact to {folder / 'scores.json'}" in error
    card = json.loads((folder / "scores.json").read_text())
    assert card["input"]["path"] == str(folder)
    assert card["input"]["n_samples"] == 256
    assert card["metrics"].keys() == {"mig", "mig_exact"}

    picture = tmp_path / "grid.png"
    sheet, drawn = tmp_path / "new.png", tmp_path / "new.csv"
    options = ("--set", "images=5", "--set", "seed=2", "--out", str(sheet), "--data", str(drawn))
    code, printed, _ = unbraid_cli("figure", "samples", str(folder), *options)
    assert (code, printed) == (0, f"wrote {sheet}\nwrote {drawn}\n")
    codes = np.loadtxt(drawn, delimiter=",", skiprows=1)[:, 1:]
    assert np.allclose(codes, load_run(folder).prior_codes(5, seed=2))
    options = ("--set", "rows=2", "--set", "steps=5", "--set", "dataset=square")
    code, printed, _ = unbraid_cli("figure", "traversals", str(folder), "--out", str(picture), *options)
    assert (code, printed) == (0, f"wrote {picture}\n")
    with Image.open(picture) as image:
        pixels = np.asarray(image.convert("L"))
    assert 0.02 < (pixels == 0).mean() < 0.9

    # The scores stay, and nothing is trained again.
    code, again, _ = unbraid_cli(*command, *DENSE)
    assert code == 0
    assert [line for line in again.splitlines() if folder.name in line]
    assert (folder / "scores.json").exists()


def test_estimates_that_are_biased_in_a_batch_stay_in_the_curves(unbraid_cli, tmp_path: Path) -> None:
    """Of beta-TCVAE: by log n_train for each latent, up to -135 nats for a KL. FactorVAE's discriminator has none."""
    options = ("square", "--data", "positions=8", "--data", "shrink=4", "--steps", "3", "--out", str(tmp_path), *DENSE)
    code, printed, error = unbraid_cli("train", "beta_tcvae", *options)
    assert code == 0, error
    assert printed.split()[:6] == ["run", "seed", "loss/vae", "reconstruction", "kl", "state"]
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
    last = load_run(folder).status["last"]
    assert {"total_correlation", "dimension_wise_kl", "index_code_information"} <= last.keys()
    detail = Pace().report(1, 3, {}, readable_logs(last))[2]
    assert detail.count("kl ") == 1
    assert "correlation" not in detail
    assert "total_correlation" in readable_logs({"loss/vae": 2.0, "total_correlation": 0.5})


@pytest.mark.parametrize(
    ("asked", "code", "said", "workers"),
    [
        (signal.SIGINT, 130, "unbraid: stopped; the same command continues", False),
        pytest.param(
            *(signal.SIGINT, 130, "unbraid: stopped; the same command continues", True), marks=pytest.mark.slow
        ),
        pytest.param(
            *(signal.SIGTERM, 143, "unbraid: stopped by SIGTERM; the same command continues", True),
            marks=pytest.mark.slow,
        ),
    ],
)
@pytest.mark.lengthy
def test_stopped_it_says_so_and_the_same_command_continues(
    unbraid_cli, tmp_path, monkeypatch, asked, code, said, workers
) -> None:
    """Interrupted in worker processes or in its own, continued in this one."""
    arguments = ["train", "vae", "--dataset", "square", "--steps", "120", *DENSE, "--data", "positions=8"]
    arguments += ["--out", str(tmp_path / "runs")]
    script = (
        "import sys, unbraid.cli.app, unbraid.base.progress_bar, unbraid.training.workers\n"
        f"if not {workers}: unbraid.training.workers.can_leave = lambda *_: False\n"
        "unbraid.base.progress_bar.LOG_SECONDS = 0.05\n"
        f"sys.argv = ['unbraid', *{arguments!r}]\n"
        "unbraid.cli.app.main()\n"
    )
    with forked(script) as process:
        line = ""
        while "loss/vae" not in line:
            line = process.stderr.readline()
            assert line
        process.send_signal(asked)
        _, error = process.communicate()
    assert process.returncode == code
    assert error.splitlines()[-1] == said
    assert "interrupted" not in error
    (unfinished,) = (tmp_path / "runs").glob("*.part")
    assert (unfinished / "checkpoint.safetensors").exists()

    monkeypatch.setattr("unbraid.training.workers.can_leave", lambda *_: False)
    code, _, error = unbraid_cli(*arguments)
    assert code == 0, error
    settings = {"network": "dense", "latents": 3, "batch_size": 8, "precision": "float32", "processes": 0}
    (whole,) = train("vae", {"name": "square", "positions": 8}, steps=120, out=tmp_path / "whole", **settings)
    for name in ("weights.safetensors", "codes.safetensors", "config.json"):
        assert (unfinished.with_suffix("") / name).read_bytes() == (whole.path / name).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "vea", "--dataset", "square"], "unknown family 'vea'; did you mean 'vae'?"),
        (["train", "vae", "--dataset", "square", "--set", "latnts=3"], "no hyperparameter 'latnts'; did you mean"),
        (["train", "vae", "--dataset", "square", "--set", "latents=0"], "latents must lie between 1 and 1000; got 0"),
        (["train", "vae", "--dataset", "square", "--set", "seeds=3"], "--set seeds=3: seeds is not a hyperparameter"),
        (["train", "vae", "--dataset", "square", "--seeds", ","], "seeds is empty"),
        (["continue", "{folder}/b", "--steps", "5"], "b: no such folder"),
        (["score", "{folder}/a.part"], "the training has not finished; the same command continues it"),
        (
            ["train", "vae", "--dataset", "square", "--hold-out", "1.5"],
            "hold_out must be a fraction of the images (below 1)",
        ),
        (["families", "vea"], "unknown family 'vea'; did you mean 'vae'? (your own: package.module:name)"),
    ],
)
def test_bad_usage_is_one_line_and_exit_2(unbraid_cli, tmp_path: Path, monkeypatch, arguments, message) -> None:
    (tmp_path / "a.part").mkdir()
    monkeypatch.chdir(tmp_path)
    code, printed, error = unbraid_cli(*(each.format(folder=tmp_path) for each in arguments))
    assert (code, printed) == (2, "")
    assert message.format(folder=tmp_path) in error
    assert error.count("\n") == 1
    assert [each.name for each in tmp_path.iterdir()] == ["a.part"]


def test_no_memory_is_one_line_of_advice(unbraid_cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, and in one that the kernel has killed."""
    arguments = ["train", "vae", "--dataset", "square", "--steps", "5", "--out", str(tmp_path / "runs")]
    monkeypatch.setattr("unbraid.training.workers.can_leave", lambda *_: False)
    code, _, error = unbraid_cli(*arguments, "--set", "network=tests.studies.study_examples:greedy")
    assert (code, error.count("\n")) == (2, 1)
    assert "out of memory: a smaller batch_size, smaller networks, or fewer processes at a time need less" in error

    def killed(*_: object, **__: object) -> None:
        raise WorkerDied("its process was killed (signal 9), as happens where memory runs out")

    monkeypatch.setattr("unbraid.training.train.train_members", killed)
    code, _, error = unbraid_cli(*arguments, *DENSE)
    assert (code, error.count("\n")) == (2, 1)
    assert "was killed (signal 9), as happens where memory runs out" in error


@pytest.mark.filterwarnings("always::unbraid.files.locks.NoLocksWarning")
def test_a_file_system_without_locks_is_one_line_and_no_obstacle(unbraid_cli, tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    square = ("--dataset", "square", "--data", "positions=4", "--steps", "2")
    monkeypatch.setattr("fcntl.flock", refuse)
    code, printed, error = unbraid_cli("train", "vae", *square, *DENSE, "--out", str(tmp_path / "runs"))
    assert (code, len(list(tmp_path.glob("runs/*/config.json")))) == (0, 1)
    assert [line for line in error.splitlines() if "warning" in line] == [
        f"unbraid: warning: {tmp_path / 'runs'}: this file system has no locks; do not let two processes work in this "
        "folder at once"
    ]


def test_the_pace_counts_only_what_this_session_trained() -> None:
    """Two runs of 1 000 steps, one of which continues at 600: 100 steps in 10 s leave 1 300 steps, 130 s."""
    now = 50.0
    pace, forecast = Pace(lambda: now), Forecast(lambda: now)
    done, total, _, before = pace.report(0, 2000, {}, {})
    forecast.update(done, total, before)
    now = 100.0
    done, total, _, before = pace.report(0, 2000, {0: 600}, {})
    forecast.update(done, total, before)
    now = 110.0
    done, total, detail, before = pace.report(0, 2000, {0: 700}, {"kl": 1.23456})
    forecast.update(done, total, before)
    assert (done, total, before, detail) == (700, 2000, 600, "10.0 steps/s, kl 1.235")
    assert forecast.text == "0:02:10 left"
