"""UDR over the runs of a study: each run's codes are read once, and the matrices are saved in the folder."""

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from typing import Any

from unbraid.base.types import FloatArray, Progress
from unbraid.files.marks import mark_of
from unbraid.ranking.cache import rank_and_keep, ranking_path, read_shown
from unbraid.ranking.candidate import Candidate
from unbraid.ranking.rank_candidates import rank_candidates
from unbraid.ranking.ranking import NothingToRank, Ranking, RankingOptions
from unbraid.studies.schema import StudyConfig
from unbraid.studies.snapshot import RunView, StudySnapshot
from unbraid.studies.study_baselines import untrained_codes

HELD = 2**29  # bytes of codes; those of further runs are read each time they are needed


def ranking_options(config: StudyConfig) -> RankingOptions:
    """What the YAML says under `udr`, or the defaults."""
    return RankingOptions(**config.udr.model_dump()) if config.udr else RankingOptions()


def rank_study(
    snapshot: StudySnapshot, options: RankingOptions | None = None, *, progress: Progress | None = None
) -> Ranking:
    """Rank the finished runs of a study, and the representations added to it, without labels.

    The ranking and its similarity matrices are saved in `DIR/udr/`, and reused while codes and options are the same.
    One with options other than the YAML's is saved only if it has a file of its own, by another similarity or set of
    comparisons: the table of results always shows the ranking of the YAML.

    Args:
        snapshot: of the study.
        options: default those of the YAML.
        progress: called as progress("comparing models", done, all), in models.

    Returns:
        Ranking. Runs that diverged, failed or are not finished are left out with the reason, as are those without
        others to be compared with and those whose codes cannot be read.

    Raises:
        NothingToRank: no two runs can be compared; the line says why.
    """
    candidates, left_out = candidates_of(snapshot.runs)
    untrained = untrained_codes(snapshot)
    folder, planned = snapshot.folder, ranking_options(snapshot.config)
    chosen = options or planned

    def compared(done: int, total: int) -> None:
        if progress is not None:
            progress("comparing models", done, total)

    if chosen != planned and ranking_path(folder, chosen) == ranking_path(folder, planned):
        return rank_candidates(candidates, chosen, left_out=left_out, untrained=untrained, progress=compared)
    return rank_and_keep(folder, candidates, chosen, left_out, compared, untrained, snapshot.files)


def kept_ranking(snapshot: StudySnapshot) -> Ranking | None:
    """The ranking that `rank_study` saved; None unless it is of exactly these runs, with the options of the YAML."""
    options = ranking_options(snapshot.config)
    path = ranking_path(snapshot.folder, options)
    if not path.is_file():
        return None
    ranking = snapshot.files(read_shown, path)
    finished = {run.id for run in snapshot.runs if run.state == "finished"}
    ranked = {*ranking.runs} | (finished & {*ranking.left_out})
    return ranking if ranking.options == options and ranked == finished else None


def udr_columns(snapshot: StudySnapshot) -> dict[str, dict[str, Any]]:
    """udr.score and udr.informative of each run, for the table of results; empty where the study is not ranked.

    A score depends on the models that it was found among: `ranked_by` holds a digest of these beside the options.
    """
    ranking = kept_ranking(snapshot)
    if ranking is None:
        return {}
    among = sorted(ranking.digests or ranking.runs)
    models = {"models": len(among), "among": hashlib.sha256("\n".join(among).encode()).hexdigest()[:16]}
    ranked_by = json.dumps({**asdict(ranking.options), **models}, sort_keys=True)
    return {
        run: {"udr.score": float(score), "udr.informative": int(informative), "ranked_by": ranked_by}
        for run, score, informative in zip(ranking.runs, ranking.scores, ranking.informative, strict=True)
    }


def rank_when_done(_: object, snapshot: StudySnapshot, progress: Progress | None = None) -> bool:
    """Rank a study once its runs are done, if its YAML asks for it or it has an older ranking.

    Returns:
        Whether the saved ranking changed; it does not if no two runs can be compared.
    """
    path = ranking_path(snapshot.folder, ranking_options(snapshot.config))
    if snapshot.config.udr is None and not path.is_file():
        return False
    before = mark_of(path)
    with suppress(NothingToRank):
        rank_study(snapshot, progress=progress)
    return mark_of(path) != before


def candidates_of(runs: Sequence[RunView]) -> tuple[list[Candidate], dict[str, str]]:
    """The runs that can be ranked, with their codes or a reader of them, and why others cannot."""
    candidates, left_out, n_bytes = [], {}, 0
    for run in runs:
        if run.state != "finished":
            left_out[run.id] = "not finished" if run.state == "waiting" else f"{run.state}: {run.reason}"
            continue
        try:
            representation = run.codes()
        except (OSError, ValueError) as error:
            left_out[run.id] = str(error)
            continue
        n_bytes += representation.codes.nbytes
        again = partial(_codes_of, run) if n_bytes > HELD else None
        candidates.append(Candidate.from_representation(run.id, run.family, run.setting, representation, again))
    return candidates, left_out


def _codes_of(run: RunView) -> FloatArray:
    return run.codes().codes
