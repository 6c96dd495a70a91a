"""`unbraid data` as a user meets it."""

import json
import re
import signal
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.conftest import Cli
from tests.processes import forked
from unbraid import datasets
from unbraid.datasets import DATASETS
from unbraid.datasets.official import mpi3d


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UNBRAID_DATA", str(tmp_path / "root"))
    return tmp_path / "root"


@pytest.fixture
def run(root: Path, unbraid_cli: Cli) -> Cli:
    """Run `unbraid data ...` in this process: (exit code, stdout, stderr)."""
    assert not root.exists()
    return partial(unbraid_cli, "data")


def test_a_folder_to_be_handed_on_names_no_place_of_this_machine(run: Cli, tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    images = np.arange(64, dtype=np.uint8).reshape(4, 4, 4)
    np.savez(tmp_path / "private" / "mine.npz", images=images, factors=np.arange(4)[:, None])
    assert run("render", str(tmp_path / "private" / "mine.npz"), "--out", str(tmp_path / "out"))[0] == 0
    text = (tmp_path / "out" / "meta.json").read_text()
    assert json.loads(text)["about"] == {"source": "mine.npz", "rendered": False}
    assert "private" not in text
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "images.npy")[..., 0], images)


@pytest.mark.parametrize("png", [False, True])
def test_render_out_writes_images_and_factors(run: Cli, tmp_path: Path, png: bool) -> None:
    out = tmp_path / "out"
    code, printed, _ = run("render", "arrow", "--out", str(out), "--limit", "70", *(["--png"] if png else []))
    assert code == 0
    assert f"wrote 70 images to {out}" in printed
    arrow = datasets.load("arrow")
    rows = (out / "factors.csv").read_text().splitlines()
    assert rows[0] == ("file,hue,rotation" if png else "hue,rotation")
    assert rows[-1] == ("images/000069.png,1,5" if png else "1,5")
    images = arrow.images(np.arange(70))
    if png:
        np.testing.assert_array_equal(np.asarray(Image.open(out / "images" / "000069.png")), images[69])
    else:
        np.testing.assert_array_equal(np.load(out / "images.npy"), images)
    again = datasets.load(str(out))
    np.testing.assert_array_equal(again.images(np.arange(70)), images)
    np.testing.assert_array_equal(again.space.factors(np.arange(70)), arrow.space.factors(np.arange(70)))
    code, printed, _ = run("info", str(out), "--json", "-")
    assert code == 0
    assert json.loads(printed)["n_images"] == 70
    assert json.loads(printed)["rendered"] is not png  # a folder of pictures does not say where they are from
    assert run("render", "arrow", "--out", str(out))[0] == 2


def test_a_whole_export_is_a_grid_again(run: Cli, tmp_path: Path) -> None:
    assert run("render", "flatland", "--out", str(tmp_path / "out"))[0] == 0
    assert datasets.load(str(tmp_path / "out")).space == DATASETS["flatland"].space


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["get", "celeba"], "in a browser"),
        (["get", "dsprites", "--file", "x.npz"], "dsprites has no file 'x.npz'; it has dsprites_ndarray"),
        (["render", "dsprites"], "Run `unbraid data get dsprites`, or put it at"),
        (["render", "square", "--set", "name=dsprites"], "--set name=dsprites: a dataset has no such option"),
        (["render", "square", "--set", "positions=[1"], "--set positions=[1: cannot be read as YAML"),
        (["render", "square", "--set", "a=!!python/object:x"], "--set a=!!python/object:x: cannot be read as YAML"),
        (["render", "{tmp}/labels.csv", "--out", "{tmp}/out", "--png"], "this dataset holds labels without images"),
        (["show", "{tmp}/labels.csv", "--out", "{tmp}/x.png"], "this dataset holds labels without images"),
        (["render", "square", "--out", "{tmp}"], "exists already"),
        (["render", "shapes3d", "--file", "{tmp}/x.h5"], "x.h5: incomplete, 2 of 267,573,662 bytes"),
        (["show", "square", "--out", "{tmp}/nowhere/x.png"], "does not exist"),
        (["info", "./nowhere"], "nowhere: no such file or folder"),
    ],
)
@pytest.mark.filterwarnings("ignore::unbraid.datasets.ChecksumWarning")
def test_a_bad_request_is_one_line_and_exit_2(run: Cli, tmp_path: Path, arguments: list[str], message: str) -> None:
    for name in ("x.npz", "x.h5"):
        (tmp_path / name).write_bytes(b"PK")
    (tmp_path / "labels.csv").write_text("size,shape\n1,box\n2,disc\n")
    before = sorted(path for path in tmp_path.rglob("*") if "root" not in path.parts)
    code, printed, error = run(*(argument.replace("{tmp}", str(tmp_path)) for argument in arguments))
    assert (code, printed) == (2, "")
    *warned, line = error.strip().splitlines()
    assert message in line
    assert all("checksum" in one for one in warned)
    assert sorted(path for path in tmp_path.rglob("*") if "root" not in path.parts) == before


def small_mpi3d(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Any:
    space = replace(mpi3d.SPACE, sizes=(2, 1, 1, 1, 1, 2, 3), values=None)
    monkeypatch.setattr(mpi3d, "SPACE", space)
    images = np.random.default_rng(0).integers(0, 256, (12, 64, 64, 3), dtype=np.uint8)
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / "mpi3d_toy.npz", images=images)
    return images


def test_another_checksum_is_a_warning_that_can_be_silenced(
    run: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = small_mpi3d(monkeypatch, tmp_path / "here")
    file = str(tmp_path / "here" / "mpi3d_toy.npz")
    code, _, error = run("render", "mpi3d_toy", "--file", file, "--out", str(tmp_path / "a"))
    assert code == 0
    assert error.startswith(f"unbraid: warning: {file}: its checksum is md5:")
    assert len(error.splitlines()) == 1
    np.testing.assert_array_equal(np.load(tmp_path / "a" / "images.npy"), images)
    assert re.search(r"^rendered +false", run("info", str(tmp_path / "a"))[1], re.MULTILINE)


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("arguments", "asked", "code", "line"),
    [
        (["teapot", "--set", "n_images=2000000"], signal.SIGINT, 130, "interrupted"),
        (["sprites", "--out", "out"], signal.SIGTERM, 143, "stopped by SIGTERM"),
    ],
)
def test_interrupting_a_render_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], asked: signal.Signals, code: int, line: str
) -> None:
    arguments = [str(tmp_path / each) if each == "out" else each for each in arguments]
    monkeypatch.setenv("UNBRAID_DATA", str(tmp_path))
    with forked("import unbraid.cli; unbraid.cli.main()", "data", "render", *arguments) as process:
        deadline = time.monotonic() + 60
        # Images themselves, not the header alone: before them code is compiled, where an interrupt can get lost.
        while (
            not any(part.stat().st_size > 4096 for part in tmp_path.glob(".*.part*/images.npy"))
            and time.monotonic() < deadline
        ):
            assert process.returncode is None, process.stderr.read()
            time.sleep(0.02)
        process.send_signal(asked)
        _, error = process.communicate()
    assert process.returncode == code
    of_progress = "preparing"  # a line in ten seconds
    said = [each for each in error.splitlines() if not each.startswith(of_progress)]
    assert said == [f"unbraid: {line}; no file was left half-written"]
    assert [path.name for path in tmp_path.iterdir() if not path.name.endswith(".lock")] == []
