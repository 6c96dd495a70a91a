"""A zoo says of its models what their studies say, and gives their codes back."""

import json
import sys
import zipfile
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unbraid
from unbraid import zoo
from unbraid.runs.run import load_run
from unbraid.studies.study import Study
from unbraid.zoo.listing import PACKAGED
from unbraid.zoo.zoo_files import open_file, unpacked

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "evidence"))
building: Any = import_module("zoo_building")
packed: Any = import_module("zoo_writing").packed
defects: Any = import_module("zoo_defects")
YAML = """
name: tiny
dataset: {name: square, positions: 8, shrink: 4}
families: [{name: beta_vae, beta: [1, 4], network: dense, latents: 3}, {name: pca, latents: 3, seeds: [0]}]
seeds: [0, 1]
steps: 2
batch_size: 8
precision: float32
device: cpu
metrics: [mig, sap]
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("studies")
    (folder / "tiny.yaml").write_text(YAML)
    runs = Study.load(folder / "tiny.yaml", out=folder / "tiny").run(processes=0)
    assert [run.state for run in runs] == ["finished"] * 5
    return folder / "tiny"


@pytest.fixture(scope="module")
def built(study: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("zoo")
    before = {path: path.stat().st_mtime_ns for path in study.rglob("*")}
    assert building.build([study, study], folder, untrained=1) == [folder / "square.npz"]  # each run once
    assert {path: path.stat().st_mtime_ns for path in study.rglob("*")} == before
    return folder


def test_the_list_says_what_the_study_says(study: Path, built: Path) -> None:
    models = zoo.list(built)
    assert list(models.index) == [
        "square/beta_vae-l3-b1-s0", "square/beta_vae-l3-b1-s1", "square/beta_vae-l3-b4-s0", "square/beta_vae-l3-b4-s1",
        "square/pca-l3-s0", "square/beta_vae-untrained-s0",
    ]  # fmt: skip
    trained = models[models["steps"] != 0].set_index("run")
    results = Study.load(study).results().set_index("run")
    assert list(trained.index) == list(results.index)
    assert trained["study.mig.score"].to_list() == results["mig.score"].to_list()
    assert trained["hyper.beta"].to_list()[:4] == [1, 1, 4, 4]
    assert set(models["study"]) == {"tiny"}
    assert models["steps"].to_list()[:4] == [2] * 4
    assert models["steps"].isna()["square/pca-l3-s0"]


def test_codes_are_those_of_the_run_in_float16(study: Path, built: Path) -> None:
    models = zoo.list(built)
    for name, run in models["run"].items():
        kept, held = load_run(study / "runs" / run), zoo.load(str(name), built)
        exact = kept.untrained().representation() if "untrained" in str(name) else kept.codes()
        reach = np.abs(exact.codes - exact.codes.mean(axis=0)).max(axis=0)
        assert (np.abs(held.codes - exact.codes) <= 2.0**-11 * reach + 1e-6 * np.abs(exact.codes)).all()
        assert np.array_equal(held.factors, exact.factors)
        assert (held.names, held.kinds, held.sizes) == (exact.names, exact.kinds, exact.sizes)
        if "pca" not in str(name):
            assert models.loc[name, "kl"] == pytest.approx(exact.mean_kl())  # pyright: ignore[reportArgumentType]


def test_scores_are_those_of_the_codes_that_are_kept(built: Path) -> None:
    models = zoo.list(built)
    for name in ("square/beta_vae-l3-b4-s1", "square/pca-l3-s0"):
        card = unbraid.score(zoo.load(name, built), metrics=building.SCORED)
        for metric in card:
            assert models.loc[name, metric] == card.scored[metric].headline


def test_rows_are_the_same_of_all_models(study: Path, tmp_path: Path) -> None:
    building.build([study], tmp_path, rows=20, keep=lambda name: "-b1-" in name)
    one, other = (zoo.load(f"square/beta_vae-l3-b1-s{seed}", tmp_path) for seed in (0, 1))
    assert len(one) == 20
    assert np.array_equal(one.factors, other.factors)
    assert len(np.unique(one.factors, axis=0)) == 20
    with pytest.raises(ValueError, match="no finished model"):
        building.build([study], tmp_path, keep=lambda _: False)


def test_equal_studies_make_equal_files(study: Path, built: Path, tmp_path: Path) -> None:
    (path,) = building.build([study], tmp_path, untrained=1)
    assert path.read_bytes() == (built / "square.npz").read_bytes()


def test_untrained_models_are_known_by_their_defects(built: Path) -> None:
    listed = zoo.list(built)["defects"]
    assert "untrained" in listed["square/beta_vae-untrained-s0"]
    assert {defect for names in listed for defect in names} <= {*defects.DEFECTS}


def test_defects_of_codes_that_have_them() -> None:
    rng = np.random.default_rng(0)
    factors = rng.integers(0, 5, (400, 2))
    sound = factors + rng.normal(0, 0.1, (400, 2))
    ends = np.where(factors[:, 0] > 0, np.sign(factors[:, 1] - 1.5), rng.uniform(-1, 1, 400))
    wide, narrow = np.zeros((400, 2)), np.full((400, 2), -8.0)

    def of(codes: np.ndarray, log_variances: np.ndarray | None = None) -> tuple[str, ...]:
        return defects.defects_of(unbraid.Representation(codes, factors, log_variances, kinds=("ordinal",) * 2))

    assert of(sound) == of(sound, narrow) == ()
    assert of(0.01 * sound, wide) == ("collapsed", "few codes")
    assert of(sound, np.hstack([narrow[:, :1], wide[:, 1:] + 9])) == ("few codes",)
    assert of(np.hstack([sound, 2 - 3 * sound[:, :1]])) == ("copies",)
    assert of(np.column_stack([sound[:, 0], ends])) == ("saturated",)
    assert of(np.column_stack([sound[:, 0], factors[:, 1] > 1])) == ()  # two values: a switch


@pytest.mark.parametrize(("offset", "width"), [(0, 1), (1e6, 10), (0, 1e-9), (-5, 1e12)])
def test_packing_keeps_eleven_bits_of_any_offset_and_width(offset: float, width: float) -> None:
    codes = (offset + width * np.random.default_rng(0).normal(size=(50, 3))).astype(np.float32)
    planes, centre, scale = packed(codes)
    assert planes.shape == (2, 3, 50)
    reach = np.abs(codes - codes.mean(axis=0, dtype=float)).max(axis=0)
    assert (np.abs(unpacked(planes, centre, scale) - codes) <= 2.0**-11 * reach + 2.0**-23 * np.abs(codes)).all()
    halves = ((codes[:, 1].astype(float) - centre[1]) / scale[1]).astype(np.float16)  # as anybody may read the bytes
    assert np.array_equal(planes[0, 1] + 256 * planes[1, 1].astype(np.uint16), halves.view(np.uint16))


def test_constant_codes_stay_constant_and_infinite_ones_are_refused() -> None:
    assert (unpacked(*packed(np.full((9, 2), 3.25))) == 3.25).all()
    with pytest.raises(ValueError, match="not finite"):
        packed(np.array([[1.0], [np.inf]]))


def test_the_variable_names_the_folder(built: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("UNBRAID_ZOO", str(built))
    assert set(zoo.list()["dataset"]) == {"square"}
    monkeypatch.setenv("UNBRAID_ZOO", str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError, match=r"none \(UNBRAID_ZOO\): no such folder"):
        zoo.list()
    with pytest.raises(FileNotFoundError, match="not the folder of a zoo"):
        zoo.list(tmp_path)


def changed(path: Path, about: dict) -> Path:
    """A copy of a file of a zoo with other words in it."""
    copy = path.parent / "changed" / path.name
    copy.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(copy, "w") as new:
        for name in old.namelist():
            content = json.loads(old.read(name)) | about if name == "zoo.json" else None
            new.writestr(name, old.read(name) if content is None else json.dumps(content))
    return copy


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"format": 9}, "its format is 9; this version of unbraid reads 1"),
        ({"rows": "many"}, "rows: input should be a valid integer"),
        ({"more": 1}, "more: unknown"),
        ({"models": []}, "models: is empty; it needs at least one"),
    ],
)
def test_files_that_say_what_no_zoo_says(built: Path, about: dict, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        open_file(changed(built / "square.npz", about))


def test_files_whose_parts_do_not_fit(built: Path) -> None:
    file = open_file(changed(built / "square.npz", {"rows": 3}))
    with pytest.raises(ValueError, match=r"damaged: codes/pca-l3-s0 is not uint8 \(2, 3, 3\)"):
        file.codes("pca-l3-s0")
    about = dict(open_file(built / "square.npz").record)
    twice = {"models": [about["models"][0]] * 2}
    with pytest.raises(ValueError, match="two models have one name"):
        open_file(changed(built / "square.npz", twice))


def test_foreign_files(tmp_path: Path) -> None:
    (tmp_path / "text.npz").write_text("no zip")
    np.savez(tmp_path / "arrays.npz", codes=np.eye(3))
    for name, why in (("text", "it is no zip archive"), ("arrays", "it holds no zoo.json")):
        with pytest.raises(ValueError, match=rf"{name}.npz: not the file of a zoo \({why}\)"):
            open_file(tmp_path / f"{name}.npz")


def test_a_damaged_file_is_named(built: Path, tmp_path: Path) -> None:
    whole = bytearray((built / "square.npz").read_bytes())
    with zipfile.ZipFile(built / "square.npz") as archive:
        start = archive.getinfo("codes/pca-l3-s0.npy").header_offset
    whole[start + 80] ^= 255
    (tmp_path / "square.npz").write_bytes(whole)
    with pytest.raises(ValueError, match=r"square.npz: not a readable .npz file"):
        zoo.load("square/pca-l3-s0", tmp_path)


def test_the_zoo_inside_the_package() -> None:
    assert sum(path.stat().st_size for path in PACKAGED.iterdir()) <= 2_000_000
    models = zoo.list(PACKAGED)
    assert len(models) == 24
    assert models[["family", "setting"]].drop_duplicates().shape[0] > len(models) / 2
    assert models["commit"].str.fullmatch("[0-9a-f]{40}").all()
    for name in models.index[:: len(models) // 4]:
        card = unbraid.score(zoo.load(name, PACKAGED), metrics=["mig", "sap", "mcc", "r2"], on_error="raise")
        for metric in card:
            assert models.loc[name, metric] == pytest.approx(card.scored[metric].headline, abs=1e-9)
