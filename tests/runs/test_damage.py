"""Binary files of a run, damaged: another number is never read, and the line names the file."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest

from tests.training.training_examples import blocks
from unbraid import Representation, load_run, train
from unbraid.files.checksum import MARK
from unbraid.files.json_records import read_record
from unbraid.files.marks import ReadOnce
from unbraid.files.run_files import CHECKPOINT, CODES, CURVES, HELD_OUT, LASTING, SNAPSHOTS, WEIGHTS
from unbraid.runs.folder import damage_of, damaged, read_folder
from unbraid.runs.run import Run
from unbraid.studies import store
from unbraid.studies.holdout.answers import read_answers
from unbraid.studies.snapshot import other_failures
from unbraid.studies.store import StudyEnvironment
from unbraid.studies.study_json import AddedRecord
from unbraid.training.checkpoints import load_checkpoint
from unbraid.training.training_versions import commit

USED: dict[str, Callable[[Run], object]] = {
    WEIGHTS: lambda run: load_run(run.path),
    CODES: Run.codes,
    CURVES: Run.curves,
    SNAPSHOTS: Run.snapshots,
    HELD_OUT: Run.held_out,
    CHECKPOINT: lambda run: load_checkpoint(run.path / CHECKPOINT, {}),
}


def flip(whole: bytes, at: int, rng: np.random.Generator) -> bytes:
    return whole[:at] + bytes([whole[at] ^ 1 << int(rng.integers(8))]) + whole[at + 1 :]


def spots(whole: bytes, count: int, rng: np.random.Generator) -> list[int]:
    """Where to flip a bit; not in the mark of the checksum, without which a file is read unguarded, and as it is."""
    mark = whole.rfind(MARK)
    return [int(at) for at in rng.integers(len(whole), size=count) if not mark <= at < mark + len(MARK)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    settings = {"batch_size": 8, "network": "dense", "latents": 2, "processes": 0, "precision": "float32"}
    kept = {"snapshots": 1, "snapshot_metrics": "mig", "hold_out": 8, "hold_out_every": 2}
    out = tmp_path_factory.mktemp("runs")
    return train("beta_vae", blocks(), steps=4, learning_rate=1e-3, out=out, **settings, **kept)[0]


def test_every_file_is_guarded(run: Run) -> None:
    assert {path.name for path in run.path.iterdir() if path.suffix != ".json"} == USED.keys()
    assert run.status["files"] == {name: (run.path / name).stat().st_size for name in LASTING}
    for path in run.path.glob("*.[sp]*[!n]"):
        assert b"unbraid-sha256:" in path.read_bytes(), path.name


@pytest.mark.parametrize("name", USED)
def test_damage_is_one_line_that_names_the_file(run: Run, name: str, tmp_path: Path) -> None:
    spoilt = Run(shutil.copytree(run.path, tmp_path / "run"), run.config, run.status)
    path, rng = spoilt.path / name, np.random.default_rng(0)
    whole = path.read_bytes()
    USED[name](spoilt)
    flipped = [flip(whole, at, rng) for at in [0, 8, len(whole) - 1, *spots(whole, 12, rng)]]
    cut = [whole[:length] for length in (0, 1, 7, len(whole) // 2, len(whole) - 1)]
    for content in (*flipped, *cut, whole + b"\0"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=rf"{name}[^\n]*\Z"):
            USED[name](spoilt)
    for content in (*cut, whole + b"\0"):
        path.write_bytes(content)
        if name in LASTING:
            said = damage_of(spoilt.path, spoilt.status)
            assert said
            assert (
                f"{name} is damaged (it has {len(content):,} bytes and had {len(whole):,}); delete the folder" in said
            )
    path.unlink()
    if name in LASTING:
        with pytest.raises(ValueError, match=rf"{name} is damaged"):
            USED[name](spoilt)
        assert f"{name} is damaged (it is missing); delete the folder" in str(damage_of(spoilt.path, spoilt.status))


@pytest.mark.parametrize("suffix", [".npz", ".safetensors", ".parquet"])
def test_of_a_representation_file_no_other_number_is_read(run: Run, suffix: str, tmp_path: Path) -> None:
    path, rng = tmp_path / f"codes{suffix}", np.random.default_rng(1)
    run.codes().save(path)
    whole = path.read_bytes()
    assert np.array_equal(Representation.load(path).codes, run.codes().codes)
    for at in spots(whole, 60, rng):
        path.write_bytes(flip(whole, at, rng))
        with pytest.raises(ValueError, match=r"\A[^\n]*codes\.\w+: not a readable [^\n]*\Z"):
            Representation.load(path)


def test_what_an_edited_file_is_told_is_how_to_have_it_read(run: Run, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    path = tmp_path / "codes.parquet"
    run.codes().save(path)
    table = pq.read_table(path)
    pq.write_table(table.slice(0, 10), path)
    with pytest.raises(ValueError, match="if that is meant, save it without 'checksum' in its metadata"):
        Representation.load(path)
    about = json.loads(table.schema.metadata[b"unbraid"])
    del about["checksum"]
    pq.write_table(table.slice(0, 10).replace_schema_metadata({"unbraid": json.dumps(about)}), path)
    assert len(Representation.load(path)) == 10


RECORDS: dict[str, tuple[Callable[[Path], object], str]] = {
    "runs/0f/config.json": (lambda folder: read_folder(folder / "runs" / "0f"), "delete the folder and train again"),
    "runs/0f/status.json": (lambda folder: read_folder(folder / "runs" / "0f"), "delete the folder and train again"),
    "study.json": (
        lambda folder: store.check_folder(folder, ReadOnce()),
        "delete it, and unbraid study run writes it again",
    ),
    "failed/0f.json": (lambda folder: other_failures(folder, [], ReadOnce()), "delete it"),
    "added/mine/config.json": (lambda folder: read_record(folder / "added/mine/config.json", AddedRecord), ""),
    "runs/0f/held_out.json": (lambda folder: read_answers(folder / "runs" / "0f"), "study run computes it again"),
}


@pytest.fixture
def study_of(run: Run, tmp_path: Path) -> Path:
    """A folder with one of each record of a study."""
    shutil.copytree(run.path, tmp_path / "runs" / "0f")
    (tmp_path / "added" / "mine").mkdir(parents=True)
    (tmp_path / "study.yaml").touch()
    store.write_environment(tmp_path, {}, StudyEnvironment(run.config["dataset"], "cpu", "float32"))
    store.write_failure(tmp_path, store.Failure("0f", "vae", "", 0, "it broke", 1))
    about = {"family": "mine", "setting": "", "seed": 0, "run": dict(run.config), "status": dict(run.status)}
    store.write_json(tmp_path / "added" / "mine" / "config.json", about)
    store.write_json(tmp_path / "runs" / "0f" / "held_out.json", {})
    return tmp_path


@pytest.mark.filterwarnings("error:.*it counts as missing:UserWarning")
@pytest.mark.parametrize("name", RECORDS)
def test_of_a_record_no_other_setting_is_read(study_of: Path, name: str) -> None:
    path, rng, (read, advice) = study_of / name, np.random.default_rng(2), RECORDS[name]
    whole, before = path.read_bytes(), read(study_of)
    for at in spots(whole, 40, rng):
        path.write_bytes(flip(whole, at, rng))
        with pytest.raises((ValueError, UserWarning), match=rf"\A[^\n]*{name}[^\n]*{advice}[^\n]*\Z"):
            read(study_of)
    content = json.loads(whole)
    assert content.pop("checksum").startswith(MARK.decode())
    path.write_text(json.dumps(content))  # edited on purpose, or of a version that kept none
    assert read(study_of) == before
    path.write_text(json.dumps(content | {"checksum": MARK.decode() + "0" * 64}))
    with pytest.raises((ValueError, UserWarning), match="save it without 'checksum'"):
        read(study_of)


def test_a_run_tells_on_what_it_was_made(run: Run) -> None:
    import torch

    told = run.status["provenance"]
    assert told["torch"] == torch.__version__
    assert told["numpy"] == np.__version__
    assert told["threads"] == told["together"] == 1
    assert told["accelerator"] is None
    assert told["processor"]
    assert told["commit"] == commit()
    assert told["began"] <= told["ended"]
    assert told["ended"].endswith("+00:00")


def test_a_damaged_file_of_a_study_in_a_store_is_said_to_come_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNBRAID_DATA", str(tmp_path))
    path = tmp_path / "studies" / quote("s3://lab/study", safe="") / "runs" / "0f" / "weights.safetensors"
    assert str(damaged(path, "too short")) == (
        f"{path} is damaged (too short); delete the file to download it again; if it is damaged in the store, delete "
        "s3://lab/study/runs/0f and train again"
    )
