"""The files of a run folder that can be read without torch."""

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
from unbraid.runs.foreign_models import check_not_fitted, code_path
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
    config, status = (read_object(file, advice="; delete the folder and train again") for file in (described, ended))
    if isinstance(version := config.get("format"), int) and version != FORMAT:
        raise ValueError(f"{path}: its format is {version}; this version of unbraid reads {FORMAT}")
    check_record(RunRecord, config, described)
    check_record(StatusRecord, status, ended)
    status.pop(KEY, None)
    return config, status


def check_there(paths: Iterable[Path]) -> None:
    """Raises FileNotFoundError for the first path that does not exist; ValueError if it is still being trained."""
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
    """The file of codes for a path: the file itself, or that in the folder of a run, a foreign model or an added one.

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
        if (file := code_path(path)) != path:
            return file
        _, status = read_folder(path)
    if status["state"] == "diverged":
        raise ValueError(f"{path} diverged at step {status['step']} ({status['reason']}): it has no codes")
    if not (path / CODES).is_file():
        raise damaged(path / CODES, "it is missing")
    return path / CODES


def read_codes(path: Path, status: Mapping[str, Any] | None = None) -> Representation:
    """The representation in the file that `find_codes` returns.

    Raises:
        FileNotFoundError, ValueError: as `find_codes`; and where the file is damaged.
    """
    file = find_codes(path, status)
    if file != path / CODES:
        return Representation.load(file)
    try:
        return Representation.load(file)
    except ValueError as error:
        raise damaged(file, str(error).removeprefix(f"{file}: ")) from None


def damage_of(path: Path, status: Mapping[str, Any]) -> str | None:
    """An error line if a file of a finished run is missing or has changed its length; None otherwise."""
    place = os.fspath(path)
    for name, size in status.get("files", {}).items():
        file = f"{place}/{name}" if name in LASTING else os.fspath(below(path, name))
        length = _size(file)
        if length != size:
            reason = "it is missing" if length is None else f"it has {length:,} bytes and had {size:,}"
            return str(damaged(file, reason))
    return None


def _size(file: str) -> int | None:
    try:
        stats = os.stat(file)
    except OSError:
        return None
    return stats.st_size if S_ISREG(stats.st_mode) else None


def damaged(path: str | Path, reason: object) -> ValueError:
    """The error for a file of a run that cannot be used."""
    advice = "delete the folder and train again"
    if folder := stored_at(Path(path).parent):
        advice = f"delete the file to download it again; if it is damaged in the store, delete {folder} and train again"
    return ValueError(f"{path} is damaged ({one_line(reason)}); {advice}")


def run_id(config: Mapping[str, Any]) -> str:
    """A name for the run: the same for the same images, family, settings, seed, steps, device and precision.

    Images are identified by their content, so that the id is the same for a dataset by name, by path and in memory.
    Precision is that requested: "auto" gives one id on every machine. Training version 1 is left out, as in older
    configs.
    """
    config = dict(config)
    config["precision"] = config.pop("requested_precision", config["precision"])
    if config.get("training_version") == 1:
        del config["training_version"]
    source = {name: value for name, value in config["dataset"].items() if name not in {"name", "options"}}
    canonical = json.dumps({**config, "dataset": source}, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def tidy(folder: Path, *, continuable: bool = False) -> None:
    """Remove files from a finished folder that only its training needed.

    Args:
        continuable: leave the last checkpoint, from which the training can be continued.
    """
    names = (CHECKPOINT, CONFIG, STATUS, WEIGHTS, CODES, CURVES, SNAPSHOTS, HELD_OUT, SCORES)
    unfinished = tuple(f".{name}." for name in names)
    for left in folder.iterdir():
        needless = left.name == CHECKPOINT and not continuable
        if needless or (left.name.startswith(unfinished) and left.suffix == ".part"):
            left.unlink(missing_ok=True)
