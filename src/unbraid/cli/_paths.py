"""What models are called in tables."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

Named = TypeVar("Named")


def by_short_name(models: Mapping[str, Named]) -> dict[str, Named]:
    """By the shortest names that differ: of files without folder and suffix, where that suffices."""
    stems = [Path(path).stem if Path(path).is_file() else Path(path).name for path in models]
    names = stems if len(set(stems)) == len(stems) else list(models)
    return dict(zip(names, models.values(), strict=True))
