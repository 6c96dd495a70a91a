"""Score cards as runs of a tracker: `unbraid score --track tensorboard,wandb,mlflow`."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unbraid.base.suggest import error_line
from unbraid.scoring.card import ScoreCard
from unbraid.studies.snapshot import RunView
from unbraid.studies.tracking import FOLDER, TRACKERS, check_names
from unbraid.studies.tracking.tracked_run import TrackedRun

EXPERIMENT = "unbraid score"


def track_cards(
    cards: Mapping[str, ScoreCard], trackers: Sequence[str], configs: Mapping[str, Mapping[str, Any]], folder: Path
) -> list[Path]:
    """Record the scores of models in trackers, each as a run that replaces its earlier record.

    Args:
        cards: by the name of the model, a path.
        trackers: of `TRACKERS`.
        configs: settings of models, by name; may be missing.
        folder: in which `tracking/<tracker>` is made.

    Returns:
        The folder of each tracker.

    Raises:
        ImportError: a tracker is not installed.
        ValueError: there is none of this name, or one failed.
    """
    check_names(trackers)
    places = [folder / FOLDER / name for name in trackers]
    for name, place in zip(trackers, places, strict=True):
        place.mkdir(parents=True, exist_ok=True)
        for model, card in cards.items():
            try:
                TRACKERS[name].write(_record(model, card, configs.get(model, {})), place)
            except Exception as error:  # each has exceptions of its own
                raise ValueError(f"{name} was not told of {model} ({error_line(error)})") from error
    return places


def _record(model: str, card: ScoreCard, config: Mapping[str, Any]) -> TrackedRun:
    path = Path(model)
    name = hashlib.sha256(str(path.absolute()).encode()).hexdigest()[:16]
    title = path.name if path.is_dir() else path.stem  # a folder may be called beta=0.5
    run = RunView(name, title or "codes", "", card.seed, "finished", None, path, {})
    values = {
        f"{metric}.{number}": value for metric, scored in card.scored.items() for number, value in scored.values.items()
    }
    settings = {"codes": model, "rows": card.n_samples, "seed": card.seed}
    settings |= {f"config.{key}" if key in settings else key: value for key, value in config.items()}
    return TrackedRun(EXPERIMENT, run, settings, np.zeros(0, dtype=np.int64), {}, 0, values)
