"""One of each that a package can add to unbraid; `pyproject.toml` names them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from unbraid.data import FactorSpace
from unbraid.datasets import ArrayDataset, Dataset
from unbraid.metrics import custom_metric

NUMBER = 3  # no metric


def distance(codes: Any, factors: Any) -> float:
    """How far each factor lies from the code nearest to it."""
    return float(np.abs(codes[:, :, None] - factors[:, None, :]).mean(axis=0).min(axis=0).mean())


DISTANCE = custom_metric(distance, name="sample_distance", direction="lower", range=(0, np.inf))

SPACE = FactorSpace(("row", "width"), (8, 8), ("ordinal", "ordinal"))


def open_bars(root: Path, *, progress: Any = None) -> ArrayDataset:  # noqa: ARG001 (as every dataset is opened)
    """Bars that begin at the left."""
    images = np.zeros((64, 8, 8, 1), dtype=np.uint8)
    for place, (row, width) in enumerate(SPACE.grid()):
        images[place, row, : width + 1] = 255
    return ArrayDataset(images, SPACE)


BARS = Dataset(
    open_bars, title="Bars", rendered=True, space=SPACE, image_shape=(8, 8, 1), source="this package", licence="CC0"
)


def run_here(tasks: Any, datasets: Any, *, report: Any = None) -> Iterator[Any]:
    """Runs of a study in this process, one after the other."""
    from unbraid.studies.executors import EXECUTORS

    return EXECUTORS["local"](tasks, datasets, report=report, processes=0)


def write(record: Any, folder: Path) -> None:
    """A file for each run."""
    (folder / f"{record.run.id}.txt").write_text("told\n", encoding="utf-8")


def __getattr__(name: str) -> Any:  # what needs torch is made when it is asked for
    if name == "SAMPLE_VAE":
        from unbraid.families import FAMILIES

        return replace(FAMILIES["vae"], title="Sample VAE", source="this package")
    if name == "TRACKER":
        from unbraid.studies.tracking import Tracker

        return Tracker(write, ())
    raise AttributeError(name)
