"""Scores of representations that were added to a study, kept up with what its YAML asks for."""

from unbraid.base.types import Progress
from unbraid.studies import store
from unbraid.studies.expand import metric_names
from unbraid.studies.run_scores import complete_scores
from unbraid.studies.snapshot import StudySnapshot
from unbraid.studies.study_record import StudyPart


def score_added(study: StudyPart, snapshot: StudySnapshot, progress: Progress) -> bool:
    """Compute what the scores of added representations lack, since the study asks for more; faults are recorded.

    False where there was nothing to compute.
    """
    runs, computed = [run for run in snapshot.runs if run.is_added], False
    for number, run in enumerate(runs):
        progress(f"scoring {run.id}", number, len(runs))
        try:
            computed |= complete_scores(
                run.path, metric_names(study.config), held_out=study.config.held_out, retry=True, kept=run.scores
            )
        except ValueError as error:
            failure = store.Failure(run.id, run.family, run.setting, run.seed, str(error), 1)
            store.write_failure(snapshot.folder, failure)
            computed = True
        else:
            store.forget_failure(snapshot.folder, run.id)
            computed |= run.state == "failed"
    return computed
