"""The files of a run folder, as far as they can be read without torch."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from stat import S_ISREG
from typing import Any

from unbraid.base.suggest import one_line
from unbraid.data import READABLE, Representation
from unbraid.files.checksum import KEY
from unbraid.files.json_records import check_record, read_object
from unbraid.files.remote import stored_at
from unbraid.files.run_files import (
    ADDED_CODES,
    CHECKPOINT,
    CODES,
    CONFIG,
    CURVES,
    HELD_OUT,
    LASTING,
    SCORES,
    SNAPSHOTS,
    STATUS,
    WEIGHTS,
    WORKING,
)
from unbraid.files.whole_files import below
from unbraid.runs.foreign_models import check_not_fitted, is_run, require_codes
from unbraid.runs.run_json import FORMAT, RunRecord, StatusRecord


def read_folder(path: str | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Config and status of a finished run.

    Raises:
        FileNotFoundError: there is no such folder, or it is not that of a run.
        ValueError: the training has not finished; a file is damaged, or holds what no run holds; or it was written by
            another version.
    """
    place = os.fspath(path)  # of thousands of runs: pathlib would take a third of the time
    described, ended = f"{place}/{CONFIG}", f"{place}/{STATUS}"
    if place.endswith(WORKING) or not os.path.isfile(described):
        raise _no_run(place)
    config, status = (read_object(each, advice="; delete the folder and train again") for each in (described, ended))
    if isinstance(found := config.get("format"), int) and found != FORMAT:
        raise ValueError(f"{path}: its format is {found}; this version of unbraid reads {FORMAT}")
    check_record(RunRecord, config, described)
    check_record(StatusRecord, status, ended)
    status.pop(KEY, None)
    return config, status


def check_there(paths: Iterable[Path]) -> None:
    """Raises FileNotFoundError for the first file or folder that is not there; ValueError where it is being trained."""
    for path in paths:
        if not path.exists():
            raise _no_run(os.fspath(path))


def _no_run(place: str) -> Exception:
    """Why a path, or a folder without a config, is no finished run."""
    described, ended = f"{place}/{CONFIG}", f"{place}/{STATUS}"
    if os.path.exists(place) and not os.path.isdir(place):
        return FileNotFoundError(f"{place}: a file, not the folder of a run")
    if not os.path.isdir(place) or place.endswith(WORKING):
        if os.path.isdir(place.removesuffix(WORKING) + WORKING):
            return ValueError(f"{place}: the training has not finished; the same command continues it")
        return FileNotFoundError(f"{place}: no such {'file' if os.path.splitext(place)[1] else 'folder'}")
    if os.path.isfile(ended):
        return damaged(described, "it is missing")
    check_not_fitted(Path(place))
    return FileNotFoundError(f"{place}: not the folder of a run; there is no {CONFIG}")


def find_codes(path: Path, status: Mapping[str, Any] | None = None) -> Path:
    """The file of codes that a path stands for: itself, or that of a run, of any framework, or added to a study.

    Args:
        path: of the file or folder.
        status: of the run, where it was read already.

    Raises:
        FileNotFoundError, ValueError: as `read_folder`; and where the run diverged.
    """
    if path.is_file() or path.suffix.lower() in READABLE:
        return path
    if (path / ADDED_CODES).is_file():
        return path / ADDED_CODES
    if status is None:
        if path.is_dir() and not is_run(path):
            return require_codes(path)
        _, status = read_folder(path)
    if status["state"] == "diverged":
        raise ValueError(f"{path} diverged at step {status['step']} ({status['reason']}): it has no codes")
    if not (path / CODES).is_file():
        raise damaged(path / CODES, "it is missing")
    return path / CODES


def read_codes(path: Path, status: Mapping[str, Any] | None = None) -> Representation:
    """The representation that a path stands for, as `find_codes` has it.

    Raises:
        FileNotFoundError, ValueError: as `find_codes`; and where the file is damaged.
    """
    found = find_codes(path, status)
    if found != path / CODES:
        return Representation.load(found)
    try:
        return Representation.load(found)
    except ValueError as error:
        raise damaged(found, str(error).removeprefix(f"{found}: ")) from None


def damage_of(path: Path, status: Mapping[str, Any]) -> str | None:
    """What is wrong where a file of a finished run is missing, or of another length than when it was written."""
    place = os.fspath(path)
    for name, size in status.get("files", {}).items():
        file = f"{place}/{name}" if name in LASTING else os.fspath(below(path, name))
        found = _size(file)
        if found != size:
            reason = "it is missing" if found is None else f"it has {found:,} bytes and had {size:,}"
            return str(damaged(file, reason))
    return None


def _size(file: str) -> int | None:
    try:
        about = os.stat(file)
    except OSError:
        return None
    return about.st_size if S_ISREG(about.st_mode) else None


def damaged(path: str | Path, reason: object) -> ValueError:
    """The error for a file of a run that cannot be used."""
    advice = "delete the folder and train again"
    if folder := stored_at(Path(path).parent):
        advice = f"delete the file to download it again; if it is damaged in the store, delete {folder} and train again"
    return ValueError(f"{path} is damaged ({one_line(reason)}); {advice}")


def run_id(config: Mapping[str, Any]) -> str:
    """A name for the run: the same for the same images, family, settings, seed, steps, device and precision.

    The images count by their content, so that a dataset has the same id under its name, its path and in memory.
    Precision counts as it was asked for: "auto" is one id on every machine. The first training version of a family
    counts as none, which configs of before have.
    """
    config = dict(config)
    config["precision"] = config.pop("requested_precision", config["precision"])
    if config.get("training_version") == 1:
        del config["training_version"]
    source = {name: value for name, value in config["dataset"].items() if name not in {"name", "options"}}
    canonical = json.dumps({**config, "dataset": source}, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def tidy(folder: Path, *, continuable: bool = False) -> None:
    """Remove from a finished folder what only its training needed; its rename came first, so nothing is lost.

    Args:
        continuable: leave the last checkpoint, with which the training can go on.
    """
    names = (CHECKPOINT, CONFIG, STATUS, WEIGHTS, CODES, CURVES, SNAPSHOTS, HELD_OUT, SCORES)
    unfinished = tuple(f".{name}." for name in names)
    for left in folder.iterdir():
        needless = left.name == CHECKPOINT and not continuable
        if needless or (left.name.startswith(unfinished) and left.suffix == ".part"):
            left.unlink(missing_ok=True)
