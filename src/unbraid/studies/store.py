"""The folder of a study: names and content of its files, and its lock."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from unbraid.base.version import VERSION
from unbraid.files.checksum import checksummed_json
from unbraid.files.json_records import check_record, read_object, read_record
from unbraid.files.marks import ReadOnce
from unbraid.files.remote import address, discard
from unbraid.files.whole_files import atomic_write
from unbraid.studies.study_json import FORMAT, EnvironmentRecord, FailureRecord

YAML, ABOUT, RESULTS = "study.yaml", "study.json", "results.parquet"
RUNS, FAILED, ADDED, BASELINES = "runs", "failed", "added", "baselines"


def is_study(path: str | Path) -> bool:
    """Whether a path is the folder or the address of a study."""
    return address(path) is not None or (Path(path) / YAML).is_file()


@dataclass(frozen=True)
class StudyEnvironment:
    """All that determines the runs of a study besides its YAML; stored in the folder to keep the runs the same."""

    dataset: Mapping[str, Any]  # name, options, n_images, image_shape, content
    device: str
    precision: str
    training: Mapping[str, int] = field(default_factory=dict)  # versions of families, by name
    code: Mapping[str, str] = field(default_factory=dict)  # digests of the user's own families and networks, by name

    def version(self, family: str) -> int:
        """The training version of its models; that of today where it has none yet."""
        from unbraid.families.family_table import find_family  # brings torch, which takes longer than most reading

        return self.training.get(family) or find_family(family).version


@dataclass(frozen=True)
class Failure:
    """A run that failed, as failed/<id>.json keeps it."""

    id: str
    family: str
    setting: str
    seed: int
    reason: str
    attempts: int
    details: str = ""  # the traceback, where there is one
    trained: bool = False  # whether its folder was there: what failed is its scoring, or its files are damaged


def check_folder(folder: Path, files: ReadOnce) -> None:
    """Raises ValueError if the folder cannot hold a study: it holds something else, or another format."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; give a folder")
    if not folder.exists():
        return
    if (folder / ABOUT).exists():
        files(_read_study_json, folder / ABOUT)
    elif (folder / YAML).is_file() and (folder / RUNS).is_dir():
        return  # somebody deleted it
    elif any(not path.name.startswith(".") and path.suffix != ".yaml" for path in folder.iterdir()):
        raise ValueError(
            f"{folder.absolute()} holds something else than a study (it has no {ABOUT}); give a new folder"
        )


def _read_study_json(path: str) -> dict[str, Any]:
    record = read_object(path, advice="; delete it, and unbraid study run writes it again")
    if isinstance(version := record.get("format"), int) and version != FORMAT:
        raise ValueError(
            f"{Path(path).parent}: a study of format {version}; this version of unbraid reads {FORMAT}. Give another "
            "folder"
        )
    check_record(EnvironmentRecord, record, path)
    return record


def read_environment(folder: Path, source: Mapping[str, Any], files: ReadOnce) -> StudyEnvironment | None:
    """What the runs of the folder were trained on; None if it is unknown, or for another dataset.

    Args:
        folder: of the study.
        source: the dataset as the YAML describes it.
        files: what was read already.
    """
    if not (folder / ABOUT).exists():
        return None
    record = files(_read_study_json, folder / ABOUT)
    if _plain(record["source"]) != _plain(source):
        return None
    return StudyEnvironment(
        record["dataset"], record["device"], record["precision"], record["training"], record.get("code", {})
    )


def write_environment(folder: Path, source: Mapping[str, Any], around: StudyEnvironment) -> None:
    write_json(
        folder / ABOUT,
        {"format": FORMAT, "unbraid": VERSION, "source": _plain(source), **asdict(around)},
    )


def _plain(source: Mapping[str, Any]) -> Any:
    from unbraid.datasets.recorded import of_everywhere

    return json.loads(json.dumps(of_everywhere(source), default=str))


def read_failure(folder: Path, run: str, files: ReadOnce) -> Failure | None:
    """The failure of a run; None if it did not fail, or its folder was deleted since."""
    path = f"{folder}/{FAILED}/{run}.json"
    if not os.path.exists(path):
        return None
    failure = files(_read_failure, path)
    return None if failure.trained and not os.path.exists(f"{folder}/{RUNS}/{run}") else failure


def _read_failure(path: str) -> Failure:
    return Failure(**read_record(path, FailureRecord, advice="; delete it"))


def write_failure(folder: Path, failure: Failure) -> None:
    (folder / FAILED).mkdir(exist_ok=True)
    write_json(folder / FAILED / f"{failure.id}.json", asdict(failure))


def forget_failure(folder: Path, run: str) -> None:
    if (path := folder / FAILED / f"{run}.json").exists():
        discard(path)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write an object with its checksum, whole or not at all."""
    with atomic_write(path) as temporary:
        temporary.write_bytes(checksummed_json(content))
