"""Datasets that a file names, as the config of a run and the YAML in the folder of a study do.

Anybody may have made the file. For its sake nothing is opened but a dataset of our table, from the caches and official
files of this machine: where they lie is no affair of the file's, and a path is followed only where the user gave it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unbraid.datasets.dataset_table import DATASETS
from unbraid.datasets.own_images import is_path
from unbraid.files.trust import Trusted, UntrustedData

PLACES = ("root", "file", "verify")  # options that say where files lie, and whether they are what they should be


def of_everywhere(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a dataset that mean the same on every machine."""
    return {name: value for name, value in options.items() if name not in PLACES}


def check_recorded(name: str, where: Path, trust: str) -> None:
    """Refuse a dataset that a file names by its path, unless the user did as well.

    The error says `where` it is named, and what the user gives to trust it (`trust`).

    Raises:
        UntrustedData: it is a path. Nothing was looked for there.
    """
    if not isinstance(name, Trusted) and is_path(name, DATASETS):
        raise UntrustedData(f"{where} names images by their path, {name!r}, and this would read them", name, trust)
