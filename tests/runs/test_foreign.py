"""Folders of models that another framework trained."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import unbraid
from tests.conftest import Cli
from unbraid.runs.foreign_models import code_file, config_columns, fitted_images, is_run, label_file, models_below

RNG = np.random.default_rng(0)
LABELS = pd.DataFrame(RNG.integers(0, [3, 5], (200, 2)), columns=["shape", "hue"])


def codes_of(noise: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.column_stack([LABELS.to_numpy() + noise * rng.standard_normal((200, 2)), rng.standard_normal(200)])


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two settings of two seeds, with labels in the folder above."""
    for beta in (1, 4):
        for seed in (0, 1):
            folder = tmp_path / "runs" / f"beta{beta}_seed{seed}"
            folder.mkdir(parents=True)
            np.save(folder / "z.npy", codes_of(0.2 * beta, seed))
            (folder / "config.yaml").write_text(f"model:\n  beta: {beta}\n  name: vae\nseed: {seed}\nlr: 1e-3\n")
    LABELS.to_csv(tmp_path / "runs" / "labels.csv", index=False)
    return tmp_path / "runs"


def test_images_of_a_fit_folder_are_those_of_the_runs_that_were_trained_on_them(tmp_path: Path) -> None:
    folder = tmp_path.resolve()
    run, images = folder / "study" / "runs" / "a", folder / "images" / "images.npy"
    for path in (run, images.parent):
        path.mkdir(parents=True)
    (folder / "plan.yaml").touch()
    images.touch()
    assert fitted_images(run, "/moved/images/images.npy") == images
    assert fitted_images(run, "/elsewhere/pictures.npy") is None


def test_scores_are_those_of_the_arrays_and_configs_are_columns(runs: Path, unbraid_cli: Cli) -> None:
    code, _, error = unbraid_cli("score", str(runs), "--metrics", "mig", "--csv", str(runs.parent / "table.csv"))
    assert code == 0, error
    table = pd.read_csv(runs.parent / "table.csv").set_index("model")
    assert table.columns.tolist() == ["model.beta", "model.name", "seed", "lr", "factors", "mig"]
    for name, row in table.iterrows():
        beta, seed = int(row["model.beta"]), int(row["seed"])
        assert name == f"beta{beta}_seed{seed}"
        expected = unbraid.score(codes_of(0.2 * beta, seed), LABELS, metrics="mig")["mig"].score
        assert row["mig"] == pytest.approx(expected, abs=1e-12)
    assert table["mig"].is_monotonic_decreasing


def test_means_over_seeds(runs: Path, unbraid_cli: Cli) -> None:
    code, out, error = unbraid_cli("score", str(runs), "--metrics", "mig", "--by", "setting", "--json", "-")
    assert code == 0, error
    read = json.loads(out)
    assert [(each["setting"], each["models"]) for each in read["means"]] == [("model.beta=1", 2), ("model.beta=4", 2)]
    mean = np.mean([each["mig"] for each in read["models"] if each["model.beta"] == 1])
    assert read["means"][0]["mig"] == pytest.approx(mean, abs=1e-12)


def test_rank_and_compare_take_them(runs: Path, unbraid_cli: Cli) -> None:
    code, out, error = unbraid_cli("rank", str(runs), "--by", "model.beta", "--json", "-")
    assert code == 0, error
    assert "beta1" in out
    models = {f"beta{beta}_seed{seed}": codes_of(0.2 * beta, seed) for beta in (1, 4) for seed in (0, 1)}
    read = {Path(path).name: score for path, score in json.loads(out)["scores"].items()}
    scores = unbraid.rank(models, groups=["1", "1", "4", "4"]).scores
    assert read == pytest.approx(dict(zip(models, scores, strict=True)), abs=1e-12)
    one, other = str(runs / "beta1_seed0"), str(runs / "beta4_seed0")
    code, out, error = unbraid_cli("compare", one, other, "--metrics", "mig", "--json", "-")
    assert code == 0, error
    assert "beta1_seed0" in out


def test_labels_beside_the_codes_come_before_those_above(runs: Path) -> None:
    folder = runs / "beta1_seed0"
    assert label_file(folder, folder / "z.npy") == runs / "labels.csv"
    LABELS.to_csv(folder / "factors.csv", index=False)
    assert label_file(folder, folder / "z.npy") == folder / "factors.csv"
    (folder / "targets.npy").write_bytes(b"")
    with pytest.raises(ValueError, match=r"several files may hold the labels \(factors.csv, targets.npy\)"):
        label_file(folder, folder / "z.npy")


def test_codes_saved_without_factors_take_the_labels_beside_them(runs: Path, unbraid_cli: Cli) -> None:
    folder = runs / "beta1_seed0"
    (folder / "z.npy").unlink()
    unbraid.Representation(codes_of(0.2, 0)).save(folder / "codes.npz")  # which holds an empty array of factors
    code, out, error = unbraid_cli("score", str(folder), "--metrics", "mig", "--json", "-")
    assert code == 0, error
    assert "labels are those of labels.csv in the folder above" in json.loads(out)["input"]["notes"]


@pytest.fixture
def broken(runs: Path) -> dict[Path, str]:
    """Beside the four whole models of `runs` four broken ones, each with its fault."""
    faults = {
        runs / "cut": "cut/z.npy",
        runs / "unclear": "several files may hold the codes (codes.npy, z.npy)",
        runs / "no_codes": "neither it nor a folder in it holds codes.npy",
        runs / "config": "config.yaml is not readable as YAML",
    }
    for folder in faults:
        shutil.copytree(runs / "beta1_seed0", folder)
    (runs / "cut" / "z.npy").write_bytes((runs / "cut" / "z.npy").read_bytes()[:100])
    np.save(runs / "unclear" / "codes.npy", codes_of(0, 0))
    (runs / "no_codes" / "z.npy").unlink()
    (runs / "config" / "config.yaml").write_text("a: [")
    return faults


def assert_named(error: str, failed: list[dict[str, str]], faults: dict[Path, str]) -> None:
    assert {each["path"] for each in failed} == set(map(str, faults))
    lines = [line for line in error.splitlines() if line.startswith("unbraid: ")]
    assert len(lines) == len(faults)
    for folder, fault in faults.items():
        (line,) = [line for line in lines if str(folder) in line]
        assert fault in line


def test_a_broken_model_costs_its_own_row(runs: Path, broken: dict[Path, str], unbraid_cli: Cli) -> None:
    code, out, error = unbraid_cli("score", str(runs), "--metrics", "mig", "--by", "model.beta", "--json", "-")
    assert code == 3
    content = json.loads(out)
    assert_named(error, content["failed"], broken)
    assert len(content["models"]) == 4
    assert [(row["model.beta"], row["models"]) for row in content["means"]] == [("1", 2), ("4", 2)]


def test_compare_and_rank_leave_broken_models_out(runs: Path, broken: dict[Path, str], unbraid_cli: Cli) -> None:
    code, out, error = unbraid_cli("compare", str(runs), "--metrics", "mig", "--confidence", ".9", "--json", "-")
    unread = {folder: fault for folder, fault in broken.items() if folder.name != "config"}  # which compare needs not
    assert code == 3
    assert_named(error, json.loads(out)["failed"], unread)
    code, out, error = unbraid_cli("rank", str(runs), "--json", "-", "--similarity", "spearman")
    assert code == 3
    assert_named(error, json.loads(out)["failed"], unread)
    assert len(json.loads(out)["scores"]) == 5


def test_rank_leaves_out_models_of_other_rows_and_codes_that_are_not_finite(runs: Path, unbraid_cli: Cli) -> None:
    codes = np.load(runs / "beta1_seed0" / "z.npy")
    np.save(runs.parent / "short.npy", codes[:150])
    codes[3, 1] = np.nan
    np.save(runs.parent / "gap.npy", codes)
    faults = {runs.parent / "short.npy": "not the samples of", runs.parent / "gap.npy": "not finite"}
    code, out, error = unbraid_cli("rank", str(runs), *map(str, faults), "--json", "-", "--similarity", "spearman")
    assert code == 3
    assert_named(error, json.loads(out)["failed"], faults)
    assert len(json.loads(out)["scores"]) == 4


def test_files_are_found_by_name_or_pattern(tmp_path: Path) -> None:
    (tmp_path / "a" / "deep").mkdir(parents=True)
    (tmp_path / ".hidden").mkdir()
    for place in ("a/deep/Embeddings.npz", ".hidden/codes.npy"):
        (tmp_path / place).touch()
    assert models_below(tmp_path) == [tmp_path / "a" / "deep"]
    assert models_below(tmp_path, "*.csv") == []
    assert code_file(tmp_path / "a" / "deep", "Emb*") == tmp_path / "a" / "deep" / "Embeddings.npz"
    with pytest.raises(ValueError, match="no pattern of file names"):
        code_file(tmp_path, "/absolute")


def test_configs_are_flattened_and_nothing_in_them_runs(tmp_path: Path) -> None:
    (tmp_path / ".hydra").mkdir()
    hydra = tmp_path / ".hydra" / "config.yaml"
    hydra.write_text("a: {b: 1e-4, c: [1, 2]}\nnone: null\nw: {value: 3, desc: null}\nlayers: [{n: 8}]\n")
    assert config_columns(tmp_path) == {"a.b": 1e-4, "a.c": "[1, 2]", "w": 3, "layers.0.n": 8}
    hydra.write_text("a: !!python/object/apply:os.mkdir [made]\n")
    assert config_columns(tmp_path) == {"a": "['made']"}
    assert not (tmp_path / "made").exists()
    assert not Path("made").exists()
    (tmp_path / "config.json").write_text('{"beta": 4}')
    assert config_columns(tmp_path) == {"beta": 4}
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ValueError, match=r"config\.json"):
        config_columns(tmp_path)
    assert not is_run(tmp_path / ".hydra")
