"""D_LSBD of trained runs whose codes do not fill the grid: whole objects are encoded for it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import unbraid
from tests.training.training_examples import SMALL, SPACE, blocks
from unbraid.cli.app import app
from unbraid.data import FactorSpace
from unbraid.data.image_dataset import ArrayDataset, FactorDataset
from unbraid.datasets import load
from unbraid.families.family_table import FAMILIES
from unbraid.files.run_files import CODES
from unbraid.metrics import d_lsbd
from unbraid.runs.interpolations import object_interpolation, rotation_traversal
from unbraid.runs.run import Run
from unbraid.studies.run_scores import complete_scores

SETS: dict[str, dict[str, Any]] = {
    "square": {"positions": 8},
    "arrow": {"hues": 8, "rotations": 8},
    "airplane": {},
    "airplanes": {"n_objects": 4},
    "turntable": {"n_objects": 3},
}


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNBRAID_DATA", str(tmp_path_factory.mktemp("data")))
        yield


def trained(folder: Path, source: Any, kept: int = 50) -> Run:
    """A run that has hardly begun, and keeps codes of so few images that no object is whole."""
    (run,) = unbraid.train("vae", source, steps=3, latents=4, network="dense", out=folder, processes=0, device="cpu")
    run.representation(None if isinstance(source, dict) else source, kept).save(run.path / CODES)
    return run


def levels(dataset: FactorDataset) -> Any:
    return dataset.space.factors(np.arange(len(dataset)))


def direct(run: Run, dataset: FactorDataset, index: Any = None) -> Any:
    """The metric itself, of all images or of some."""
    index = np.arange(len(dataset)) if index is None else index
    codes = run.encode(dataset.images(index))
    return d_lsbd(codes, dataset.space.factors(index), kinds=dataset.space.kinds)


@pytest.mark.parametrize("name", SETS)
def test_scores_of_a_run_are_those_of_the_whole_grid(name: str, tmp_path: Path) -> None:
    source = {"name": name, "shrink": 4, **SETS[name]}
    run = trained(tmp_path, source)
    done = CliRunner().invoke(app, ["score", str(run.path), "--metrics", "d_lsbd,mig"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    card = json.loads((run.path / "scores.json").read_text())
    dataset = load(**source)
    expected = direct(run, dataset)
    assert card["metrics"]["d_lsbd"]["values"]["score"] == pytest.approx(expected.score, abs=1e-6)
    assert card["metrics"]["d_lsbd"]["notes"][0] == f"on {len(dataset):,} images of whole objects, encoded for it"
    np.testing.assert_allclose(card["metrics"]["d_lsbd"]["arrays"]["frequencies"], expected.frequencies)
    assert "projected" not in card["metrics"]["d_lsbd"]["arrays"]  # of rows that are not in the folder
    assert card["input"]["n_samples"] == 50  # those of mig
    (run.path / "scores.json").unlink()
    complete_scores(run.path, ["d_lsbd"], dataset=dataset)  # as a study does
    assert json.loads((run.path / "scores.json").read_text())["metrics"]["d_lsbd"]["values"] == pytest.approx(
        card["metrics"]["d_lsbd"]["values"]
    )


def test_codes_that_fill_the_grid_are_taken_as_they_are(tmp_path: Path) -> None:
    run = trained(tmp_path, {"name": "square", "positions": 8, "shrink": 4}, kept=64)

    def never() -> Any:
        raise AssertionError

    card = unbraid.score(run.codes(), metrics=["d_lsbd"], orbits=never)
    assert card["d_lsbd"].score == pytest.approx(direct(run, run.dataset()).score, abs=1e-6)
    assert not any("encoded for it" in note for note in card.scored["d_lsbd"].notes)


def test_of_many_objects_some_are_drawn_and_their_number_is_noted(tmp_path: Path) -> None:
    run = trained(tmp_path, {"name": "airplanes", "shrink": 4, "n_objects": 4})
    scored = unbraid.score(run.codes(), metrics=["d_lsbd"], orbits=lambda: run.objects(n=150)).scored["d_lsbd"]
    dataset = run.dataset()
    drawn = np.unique(run.objects(n=150).factors[:, 0])
    assert len(drawn) == 2
    index = np.flatnonzero(np.isin(levels(dataset)[:, 0], drawn))
    assert scored.headline == pytest.approx(direct(run, dataset, index).score, abs=1e-6)
    assert scored.notes == (
        "on 128 images of whole objects, encoded for it",
        "scale: mean squared norm 1 in the plane (appendix C), at most 1",
        "averaged over 2 of 4 combinations of the other factors, each with its own planes",
    )
    assert not np.array_equal(run.objects(n=150, seed=1).factors, run.objects(n=150, seed=2).factors)


@pytest.mark.lengthy
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_scored_and_generates_images(family: str, tmp_path: Path) -> None:
    """Of 243 images three whole objects; two of them are asked for."""
    wanted = {"network": "dense", "latents": 4, **SMALL.get(family, {})}
    settings = {name: value for name, value in wanted.items() if name in FAMILIES[family].hyperparameters}
    (run,) = unbraid.train(family, blocks(), steps=2, batch_size=8, out=tmp_path, processes=0, device="cpu", **settings)
    held = run.objects(blocks(), 170)
    assert len(held) == 2 * 81
    card = unbraid.score(run.representation(blocks(), 20), metrics=["d_lsbd"], orbits=lambda: held)
    assert card["d_lsbd"].score == pytest.approx(
        direct(run, blocks(), SPACE.index(held.factors.astype(int))).score, abs=1e-5
    )
    for found in (
        rotation_traversal(run, blocks(), rows=2, steps=3),
        object_interpolation(run, blocks(), pairs=1, rows=2),
    ):
        np.testing.assert_allclose(found.images[0, 1], run.decode(found.codes[0, 1]), atol=1e-5)


def test_objects_of_ones_own_encoder() -> None:
    dataset = load("turntable", n_objects=3, shrink=4)

    def encode(images: np.ndarray) -> np.ndarray:
        return images.reshape(len(images), -1)[:, :300:60] / 255

    card = unbraid.score_encoder(encode, dataset, n_samples=144, metrics=["d_lsbd"], seed=5)
    held = card.scored["d_lsbd"].objects
    assert held is not None
    kept = np.unique(held.factors[:, 0])
    index = np.flatnonzero(np.isin(levels(dataset)[:, 0], kept))
    assert len(kept) == 2
    expected = d_lsbd(encode(dataset.images(index)), dataset.space.factors(index), kinds=dataset.space.kinds)
    assert card["d_lsbd"].score == pytest.approx(expected.score)


def test_overlapping_planes_are_flagged() -> None:
    """Brightness turns both factors in one plane, as in the docstring of the metric: 0, and yet nothing is apart."""
    space = FactorSpace(("a", "b"), (16, 16), ("cyclic", "cyclic"))
    a, b = space.grid().T * 2 * np.pi / 16
    points = np.stack([np.cos(a) + np.cos(2 * b), np.sin(a) + np.sin(2 * b)], axis=1)
    dataset = ArrayDataset(np.rint(60 * points + 125).astype(np.uint8).reshape(256, 1, 2, 1), space)
    card = unbraid.score_encoder(lambda images: images.reshape(-1, 2) / 60, dataset, n_samples=40, metrics=["d_lsbd"])
    assert card["d_lsbd"].score < 0.001
    assert any("factors a and b act in overlapping planes" in note for note in card.scored["d_lsbd"].notes)


def test_what_cannot_be_whole_is_left_out_with_the_reason(tmp_path: Path) -> None:
    run = trained(tmp_path, blocks())
    done = CliRunner().invoke(app, ["score", str(run.path), "--metrics", "d_lsbd,mig"], catch_exceptions=False)
    assert done.exit_code == 0
    skipped = json.loads((run.path / "scores.json").read_text())["skipped"]
    assert skipped == {"d_lsbd": "needs whole objects, and the run was trained on a dataset in memory"}
    card = unbraid.score(run.codes(), metrics=["d_lsbd"], orbits=lambda: run.objects(blocks()))
    assert card["d_lsbd"].score == pytest.approx(direct(run, blocks()).score, abs=1e-6)

    gaps = unbraid.datasets.leave_out(load("square", positions=8, shrink=4), "x == 0")
    with pytest.raises(ValueError, match="needs a dataset that is a full grid of factors"):
        unbraid.score_encoder(lambda images: images[:, 0, :3, 0] / 255, gaps, n_samples=20, metrics=["d_lsbd"])
