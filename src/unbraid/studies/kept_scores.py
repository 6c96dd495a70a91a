"""scores.json of a run as it stands: what it holds, what it lacks, and what failed."""

import os
from collections.abc import Mapping
from pathlib import Path

from unbraid.storage.run_files import SCORES
from unbraid.storage.score_file import Decision, SavedInput, SavedScores, read_scores_file, same

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


def read_scores(folder: str | Path) -> SavedScores:
    """The content of scores.json, checked; empty where there is none.

    Raises:
        ValueError: it is damaged.
    """
    path = f"{folder}/{SCORES}"
    try:
        return read_scores_file(path)
    except (OSError, ValueError) as error:
        if isinstance(error, FileNotFoundError) and not os.path.exists(path):
            return NONE
        named = "" if str(folder) in str(error) else f"{path} is damaged: "
        raise ValueError(f"{named}{error}; delete it and it is computed again") from None
