"""What a run costs beside its training, and what it costs to ask about it, in files and writes: never in seconds."""

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.studies.study_examples import SMALL, written
from unbraid import Study, load_run, train
from unbraid.files import json_records, marks, score_file
from unbraid.files.run_files import CHECKPOINT, LASTING
from unbraid.studies import status, store
from unbraid.studies.status import keep_index

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
    # Each file of a run is put on the disk once.
    for name in ("weights.safetensors", "codes.safetensors", "curves.parquet", "config.json", "status.json"):
        assert sum(count for file, count in synced.items() if name in file) == n
    assert sum(count for file, count in synced.items() if "scores.json" in file) == n
    assert sum("results.parquet" in file for file in synced) == 1
    assert bool(stacks) == torch.cuda.is_available()
    # To ask what there is, and for the table of it, each record is read once.
    for ask in (study.runs, study.results):
        with monkeypatch.context() as patch:
            read = counting(patch, json_records, "read_whole", lambda path: Path(path).name)
            scores = counting(patch, score_file, "read_whole", lambda path: Path(path).name)
            ask()
        assert {name: (read + scores)[name] for name in FILES} == dict.fromkeys(FILES, n)


def test_status_reads_again_what_changed_and_sees_its_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marks, "SETTLED", 0.0)  # files of this very moment count as old enough
    folder = tmp_path / "study"
    study = Study.load(written(tmp_path, SMALL), out=folder)
    runs = study.run(processes=0)
    path, other = runs[0].path, runs[1].path
    config = path / "config.json"

    def asked() -> tuple[list[status.StudyStatus] | None, Counter[str]]:
        with monkeypatch.context() as patch:
            read = counting(patch, json_records, "read_whole", lambda path: "/".join(Path(path).parts[-2:]))
            scores = counting(patch, score_file, "read_whole", lambda path: "/".join(Path(path).parts[-2:]))
            return status.remembered(folder), read + scores

    def first() -> tuple[str, str | None]:
        found, _ = asked()
        assert found is not None
        assert [run.state for run in found[0].runs[1:]] == ["finished"] * 5
        return found[0].runs[0].state, found[0].runs[0].reason

    unchanged = [replace(run, hyperparameters={}) for run in runs]
    assert asked() == ([status.StudyStatus("", "small", unchanged, [])], {"study/.index.json": 1})
    # A flipped bit, the length as it was and the time set back.
    whole, about = config.read_bytes(), config.stat()
    config.write_bytes(whole.replace(b'"steps": 6', b'"steps": 7'))
    os.utime(config, ns=(about.st_atime_ns, about.st_mtime_ns))
    state, reason = first()
    assert state == "failed"
    assert str(reason).startswith(f"{config} is damaged (its checksum")
    assert study.runs()[0].reason == reason
    config.write_bytes(whole)
    _, read = asked()
    assert read == {"study/.index.json": 1} | {f"{path.name}/{name}": 1 for name in FILES}
    assert asked()[1] == {"study/.index.json": 1}  # what was read again is kept
    for name in ("weights.safetensors", "scores.json"):
        kept = (path / name).read_bytes()
        (path / name).write_bytes(kept[:-1])
        if name == "scores.json":
            with pytest.warns(UserWarning, match=r"scores.json is damaged"):
                assert first()[0] == "waiting"  # it is scored again
        else:
            assert first() == ("failed", f"{path / name} is damaged (it has {len(kept) - 1:,} bytes and had "
                               f"{len(kept):,}); delete the folder and train again")  # fmt: skip
        (path / name).unlink()
        assert first()[0] == ("waiting" if name == "scores.json" else "failed")
        (path / name).write_bytes(kept)
        assert first() == ("finished", None)
    store.write_failure(folder, store.Failure(runs[0].id, "beta_vae", "beta=1", 0, "it broke", 1))
    assert first() == ("failed", "it broke")
    store.forget_failure(folder, runs[0].id)
    path.rename(tmp_path / "aside")
    assert first() == ("waiting", None)
    (tmp_path / "aside").rename(path)
    assert first() == ("finished", None)
    # What may change once more within the tick of a clock is not believed, nor what comes from the future.
    os.utime(other / "config.json", (4e9, 4e9))
    for _ in range(2):
        assert asked()[1][f"{other.name}/config.json"] == 1
    monkeypatch.setattr(marks, "SETTLED", 1e6)
    assert asked()[0] is None
    monkeypatch.setattr(marks, "SETTLED", 0.0)
    # Nothing is believed of another YAML or dataset, of another unbraid, or of a file that a hand changed.
    os.utime(other / "config.json")
    keep_index(folder, [study.snapshot()])
    for name, old, new in (
        ("study.yaml", b"seeds: 2", b"seeds: 3"), ("study.json", b"float32", b"float64"),
        (status.FILE, b'"finished"', b'"diverged"'), (status.FILE, b"unbraid-sha256", b"sha256"),
    ):  # fmt: skip
        assert asked()[0]
        kept = (folder / name).read_bytes()
        assert old in kept
        (folder / name).write_bytes(kept.replace(old, new))
        assert asked()[0] is None
        (folder / name).write_bytes(kept)
        keep_index(folder, [study.snapshot()])
    with monkeypatch.context() as patch:
        patch.setattr(status, "_own_mark", lambda: "0" * 32)
        assert asked()[0] is None


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
    images = study.part().dataset().images(np.array([0, 5]))
    assert alone.encode(images).tolist() == load_run(first.path).encode(images).tolist()
    # What can be continued keeps its last checkpoint, however short it was; a run of a study keeps none.
    assert (alone.path / CHECKPOINT).is_file()
    assert not (first.path / CHECKPOINT).exists()
    assert {path.name for path in first.path.iterdir()} - {*LASTING, *FILES} == set()
