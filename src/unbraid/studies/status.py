"""How far a study is, from its files; `.index.json` keeps the state of each run as it was last read.

The index is only a cache: an entry is valid while all files of its run have the sizes and times that they had when they
were read and checked; other runs are read again, and all of them if the index is missing, damaged, or of another
unbraid, YAML or dataset. Readable without torch, whose import would take longer than the rest.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import Field

from unbraid.base.types import Progress
from unbraid.files.checksum import check_file, checksummed_json
from unbraid.files.json_records import Natural, Record, Text, read_record
from unbraid.files.marks import ReadOnce, facts, mark, mark_of
from unbraid.files.run_files import ADDED_CODES, LASTING
from unbraid.files.whole_files import atomic_write, below
from unbraid.runs.folder import damaged
from unbraid.studies import store
from unbraid.studies.snapshot import (
    Planned,
    RunState,
    RunView,
    StudySnapshot,
    mark_of_run,
    names_in,
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
    family: Text
    setting: str
    seed: Natural
    mark: Mark
    state: RunState
    reason: str | None = None
    failed: dict[Text, str] = Field(default_factory=dict)


class PartEntry(Record):
    """The study of one dataset."""

    label: Text
    name: str
    environment: Mark  # of study.json
    content: Text  # digest of the dataset
    requirements: dict[Text, dict[Text, int | str]]  # what decides the number of each metric
    runs: list[RunEntry]


class IndexRecord(Record):
    """What FILE holds."""

    format: Annotated[int, Field(ge=FORMAT, le=FORMAT)]
    code: Mark  # of unbraid itself
    study: Mark  # of study.yaml
    parts: list[PartEntry]


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
    statuses, anew = [], False
    for place, entry in entries:
        failed, files, runs = set(names_in(place / store.FAILED)), ReadOnce(), []
        for row in entry["runs"]:
            run_mark, facts_of_run = mark_of_run(place, row["id"], failed), (row["family"], row["setting"], row["seed"])
            if run_mark == row["mark"]:
                path, reason = Path(f"{place}/{store.RUNS}/{row['id']}"), row.get("reason")
                run = RunView(row["id"], *facts_of_run, row["state"], reason, path, {}, row.get("failed", {}))
            else:
                planned = Planned(row["id"], *facts_of_run, {"hyperparameters": {}})
                run = read_run(place, planned, entry["requirements"], files)
                row.clear()
                row.update(_entry(run, run_mark))
                anew |= bool(run_mark)
            runs.append(run)
        runs += read_added(place, entry["requirements"], files, runs)
        statuses.append(_status(entry["label"], entry["name"], place, entry["content"], runs, files))
    if anew:
        _write(folder, index)
    return statuses


def study_status(snapshot: StudySnapshot) -> StudyStatus:
    """How far the study is.

    Raises:
        ValueError: a file is damaged.
    """
    from unbraid.studies.holdout.held_out_runs import answered  # brings torch

    content = snapshot.environment.dataset["content"]
    name, folder = snapshot.config.name, snapshot.folder
    status = _status(snapshot.label, name, folder, content, snapshot.runs, snapshot.files)
    return replace(status, answered=answered(snapshot))


def _status(label: str, name: str, folder: Path, content: str, runs: Sequence[RunView], files: ReadOnce) -> StudyStatus:
    left = no_longer_planned(folder, {run.id for run in runs}, content, files)
    return StudyStatus(label, name, runs, other_failures(folder, runs, files), left=len(left))


def compared(snapshot: StudySnapshot, progress: Progress) -> StudySnapshot:
    """The study, with runs marked as failed if the checksum of one of their files does not match.

    Args:
        snapshot: whose JSON files were checked when they were read; weights, codes, curves and the like are read here.
        progress: called as progress("comparing checksums", done, all), in runs.
    """
    runs = []
    for number, run in enumerate(snapshot.runs):
        progress("comparing checksums", number, len(snapshot.runs))
        damage = None if run.state == "failed" else _damage_within(run)
        runs.append(replace(run, state="failed", reason=damage) if damage else run)
    return replace(snapshot, runs=runs)


def _damage_within(run: RunView) -> str | None:
    for name in (*LASTING, ADDED_CODES):
        try:
            check_file(run.path / name)
        except (ValueError, OSError) as error:
            message = f"{run.path / name} is damaged ({error}); delete the folder and add it again"
            return message if run.is_added else str(damaged(run.path / name, error))
    return None


def keep_index(folder: Path, snapshots: Sequence[StudySnapshot]) -> None:
    """Write the index of a study for `remembered`, if its files alone determine how far it is."""
    for snapshot in snapshots:  # the user's own code and hold-outs are not covered by the index
        config = snapshot.config
        if config.own_code or config.compositional or config.zero_shot or not (snapshot.folder / store.ABOUT).is_file():
            return
    parts = [
        {
            "label": snapshot.label,
            "name": snapshot.config.name,
            "environment": mark_of(snapshot.folder / store.ABOUT),
            "content": snapshot.environment.dataset["content"],
            "requirements": snapshot.requirements,
            "runs": [_entry(run, snapshot.marks.get(run.id, "")) for run in snapshot.runs if not run.is_added],
        }
        for snapshot in snapshots
    ]
    _write(folder, {"format": FORMAT, "code": _own_mark(), "study": mark_of(folder / store.YAML), "parts": parts})


def _write(folder: Path, index: Mapping[str, Any]) -> None:
    with suppress(OSError), atomic_write(folder / FILE) as temporary:  # without it all runs are read again
        temporary.write_bytes(checksummed_json(index))


def _entry(run: RunView, run_mark: str) -> dict[str, Any]:
    entry = {
        "id": run.id, "family": run.family, "setting": run.setting, "seed": run.seed, "mark": run_mark,
        "state": run.state, "reason": run.reason, "failed": dict(run.failed_metrics),
    }  # fmt: skip
    return {name: value for name, value in entry.items() if name not in ("reason", "failed") or value}


@cache
def _own_mark() -> str:
    """The mark of unbraid's own code."""
    home = Path(__file__).parents[1]
    return mark(sorted(facts(str(path), os.stat(path)) for path in home.rglob("*.py")))
