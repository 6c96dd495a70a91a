"""What the README shows is what it prints, and its commands run."""

import glob
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import Cli
from unbraid.metrics import MEASURES, METRICS
from unbraid.runs.run import load_run
from unbraid.studies.study import Study

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, flags=re.DOTALL)
COMMANDS = [
    line.partition(" #")[0].strip()
    for language, block in BLOCKS
    if language == "sh"
    for line in block.splitlines()
    if line.startswith("unbraid ")
]
RUN = "3f6c0f0a8d1e2b47"
# What takes hours in the README takes seconds here.
SHORTER = {
    "--minutes 30": "--plan plan.yaml",
    "--dataset sprites --seeds 4": "--dataset square --data positions=8 --seeds 2 --steps 2 --set network=dense",
}
NUMBER = re.compile(r"-?\d+\.\d+")
STUDY = """
name: small
dataset: {name: square, positions: 8, shrink: 4}
families: [{name: beta_vae, beta: [1, 4, 16], network: dense, latents: 3}]
seeds: 3
steps: 2
batch_size: 8
precision: float32
device: cpu
metrics: [mig, sap]
executor: {name: local, processes: 0}
"""
PLAN = """
minutes: 1
size: 16
search: {size: 16, network: dense, steps: 2, seeds: 2, settings: [{family: vae, strength: 1}]}
final: {size: 16, network: dense, steps: 2, seeds: 2, settings: 1, multiples: [1]}
"""
METRIC = '''
def my_metric(codes, factors):
    """Largest absolute correlation of a code with a factor."""
    import numpy as np

    n_codes = codes.shape[1]
    return float(np.nan_to_num(np.abs(np.corrcoef(codes.T, factors.T)[:n_codes, n_codes:])).max())
'''


@pytest.mark.lengthy
def test_python_prints_what_stands_below_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Word for word, and number for number to the last digit shown."""
    n_shown = 0
    for (language, code), (below, shown) in zip(BLOCKS, BLOCKS[1:], strict=False):
        if (language, below) == ("python", "text"):
            exec(compile(code, "README.md", "exec"), {})
            printed = capsys.readouterr().out
            assert NUMBER.sub("#", printed) == NUMBER.sub("#", shown)
            for number, expected in zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True):
                last_digit = 10.0 ** -len(expected.partition(".")[2])
                assert float(number) == pytest.approx(float(expected), abs=1.01 * last_digit), expected
            n_shown += 1
    assert n_shown


def test_python_without_output_runs_on_codes_and_labels() -> None:
    """Of the names that it leaves to the reader: arrays, and an encoder with its dataset."""
    rng = np.random.default_rng(0)
    labels = {"size": rng.choice([1, 2, 10], 60), "hue": rng.choice([0.0, 90.0, 180.0, 270.0, -1.0], 60)}
    import unbraid

    names = {"unbraid": unbraid, "codes": rng.standard_normal((60, 3)), "labels": labels}
    for (language, code), (below, _) in zip(BLOCKS, [*BLOCKS[1:], ("", "")], strict=True):
        if language == "python" and below != "text":
            exec(compile(code, "README.md", "exec"), names)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the files that the commands name."""
    home = tmp_path_factory.mktemp("readme")
    rng = np.random.default_rng(0)
    for folder in ("codes", "images", "runs", "my_lab"):
        (home / folder).mkdir()
    factors = np.column_stack([rng.integers(0, 3, 120), rng.integers(0, 4, 120) * 90, rng.integers(0, 2, 120)])
    codes = factors / [3, 360, 2] + 0.1 * rng.standard_normal((120, 3))
    names = ["shape", "hue", "scanner"]
    np.savez(home / "codes.npz", codes=codes, factors=factors, factor_names=names)
    np.savez(home / "a.npz", codes=codes, factors=factors, factor_names=names)
    np.savez(home / "b.npz", codes=rng.standard_normal((120, 3)), factors=factors, factor_names=names)
    np.save(home / "codes.npy", codes)
    np.savetxt(home / "labels.csv", factors, fmt="%d", delimiter=",", header=",".join(names), comments="")
    for number in range(3):
        np.save(home / "codes" / f"vae-{number}.npy", codes + 0.1 * rng.standard_normal(codes.shape))
    (home / "my_lab" / "scores.py").write_text(METRIC)
    (home / "study.yaml").write_text(STUDY)
    (home / "plan.yaml").write_text(PLAN)
    from PIL import Image

    for number, pixels in enumerate(rng.integers(0, 256, (500, 16, 16), dtype=np.uint8)):
        Image.fromarray(pixels).save(home / "images" / f"{number:03}.png")
    (run, *_) = Study.load(home / "study.yaml", out=home / "first").run(processes=0)
    shutil.copytree(home / "first" / "runs" / run.id, home / "runs" / RUN)
    yield home
    load_run(home / "runs" / RUN)  # what read it left it whole


@pytest.mark.lengthy
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_run(command: str, home: Path, unbraid_cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order in which they stand: what one writes another reads."""
    if ".h5ad" in command:
        _write_cells(home / "cells.h5ad", pytest.importorskip("anndata"))
    monkeypatch.chdir(home)
    monkeypatch.syspath_prepend(os.fspath(home))
    monkeypatch.setenv("UNBRAID_DATA", os.fspath(home / "data"))
    if "--watch" in command:  # until Ctrl-C
        monkeypatch.setattr("time.sleep", _interrupted)
    for long, short in SHORTER.items():
        command = command.replace(long, short)
    _, *arguments = shlex.split(command.partition(" > ")[0])
    arguments = [path for each in arguments for path in (sorted(glob.glob(each)) if "*" in each else [each])]
    code, printed, error = unbraid_cli(*arguments)
    assert code == (3 if arguments[0] == "stress" else 0), error  # both metrics fail some of its tests
    assert printed or error


def _interrupted(_seconds: float) -> None:
    raise KeyboardInterrupt


def _write_cells(path: Path, anndata: Any) -> None:
    import pandas as pd

    rng = np.random.default_rng(0)
    levels = rng.integers(0, 3, (120, 3))
    obs = pd.DataFrame(
        {
            "cell_type": np.array(["B", "NK", "T"])[levels[:, 0]],
            "dosage": levels[:, 1].astype(float),
            "batch": np.array(["a", "b", "c"])[levels[:, 2]],
        },
        index=[f"cell {row}" for row in range(120)],
    )
    codes = levels + 0.1 * rng.standard_normal((120, 3))
    anndata.AnnData(X=codes, obs=obs, obsm={"X_scVI": codes}).write_h5ad(path)


def test_all_that_is_shortened_stands_in_the_readme() -> None:
    assert all(any(long in command for command in COMMANDS) for long in SHORTER)


def test_metrics_are_counted_as_they_are() -> None:
    root = Path(__file__).parent.parent
    assert re.findall(r"(\d+) metrics of", (root / "README.md").read_text(encoding="utf-8")) == [str(len(METRICS))]
    assert MEASURES.keys() - METRICS.keys() == {"udr", "explained_variance"}


def test_every_link_leads_to_a_file() -> None:
    root = Path(__file__).parent.parent
    for page in (
        root / "README.md",
        *root.glob("*.md"),
        *(root / "docs").glob("*.md"),
        *root.glob("evidence/benchmarks/*.md"),
    ):
        for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name} links to {target}"
