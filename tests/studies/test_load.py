"""What a run costs beside its training, and what it costs to ask about it, in files and writes: never in seconds."""

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.studies.examples import SMALL, written
from unbraid import Study, _records, load_run, score_file, train
from unbraid.families.table import FAMILIES
from unbraid.runs.folder import CHECKPOINT, LASTING

FILES = ("config.json", "status.json", "scores.json")


def counting(patch: pytest.MonkeyPatch, where: Any, name: str, of: Callable[[Any], str]) -> Counter[str]:
    """How often a function is called, by what it is called with."""
    found, call = Counter[str](), getattr(where, name)

    def counted(first: Any, *rest: Any, **options: Any) -> Any:
        found[of(first)] += 1
        return call(first, *rest, **options)

    patch.setattr(where, name, counted)
    return found


def test_what_a_study_costs_for_each_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        stacks = counting(patch, torch, "manual_seed", str)  # writes down the whole stack where there is no CUDA
        synced = counting(patch, os, "fsync", lambda number: Path(os.readlink(f"/proc/self/fd/{number}")).name)
        study = Study.load(written(tmp_path, SMALL), out=tmp_path / "study")
        runs = study.run(processes=0)
    n = len(runs)
    # Each file of a run is put on the disk once, and no checkpoint of a training that took but a moment.
    for name in ("weights.safetensors", "codes.safetensors", "curves.parquet", "config.json", "status.json"):
        assert sum(count for file, count in synced.items() if name in file) == n
    assert sum(count for file, count in synced.items() if "scores.json" in file) == n
    assert not any(CHECKPOINT in file for file in synced)
    assert sum("results.parquet" in file for file in synced) == 1
    assert bool(stacks) == torch.cuda.is_available()
    # To ask what there is, and for the table of it, each record is read once.
    for ask in (study.runs, study.results):
        with monkeypatch.context() as patch:
            read = counting(patch, _records, "read_whole", lambda path: Path(path).name)
            scores = counting(patch, score_file, "read_whole", lambda path: Path(path).name)
            ask()
        assert {name: (read + scores)[name] for name in FILES} == dict.fromkeys(FILES, n)


def test_what_is_kept_of_a_run_is_what_its_folder_holds(tmp_path: Path) -> None:
    study = Study.load(written(tmp_path, SMALL), out=tmp_path / "study")
    first = study.run(processes=0)[0]
    weights = load_run(first.path).modules.state_dict()
    settings = dict(first.hyperparameters)
    (alone,) = train(
        first.family, {"name": "square", "positions": 8, "shrink": 4}, seeds=[first.seed], steps=6, batch_size=8,
        precision="float32", device="cpu", out=tmp_path / "runs", processes=0, checkpoint_every=1e6, **settings,
    )  # fmt: skip
    assert all(torch.equal(value, weights[name]) for name, value in alone.modules.state_dict().items())
    images = study.dataset().images(np.array([0, 5]))
    assert alone.encode(images).tolist() == load_run(first.path).encode(images).tolist()
    # What can be continued keeps its last checkpoint, however short it was; a run of a study keeps none.
    assert (alone.path / CHECKPOINT).is_file()
    assert not (first.path / CHECKPOINT).exists()
    assert {path.name for path in first.path.iterdir()} - {*LASTING, *FILES} == set()


def test_swept_hyperparameters_are_those_of_which_a_grid_has_several_values() -> None:
    grids = FAMILIES["beta_vae"].presets.values()
    several = {name for grid in grids for name in grid[0] if len({each.get(name) for each in grid}) > 1}
    assert FAMILIES["beta_vae"].swept == several == {"beta"}
