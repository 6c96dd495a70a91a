"""scores.json of a run: what it holds, what it lacks, and what failed."""

import warnings
from collections.abc import Mapping
from pathlib import Path

from unbraid.files.run_files import SCORES
from unbraid.files.score_file import Decision, SavedInput, SavedScores, read_scores_file, same

NONE = SavedScores.model_construct(
    seed=0, input=SavedInput.model_construct(), metrics={}, skipped={}, failed={}, computed_with={}
)


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
