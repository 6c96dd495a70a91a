"""Runs as offline runs of Weights & Biases, from their first steps on; nothing is sent unless WANDB_MODE=online.

wandb sync study/tracking/wandb/wandb/offline-run-*   # to send them after all
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unbraid.base.optional import require
from unbraid.files.remote import discard
from unbraid.studies.snapshot import Planned
from unbraid.studies.tracking.tracked_run import TrackedRun, named

LONGEST = 128  # characters of a project's name


class Live:
    """A run that is logged while it trains."""

    def __init__(self, study: str, run: Planned, folder: Path) -> None:
        _forget(run.id, folder)
        self.session = _begun(study, run, {**settings_of(run.config)}, folder)
        self.step = _sent(self.session)

    def log(self, step: int, logs: Mapping[str, float]) -> None:
        """Log the latest point of every curve, once."""
        if step > self.step and logs:
            self.session.log({"step": step, **{f"train/{name}": value for name, value in logs.items()}})
            self.step = step

    def end(self, record: TrackedRun, folder: Path) -> None:
        """Finish the run. Offline it is written again with all points of its curves; online it keeps those sent."""
        if _mode() == "online":
            _finish(self.session, record)
        else:
            self.session.finish()
            write(record, folder)

    def leave(self) -> None:
        """Finish what ended without a record: it failed, or was interrupted."""
        self.session.finish(exit_code=1)


def write(record: TrackedRun, folder: Path) -> None:
    """Write folder/wandb/offline-run-<time>-<id>/."""
    _forget(record.run.id, folder)
    session = _begun(record.study, record.run, record.settings, folder)
    sent = _sent(session)
    for number, step in enumerate(record.steps):
        if step > sent:
            session.log(
                {"step": int(step), **{f"train/{name}": float(curve[number]) for name, curve in record.curves.items()}}
            )
    _finish(session, record)


def settings_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a run, known before it ends."""
    chosen = {name: config[name] for name in ("family", "seed", "steps", "batch_size") if name in config}
    return {**chosen, **config.get("hyperparameters", {})}


def _mode() -> str:
    return "online" if os.environ.get("WANDB_MODE") == "online" else "offline"


def _forget(run: str, folder: Path) -> None:
    for before in folder.glob(f"wandb/offline-run-*-{run}"):
        discard(before)


def library() -> Any:
    """wandb, which takes no settings from `wandb/settings` of the current folder: they may send runs, and the key of
    the user's account, anywhere.

    Raises:
        ImportError: it is not installed.
    """
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    wandb = require("wandb", "track", "track: wandb")
    wandb.Settings.settings_workspace = property(lambda _: os.devnull)
    return wandb


def _begun(study: str, run: Any, settings: Mapping[str, Any], folder: Path) -> Any:
    wandb = library()
    quiet = {"silent": True, "console": "off", "disable_git": True, "disable_code": True, "save_code": False}
    unasked = {"x_disable_stats": True, "x_disable_meta": True, "x_save_requirements": False}
    session = wandb.init(
        project=re.sub(r"[/\\#?%:]+", "_", study)[:LONGEST], id=run.id, name=named(run),
        resume="allow" if _mode() == "online" else None,
        group=f"{run.family} {run.setting}".strip(), config={**settings}, dir=str(folder), mode=_mode(),
        reinit="create_new", settings=wandb.Settings(**quiet, **unasked),
    )  # fmt: skip
    session.define_metric("train/*", step_metric="step")
    return session


def _sent(session: Any) -> int:
    """The last step of a resumed run that W&B has already, -1 without: its points cannot be replaced, only repeated."""
    return int(session.summary.get("step", -1)) if session.resumed else -1


def _finish(session: Any, record: TrackedRun) -> None:
    session.summary.update({**record.scores, "state": record.run.state, "reason": record.run.reason})
    session.finish(exit_code=0 if record.run.state == "finished" else 1)
