"""A study by its path, for functions that take models as well."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from unbraid.base.optional import require
from unbraid.studies.store import YAML, is_study


@contextmanager
def study_at(models: Any) -> Iterator[Any]:
    """Open a study by its folder or address, as `open_study`; a `Study`, or models, are passed through.

    Raises:
        ValueError: a path of something else.
    """
    if not isinstance(models, str | Path):
        yield models
        return
    if not is_study(models):
        raise ValueError(f"{models}: not the folder of a study (no {YAML}); give models as a list of two or more")
    require("torch", "train", "a study")
    from unbraid.studies.study import open_study

    with open_study(models) as study:
        yield study


def is_opened(models: object) -> bool:
    """Whether it is a `Study`; checked without importing that class."""
    return hasattr(models, "require_folder")
