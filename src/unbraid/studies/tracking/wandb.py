"""Runs as offline runs of Weights & Biases; nothing is sent.

wandb sync study/tracking/wandb/wandb/offline-run-*   # to send them after all
"""

import os
import re
from pathlib import Path
from typing import Any

from unbraid._extras import require
from unbraid.studies.storage.remote import discard
from unbraid.studies.tracking.record import TrackedRun


def write(record: TrackedRun, folder: Path) -> None:
    """Write folder/wandb/offline-run-<time>-<id>/."""
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    wandb = require("wandb", "track", "track: wandb")
    run = record.run
    for before in folder.glob(f"wandb/offline-run-*-{run.id}"):
        discard(before)
    quiet = {"silent": True, "console": "off", "disable_git": True, "disable_code": True, "save_code": False}
    unasked = {"x_disable_stats": True, "x_disable_meta": True, "x_save_requirements": False}
    project = re.sub(r"[/\\#?%:]+", "_", record.study)
    session: Any = wandb.init(
        project=project, id=run.id, name=record.name, group=f"{run.family} {run.setting}".strip(),
        config={**record.settings}, dir=str(folder), mode="offline", reinit="create_new",
        settings=wandb.Settings(**quiet, **unasked),
    )  # fmt: skip
    session.define_metric("train/*", step_metric="step")
    for number, step in enumerate(record.steps):
        session.log(
            {"step": int(step), **{f"train/{name}": float(curve[number]) for name, curve in record.curves.items()}}
        )
    session.summary.update({**record.scores, "state": run.state, "reason": run.reason})
    session.finish(exit_code=0 if run.state == "finished" else 1)
