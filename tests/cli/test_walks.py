"""What three users do, from the files that they have to what they print; the steps are the commands that they type."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image


def activations(folder: Path, n: int, neurons: int) -> None:
    """Neurons 0 to 5 are tuned to orientation, 6 to 11 to phase, 12 to x and 13 to y; the others are noise."""
    rng = np.random.default_rng(0)
    orientation, phase = rng.uniform(0, np.pi, n), rng.uniform(-np.pi, np.pi, n)
    x, y = rng.uniform(-1, 1, (2, n))
    codes = 0.3 * rng.standard_normal((n, neurons))
    for place in range(6):
        codes[:, place] += np.cos(2 * orientation - np.pi * place / 3)
        codes[:, 6 + place] += np.cos(phase - np.pi * place / 3)
    codes[:, 12] += 2 * x
    codes[:, 13] += 2 * y
    np.save(folder / "activations.npy", codes)
    with (folder / "stimuli.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["orientation", "phase", "x", "y"])
        writer.writerows(zip(orientation, phase, x, y, strict=True))


@pytest.mark.parametrize(
    ("n", "neurons"), [(500, 64), pytest.param(5_000, 512, marks=pytest.mark.slow)], ids=["small", "whole"]
)
def test_a_neuroscientist_with_angles_sees_which_neurons(
    unbraid_cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n: int, neurons: int
) -> None:
    monkeypatch.chdir(tmp_path)
    activations(tmp_path, n, neurons)
    stimuli = ["activations.npy", "--labels", "stimuli.csv", "--period", "orientation=pi,phase=2pi"]
    code, printed, error = unbraid_cli("score", *stimuli, "--metrics", "mig,r2,mcc", "--json", "card.json")
    assert (code, "r2" in printed) == (0, True), error
    card = json.loads((tmp_path / "card.json").read_text())
    assert [each["kind"] for each in card["input"]["factors"]] == ["cyclic", "cyclic", "continuous", "continuous"]
    assert min(card["metrics"]["r2"]["per_factor"].values()) > 0.8
    code, _, error = unbraid_cli(
        "figure",
        "information",
        *stimuli,
        "--width",
        "89",
        "--top",
        "14",
        "--out",
        "neurons.png",
        "--data",
        "neurons.csv",
    )
    assert code == 0, error
    assert f"14 of {neurons} codes shown, most important first" in error
    with Image.open("neurons.png") as image:
        assert image.width / 300 * 25.4 == pytest.approx(89, abs=0.2)
        assert image.height / 300 * 25.4 < 130
    rows = list(csv.DictReader((tmp_path / "neurons.csv").read_text().splitlines()))
    assert len({int(row["code"]) for row in rows} & set(range(14))) >= 13  # what tells of something, but for one
    best = {row["factor"]: int(row["code"]) for row in rows if row["aligned"] == "True"}
    assert best["x"] == 12
    assert best["y"] == 13
    assert best["orientation"] < 6 <= best["phase"] < 12
