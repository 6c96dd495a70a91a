"""How far a study is, all of it read; what `unbraid.studies.index` then keeps for the next time."""

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
    """The study where a run counts as failed if the checksum in one of its files is that of other content.

    Args:
        snapshot: whose records were compared as they were read; weights, codes, curves and the like are read here.
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
            found = f"{run.path / name} is damaged ({error}); delete the folder and add it again"
            return found if run.is_added else str(damaged(run.path / name, error))
    return None


def keep_index(folder: Path, snapshots: Sequence[StudySnapshot]) -> None:
    """Keep how far the study in a folder is for `remembered`, where its files alone say that."""
    told_by_files = (  # code of the user's own and hold-outs are not
        (each.folder / store.ABOUT).is_file() and not each.config.own_code and not sections(each.config)
        for each in snapshots
    )
    if all(told_by_files):
        remember(folder, [_part(each) for each in snapshots])


def _part(snapshot: StudySnapshot) -> Part:
    content = snapshot.environment.dataset["content"]
    return Part(
        snapshot.label, snapshot.config.name, snapshot.folder, content, snapshot.wanted, snapshot.runs, snapshot.marks
    )
