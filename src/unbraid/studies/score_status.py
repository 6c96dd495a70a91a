"""scores.json of a run as it stands: what it holds, what it lacks, and what failed."""

import warnings
from collections.abc import Mapping
from pathlib import Path

from unbraid.files.run_files import SCORES
from unbraid.files.score_file import Decision, SavedInput, SavedScores, read_scores_file, same

NONE = SavedScores.model_construct(
    seed=0, input=SavedInput.model_construct(), metrics={}, skipped={}, failed={}, computed_with={}
)


def missing_metrics(scores: SavedScores, wanted: Mapping[str, Decision], *, retry: bool = False) -> list[str]:
    """Those wanted that a scores.json does not hold, or holds on other terms; with `retry` also those that failed."""
    decisions = scores.decisions()
    held = {*scores.metrics, *scores.skipped, *(() if retry else scores.failed)}
    return [name for name, each in wanted.items() if name not in held or not same(decisions.get(name, {}), each)]


def failed_metrics(scores: SavedScores, wanted: Mapping[str, Decision]) -> dict[str, str]:
    """Why those that failed on the terms wanted did so."""
    decisions = scores.decisions()
    return {
        name: scores.failed[name].reason
        for name in wanted
        if name in scores.failed and same(decisions.get(name, {}), wanted[name])
    }


def read_scores(folder: str | Path, *, warn: bool = True) -> SavedScores:
    """The content of scores.json, checked; empty where there is none, and where it is damaged, which is warned of."""
    path = f"{folder}/{SCORES}"
    try:
        return read_scores_file(path)
    except FileNotFoundError:
        return NONE
    except ValueError as error:
        if warn:
            warnings.warn(f"{error}; it counts as missing, and the next scoring replaces it", stacklevel=2)
        return NONE
