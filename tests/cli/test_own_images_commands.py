"""Runs and studies on images at a path: a file that names one has it read only where the user does so as well."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Cli
from tests.studies.study_examples import SMALL
from unbraid import Study, train
from unbraid.datasets import DatasetMissing, load
from unbraid.datasets.dataset_export import export
from unbraid.files.trust import UntrustedData
from unbraid.runs.run import load_run
from unbraid.runs.whole_objects import objects_of


def changed(text: str, changes: Mapping[str, str]) -> str:
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the images, a run on them, and a study on them."""
    base = tmp_path_factory.mktemp("own")
    export(load("square", positions=8, shrink=4), base / "images")
    source = str(base / "images")
    train("beta_vae", source, steps=2, batch_size=4, network="dense", latents=3, out=base / "runs", processes=0)
    changes = {
        "{name: square, positions: 8, shrink: 4}": f"{{name: {source}}}",
        "seeds: 2": "seeds: 1",
        ", dci_lasso": "",
    }
    (base / "study.yaml").write_text(changed(SMALL, changes))
    Study.load(base / "study.yaml", out=base / "study").run(processes=0)
    return base


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unbraid.datasets.open_path", lambda *_, **__: pytest.fail("the path was read"))


def the_run(base: Path) -> Path:
    (run,) = (path for path in (base / "runs").iterdir() if not path.name.startswith("."))
    return run


COMMANDS = {
    "traversals": ("figure", "traversals", "{run}", "--out", "{out}/x.png"),
    "figure": ("figure", "reconstructions", "{run}", "--out", "{out}/x.png"),
    "add": ("study", "add", "{study}", "{run}", "--name", "mine"),
}


def words(command: str, base: Path, out: Path) -> list[str]:
    return [word.format(run=the_run(base), study=base / "study", out=out) for word in COMMANDS[command]]


@pytest.mark.usefixtures("unread")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_asks_for_the_path(command: str, trained: Path, tmp_path: Path, unbraid_cli: Cli) -> None:
    code, out, err = unbraid_cli(*words(command, trained, tmp_path))
    assert (code, out) == (2, "")
    (line,) = err.splitlines()
    images = trained / "images"
    assert f"names images by their path, '{images}', and this would read them" in line
    assert line.endswith(f": if you trust it, add --trust-data {images}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_is_given_the_path_reads_it(
    command: str, trained: Path, tmp_path: Path, unbraid_cli: Cli
) -> None:
    base = tmp_path / "copy"
    shutil.copytree(trained, base)
    code, _, err = unbraid_cli(*words(command, base, tmp_path), "--trust-data", str(trained / "images"))
    assert code == 0, err


@pytest.mark.lengthy
@pytest.mark.usefixtures("unread")
def test_pages_and_tables_do_without(trained: Path, tmp_path: Path, unbraid_cli: Cli) -> None:
    assert unbraid_cli("report", str(the_run(trained)), "--out", str(tmp_path / "run.html"))[0] == 0
    assert "images is read only if --trust-data names it" in (tmp_path / "run.html").read_text()
    assert unbraid_cli("report", str(trained / "study"), "--out", str(tmp_path / "study.html"))[0] == 0
    code, out, _ = unbraid_cli("study", "status", str(trained / "study"), "--json", "-")
    assert code == 0
    assert {run["state"] for run in json.loads(out)} == {"finished"}


def test_from_python_the_path_or_the_dataset_is_given(trained: Path) -> None:
    run, source = the_run(trained), str(trained / "images")
    with pytest.raises(UntrustedData, match=r"if you trust it, give the dataset, or load_run\(path, trust="):
        load_run(run).representation()
    assert len(load_run(run, trust=[source]).representation()) == 64
    assert len(load_run(run).representation(source)) == 64
    with pytest.raises(UntrustedData):  # as `unbraid score` asks for them, where a run keeps codes of a part
        objects_of(run)()
    assert len(objects_of(run, trust=[source])()) == 64
    study = Study.load(trained / "study")
    with pytest.raises(UntrustedData, match=r"study.yaml names images by their path"):
        study.run(processes=0)
    assert {each.state for each in Study.load(trained / "study", trust=[source]).run(processes=0)} == {"finished"}


@pytest.mark.usefixtures("unread")
def test_a_study_whose_record_is_of_other_images_is_not_opened(trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained / "study", tmp_path / "study")
    about = tmp_path / "study" / "study.json"
    content = json.loads(about.read_text())
    content["source"]["name"] = "sprites"
    del content["checksum"]
    about.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"unbraid study run STUDY.yaml --out .*, with a YAML of your own, does"):
        Study.load(tmp_path / "study").runs()


def edited(run: Path, copy: Path, **dataset: Any) -> Path:
    """The run with another dataset in its config."""
    shutil.copytree(run, copy)
    config = json.loads((copy / "config.json").read_text())
    config["dataset"] |= dataset
    del config["checksum"]
    (copy / "config.json").write_text(json.dumps(config))
    return copy


@pytest.mark.lengthy
def test_where_files_lie_is_not_taken_from_a_file(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stranger's config would make folders anywhere, and have a cache of ours made of a file of his."""
    monkeypatch.setenv("UNBRAID_DATA", str(tmp_path / "data"))
    places = {"root": str(tmp_path / "elsewhere"), "verify": False}
    run = edited(the_run(trained), tmp_path / "one", name="teapot", options={"n_images": 3, **places})
    assert len(load_run(run).dataset()) == 3
    official = {**places, "file": str(trained / "images" / "images.npy")}
    run = edited(the_run(trained), tmp_path / "two", name="dsprites", options=official)
    with pytest.raises(DatasetMissing, match=str(tmp_path / "data")):
        load_run(run).dataset()
    assert not (tmp_path / "elsewhere").exists()
    assert [path.name for path in (tmp_path / "data").glob("[!.]*")] == ["teapot-v1-n_images=3"]


def test_what_the_user_says_of_places_is_not_written_down(tmp_path: Path) -> None:
    source = {"name": "teapot", "n_images": 3, "root": str(tmp_path / "root")}
    (run,) = train("pca", source, latents=2, out=tmp_path / "runs", processes=0)
    assert run.config["dataset"]["options"] == {"n_images": 3}
    assert (tmp_path / "root" / "teapot-v1-n_images=3").is_dir()
    vae = "  - {name: beta_vae, beta: [1, 4], network: dense, latents: 3}\n"
    opened = f"teapot, n_images: 8, root: {tmp_path / 'root'}"
    changes = {"square, positions: 8, shrink: 4": opened, vae: "", "metrics: [mig, dci_lasso]": ""}
    (tmp_path / "study.yaml").write_text(changed(SMALL, changes))
    study = Study.load(tmp_path / "study.yaml", out=tmp_path / "study")
    study.run(processes=0)
    assert str(tmp_path) not in (tmp_path / "study" / "study.json").read_text()
    again = Study.load(tmp_path / "study")
    assert again.config.dataset.options == {"n_images": 8}
    assert [each.id for each in again.runs()] == [each.id for each in study.runs()]
