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
from unbraid.files.whole_files import atomic_write
from unbraid.studies import store
from unbraid.studies.snapshot import (
    Planned,
    RunState,
    RunView,
    no_longer_planned,
    other_failures,
    read_run,
)
from unbraid.studies.store import Failure

FILE = ".index.json"
FORMAT = 2

Mark: TypeAlias = Annotated[str, Field(pattern="^([0-9a-f]{32})?$")]  # "": there is nothing
Id: TypeAlias = Annotated[str, Field(pattern="^[0-9a-f]{16}$")]


@dataclass(frozen=True)
class StudyStatus:
    """How far a study is, as `unbraid study status` prints it."""

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


class IndexRecord(Record):
    """What FILE holds."""

    format: Annotated[int, Field(ge=FORMAT, le=FORMAT)]
    code: Mark  # of unbraid itself
    study: Mark  # of study.yaml
    name: str
    environment: Mark  # of study.json
    content: Text  # digest of the dataset
    requirements: dict[Text, dict[Text, int | str]]  # what decides the number of each metric
    settings: list[SettingEntry]


@dataclass(frozen=True)
class Indexed:
    """What FILE keeps of a study; `marks` were taken before its runs were read."""

    name: str
    folder: Path
    content: str
    requirements: Mapping[str, Decision]
    runs: Sequence[RunView]
    marks: Mapping[str, str]  # by run


def remembered(folder: Path) -> StudyStatus | None:
    """How far the study in a folder is, reading only what changed; None if the index or a file is not valid."""
    try:
        index = read_record(folder / FILE, IndexRecord, checksummed=True)
    except ValueError:  # absent, damaged, of another version: a cache that is made anew
        return None
    if index["code"] != _own_mark() or index["study"] != mark_of(folder / store.YAML):
        return None
    if mark_of(folder / store.ABOUT) != index["environment"]:
        return None
    anew, files, failed = False, ReadOnce(), set(_names(folder / store.FAILED))
    runs, marks = [], {}
    for setting in index["settings"]:
        for row in setting["runs"]:
            planned = Planned(row["id"], setting["family"], setting["setting"], row["seed"], setting)
            marks[row["id"]] = _run_mark(folder, row["id"], failed)
            if marks[row["id"]] == row["mark"]:
                runs.append(_as_kept(folder, planned, row))
                continue
            runs.append(read_run(folder, planned, index["requirements"], files))
            anew |= bool(marks[row["id"]])
    indexed = Indexed(index["name"], folder, index["content"], index["requirements"], runs, marks)
    if anew:
        remember(indexed)
    return status_of(indexed, files, runs, {})


def remember(indexed: Indexed) -> None:
    """Write the state of the runs to FILE, if the folder is writable."""
    content = {
        "format": FORMAT,
        "code": _own_mark(),
        "study": mark_of(indexed.folder / store.YAML),
        "name": indexed.name,
        "environment": mark_of(indexed.folder / store.ABOUT),
        "content": indexed.content,
        "requirements": indexed.requirements,
        "settings": list(_settings(indexed)),
    }
    with suppress(OSError), atomic_write(indexed.folder / FILE) as temporary:  # without it all runs are read again
        temporary.write_bytes(checksummed_json(content))


def status_of(
    indexed: Indexed, files: ReadOnce, runs: Sequence[RunView], answered: Mapping[str, tuple[int, int]]
) -> StudyStatus:
    """How far a study is, from its runs, and from other files of its folder, read now if they changed."""
    left = no_longer_planned(indexed.folder, {run.id for run in runs}, indexed.content, files)
    return StudyStatus(indexed.name, runs, other_failures(indexed.folder, runs, files), answered, len(left))


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


def _settings(indexed: Indexed) -> Iterator[dict[str, object]]:
    for _, group in groupby(indexed.runs, lambda run: (run.family, run.setting, repr(run.hyperparameters))):
        runs = list(group)
        yield {
            "family": runs[0].family,
            "setting": runs[0].setting,
            "hyperparameters": dict(runs[0].hyperparameters),
            "runs": [
                {"id": run.id, "seed": run.seed, "mark": indexed.marks.get(run.id, ""), "state": run.state}
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
