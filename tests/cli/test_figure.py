"""`unbraid figure` as a user meets it."""

import csv
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

from tests.conftest import Cli


@pytest.fixture
def run(unbraid_cli: Cli) -> Cli:
    return partial(unbraid_cli, "figure")


def test_the_example_and_options(run, tmp_path: Path) -> None:
    code, _, _ = run("kl", "--example", "--out", str(tmp_path / "kl.png"), "--set", "threshold=2")
    assert code == 0
    assert (tmp_path / "kl.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("own", [True, False], ids=["factors of the file", "a table of labels"])
def test_only_the_factors_asked_for_cost_rows(run, tmp_path: Path, own: bool) -> None:
    """As `unbraid score --factors` counts rows: others may have gaps, or name the rows."""
    rng = np.random.default_rng(0)
    shape, size = rng.integers(0, 3, 200), rng.integers(0, 4, 200)
    codes = np.stack([shape, rng.permutation(size), size], axis=1)
    gaps = np.where(np.arange(200) < 150, np.nan, shape)
    if own:
        np.savez(tmp_path / "codes.npz", codes=codes, factors=np.stack([gaps, shape, size], axis=1))
        asked = [str(tmp_path / "codes.npz"), "--factors", "factor_1,factor_2"]
    else:
        np.save(tmp_path / "codes.npy", codes)
        rows = [f"{row},{'' if row < 150 else 1},{shape[row]},{size[row]}" for row in range(200)]
        (tmp_path / "labels.csv").write_text("\n".join(["image,gaps,shape,size", *rows]), encoding="utf-8")
        asked = [str(tmp_path / "codes.npy"), "--labels", str(tmp_path / "labels.csv"), "--factors", "shape,size"]
    out, data = tmp_path / "h.svg", tmp_path / "h.csv"
    code, _, said = run("hinton", *asked, "--set", "metric=mig", "--out", str(out), "--data", str(data))
    assert code == 0, said
    with data.open(encoding="utf-8") as file:
        shown = [float(row["mutual_information"]) for row in csv.DictReader(file)]
    assert shown == pytest.approx([mutual_info_score(column, factor) for column in codes.T for factor in (shape, size)])
