"""A run as trackers record it."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from unbraid.base.types import FloatArray, IntArray
from unbraid.runs.run import Run
from unbraid.studies.snapshot import Planned, RunView


@dataclass(frozen=True)
class TrackedRun:
    """A run that ended, read from its folder."""

    study: str
    run: RunView
    settings: Mapping[str, float | int | str]  # family, seed, dataset, steps, ... and every hyperparameter
    steps: IntArray  # (n_points,)
    curves: Mapping[str, FloatArray]  # by name, (n_points,); they end where the training diverged
    end: int  # the step at which its scores stand
    scores: Mapping[str, float]  # "mig.score", ...

    @property
    def name(self) -> str:
        """`beta_vae beta=4 seed 0`."""
        return named(self.run)


def named(run: RunView | Planned) -> str:
    """`beta_vae beta=4 seed 0`."""
    return " ".join(filter(None, (run.family, run.setting, f"seed {run.seed}")))


def tracked_run(study: str, run: RunView) -> TrackedRun:
    """The record of a run that ended.

    Raises:
        ValueError: a file in it is damaged.
    """
    config, curves = run.config, Run(run.path, run.config, run.status).curves()
    settings = {name: config[name] for name in ("family", "seed", "steps", "batch_size", "device", "precision")}
    scores = {
        f"{metric}.{name}": value
        for metric, entry in run.scores.metrics.items()
        for name, value in entry.values.items()
    }
    return TrackedRun(
        study, run, {**settings, "dataset": str(config["dataset"]["name"]), **config["hyperparameters"]},
        curves.pop("step").astype(np.int64), curves, int(config["steps"]), scores,
    )  # fmt: skip
