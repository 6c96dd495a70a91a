"""Runs as TensorBoard event files: curves, scores, and a row in its table of hyperparameters.

tensorboard --logdir study/tracking/tensorboard
"""

import re
import shutil
from pathlib import Path
from typing import Any, cast

from unbraid.base.optional import require
from unbraid.files.remote import discard
from unbraid.studies.tracking.tracked_run import TrackedRun

LONGEST = 120  # of the part of a folder's name that tells the setting; names of files end at 255


def write(record: TrackedRun, folder: Path) -> None:
    """Write folder/<family>/<setting>/seed-<seed>-<id>/, whole or not at all."""
    require("tensorboard", "track", "track: tensorboard")
    from torch.utils.tensorboard.summary import hparams
    from torch.utils.tensorboard.writer import SummaryWriter

    run = record.run
    setting = re.sub(r"[^\w=.,+-]+", "_", run.setting)[:LONGEST] or "default"
    target = folder / run.family / setting / f"seed-{run.seed}-{run.id}"
    working = folder / f".{run.id}"
    shutil.rmtree(working, ignore_errors=True)
    with SummaryWriter(str(working)) as writer:
        for name, values in record.curves.items():
            for step, value in zip(record.steps, values, strict=True):
                writer.add_scalar(f"train/{name}", float(value), int(step))
        for name, value in record.scores.items():
            writer.add_scalar(f"score/{name}", value, record.end)
        writer.add_text("state", ": ".join(filter(None, (run.state, run.reason))))
        # The writer's own method would put the table into yet another folder.
        for summary in hparams(
            dict(record.settings), {f"score/{name}": value for name, value in record.scores.items()}
        ):
            cast(Any, writer.file_writer).add_summary(summary)
    discard(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    working.rename(target)
