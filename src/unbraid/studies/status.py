"""How far a study is, all of it read; what `unbraid.studies.index` then keeps for the next time."""

from collections.abc import Sequence
from pathlib import Path

from unbraid.studies import store
from unbraid.studies.holdout.results import answered
from unbraid.studies.holdout.tasks import sections
from unbraid.studies.index import Part, StudyStatus, remember, status_of
from unbraid.studies.snapshot import StudySnapshot


def study_status(snapshot: StudySnapshot) -> StudyStatus:
    """How far the study is.

    Raises:
        ValueError: a file is damaged.
    """
    return status_of(_part(snapshot), snapshot.files, snapshot.runs, answered(snapshot))


def keep_index(folder: Path, snapshots: Sequence[StudySnapshot]) -> None:
    """Keep how far the study in a folder is for `remembered`, where its files alone say that."""
    if all(_can_be_kept(each) for each in snapshots):
        remember(folder, [_part(each) for each in snapshots])


def _part(snapshot: StudySnapshot) -> Part:
    content = snapshot.environment.dataset["content"]
    return Part(
        snapshot.label, snapshot.config.name, snapshot.folder, content, snapshot.wanted, snapshot.runs, snapshot.marks
    )


def _can_be_kept(snapshot: StudySnapshot) -> bool:
    """Whether nothing but the files of its runs, its YAML and study.json says how far it is."""
    about, config = snapshot.folder / store.ABOUT, snapshot.config
    return about.is_file() and not config.own_code and not sections(config)
