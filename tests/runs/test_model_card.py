"""The model card of an exported run: what stands in it is so, its code runs, and the Hub can read it."""

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from huggingface_hub import ModelCard

import unbraid
from tests.training.training_examples import TINY, blocks
from unbraid import load_run
from unbraid.runs.model_card import model_card
from unbraid.runs.run import Run, open_run
from unbraid.runs.run_export import export_folder
from unbraid.studies.study import Study

YAML = """
name: four
dataset: {name: square, positions: 8, shrink: 4}
families: [{name: pca, latents: [3, 4]}]
seeds: 2
steps: 1
metrics: [mig, factor_leakage]
udr: {similarity: spearman}
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("four")
    (folder / "study.yaml").write_text(YAML)
    opened = Study.load(folder / "study.yaml", out=folder / "out")
    opened.run(processes=0)
    return opened


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Of images in memory, with a latent that is used and others that are not."""
    run = unbraid.train(
        "beta_vae", TINY, steps=600, batch_size=64, out=tmp_path_factory.mktemp("runs"), processes=0, latents=4,
        network="dense", beta=2, learning_rate=3e-3, seeds=[7],
    )[0]  # fmt: skip
    return open_run(run.path, device="cpu")


def rows(section: str) -> list[list[str]]:
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


NETWORK = "tests.training.test_drawing_networks:dropping_pair"


@pytest.mark.parametrize(
    ("family", "data", "settings"),
    [
        ("pca", TINY, {"latents": 3}),
        ("vae", TINY, {"network": NETWORK}),
        ("vae", np.random.default_rng(0).normal(size=(60, 5)), {"network": "dense", "likelihood": "gaussian"}),
        ("lsbd_vae", TINY, {"network": "dense", "pairs": 20}),
        ("weak_de", TINY, {"network": "dense", "labels": 81, "adversary_width": 16, "adversary_depth": 2}),
    ],
    ids=["pca", "own network", "rows of a table", "circles", "labels"],
)
def test_the_lines_that_load_it_run(
    family: str, data: Any, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: Any = {"steps": 2, "batch_size": 8, "processes": 0, "seeds": [0], **settings}
    (run,) = unbraid.train(family, data, out=tmp_path / "runs", **given)
    export_folder(run.path, tmp_path / 'my "model"', trust=[NETWORK])
    text = (tmp_path / 'my "model"' / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len([line for line in code.splitlines() if line]) == 5
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(compile(code, "README.md", "exec"), names)
    assert names["codes"].shape == (1, names["run"].n_codes)
    assert names["images"].shape == (1, *run.config["dataset"]["image_shape"])
    assert ModelCard(text).data.to_dict()["tags"][-1] == family
    needed = re.findall(r"^It needs this code, which is not in the folder .*: `(.*)`\.$", text, flags=re.MULTILINE)
    assert needed == ([NETWORK] if settings.get("network") == NETWORK else [])
    assert ("It was trained with the supervision above" in text) is (family in ("lsbd_vae", "weak_de"))


def test_images_by_their_path_are_not_named(unbraid_cli, tmp_path: Path) -> None:
    np.save(tmp_path / "secret.npy", blocks().array[:, ::4, ::4])
    run = unbraid.train("pca", str(tmp_path / "secret.npy"), out=tmp_path / "runs", processes=0, latents=2)[0]
    text = model_card(load_run(run.path), "mine")
    assert "secret" not in text
    assert "243 images that unbraid knows by no name" in text
    assert "It was not scored: no factors of its images are known." in text
    assert "Nobody has named its latents." in text
    assert "It has no prior" in text
    assert "model-index" not in text
    code, printed, _ = unbraid_cli("export", run.path, "--out", tmp_path / "mine")
    place = f"{tmp_path / 'mine' / 'config.json'} names the place of your images, {tmp_path / 'secret.npy'}"
    assert (code, printed.splitlines()[-1]) == (0, f"note: {place}")


def test_only_files_of_the_run_are_copied(study: Study, tmp_path: Path) -> None:
    source = export_folder(study.runs()[0].path, tmp_path / "source").path
    (source / "notes.txt").write_text("private")
    (tmp_path / "private.json").write_text("{}")
    export_folder(source, tmp_path / "copy")
    names = {each.name for each in (tmp_path / "copy").iterdir()}
    assert names == {each.name for each in source.iterdir()} - {"notes.txt"}
    (source / "scores.json").unlink()
    (source / "scores.json").symlink_to(tmp_path / "private.json")
    with pytest.raises(ValueError):
        export_folder(source, tmp_path / "other")
    assert {each.name for each in tmp_path.iterdir()} == {"source", "copy", "private.json"}


@pytest.mark.parametrize("cut", [None, 40])
def test_no_damaged_file_is_handed_on(trained: Run, tmp_path: Path, cut: int | None) -> None:
    """Curves are no part of what a model card reads: a folder without them, or with half of them, looked exported."""
    run = shutil.copytree(trained.path, tmp_path / "run")
    curves = run / "curves.parquet"
    curves.unlink() if cut is None else curves.write_bytes(curves.read_bytes()[:cut])
    with pytest.raises(ValueError, match=r"curves.parquet is damaged \(it (is missing|has 40 bytes and had [\d,]+)\)"):
        export_folder(run, tmp_path / "copy")
    assert [each.name for each in tmp_path.iterdir()] == ["run"]


def test_a_name_is_no_markup(trained: Run) -> None:
    text = model_card(trained, "a\n# *b*")
    assert "\n# a \\# \\*b\\*\n" in text
    assert yaml.safe_load(text.split("---\n")[1])["library_name"] == "unbraid"
