"""Tables of codes and of labels whose rows are matched by a column that names them."""

import json
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import unbraid
from tests.conftest import Cli
from tests.examples import entangled_codes, grid_factors
from unbraid import Representation
from unbraid.cli.app import app
from unbraid.metrics import mig

FACTORS = np.repeat(grid_factors(2), 3, axis=0)
CODES = entangled_codes(FACTORS)
CELLS = [f"cell-{k}" for k in range(len(CODES))]
ORDER = np.random.default_rng(0).permutation(len(CODES))
Frames: TypeAlias = tuple[pd.DataFrame, pd.DataFrame]  # codes and labels


def written(folder: Path, codes: pd.DataFrame, labels: pd.DataFrame, suffix: str, *, index: bool = False) -> list[str]:
    paths = [folder / f"codes{suffix}", folder / f"labels{suffix}"]
    for path, frame in zip(paths, (codes, labels), strict=True):
        frame.to_csv(path, index=index) if suffix == ".csv" else frame.to_parquet(path, index=index)
    return ["score", str(paths[0]), "--labels", str(paths[1]), "--metrics", "mig"]


@pytest.fixture
def frames() -> Frames:
    codes = pd.DataFrame(CODES, columns=[f"unit{k}" for k in range(CODES.shape[1])])
    labels = pd.DataFrame(FACTORS, columns=["shape", "size", "hue"]).iloc[ORDER]
    return codes, labels


def scored(arguments: list[str], folder: Path) -> tuple[float, list[str]]:
    told = CliRunner().invoke(app, [*arguments, "--json", str(folder / "scores.json")])
    assert told.exit_code == 0, told.exception or told.output
    card = json.loads((folder / "scores.json").read_text())
    return card["metrics"]["mig"]["values"]["score"], card["input"].get("notes", [])


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_rows_are_matched_by_the_column_named(suffix: str, frames: Frames, tmp_path: Path) -> None:
    codes, labels = frames
    arguments = written(tmp_path, codes.assign(cell=CELLS), labels.assign(cell=np.array(CELLS)[ORDER]), suffix)
    score, notes = scored([*arguments, "--key", "cell"], tmp_path)
    right = mig(CODES, FACTORS).score
    assert score == pytest.approx(right)
    assert any("by 'cell'" in note and "stood in another order" in note for note in notes)
    assert mig(CODES, FACTORS[ORDER]).score < right / 2  # as it would be by position


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_the_index_that_pandas_wrote_to_both_is_taken_without_a_key(
    suffix: str, frames: Frames, tmp_path: Path
) -> None:
    codes, labels = frames
    codes.index, labels.index = pd.Index(CELLS), pd.Index(np.array(CELLS)[ORDER])
    score, notes = scored(written(tmp_path, codes, labels, suffix, index=True), tmp_path)
    assert score == pytest.approx(mig(CODES, FACTORS).score)
    assert any("stood in another order" in note for note in notes)


def test_an_index_of_one_table_alone_is_no_factor_and_it_is_said(frames: Frames, tmp_path: Path) -> None:
    codes, labels = frames
    arguments = written(tmp_path, codes, labels, ".csv")
    labels.set_axis(CELLS).to_csv(tmp_path / "labels.csv")
    score, notes = scored(arguments, tmp_path)
    assert score == pytest.approx(mig(CODES, FACTORS[ORDER]).score)
    assert any("a column without a name was left out" in note for note in notes)


@pytest.mark.parametrize("header", ["", "Unnamed: 0"])
def test_an_index_of_the_codes_alone_is_no_code(header: str, frames: Frames, tmp_path: Path) -> None:
    codes, labels = frames
    arguments = written(tmp_path, codes, labels, ".csv")
    codes.set_axis(ORDER).to_csv(tmp_path / "codes.csv", index_label=header)
    score, notes = scored(arguments, tmp_path)
    assert score == pytest.approx(mig(CODES, FACTORS[ORDER]).score)
    assert any("a column without a name was left out" in note for note in notes)
    codes.set_axis(CELLS).to_csv(tmp_path / "alone.csv", index_label=header)
    assert Representation.load(tmp_path / "alone.csv").codes.shape == CODES.shape
    codes.set_axis(CELLS).to_parquet(tmp_path / "alone.parquet")
    assert Representation.load(tmp_path / "alone.parquet").codes.shape == CODES.shape


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_an_index_of_several_levels_without_names_is_matched_level_by_level(
    suffix: str, frames: Frames, tmp_path: Path
) -> None:
    codes, labels = frames
    levels = pd.MultiIndex.from_arrays([[f"trial-{k // 10}" for k in range(len(codes))], np.arange(len(codes)) % 10])
    codes, labels = codes.set_axis(levels), labels.set_axis(levels[ORDER])
    score, notes = scored(written(tmp_path, codes, labels, suffix, index=True), tmp_path)
    assert score == pytest.approx(mig(CODES, FACTORS).score)
    assert any("by 'index'" in note and "stood in another order" in note for note in notes)
    assert unbraid.score(codes, labels, metrics="mig")["mig"].score == pytest.approx(score)
    assert Representation.load(tmp_path / f"codes{suffix}").codes.shape == CODES.shape


def test_names_of_eighteen_digits_are_matched_and_told_apart(tmp_path: Path, unbraid_cli: Cli) -> None:
    """A float takes 60 of these for one."""
    rng = np.random.default_rng(1)
    names, factors = 2**60 + np.arange(120), rng.integers(0, 3, (120, 2))
    codes, order = factors + rng.normal(0, 0.2, (120, 2)), rng.permutation(120)
    table = pd.DataFrame({"id": names, "a": factors[:, 0], "b": factors[:, 1], "who": 2**60 + np.arange(120) // 6})
    table.iloc[order].to_csv(tmp_path / "labels.csv", index=False)
    held = pd.DataFrame({"id": names, "code_0": codes[:, 0], "code_1": codes[:, 1]})
    held.to_csv(tmp_path / "codes.csv", index=False)
    held.to_parquet(tmp_path / "codes.parquet")
    asked = ("--key", "id", "--factors", "a,b", "--groups", "who", "--metrics", "mig", "--json", "-")
    for file in ("codes.csv", "codes.parquet"):
        code, printed, _ = unbraid_cli("score", tmp_path / file, "--labels", tmp_path / "labels.csv", *asked)
        assert code == 0
        card = json.loads(printed)
        assert card["metrics"]["mig"]["values"]["score"] == pytest.approx(mig(codes, factors).score)
        assert "rows in 20 groups, which are never parted" in card["input"]["notes"]
