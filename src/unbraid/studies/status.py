"""How far a study is, all of it read; what `unbraid.studies.index` then keeps for the next time."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from unbraid.studies import store
from unbraid.studies.holdout.results import answered
from unbraid.studies.holdout.tasks import sections
from unbraid.studies.index import Part, StudyStatus, remember, run_marks, status_of
from unbraid.studies.record import StudyRecord


def statuses(folder: Path, studies: Mapping[str, StudyRecord]) -> list[StudyStatus]:
    """How far the study in a folder is, as it is read now and kept for `remembered`.

    Args:
        folder: of the study.
        studies: of each of its datasets, by label; that itself, under "", where it is of one.

    Raises:
        ValueError: a file is damaged.
    """
    found, parts = [], []
    for label, study in studies.items():
        home = study.require_folder()
        marks = run_marks(home)  # before the runs are read: what is written meanwhile is read again
        runs = [run for run in study.runs() if run.path.parent.name == store.RUNS]
        content = study.environment().dataset["content"]
        part = Part(label, study.config.name, home, content, study.wanted_scores(), runs, marks)
        parts.append(part)
        found.append(replace(status_of(part), answered=answered(study, runs)))
    if all(_can_be_kept(study) for study in studies.values()):
        remember(folder, parts)
    return found


def _can_be_kept(study: StudyRecord) -> bool:
    """Whether nothing but the files of its runs, its YAML and study.json says how far it is."""
    return (study.require_folder() / store.ABOUT).is_file() and not study.config.own_code and not sections(study.config)
