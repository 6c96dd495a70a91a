"""How far each run of a study is, as its folder tells it; readable without torch."""

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from unbraid.representation import Representation
from unbraid.runs.folder import damage_of, read_codes, read_folder
from unbraid.storage.json_records import read_record
from unbraid.storage.run_files import CONFIG, WORKING
from unbraid.storage.score_file import Decision, SavedScores
from unbraid.studies import store
from unbraid.studies.kept_scores import failed_metrics, missing_metrics, read_scores
from unbraid.studies.records import AddedRecord

NAMED = 10  # damaged files, in one line

RunState: TypeAlias = Literal["finished", "diverged", "failed", "waiting"]


@dataclass(frozen=True)
class Planned:
    """One run of a study, trained or not."""

    id: str
    family: str
    setting: str  # "beta=4", see `setting_of`
    seed: int
    config: Mapping[str, Any]  # as config.json holds it


@dataclass(frozen=True)
class KeptRun:
    """What the folder of a run that did not fail says, as it was read when its state was asked for."""

    config: Mapping[str, Any]
    status: Mapping[str, Any]
    scores: SavedScores


@dataclass(frozen=True)
class StudyRun:
    """One run of a study, or a representation that was added to it.

    `state`: "finished"; "diverged", "failed", both with a `reason`; "waiting" for what is not done yet. A metric that
    could not be computed leaves the run finished: `failed_metrics` says why, and `reason` with it.
    """

    id: str
    family: str
    setting: str  # "beta=4", see `unbraid.studies.expand.setting_of`
    seed: int
    state: RunState
    reason: str | None
    path: Path  # of its folder, there or not yet
    hyperparameters: Mapping[str, Any]
    failed_metrics: Mapping[str, str] = field(default_factory=dict)  # by metric, one line
    kept: KeptRun | None = field(default=None, repr=False, compare=False)

    def codes(self) -> Representation:
        """Its codes, read now.

        Raises:
            FileNotFoundError, ValueError: it has none, or the file is damaged.
        """
        return read_codes(self.path, self.kept.status if self.kept else None)


def state_of(folder: Path, planned: Planned, wanted: Mapping[str, Decision]) -> StudyRun:
    """A run of the YAML as it stands in the folder, where these scores are wanted of it."""
    path = Path(f"{folder}/{store.RUNS}/{planned.id}")  # of thousands: pathlib would parse each part again
    state: RunState = "waiting"
    reason, failed, kept = None, {}, None
    if failure := store.read_failure(folder, planned.id):
        state, reason = "failed", failure.reason
    elif os.path.exists(path):
        config, status = read_folder(path)
        if damage := damage_of(path, status):
            state, reason = "failed", damage
        elif status["state"] == "diverged":
            state, reason = "diverged", f"step {status['step']}: {status['reason']}"
        else:
            scores = read_scores(path)
            failed, kept = failed_metrics(scores, wanted), KeptRun(config, status, scores)
            state, reason = "waiting" if missing_metrics(scores, wanted) else "finished", _told(failed)
    return StudyRun(
        planned.id, planned.family, planned.setting, planned.seed, state, reason, path,
        planned.config["hyperparameters"], failed, kept,
    )  # fmt: skip


def states_of(folder: Path, planned: Iterable[Planned], wanted: Mapping[str, Decision]) -> list[StudyRun]:
    """`state_of` each of the runs.

    Raises:
        ValueError: files are damaged; the line names them all, or the first of very many.
    """
    found, damaged = [], []
    for each in planned:
        try:
            found.append(state_of(folder, each, wanted))
        except ValueError as error:
            damaged.append(str(error))
    if damaged:
        more = f"; and {len(damaged) - NAMED} more" if len(damaged) > NAMED else ""
        raise ValueError("; ".join(damaged[:NAMED]) + more)
    return found


def no_longer_planned(folder: Path, planned: Collection[str], content: str) -> list[Path]:
    """Folders of runs on the dataset of the study that its YAML does not ask for; they are not in the results.

    Args:
        folder: of the study.
        planned: ids of the runs of the YAML.
        content: digest of the dataset.
    """
    runs = folder / store.RUNS
    names = sorted(set(os.listdir(runs)) - set(planned)) if runs.is_dir() else []
    return [
        runs / name
        for name in names
        if not name.endswith(WORKING)
        and (runs / name / CONFIG).exists()
        and read_folder(runs / name)[0]["dataset"]["content"] == content
    ]


def added_runs(folder: Path, wanted: Mapping[str, Decision]) -> list[StudyRun]:
    """The representations that were added to a study, where these scores are wanted of them."""
    found = []
    for path in sorted((folder / store.ADDED).glob("*/")):
        if (path / CONFIG).is_file():
            about = read_record(path / CONFIG, AddedRecord)
            failure = store.read_failure(folder, path.name)
            failed = failed_metrics(read_scores(path), wanted)
            found.append(
                StudyRun(
                    path.name, about["family"], about["setting"], about["seed"], "failed" if failure else "finished",
                    failure.reason if failure else _told(failed), path, about.get("hyperparameters", {}), failed,
                )
            )  # fmt: skip
    return found


def _told(failed: Mapping[str, str]) -> str | None:
    return "; ".join(f"metric {name}: {reason}" for name, reason in failed.items()) or None
