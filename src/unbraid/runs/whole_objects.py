"""Whole objects for metrics that need them, from the folder of a run; torch is imported when it comes to that."""

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
    """What `unbraid.score` may call for codes of whole objects.

    Args:
        folder: of a finished run.
        dataset: of its training; by default opened by its name.
        trust: as for `load_run`.

    The function raises NotDefined where the images or torch are not at hand, or are no grid; and as `load_run`.
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
