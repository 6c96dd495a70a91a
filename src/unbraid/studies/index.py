"""`.index.json` of a study: the state of each run when it was last read.

Only a cache: an entry is valid while all files of its run have the sizes and times that they had when they were read
and checked; other runs are read again, and all of them if the file is missing, damaged, or of another unbraid, YAML or
dataset. Readable without torch, whose import would take longer than the rest.
"""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import Field

from unbraid.files.checksum import checksummed_json
from unbraid.files.json_records import Natural, Record, Text, read_record
from unbraid.files.marks import ReadOnce, facts, mark, mark_of
from unbraid.files.score_file import Decision
from unbraid.files.whole_files import atomic_write, below
from unbraid.studies import store
from unbraid.studies.snapshot import (
    Planned,
    RunState,
    RunView,
    no_longer_planned,
    other_failures,
    read_added,
    read_run,
)
from unbraid.studies.store import Failure

FILE = ".index.json"
FORMAT = 1

Mark: TypeAlias = Annotated[str, Field(pattern="^([0-9a-f]{32})?$")]  # "": there is nothing
Id: TypeAlias = Annotated[str, Field(pattern="^[0-9a-f]{16}$")]


@dataclass(frozen=True)
class StudyStatus:
    """How far a study of one dataset is, as `unbraid study status` prints it."""

    label: str  # in a study of several datasets
    name: str
    runs: Sequence[RunView]
    other_failures: Sequence[
        Failure
    ] = ()  # runs that failed and the YAML does not list, such as those that see fewer images
    # Hold-outs by kind: how many runs were asked, and how many there are to ask.
    answered: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    left: int = 0  # runs in the folder that the YAML does not ask for any more


class RunEntry(Record):
    """A run, by its mark."""

    id: Id
    seed: Natural
    mark: Mark
    state: RunState
    reason: str | None = None
    failed: dict[Text, str] = Field(default_factory=dict)


class SettingEntry(Record):
    """Runs that follow each other and differ in their seed alone."""

    family: Text
    setting: str
    hyperparameters: dict[Text, bool | int | float | str]
    runs: list[RunEntry]


class PartEntry(Record):
    """The study of one dataset."""

    label: Text
    name: str
    environment: Mark  # of study.json
    content: Text  # digest of the dataset
    requirements: dict[Text, dict[Text, int | str]]  # what decides the number of each metric
    settings: list[SettingEntry]


class IndexRecord(Record):
    """What FILE holds."""

    format: Annotated[int, Field(ge=FORMAT, le=FORMAT)]
    code: Mark  # of unbraid itself
    study: Mark  # of study.yaml
    parts: list[PartEntry]


@dataclass(frozen=True)
class Part:
    """What FILE keeps of the study of one dataset; `marks` were taken before its runs were read."""

    label: str
    name: str
    folder: Path
    content: str
    requirements: Mapping[str, Decision]
    runs: Sequence[RunView]
    marks: Mapping[str, str]  # by run


def remembered(folder: Path) -> list[StudyStatus] | None:
    """How far the study in a folder is, reading only what changed; None if the index or a file is not valid."""
    try:
        index = read_record(folder / FILE, IndexRecord, checksummed=True)
        places = [below(folder, part["label"]) if part["label"] else folder for part in index["parts"]]
    except ValueError:  # absent, damaged, of another version: a cache that is made anew
        return None
    if index["code"] != _own_mark() or index["study"] != mark_of(folder / store.YAML):
        return None
    entries = list(zip(places, index["parts"], strict=True))
    if any(mark_of(place / store.ABOUT) != entry["environment"] for place, entry in entries):
        return None
    parts, anew, files = [], False, ReadOnce()
    for place, entry in entries:
        failed = set(_names(place / store.FAILED))
        runs, marks = [], {}
        for setting in entry["settings"]:
            for row in setting["runs"]:
                planned = Planned(row["id"], setting["family"], setting["setting"], row["seed"], setting)
                marks[row["id"]] = _run_mark(place, row["id"], failed)
                if marks[row["id"]] == row["mark"]:
                    runs.append(_as_kept(place, planned, row))
                    continue
                runs.append(read_run(place, planned, entry["requirements"], files))
                anew |= bool(marks[row["id"]])
        parts.append(Part(entry["label"], entry["name"], place, entry["content"], entry["requirements"], runs, marks))
    if anew:
        remember(folder, parts)
    return [
        status_of(part, files, [*part.runs, *read_added(part.folder, part.requirements, files, part.runs)], {})
        for part in parts
    ]


def remember(folder: Path, parts: Sequence[Part]) -> None:
    """Write the state of the runs to FILE, if the folder is writable."""
    content = {
        "format": FORMAT,
        "code": _own_mark(),
        "study": mark_of(folder / store.YAML),
        "parts": [
            {
                "label": part.label,
                "name": part.name,
                "environment": mark_of(part.folder / store.ABOUT),
                "content": part.content,
                "requirements": part.requirements,
                "settings": list(_settings(part)),
            }
            for part in parts
        ],
    }
    with suppress(OSError), atomic_write(folder / FILE) as temporary:  # without it all runs are read again
        temporary.write_bytes(checksummed_json(content))


def status_of(
    part: Part, files: ReadOnce, runs: Sequence[RunView], answered: Mapping[str, tuple[int, int]]
) -> StudyStatus:
    """How far a study is, from its runs, and from other files of its folder, read now if they changed."""
    left = no_longer_planned(part.folder, {run.id for run in runs}, part.content, files)
    return StudyStatus(part.label, part.name, runs, other_failures(part.folder, runs, files), answered, len(left))


def run_marks(folder: Path) -> dict[str, str]:
    """The mark of each run that has files."""
    failed = set(_names(folder / store.FAILED))
    ids = {*_names(folder / store.RUNS), *(name.removesuffix(".json") for name in failed)}
    return {run: _run_mark(folder, run, failed) for run in ids}


def _run_mark(folder: Path, run: str, failed: Collection[str]) -> str:
    """`mark_of` of all that decides the state of a run; `failed` are the names of the files of failures."""
    files = []
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(f"{folder}/{store.RUNS}/{run}") as entries:
        files = sorted(facts(entry.name, entry.stat()) for entry in entries)
    if (name := f"{run}.json") in failed:
        files.append(facts(name, os.stat(f"{folder}/{store.FAILED}/{name}")))
    return mark(files)


@cache
def _own_mark() -> str:
    """The mark of unbraid's own code."""
    home = Path(__file__).parents[1]
    return mark(sorted(facts(str(path), os.stat(path)) for path in home.rglob("*.py")))


def _names(folder: Path) -> list[str]:
    return os.listdir(folder) if folder.is_dir() else []


def _settings(part: Part) -> Iterator[dict[str, object]]:
    planned = [run for run in part.runs if not run.is_added]
    for _, group in groupby(planned, lambda run: (run.family, run.setting, repr(run.hyperparameters))):
        runs = list(group)
        yield {
            "family": runs[0].family,
            "setting": runs[0].setting,
            "hyperparameters": dict(runs[0].hyperparameters),
            "runs": [
                {"id": run.id, "seed": run.seed, "mark": part.marks.get(run.id, ""), "state": run.state}
                | ({"reason": run.reason} if run.reason else {})
                | ({"failed": dict(run.failed_metrics)} if run.failed_metrics else {})
                for run in runs
            ],
        }


def _as_kept(folder: Path, planned: Planned, row: Mapping[str, Any]) -> RunView:
    return RunView(
        planned.id, planned.family, planned.setting, planned.seed, row["state"], row.get("reason"),
        Path(f"{folder}/{store.RUNS}/{planned.id}"), planned.config["hyperparameters"], row.get("failed", {}),
    )  # fmt: skip
