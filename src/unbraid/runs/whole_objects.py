"""Whole objects from the folder of a run, for metrics that need them; torch is imported only when needed."""

from collections.abc import Collection
from pathlib import Path

from unbraid.base.optional import require
from unbraid.data import Representation
from unbraid.data.image_dataset import FactorDataset
from unbraid.datasets import DatasetMissing
from unbraid.metrics import NotDefined
from unbraid.runs.folder import read_folder
from unbraid.scoring.engine import Objects


def objects_of(folder: Path, dataset: FactorDataset | None = None, trust: Collection[str] = ()) -> Objects:
    """A function for `unbraid.score` that returns codes of whole objects.

    Args:
        folder: of a finished run.
        dataset: of its training; by default opened by its name.
        trust: as for `load_run`.

    The function raises NotDefined if the images or torch are not available, or the dataset is no grid; and as
    `load_run`.
    """

    def objects() -> Representation:
        if dataset is None and read_folder(folder)[0]["dataset"]["name"] is None:
            raise NotDefined("needs whole objects, and the run was trained on a dataset in memory")
        try:
            require("torch", "train", "encoding whole objects")
            from unbraid.runs.run import load_run

            return load_run(folder, trust=trust).objects(dataset)
        except (ImportError, DatasetMissing) as reason:
            raise NotDefined(f"needs whole objects: {reason}") from reason

    return objects
