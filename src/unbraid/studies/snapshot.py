"""The state of a study, read from its folder: each JSON file once, and without torch."""

import os
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from unbraid.base.errors import ModelsFailed
from unbraid.data import Representation
from unbraid.files.json_records import read_record
from unbraid.files.marks import ReadOnce, facts, mark
from unbraid.files.run_files import CONFIG, SCORES, STATUS, WORKING
from unbraid.files.score_file import Decision, SavedInput, SavedScores, read_scores_file, same
from unbraid.files.trust import Trusted
from unbraid.runs.folder import damage_of, damaged, read_codes, read_folder
from unbraid.studies import store
from unbraid.studies.store import Failure, StudyEnvironment
from unbraid.studies.study_json import AddedRecord

if TYPE_CHECKING:
    from unbraid.studies.schema import StudyConfig

RunState: TypeAlias = Literal["finished", "diverged", "failed", "waiting"]

NONE = SavedScores.model_construct(
    seed=0, input=SavedInput.model_construct(), metrics={}, skipped={}, failed={}, computed_with={}
)


@dataclass(frozen=True)
class Planned:
    """One run of a study, trained or not."""

    id: str
    family: str
    setting: str  # "beta=4", see `setting_of`
    seed: int
    config: Mapping[str, Any]  # as config.json holds it


@dataclass(frozen=True)
class RunView:
    """One run of a study, or a representation that was added to it, as its files describe it.

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
    # As config.json holds it, or will; {} of an added representation that `unbraid.train` did not make.
    config: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    status: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)  # {} before it ended
    scores: SavedScores = field(default=NONE, repr=False, compare=False)

    @property
    def is_added(self) -> bool:
        """Whether it is a representation that was added to the study."""
        return self.path.parent.name == store.ADDED

    def codes(self) -> Representation:
        """Its codes, read now.

        Raises:
            FileNotFoundError, ValueError: it has none, or the file is damaged.
        """
        return read_codes(self.path, self.status or None)

    def judged(self, requirements: Mapping[str, Decision]) -> "RunView":
        """The same run, with its state by these required scores."""
        if self.state in ("failed", "diverged") or not self.status:
            return self
        failed = failed_metrics(self.scores, requirements)
        state = "waiting" if missing_metrics(self.scores, requirements) else "finished"
        return replace(self, state=state, failed_metrics=failed, reason=_reasons(failed))


@dataclass(frozen=True, eq=False)
class StudySnapshot:
    """A study of one dataset at one moment, from its files. Only codes and rankings are read on demand."""

    label: str  # in a study of several datasets
    config: "StudyConfig"
    text: str  # the YAML
    folder: Path
    trusted: Sequence[Trusted]  # its own networks, metrics and images that the user trusts
    environment: StudyEnvironment
    requirements: Mapping[str, Decision]  # what the score of each metric must have been computed with
    runs: Sequence[RunView]  # of the YAML, then those that were added
    marks: Mapping[str, str]  # of the files of each run, taken before they were read
    baselines: Mapping[str, SavedScores] = field(default_factory=dict)  # scores by id
    answers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # held_out.json by the name of its folder
    files: ReadOnce = field(default_factory=ReadOnce, repr=False)


def read_run(folder: Path, planned: Planned, requirements: Mapping[str, Decision], files: ReadOnce) -> RunView:
    """A run of the YAML, read from the study's folder; its state depends on the required scores.

    A run one of whose records is missing or damaged counts as failed, as it does without its weights or codes.
    """
    path = Path(f"{folder}/{store.RUNS}/{planned.id}")  # of thousands: pathlib would parse each part again
    failure = store.read_failure(folder, planned.id, files)
    config, status, scores, damage = planned.config, {}, NONE, None
    if os.path.exists(path):
        try:
            config, status = files(read_folder, path, CONFIG, STATUS)
            scores = files(read_scores, path, SCORES)
            damage = damage_of(path, status)
        except (FileNotFoundError, ValueError) as error:
            missing = next((name for name in (CONFIG, STATUS) if not os.path.exists(path / name)), None)
            damage = str(error if missing is None else damaged(path / missing, "it is missing"))
    state: RunState = "waiting"
    reason = None
    if failure or damage:
        state, reason = "failed", failure.reason if failure else damage
    elif status and status["state"] == "diverged":
        state, reason = "diverged", f"step {status['step']}: {status['reason']}"
    return RunView(
        planned.id, planned.family, planned.setting, planned.seed, state, reason, path,
        planned.config["hyperparameters"], {}, config, status, scores,
    ).judged(requirements)  # fmt: skip


def run_marks(folder: Path) -> dict[str, str]:
    """The mark of each run that has files."""
    failed = set(names_in(folder / store.FAILED))
    ids = {*names_in(folder / store.RUNS), *(name.removesuffix(".json") for name in failed)}
    return {run: mark_of_run(folder, run, failed) for run in ids}


def mark_of_run(folder: Path, run: str, failed: Collection[str]) -> str:
    """`mark_of` of all that decides the state of a run; `failed` are the names of the files of failures."""
    files = []
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(f"{folder}/{store.RUNS}/{run}") as entries:
        files = sorted(facts(entry.name, entry.stat()) for entry in entries)
    if (name := f"{run}.json") in failed:
        files.append(facts(name, os.stat(f"{folder}/{store.FAILED}/{name}")))
    return mark(files)


def names_in(folder: Path) -> list[str]:
    """Names of the files in a folder; none where there is no such folder."""
    return os.listdir(folder) if folder.is_dir() else []


def failed_runs(snapshots: Collection[StudySnapshot]) -> dict[str, str]:
    """Reasons of the runs that failed, by the paths of their folders."""
    runs = [run for snapshot in snapshots for run in snapshot.runs]
    return {str(run.path): run.reason or "" for run in runs if run.state == "failed"}


def check_some_left(snapshots: Collection[StudySnapshot]) -> None:
    """Raises ModelsFailed where every run of the study failed."""
    failed = failed_runs(snapshots)
    if failed and len(failed) == sum(len(each.runs) for each in snapshots):
        raise ModelsFailed(failed, every=True)


def check_runs(snapshots: Collection[StudySnapshot], unreadable: Mapping[str, str] | None = None) -> None:
    """Raises ModelsFailed where runs of the study failed, once the others have been used.

    Args:
        snapshots: of each dataset.
        unreadable: reasons of others that cannot be read, by path.
    """
    check_some_left(snapshots)
    if failed := {**failed_runs(snapshots), **(unreadable or {})}:
        raise ModelsFailed(failed, every=False)


def no_longer_planned(folder: Path, planned: Collection[str], content: str, files: ReadOnce) -> list[Path]:
    """Folders of runs on the study's dataset that its YAML no longer lists; they are not in the results.

    Args:
        folder: of the study.
        planned: ids of the runs of the YAML.
        content: digest of the dataset.
        files: what was read already.
    """
    runs = folder / store.RUNS
    names = sorted(set(names_in(runs)) - set(planned))
    return [
        runs / name
        for name in names
        if not name.endswith(WORKING) and files(_content_of_dataset, runs / name, CONFIG, STATUS) == content
    ]


def _content_of_dataset(path: str | Path) -> str | None:
    """Digest of the dataset that a run was trained on; None where a record is missing or damaged."""
    try:
        return read_folder(path)[0]["dataset"]["content"]
    except (FileNotFoundError, ValueError):
        return None


def read_added(
    folder: Path, requirements: Mapping[str, Decision], files: ReadOnce, runs: Iterable[RunView] = ()
) -> list[RunView]:
    """The representations that were added to a study, but for those among its `runs`: the YAML may list them by now.

    One whose config.json is damaged has failed; its family, setting and seed are not known.
    """
    ids, added = {run.id for run in runs}, []
    for path in sorted((folder / store.ADDED).glob("[!.]*/")):  # hidden ones are not added yet, or were cut off
        if path.name not in ids and (path / CONFIG).is_file():
            try:
                record = files(_read_added_record, path / CONFIG)
            except ValueError as error:
                added.append(RunView(path.name, "", "", 0, "failed", str(error), path, {}))
                continue
            failure, scores = store.read_failure(folder, path.name, files), files(read_scores, path, SCORES)
            failed = failed_metrics(scores, requirements)
            added.append(
                RunView(
                    path.name, record["family"], record["setting"], record["seed"], "failed" if failure else "finished",
                    failure.reason if failure else _reasons(failed), path, record.get("hyperparameters", {}), failed,
                    record.get("run") or {}, record.get("status") or {}, scores,
                )
            )  # fmt: skip
    return added


def other_failures(folder: Path, runs: Iterable[RunView], files: ReadOnce) -> list[Failure]:
    """Failures of runs that are not in `runs`, such as those that see fewer images."""
    listed = {run.id for run in runs}
    names = sorted(path.stem for path in (folder / store.FAILED).glob("*.json") if path.stem not in listed)
    return [failure for name in names if (failure := store.read_failure(folder, name, files))]


def _read_added_record(path: str) -> dict[str, Any]:
    return read_record(path, AddedRecord)


def _reasons(failed: Mapping[str, str]) -> str | None:
    return "; ".join(f"metric {name}: {reason}" for name, reason in failed.items()) or None


def missing_metrics(scores: SavedScores, requirements: Mapping[str, Decision], *, retry: bool = False) -> list[str]:
    """Required metrics that scores.json lacks or holds on other terms; with `retry` also those that failed."""
    decisions = scores.decisions()
    entries = {*scores.metrics, *scores.skipped, *(() if retry else scores.failed)}
    return [
        name
        for name, decision in requirements.items()
        if name not in entries or not same(decisions.get(name, {}), decision)
    ]


def failed_metrics(scores: SavedScores, requirements: Mapping[str, Decision]) -> dict[str, str]:
    """By metric that failed on the required terms, the reason."""
    decisions = scores.decisions()
    return {
        name: scores.failed[name].reason
        for name in requirements
        if name in scores.failed and same(decisions.get(name, {}), requirements[name])
    }


def read_scores(folder: str | Path, *, warn: bool = True) -> SavedScores:
    """The content of scores.json, checked; empty if it is missing or, with a warning, damaged."""
    path = f"{folder}/{SCORES}"
    try:
        return read_scores_file(path)
    except FileNotFoundError:
        return NONE
    except ValueError as error:
        if warn:
            warnings.warn(f"{error}; it counts as missing, and the next scoring replaces it", stacklevel=2)
        return NONE
