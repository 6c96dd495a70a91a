"""How far a study is, from all its files; `unbraid.studies.index` caches the result."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from unbraid.base.types import Progress
from unbraid.files.checksum import check_file
from unbraid.files.run_files import ADDED_CODES, LASTING
from unbraid.runs.folder import damaged
from unbraid.studies import store
from unbraid.studies.holdout.holdout_table import answered
from unbraid.studies.holdout.tasks import sections
from unbraid.studies.index import Part, StudyStatus, remember, status_of
from unbraid.studies.snapshot import RunView, StudySnapshot


def study_status(snapshot: StudySnapshot) -> StudyStatus:
    """How far the study is.

    Raises:
        ValueError: a file is damaged.
    """
    return status_of(_part(snapshot), snapshot.files, snapshot.runs, answered(snapshot))


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
    determined = (  # the user's own code and hold-outs are not covered by the index
        (snapshot.folder / store.ABOUT).is_file() and not snapshot.config.own_code and not sections(snapshot.config)
        for snapshot in snapshots
    )
    if all(determined):
        remember(folder, [_part(snapshot) for snapshot in snapshots])


def _part(snapshot: StudySnapshot) -> Part:
    content = snapshot.environment.dataset["content"]
    return Part(
        snapshot.label,
        snapshot.config.name,
        snapshot.folder,
        content,
        snapshot.requirements,
        snapshot.runs,
        snapshot.marks,
    )
