"""Every reader under mutated files: one line or a value, in time and memory, and never another number unseen.

Each case is decided by the reader, the seed and the number of the case, so that a failure names itself: `case(...)`.
"""

import json
import resource
import shutil
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import sparse

import tests.datasets.test_official as official
from tests.zoo.drawn import of_sorts
from unbraid import Representation, ScoreCard, Study, load_run, score, train
from unbraid.data.predicate import predicate
from unbraid.datasets import image_store as _store
from unbraid.datasets import load
from unbraid.datasets.digest import content_digest
from unbraid.datasets.image_store import StoredImages, write
from unbraid.datasets.official import (
    cars3d,
    celeba,
    chairs3d,
    coil100,
    dsprites,
    faces3d,
    modelnet40,
    mpi3d,
    shapes3d,
    teapots,
)
from unbraid.datasets.own_images import open_path
from unbraid.files import manifest
from unbraid.files.checksum import KEY, MARK
from unbraid.files.marks import ReadOnce
from unbraid.files.run_files import CHECKPOINT
from unbraid.files.tables import read_columns
from unbraid.ranking.cache import read_ranking
from unbraid.runs.folder import read_folder
from unbraid.runs.run import open_run
from unbraid.scoring.merged_tables import read_table
from unbraid.studies import store
from unbraid.studies.holdout.answers import read_answers
from unbraid.studies.several_datasets import read as read_study
from unbraid.studies.snapshot import read_added, read_scores
from unbraid.studies.status import keep_index, remembered, study_status
from unbraid.training.checkpoints import load_checkpoint
from unbraid.zoo.zoo_files import open_file

LONGEST, MEMORY = 10.0, 1 << 30  # seconds and bytes beyond what there was that a case may take
WAITING = 12  # times as long may a case last that mostly waits
ODD = [
    b"null", b"true", b"[]", b"{}", b'""', b"-1", b"0", b"1e999", b"-0.0", b"1e30", b"9" * 30, b"NaN", b"Infinity",
    b'"../../x"', b'"/etc/passwd"', b'"\\ud800"', b'"\\u0000"',
    b"[" * 2000, b'{"a":' * 2000, b"<<: *x", b"1/0", b"not " * 2000,
    b"!!python/object:os.x {}", b"&a [*a]", b"\0", b"\xff\xfe", b"nan", b"inf", b"1_0", b"0x10", b"a\nb", b"'", b",,,,",
    b"(" * 2000, b"-" * 3000 + b"1", b"\x1b[31m", b"2**99999999", b"1" * 5000,
]  # fmt: skip


def mutated(whole: bytes, rng: np.random.Generator, *, text: bool) -> bytes:
    """The content of a file with one to three things changed."""
    content = bytearray(whole)
    for _ in range(rng.integers(1, 4)):
        length = len(content)
        at, kind = int(rng.integers(length + 1)), rng.integers(10)
        span = int(min(length - at, rng.choice([1, 2, 4, 8, 40])))
        if kind <= 2 and length:
            content[min(at, length - 1)] ^= 1 << int(rng.integers(8))
        elif kind == 3:
            content[at : at + span] = rng.integers(0, 256, span, dtype=np.uint8).tobytes()
        elif kind == 4:
            content[at : at + span] = bytes([int(rng.choice([0, 255, 127, 128]))]) * span
        elif kind == 5:
            del content[at:]
        elif kind == 6:
            del content[at : at + span]
        elif kind == 7:
            content[at:at] = content[at : at + span] * int(rng.choice([1, 3]))
        elif text:
            _retold(content, rng)
        else:
            content[at:at] = rng.integers(0, 256, span, dtype=np.uint8).tobytes()
    return bytes(content)


def _retold(content: bytearray, rng: np.random.Generator) -> None:
    """Another word, number or bracket in place of one."""
    marks = b" \n,:;[]{}()\t\"'"
    edges = [-1, *(place for place, byte in enumerate(content) if byte in marks), len(content)]
    first = int(rng.integers(len(edges) - 1))
    content[edges[first] + 1 : edges[first + 1]] = ODD[int(rng.integers(len(ODD)))]


@dataclass(frozen=True)
class Reader:
    """One reader: what it reads, and how."""

    path: Path  # of the file that is mutated
    read: Callable[[], Any]
    text: bool = False


def readers(home: Path) -> dict[str, Reader]:
    """All readers, with a sound file for each."""
    found: dict[str, Reader] = {}
    _of_codes(home / "codes", found)
    _of_images(home / "images", found)
    _of_a_zoo(home / "zoo", found)
    _of_official_files(home / "official", found)
    _of_runs_and_studies(home / "study", found)
    texts = home / "condition.txt"
    texts.write_text("not (x > 1.5 and y % 2 == 0) or x + 2 * y <= 3")
    names, rows = ["x", "y"], np.zeros((3, 2))
    found["condition"] = Reader(texts, lambda: predicate(texts.read_text(), names)(rows), text=True)
    return found


def _of_codes(home: Path, found: dict[str, Reader]) -> None:
    home.mkdir(parents=True)
    rng = np.random.default_rng(0)
    codes, factors = rng.standard_normal((30, 3)).astype(np.float32), rng.integers(0, 3, (30, 2))
    whole = Representation(codes, factors, codes * 0, names=("a", "b"), sizes=(3, 3), levels=((), ("x", "y", "z")))
    for suffix in ("npz", "safetensors", "parquet"):
        path = home / f"ours.{suffix}"
        whole.save(path)
        found[f"codes .{suffix}"] = Reader(path, lambda path=path: _numbers(Representation.load(path)))
    np.save(home / "plain.npy", codes)
    np.savez(home / "plain.npz", codes=codes, factors=factors)
    (home / "plain.csv").write_text("code_0,code_1,factor_a\n" + "".join(f"{i}.5,{i * i},{i % 3}\n" for i in range(20)))
    (home / "plain.tsv.csv").write_text("a\tb\n" + "".join(f"{i}.5\t{i * i}\n" for i in range(20)))
    pq.write_table(pa.table({f"code_{k}": codes[:, k] for k in range(3)}), home / "plain.parquet")
    from safetensors.numpy import save_file

    save_file({"codes": codes, "factors": factors}, home / "plain.safetensors")
    sparse.save_npz(home / "plain.sparse.npz", sparse.csr_array(codes * (codes > 0)))
    for path in sorted(home.glob("plain.*")):
        read = lambda path=path: _numbers(Representation.load(path))  # noqa: E731
        found[f"foreign {path.name[5:]}"] = Reader(path, read, text=path.suffix == ".csv")
    (home / "labels.csv").write_text("hue,shape\n" + "".join(f"{i * 90},{'ab'[i % 2]}\n" for i in range(20)))
    pq.write_table(pa.table({"hue": list(range(20)), "shape": list("ab" * 10)}), home / "labels.parquet")
    for path in (home / "labels.csv", home / "labels.parquet"):
        read = lambda path=path: Representation.of(np.ones((20, 2)), read_columns(path))  # noqa: E731
        found[f"labels {path.suffix}"] = Reader(path, read, text=path.suffix == ".csv")
    score(whole, metrics=["mig", "sap"]).save(home / "card.json")
    found["score card"] = Reader(home / "card.json", lambda: ScoreCard.load(home / "card.json"), text=True)


def _numbers(held: Representation) -> list[bytes]:
    return [np.asarray(each).tobytes() for each in (held.codes, held.factors)] + [repr(held.names).encode()]


def _of_images(home: Path, found: dict[str, Reader]) -> None:
    images = np.random.default_rng(0).integers(0, 256, (6, 8, 8, 1), dtype=np.uint8)
    table = "size,shape\n" + "".join(f"{i // 2},{'ab'[i % 2]}\n" for i in range(6))
    for name in ("array", "alone"):
        (home / name).mkdir(parents=True)
        np.save(home / name / "images.npy", images)
    (home / "array" / "factors.csv").write_text(table)
    np.savez(home / "own.npz", images=images, factors=np.arange(12).reshape(6, 2), factor_names=["a", "b"])
    official.archive(home / "pictures", {f"{i}.png": official.png(images[i, :, :, 0]) for i in range(6)})
    lines = table.splitlines()
    official.archive(home / "bare", {f"{i}.png": official.png(images[i, :, :, 0]) for i in range(6)})
    listed = [f"{line},{'file' if i == 0 else f'{i - 1}.png'}\n" for i, line in enumerate(lines)]
    (home / "pictures" / "factors.csv").write_text("".join(listed))

    def opened(path: Path) -> Callable[[], Any]:
        def read() -> Any:
            dataset = open_path(path)
            return dataset.images(np.arange(min(len(dataset), 50))), dataset.space.factors(np.arange(len(dataset)))

        return read

    for place, file in (
        ("array", "images.npy"), ("array", "factors.csv"), ("alone", "images.npy"), ("pictures", "factors.csv"),
        ("pictures", "3.png"), ("bare", "2.png"),
    ):  # fmt: skip
        path = home / place / file
        found[f"own images, {place}/{file}"] = Reader(path, opened(home / place), text=path.suffix == ".csv")
    found["own images .npz"] = Reader(home / "own.npz", opened(home / "own.npz"))
    folder = home / "cache"
    write(folder, _store.content_of(load("square", positions=4, shrink=8)))
    table_folder = home / "cached-table"
    write(table_folder, _store.content_of(open_path(home / "array"), limit=5))

    def cached(folder: Path) -> bytes:
        stored = StoredImages(folder)
        return stored.images(np.arange(len(stored))).tobytes() + stored.space.factors(np.arange(len(stored))).tobytes()

    for place in (folder, table_folder):
        for path in sorted(place.iterdir()):
            found[f"{place.name}/{path.name}"] = Reader(path, lambda place=place: cached(place), path.suffix == ".json")
    content_digest(StoredImages(folder))
    found["cache/content.json"] = Reader(folder / "content.json", lambda: content_digest(StoredImages(folder)), True)


def _of_a_zoo(home: Path, found: dict[str, Reader]) -> None:
    home.mkdir(parents=True)
    path = of_sorts(home, "drawn", 4, seed=0)

    def read() -> list[Any]:
        file = open_file(path)
        held = [file.codes(model["name"]) for model in file.record["models"]]
        return [json.dumps(file.record), *(each.codes.tobytes() + each.factors.tobytes() for each in held)]

    found["zoo .npz"] = Reader(path, read)


def _of_official_files(home: Path, found: dict[str, Reader]) -> None:
    home.mkdir(parents=True)

    def reader(name: str, path: Path, make: Callable[[], Any], *, text: bool = False) -> None:
        found[f"official {name}"] = Reader(path, lambda: [slab.sum() for slab in make().slabs], text)

    npz, h5 = official.write_sprites_npz(home / "x.npz"), official.write_sprites_hdf5(home / "x.hdf5")
    reader("dsprites .npz", npz, lambda: dsprites.read(npz, official.SPRITES))
    reader("dsprites .hdf5", h5, lambda: dsprites.read(h5, official.SPRITES))
    images, labels = official.shape_arrays()
    with h5py.File(home / "shapes.h5", "w") as file:
        file["images"], file["labels"] = images, labels
    reader("shapes3d .h5", home / "shapes.h5", lambda: shapes3d.read(home / "shapes.h5", official.SHAPES))
    noise = np.random.default_rng(0).integers(0, 256, (len(official.ARM), 64, 64, 3), dtype=np.uint8)
    np.savez_compressed(home / "arm.npz", images=noise)
    reader("mpi3d .npz", home / "arm.npz", lambda: mpi3d.read(home / "arm.npz", official.ARM))
    official.write_teapots(home / "teapots.npz")
    reader("teapots .npz", home / "teapots.npz", lambda: teapots.read(home / "teapots.npz", 23))
    cars = official.archive(home / "analogy.tar.gz", official.car_files())
    reader("cars3d .tar.gz", cars, lambda: cars3d.read(cars, official.CARS))
    files = {name.removeprefix("data/"): data for name, data in official.car_files().items()}
    folder = official.archive(home / "data", files)
    reader("cars3d .mat", folder / "cars" / "car_001_mesh.mat", lambda: cars3d.read(folder, official.CARS))
    reader("cars3d list.txt", folder / "cars" / "list.txt", lambda: cars3d.read(folder, official.CARS), text=True)
    coil = official.archive(home / "coil-100.zip", official.coil_files())
    reader("coil100 .zip", coil, lambda: coil100.read(coil, official.OBJECTS))
    chairs = official.archive(home / "chairs.tar", official.chair_files())
    reader("chairs3d .tar", chairs, lambda: chairs3d.read(chairs, "crop", official.CHAIRS))
    pictures, attributes, _ = official.celeba_files(home, "img_align_celeba.zip")
    reader("celeba .zip", pictures, lambda: celeba.read(pictures, attributes, "crop", 7))
    reader("celeba .txt", attributes, lambda: celeba.read(pictures, attributes, "crop", 7), text=True)
    planes = {f"train/airplane_{k:04}.off": official.PYRAMID % k for k in (1, 2)}
    solids = official.archive(home / "solids.zip", planes)
    space = official.shrunk(modelnet40.SPACE, 2, 4)
    reader("modelnet40 .zip", solids, lambda: modelnet40.read(solids, space))
    unpacked = official.archive(home / "solids", planes)
    plane = unpacked / "train" / "airplane_0001.off"
    reader("modelnet40 .off", plane, lambda: modelnet40.read(unpacked, space), text=True)
    import torch

    faces = np.stack([official.coded(levels, channels=1)[..., 0] for levels in official.FACES.grid()])
    torch.save(torch.from_numpy(faces.reshape(*official.FACES.sizes, 64, 64)), home / "faces.pth")
    reader("faces3d .pth", home / "faces.pth", lambda: faces3d.read(home / "faces.pth", official.FACES))


YAML = """
name: small
dataset: {name: square, positions: 4, shrink: 8}
families:
  - {name: beta_vae, beta: [1, 4], network: dense, latents: 2}
seeds: [0, 1]
steps: 2
batch_size: 4
precision: float32
device: cpu
metrics: [mig, sap]
zero_shot: {held_out: x > 2}
udr: {similarity: spearman}
"""


def _of_runs_and_studies(home: Path, found: dict[str, Reader]) -> None:
    home.mkdir(parents=True)
    (home / "study.yaml").write_text(YAML)
    found["study.yaml"] = Reader(home / "study.yaml", lambda: read_study(home / "study.yaml"), text=True)
    out = home / "out"
    study = Study.load(home / "study.yaml", out=out)
    first = study.run(processes=0)[0].path
    kept: dict[str, Any] = {"snapshots": 1, "hold_out": 4, "hold_out_every": 1}
    plain: dict[str, Any] = {"batch_size": 4, "network": "dense", "latents": 2, "processes": 0, "precision": "float32"}
    (run,) = train("vae", load("square", positions=4, shrink=8), steps=2, out=home / "runs", **plain, **kept)

    def state() -> Any:
        return [each.state for each in Study.load(out).runs()]

    def status() -> Any:
        told = remembered(without)
        if told is None:
            snapshot = Study.load(without).snapshot()
            keep_index(without, [snapshot])
            told = [study_status(snapshot)]
        return [[run.state for run in each.runs] for each in told]

    without = Path(shutil.copytree(out, home / "without"))
    (without / "study.yaml").write_text(YAML.replace("zero_shot: {held_out: x > 2}\n", ""))
    status()
    found["index of a study"] = Reader(without / ".index.json", status, text=True)
    for path in (out / "study.json", run.path / "config.json"):
        _without_checksum(path)
    for name in ("study.json", "study.yaml"):
        found[f"study folder, {name}"] = Reader(out / name, state, text=True)
    for name in ("config.json", "status.json"):
        found[f"run, {name}"] = Reader(run.path / name, lambda: [read_folder(run.path), open_run(run.path)], text=True)
    found["run, scores.json"] = Reader(first / "scores.json", lambda: read_scores(first), text=True)
    for name, read in {
        "weights.safetensors": lambda: [value.numpy() for value in load_run(run.path).modules.state_dict().values()],
        "codes.safetensors": lambda: _numbers(run.codes()),
        "curves.parquet": lambda: _columns(run.curves()),
        "snapshots.parquet": lambda: _columns(run.snapshots()),
        "held_out.parquet": lambda: _columns(run.held_out()),
        CHECKPOINT: lambda: load_checkpoint(run.path / CHECKPOINT, {}).state,
    }.items():
        found[f"run, {name}"] = Reader(run.path / name, read)
    held = home / "held"
    asked = YAML.replace("metrics: [mig, sap]\n", "").replace("positions: 4, shrink: 8", "positions: 8, shrink: 4")
    (home / "held.yaml").write_text(asked.replace("beta: [1, 4]", "beta: 1").replace("seeds: [0, 1]", "seeds: 1"))
    Study.load(home / "held.yaml", out=held).run(processes=0)
    answers = next((held / "runs").glob("*/held_out.json"))
    _without_checksum(answers)
    found["run, held_out.json"] = Reader(answers, lambda: read_answers(answers.parent), text=True)
    table = out / store.RESULTS
    found["table .parquet"] = Reader(table, lambda: read_table(table).to_csv())
    study.results().to_csv(home / "table.csv")
    found["table .csv"] = Reader(home / "table.csv", lambda: read_table(home / "table.csv").to_csv(), text=True)
    store.write_failure(out, store.Failure("0" * 16, "vae", "", 0, "it broke", 1))
    failure = out / "failed" / f"{'0' * 16}.json"
    _without_checksum(failure)
    found["failure"] = Reader(failure, lambda: store.read_failure(out, "0" * 16, ReadOnce()), text=True)
    added = out / "added" / "mine"
    added.mkdir(parents=True)
    (added / "config.json").write_text(
        '{"family": "mine", "setting": "", "seed": 0, "hyperparameters": {}, "source": ""}'
    )
    found["added, config.json"] = Reader(added / "config.json", lambda: read_added(out, {}, ReadOnce()), text=True)
    kept_ranking = next((out / "udr").glob("*.npz"))
    found["ranking"] = Reader(kept_ranking, lambda: read_ranking(kept_ranking).scores.tobytes())
    record = home / "mirror" / ".remote" / "files.json"
    record.parent.mkdir(parents=True)
    record.write_text('{"runs/a/config.json": ["1 0", 3, 4]}')
    found["record of a mirror"] = Reader(record, lambda: manifest.load(home / "mirror", ()), text=True)


def _columns(table: dict[str, Any]) -> list[Any]:
    return [(name, column.tobytes()) for name, column in table.items()]


@dataclass
class Found:
    """What came of the cases of a reader."""

    cases: int = 0
    read: int = 0  # to a value
    refused: int = 0
    faults: list[str] = field(default_factory=list)


def fuzz(name: str, reader: Reader, cases: int, seed: int = 0, found: Found | None = None) -> Found:
    """Mutations of one reader's file; it is whole again afterwards."""
    found = found or Found()
    whole = reader.path.read_bytes()
    before = reader.read()
    try:
        for number in range(cases):
            rng = np.random.default_rng([zlib.crc32(name.encode()), seed, number])
            content = mutated(whole, rng, text=reader.text)
            reader.path.write_bytes(content)
            _one(f"{name}, seed {seed}, case {number}", reader, content != whole and MARK in content, before, found)
    finally:
        reader.path.write_bytes(whole)
    return found


def _without_checksum(path: Path) -> None:
    """Its checksum would refuse what mutations make of it before the reader looks any closer."""
    content = json.loads(path.read_bytes())
    del content[KEY]
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _one(what: str, reader: Reader, checksummed: bool, before: Any, found: Found) -> None:
    found.cases += 1
    began, worked = time.monotonic(), time.process_time()
    try:
        value = reader.read()
    except (ValueError, OSError, UserWarning) as error:  # damaged scores are warned of and count as missing
        found.refused += 1
        if "\n" in str(error) or len(str(error)) > 20_000:
            found.faults.append(f"{what}: {len(str(error).splitlines())} lines, {str(error)[:200]!r}")
    except BaseException as error:
        found.faults.append(f"{what}: {type(error).__name__}: {str(error)[:200]}")
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
    else:
        found.read += 1
        if checksummed and not _same(value, before):
            found.faults.append(f"{what}: another number, unseen")
    # Work, since others may be at work, too; or a wait.
    if (spent := max(time.process_time() - worked, (time.monotonic() - began) / WAITING)) > LONGEST:
        found.faults.append(f"{what}: {spent:.0f} s")


def _same(one: Any, other: Any) -> bool:
    with suppress(ValueError, TypeError):
        return bool(np.array_equal(np.asarray(one), np.asarray(other)))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)
    return len(one) == len(other) and all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def limit_memory() -> None:
    """From here on no more than MEMORY beyond what the process has: what asks for it fails, and is a fault."""
    with Path("/proc/self/statm").open() as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, resource.RLIM_INFINITY))
