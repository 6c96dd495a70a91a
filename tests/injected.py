"""Faults put into the middle of what writes files: kills, full disks, damage; and what comes of the same command then.

A kill is felt by everything: from the moment on no call changes the disk any more, clean-up included. What is named a
write point is a call that makes, fills, renames or removes a file or folder.
"""

import builtins
import errno
import io
import json
import math
import os
import re
import resource
import shutil
import signal
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from torch import nn

from unbraid import Representation, Study, load_run, score, train
from unbraid.base.device import out_of_memory
from unbraid.base.errors import UnbraidError
from unbraid.base.signals import Terminated, terminable
from unbraid.cli._progress import Interrupted
from unbraid.datasets import image_store as _store
from unbraid.datasets import load
from unbraid.datasets.digest import content_digest
from unbraid.families.networks import dense_pair
from unbraid.runs.run import Run

CALLS = ("replace", "rename", "unlink", "remove", "mkdir", "rmdir", "fsync", "open")
NOTES = {"checkpoint.safetensors", "content.json"}  # of a training, and of the times of files
PASSING = {"seconds", "provenance", "checksum"}  # of a JSON file, what may differ


class Killed(BaseException):
    """The process ended here."""


@dataclass
class Injection:
    """What happens at a write point, and which there were."""

    at: int = -1  # number of the point; -1: nowhere
    how: str = "none"  # "kill before", "kill after", "torn", "SIGTERM", or the name of an error number
    lasting: bool = True  # a full disk stays full
    points: list[str] = field(default_factory=list)
    dead: bool = False

    def meet(self, name: str, path: Any, call: Callable[[], Any]) -> Any:
        if self.dead:
            raise Killed
        number = len(self.points)
        self.points.append(f"{name} {_shown(path)}")
        reached = number == self.at or (self.lasting and 0 <= self.at < number)
        if not reached or self.how == "none":
            return call()
        if self.how == "SIGTERM":
            if number == self.at:
                signal.raise_signal(signal.SIGTERM)
            return call()
        if self.how.startswith("E"):
            if name in ("unlink", "remove", "rmdir") and self.how == "ENOSPC":
                return call()
            code = getattr(errno, self.how)
            raise OSError(code, os.strerror(code), os.fspath(path) if isinstance(path, str | Path) else None)
        self.dead = True
        if self.how == "kill after" and hasattr(made := call(), "close"):
            made.close()
        elif self.how == "torn" and name == "fsync" and isinstance(path, int):
            _ORIGINAL["truncate"](path, os.fstat(path).st_size // 2)
        raise Killed


_ORIGINAL: dict[str, Any] = {"truncate": os.ftruncate}


def _shown(path: Any) -> str:
    if isinstance(path, int):
        try:
            path = os.readlink(f"/proc/self/fd/{path}")
        except OSError:
            path = "a file"
    name = "/".join(Path(os.fsdecode(path)).parts[-2:])
    return re.sub(r"[0-9a-f]{16}", "ID", re.sub(r"\.[a-z0-9_]{8}\.part|(?<=part\.)[0-9a-f]{16}", ".part", name))


@contextmanager
def injecting(injection: Injection, folder: Path) -> Iterator[Injection]:
    """Have it happen at the write points below a folder while the block runs."""

    def ours(path: Any) -> bool:
        if isinstance(path, int):
            try:
                path = os.readlink(f"/proc/self/fd/{path}")
            except OSError:
                return False
        return os.path.abspath(os.fsdecode(path)).startswith(str(folder))

    def wrapped(name: str, original: Any) -> Any:
        def call(path: Any, *rest: Any, **options: Any) -> Any:
            writes = name != "open" or (rest and rest[0] & (os.O_CREAT | os.O_WRONLY | os.O_RDWR))
            if not writes or not ours(path):
                return original(path, *rest, **options)
            return injection.meet(name, path, lambda: original(path, *rest, **options))

        return call

    def opened(original: Any) -> Any:
        def call(file: Any, mode: str = "r", *rest: Any, **options: Any) -> Any:
            if not set(mode) & set("wax+") or isinstance(file, int) or not ours(file):
                return original(file, mode, *rest, **options)
            return injection.meet("open", file, lambda: original(file, mode, *rest, **options))

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in CALLS:
            patch.setattr(os, name, wrapped(name, getattr(os, name)))
        patch.setattr(io, "open", opened(io.open))
        patch.setattr(builtins, "open", opened(builtins.open))
        yield injection


YAML = """
name: small
dataset: {name: square, positions: 4, shrink: 8}
families:
  - {name: beta_vae, beta: 1, network: dense, latents: 2}
  - {name: pca, latents: 2}
seeds: [0]
steps: 2
batch_size: 4
precision: float32
device: cpu
metrics: [mig, sap]
checkpoint_every: 0
"""


@dataclass(frozen=True)
class Work:
    """Something that writes."""

    begin: Callable[[Path], object]  # makes what it starts from
    act: Callable[[Path], object]
    use: Callable[[Path], object] | None = None  # the same, and then reads every file; of works whose files are damaged
    again: Callable[[Path], object] | None = None  # the same, where a run that failed has to be asked for


def _run(folder: Path) -> object:
    images = {"name": "square", "positions": 4, "shrink": 8}
    settings: dict[str, Any] = {"steps": 2, "batch_size": 4, "network": "dense", "latents": 2, "checkpoint_every": 0}
    return train("vae", images, precision="float32", processes=0, out=folder / "runs", **settings)


def _use_run(folder: Path) -> None:
    _run(folder)
    for path in (folder / "runs").glob("*/config.json"):
        _read(load_run(path.parent))


def _read(run: Run) -> None:
    for read in (run.codes, run.curves, run.snapshots, run.held_out):
        read()


def _use_study(folder: Path) -> None:
    study = Study.load(folder / "study.yaml", out=folder / "study")
    study.run(processes=0)
    study.rank(similarity="spearman")
    for run in study.runs():
        _read(load_run(run.path))


def _yaml(folder: Path) -> None:
    (folder / "study.yaml").write_text(YAML)


def wide_pair(shape: tuple[int, ...], n_outputs: int, n_latents: int) -> tuple[nn.Module, nn.Module]:
    """Networks of 80 MB, which no allocator has left over, of images of 16 x 16."""
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), 80_000), nn.Linear(80_000, n_outputs))
    return encoder, dense_pair(shape, n_outputs, n_latents)[1]


def _large_yaml(folder: Path) -> None:
    own = '  - {name: vae, latents: 2, network: "tests.injected:wide_pair"}\n  - {name: pca, latents: 2}'
    text = YAML.replace("  - {name: pca, latents: 2}", own).replace("shrink: 8", "shrink: 4")
    text = text.replace("checkpoint_every: 0", "checkpoint_every: 600")  # of 240 MB each
    (folder / "study.yaml").write_text(text)


def _study(folder: Path) -> object:
    return Study.load(folder / "study.yaml", out=folder / "study").run(processes=0)


def _retried(folder: Path) -> object:
    return Study.load(folder / "study.yaml", out=folder / "study").run(processes=0, retry="failed")


def _studied(folder: Path) -> None:
    _yaml(folder)
    _study(folder)
    codes = next((folder / "study" / "runs").glob("*/codes.safetensors"))
    Representation.load(codes).save(folder / "mine.npz")


def _rank(folder: Path) -> object:
    return Study.load(folder / "study").rank(similarity="spearman")


def _report(folder: Path) -> object:
    return _command("report", str(folder / "study"))


def _export(folder: Path) -> object:
    return _command("export", str(folder / "study"), "--out", str(folder / "table.csv"))


def _score(folder: Path) -> object:
    score(Representation.load(folder / "mine.npz"), metrics=["mig"]).save(folder / "card.json")
    return Representation.load(folder / "mine.npz").save(folder / "again.parquet")


def _add(folder: Path) -> object:
    taken = (folder / "study" / "added" / "mine" / "config.json").is_file()
    return (
        _study(folder)
        if taken
        else _command("study", "add", str(folder / "study"), str(folder / "mine.npz"), "--family", "m")
    )


def _cache(folder: Path) -> object:
    images = load("square", positions=4, shrink=8)
    stored = _store.cached(folder / "cache" / "square-v1", lambda: _store.content_of(images))
    stored.verify()
    return content_digest(stored)


def _bucket(folder: Path) -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNBRAID_DATA", str(folder / "data"))
        return Study.load(folder / "study.yaml", out="memory://faults").run(processes=0)


def _empty_bucket(folder: Path) -> None:
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]
    _yaml(folder)


def _command(*words: str) -> object:
    from typer.main import get_command

    from unbraid.cli.app import app

    return get_command(app).main([*words], standalone_mode=False)


WORKS: dict[str, Work] = {
    "run": Work(lambda _: None, _run, _use_run),
    "study": Work(_yaml, _study, _use_study),
    "study in a store": Work(_empty_bucket, _bucket),
    "ranking": Work(_studied, _rank),
    "report": Work(_studied, _report),
    "export": Work(_studied, _export),
    "added codes": Work(_studied, _add),
    "scores and codes": Work(_studied, _score),
    "dataset cache": Work(lambda _: None, _cache, _cache),
}


LARGE = {"large study": Work(_large_yaml, _study, None, _retried)}  # of which a run may be out of memory


def content(folder: Path) -> dict[str, Any]:
    """All that must be the same: files by name, but for times and what only a training needs."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not path.is_file() or path.name in NOTES or "/." in f"/{name}":
            continue
        if path.suffix == ".json":
            found[name] = _timeless(json.loads(path.read_text()))
        elif path.name == "results.parquet" or path.suffix == ".csv":
            frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
            found[name] = frame.drop(columns=[each for each in frame if each == "seconds"]).to_csv()
        elif path.suffix == ".npz":
            with np.load(path) as arrays:
                found[name] = {each: arrays[each].tobytes() for each in arrays.files}
        elif path.suffix == ".html":
            found[name] = path.read_text().rstrip().endswith("</html>")
        else:
            found[name] = path.read_bytes()
    return found


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(each) for key, each in value.items() if key not in PASSING}
    return [_timeless(each) for each in value] if isinstance(value, list) else value


def left_behind(folder: Path) -> list[str]:
    """What is neither a result nor removed: temporary files and folders."""
    names = (path.relative_to(folder).as_posix() for path in folder.rglob("*"))
    return [name for name in names if name.rpartition("/")[2].endswith(".part")]


@dataclass
class Tally:
    """What came of the cases of a class."""

    cases: int = 0
    same: int = 0  # the undisturbed result, by the same command
    refused: int = 0  # one line that names the file; the undisturbed result once that is deleted
    left: int = 0  # cases after which temporary files stayed
    faults: list[str] = field(default_factory=list)

    def judge(
        self,
        what: str,
        folder: Path,
        expected: dict[str, Any],
        act: Callable[[Path], object],
        damaged: Path | None = None,
    ) -> None:
        """Do the work again after a fault, and see what comes of it."""
        self.cases += 1
        refused = 0
        for name in left_behind(folder):  # an hour goes by
            os.utime(folder / name, (1e9, 1e9))
        for _ in range(8):
            try:
                with warnings.catch_warnings():
                    warnings.filterwarnings("ignore", message="[^\n]*it counts as missing", category=UserWarning)
                    act(folder)
                break
            except (ValueError, OSError) as error:  # what the command line makes a line of
                refused += 1
                if damaged and str(error).startswith(str(damaged)) and "\n" not in str(error):
                    self.refused += 1  # by its key, which its owner can mend
                    return
                if not _do_as_told(str(error), folder):
                    self.faults.append(f"{what}: {type(error).__name__}: {error}")
                    return
            except Exception as error:
                self.faults.append(f"{what}: {type(error).__name__}: {error}")
                return
        found = content(folder)
        if found != expected:
            differing = [name for name in found.keys() | expected if found.get(name) != expected.get(name)]
            self.faults.append(f"{what}: other result: {', '.join(sorted(differing)[:4])}")
        elif refused:
            self.refused += 1
        else:
            self.same += 1
        self.left += bool(left_behind(folder))


def _do_as_told(line: str, folder: Path) -> bool:
    """Delete what a refusal names, as it says; False where it names nothing of the folder."""
    if "\n" in line or str(folder) not in line:
        return False
    path = Path(re.split(r"[:,;]? |: ", line[line.index(str(folder)) :])[0].rstrip(":"))
    if "delete the folder" in line and path.is_file():
        path = path.parent
    elif "delete the folder" in line:
        path = path.parent if path.suffix else path
    if path == folder or not path.exists() or not re.search(r"delete|remove", line):
        return False
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    return True


def is_one_line(error: BaseException) -> bool:
    """Whether the command line makes one line of it, and not a traceback."""
    told = isinstance(error, ValueError | OSError | UnbraidError) or out_of_memory(error)
    return told and "\n" not in str(error).strip()


class Bench:
    """One work, begun and undisturbed, in folders of its own."""

    def __init__(self, name: str, home: Path) -> None:
        self.name, self.work, self.home = name, (WORKS | LARGE)[name], home
        self.begun, self.number = home / "begun", 0
        self.begun.mkdir(parents=True)
        self.work.begin(self.begun)
        folder, self.counted = self.fresh(), Injection()
        with injecting(self.counted, folder):
            self.work.act(folder)
        self.expected = content(folder)
        self.done: Path | None = None

    def fresh(self, of: Path | None = None) -> Path:
        if self.name == "study in a store":
            MemoryFileSystem.store.clear()
            MemoryFileSystem.pseudo_dirs[:] = [""]
        self.number += 1
        # One place for all: paths within files are the same.
        place = self.home / "place"
        shutil.rmtree(place, ignore_errors=True)
        return Path(shutil.copytree(of or self.begun, place))

    def keep_done(self) -> Path:
        """A copy of the finished work, to be damaged."""
        if self.done is None:
            folder = self.fresh()
            assert self.work.use
            self.work.use(folder)
            self.used = content(folder)
            self.done = Path(shutil.copytree(folder, self.home / "done"))
        return self.done

    def interrupted(self, tally: Tally, at: int, how: str) -> None:
        """One case: the fault at a write point, then the same work again."""
        folder, injection = self.fresh(), Injection(at, how)
        what = f"{self.name}, {how} at {self.counted.points[at]}"
        try:
            with terminable(), injecting(injection, folder):
                self.work.act(folder)
        except (Killed, Terminated, Interrupted):
            pass
        except Exception as error:
            if not is_one_line(error):
                tally.cases += 1
                tally.faults.append(f"{what}: {type(error).__name__}: {error}")
                return
        tally.judge(what, folder, self.expected, self.work.act)

    def starved(self, tally: Tally, more: int) -> None:
        """One case: memory that runs out at work, then the same work again, of what failed as well."""
        folder = self.fresh()
        try:
            with little_memory(more):
                self.work.act(folder)
        except Exception as error:
            if not is_one_line(error):
                tally.faults.append(f"{self.name}, {more} bytes more: {type(error).__name__}: {error}")
        tally.judge(f"{self.name}, {more} bytes more", folder, self.expected, self.work.again or self.work.act)

    def damaged(self, tally: Tally, name: str, how: str) -> None:
        """One case: a file of the finished work is damaged, then the same work again, which reads all its files."""
        folder = self.fresh(self.keep_done())
        DAMAGE[how](folder / name)
        assert self.work.use
        tally.judge(f"{self.name}, {name} {how}", folder, self.used, self.work.use, folder / name)

    def files(self) -> list[str]:
        """Those that the work wrote, and that hold something."""
        done = self.keep_done()
        inner = [path for place in done.iterdir() if place.is_dir() for path in sorted(place.rglob("*"))]
        return [path.relative_to(done).as_posix() for path in inner if path.is_file() and path.stat().st_size]


def _flip(path: Path) -> None:
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 1
    path.write_bytes(whole)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "removed": Path.unlink,
    "emptied": lambda path: path.write_bytes(b""),
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:-3]),
    "flipped": _flip,
    "of the future": lambda path: os.utime(path, (4e9, 4e9)),
}


@contextmanager
def few_handles(more: int) -> Iterator[None]:
    """So many files more than are open now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(name) for name in os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1 + more, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def little_memory(more: int) -> Iterator[None]:
    """So many bytes more than the process has now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with Path("/proc/self/statm").open() as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + more, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def points_by_file(points: list[str]) -> Counter[str]:
    """How many write points there are of each file."""
    return Counter(point.partition(" ")[2].rpartition("/")[2] for point in points)


__all__ = ["DAMAGE", "WORKS", "Bench", "Injection", "Killed", "Tally", "few_handles", "little_memory", "points_by_file"]
