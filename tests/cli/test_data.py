"""`unbraid data` as a user meets it."""

import json
import os
import re
import signal
import subprocess
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.conftest import Cli
from tests.processes import started
from unbraid import datasets
from unbraid.datasets import DATASETS
from unbraid.datasets import dataset_table as _table
from unbraid.datasets.dataset_description import missing_files, state
from unbraid.datasets.official import celeba, mpi3d


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


def test_list_names_every_dataset_and_its_factors(run: Cli) -> None:
    code, printed, _ = run("list")
    assert code == 0
    for name, row in DATASETS.items():
        line = next(line for line in printed.splitlines() if line.split()[:1] == [name])
        assert f"{len(row):,}" in line
        assert row.space.names[0] in line or f"  {len(row.space.names)} factors" in line
        assert ("needs its file" in line) == bool(row.files)


def test_list_as_json(run: Cli) -> None:
    code, printed, _ = run("list", "--json", "-")
    assert code == 0
    listed = json.loads(printed)
    assert listed.keys() == DATASETS.keys()
    assert listed["sprites"]["rendered"] is True
    assert listed["dsprites"]["rendered"] is False
    assert listed["dsprites"]["factors"][0] == {
        "name": "shape", "kind": "categorical", "size": 3, "values": ["square", "ellipse", "heart"],
    }  # fmt: skip


@pytest.mark.parametrize("name", DATASETS)
def test_info_tells_of_every_dataset(run: Cli, name: str) -> None:
    code, printed, _ = run("info", name)
    assert code == 0
    row = DATASETS[name]
    assert f"{str(row.rendered).lower()}" in next(line for line in printed.splitlines() if line.startswith("rendered"))
    for factor in row.space.names:
        assert factor in printed
    for file in row.files:
        assert file.name in printed
        assert " " * 10 + file.address in printed.splitlines()
    code, printed, _ = run("info", name, "--json", "-")
    described = json.loads(printed)
    assert described["rendered"] is row.rendered
    assert described["n_images"] == len(row)
    for option in described["options"].values():
        assert option["help"], f"{name} has an option that its docstring does not describe"


def test_render_builds_what_info_then_finds(run: Cli, root: Path) -> None:
    code, printed, _ = run("render", "cars_rendered", "--set", "n_objects=2")
    assert code == 0
    stored = json.loads(run("info", "cars_rendered", "--json", "-")[1])["stored"]
    assert len(stored) == 1
    assert stored[0]["folder"].startswith(str(root / "cars_rendered-v"))
    assert stored[0]["folder"] in printed
    assert stored[0]["bytes"] > 2 * 96 * 12288


def test_render_of_what_is_drawn_on_demand_stores_nothing(run: Cli, root: Path) -> None:
    code, printed, _ = run("render", "square")
    assert (code, root.exists()) == (0, False)
    assert "drawn on demand" in printed


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


def test_show_draws_a_sheet_of_its_own_data_too(run: Cli, tmp_path: Path) -> None:
    out = tmp_path / "sheet.png"
    code, printed, _ = run("show", "arrow", "--out", str(out), "--columns", "5", "--scale", "1")
    assert (code, printed) == (0, f"wrote {out}\n")
    with Image.open(out) as sheet:
        assert sheet.width > 5 * 64
        assert sheet.height > 2 * 64
    assert run("render", "teapot", "--set", "n_images=30", "--out", str(tmp_path / "mine"))[0] == 0
    assert run("show", str(tmp_path / "mine"), "--out", str(out))[0] == 0


def test_path(run: Cli, root: Path) -> None:
    assert run("path") == (0, f"{root}\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["info", "spritess"], "no dataset of that name; did you mean 'sprites'?"),
        (["render", "dsprite"], "did you mean 'dsprites'?"),
        (["show", "squares", "--out", "x.png"], "did you mean 'square'?"),
        (["get", "shape3d"], "did you mean 'shapes3d'?"),
        (["get", "sprites"], "sprites is drawn by this package and needs no file: unbraid data render sprites"),
        (["get", "faces3d"], "cannot be downloaded from here"),
        (["get", "celeba"], "in a browser"),
        (["get", "teapots_official"], "edinburgh_teapots.zip"),
        (["get", "dsprites", "--file", "x.npz"], "dsprites has no file 'x.npz'; it has dsprites_ndarray"),
        (["render", "dsprites"], "Run `unbraid data get dsprites`, or put it at"),
        (["render", "square", "--limit", "3"], "--limit and --png need --out"),
        (["render", "square", "--set", "n_objects=3"], "dataset 'square' has no option 'n_objects'"),
        (["render", "square", "--set", "seed"], "--set seed: write OPTION=VALUE"),
        (["render", "square", "--set", "name=dsprites"], "--set name=dsprites: a dataset has no such option"),
        (["render", "square", "--set", "positions=[1"], "--set positions=[1: cannot be read as YAML"),
        (["render", "square", "--set", "a=!!python/object:x"], "--set a=!!python/object:x: cannot be read as YAML"),
        (["render", "square", "--set", "a=2020-13-45"], "--set a=2020-13-45: cannot be read as YAML"),
        (["render", "square", "--set", "without={1: 0}"], "without must be a condition such as"),
        (["render", "{tmp}/labels.csv", "--out", "{tmp}/out", "--png"], "this dataset holds labels without images"),
        (["show", "{tmp}/labels.csv", "--out", "{tmp}/x.png"], "this dataset holds labels without images"),
        (["render", "square", "--file", "x"], "--file: square is drawn by this package and reads no file"),
        (["render", "square", "--out", "{tmp}/out", "--limit", "0"], "limit must be at least 1; got 0"),
        (["render", "square", "--out", "{tmp}"], "exists already"),
        (["render", "dsprites", "--file", "{tmp}/x.npz"], "x.npz: damaged or not an .npz file"),
        (["render", "shapes3d", "--file", "{tmp}/x.h5"], "x.h5: incomplete, 2 of 267,573,662 bytes"),
        (["render", "shapes3d", "--file", "{tmp}/x.h5", "--no-verify"], "x.h5: damaged or not an HDF5 file"),
        (["show", "square", "--out", "x.jpg"], "the name must end in .png"),
        (["show", "square", "--out", "{tmp}/nowhere/x.png"], "does not exist"),
        (["show", "square", "--out", "{tmp}/x.png", "--columns", "0"], "columns and scale must be at least 1"),
        (["info", "./nowhere"], "nowhere: no such file or folder"),
        (["lisst"], "lisst"),
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


@pytest.mark.parametrize("command", ["list", "info", "render", "get", "path", "show"])
def test_every_command_has_help_with_examples(run: Cli, command: str) -> None:
    code, printed, _ = run(command, "--help")
    assert code == 0
    assert f"unbraid data {command}" in printed.partition("Examples:")[2]


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


def test_no_verify_says_nothing(run: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_mpi3d(monkeypatch, tmp_path / "here")
    code, printed, error = run("render", "mpi3d_toy", "--file", str(tmp_path / "here" / "mpi3d_toy.npz"), "--no-verify")
    assert (code, error) == (0, "")
    assert "mpi3d_toy: 12 images at" in printed


def test_get_downloads_and_says_what_is_next(run: Cli, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, Path, bool]] = []

    def fake(file: Any, folder: Path, *, verify: bool, progress: Any) -> Path:
        asked.append((file.name, folder, verify))
        progress(5, 10)
        return folder / file.name

    monkeypatch.setattr("unbraid.datasets.download.download", fake)
    code, printed, _ = run("get", "mpi3d_toy")
    assert code == 0
    assert str(root / "official" / "mpi3d_toy.npz") in printed
    assert "unbraid data render mpi3d_toy" in printed
    early = DATASETS["mpi3d_toy"].files[1].name
    code, printed, _ = run("get", "mpi3d_toy", "--file", early, "--no-verify")
    assert (code, printed.splitlines()[1]) == (0, "next: unbraid data render mpi3d_toy --set release=early")
    assert asked == [
        ("mpi3d_toy.npz", root / "official", True),
        ("sim_toy_64x_ordered_without_heldout_factors.npz", root / "official", False),
    ]


def test_a_file_that_was_there_is_said_not_to_be_fetched(run: Cli, root: Path) -> None:
    (root / "official").mkdir(parents=True)
    (root / "official" / "rendered_chairs.tar").write_bytes(b"damaged")
    code, printed, _ = run("get", "chairs3d")
    assert (code, printed.splitlines()) == (
        0,
        [
            str(root / "official" / "rendered_chairs.tar"),
            "it was there already; delete it to get it again",
            "next: unbraid data render chairs3d",
        ],
    )


def test_the_state_says_which_files_are_missing(root: Path) -> None:
    (root / "official").mkdir(parents=True)
    assert state("celeba", root) == "needs its file"
    (root / "official" / "list_attr_celeba.txt").write_bytes(bytes(10))
    assert state("celeba", root) == "needs img_align_celeba.zip"
    assert [file.name for file in missing_files("celeba", root)] == ["img_align_celeba.zip"]
    (root / "official" / "img_align_celeba.zip").write_bytes(bytes(10))
    assert state("celeba", root) == "file is incomplete"
    (root / "official" / "img_align_celeba.zip").unlink()
    (root / "official" / "img_align_celeba").mkdir()
    os.truncate(root / "official" / "list_attr_celeba.txt", 26_721_026)
    assert state("celeba", root) == "file is there"
    (root / "official" / "list_attr_celeba.txt").unlink()
    assert state("celeba", root) == "needs list_attr_celeba.txt"


def test_the_file_of_an_option_is_got_by_its_name_and_is_not_that_of_others(run: Cli, root: Path) -> None:
    early = DATASETS["mpi3d_toy"].files[1].name
    code, _, said = run("render", "mpi3d_toy", "--set", "release=early")
    assert (code, f"Run `unbraid data get mpi3d_toy --file {early}`, or put it at" in said) == (2, True)
    (root / "official").mkdir()
    (root / "official" / early).touch()
    assert state("mpi3d_toy", root) == "needs its file"
    assert [file.name for file in missing_files("mpi3d_toy", root)] == ["mpi3d_toy.npz"]


def test_a_part_of_a_download_names_what_else_is_needed(run: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    row = replace(DATASETS["celeba"], files=tuple(replace(file, downloads=True) for file in celeba.FILES))
    monkeypatch.setattr("unbraid.datasets.find", lambda _: row)
    monkeypatch.setattr("unbraid.datasets.download.download", lambda file, folder, **_: folder / file.name)
    code, printed, _ = run("get", "celeba", "--file", "list_attr_celeba.txt")
    assert code == 0
    assert "next: celeba needs img_align_celeba.zip as well, see unbraid data info celeba" in printed


def test_a_download_that_fails_is_one_line(run: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unbraid.datasets.download.PAUSE", 0.0)
    nowhere = replace(DATASETS["coil100"].files[0], address="http://127.0.0.1:9/coil-100.zip")
    rows = MappingProxyType({**DATASETS, "coil100": replace(DATASETS["coil100"], files=(nowhere,))})
    monkeypatch.setattr(datasets, "DATASETS", rows)
    monkeypatch.setattr(_table, "DATASETS", rows)
    code, _, error = run("get", "coil100")
    assert code == 2
    assert error.startswith("unbraid: http://127.0.0.1:9/coil-100.zip: ")
    assert len(error.splitlines()) == 1


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("asked", "code", "line"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "stopped by SIGTERM")],
)
@pytest.mark.parametrize("arguments", [["teapot", "--set", "n_images=2000000"], ["sprites", "--out", "out"]])
def test_interrupting_a_render_leaves_nothing(
    tmp_path: Path, arguments: list[str], asked: signal.Signals, code: int, line: str
) -> None:
    arguments = [str(tmp_path / each) if each == "out" else each for each in arguments]
    command = ["-c", "import unbraid.cli; unbraid.cli.main()", "data", "render", *arguments]
    with started(*command, env={"UNBRAID_DATA": str(tmp_path)}, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 60
        # Images themselves, not the header alone: before them code is compiled, where an interrupt can get lost.
        while (
            not any(part.stat().st_size > 4096 for part in tmp_path.glob(".*.part*/images.npy"))
            and time.monotonic() < deadline
        ):
            assert process.poll() is None, process.stderr.read() if process.stderr else ""
            time.sleep(0.02)
        process.send_signal(asked)
        _, error = process.communicate(timeout=60)
    assert process.returncode == code
    assert error.strip() == f"unbraid: {line}; no file was left half-written"
    assert [path.name for path in tmp_path.iterdir() if not path.name.endswith(".lock")] == []
