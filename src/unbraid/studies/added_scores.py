"""Scores of representations that were added to a study, completed when its YAML asks for more metrics."""

from unbraid.base.types import Progress
from unbraid.studies import store
from unbraid.studies.expand import metric_names
from unbraid.studies.run_scores import complete_scores
from unbraid.studies.snapshot import StudySnapshot
from unbraid.studies.study_record import StudyPart


def score_added(study: StudyPart, snapshot: StudySnapshot, progress: Progress) -> bool:
    """Compute the scores that added representations still lack; failures are recorded.

    Returns:
        Whether anything was computed.
    """
    runs, computed = [run for run in snapshot.runs if run.is_added], False
    for number, run in enumerate(runs):
        progress(f"scoring {run.id}", number, len(runs))
        try:
            computed |= complete_scores(
                run.path, metric_names(study.config), held_out=study.config.held_out, retry=True, saved=run.scores
            )
        except ValueError as error:
            failure = store.Failure(run.id, run.family, run.setting, run.seed, str(error), 1)
            store.write_failure(snapshot.folder, failure)
            computed = True
        else:
            store.forget_failure(snapshot.folder, run.id)
            computed |= run.state == "failed"
    return computed
