"""What the paths of a command are, and what models are called in tables."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

Named = TypeVar("Named")
PathKind: TypeAlias = Literal["study", "run", "folder", "table", "file"]


def kind_of(path: Path) -> PathKind:
    """What a path is: a study or its address, a run, another folder, a .csv or .parquet file, or another file.

    A file need not exist.
    """
    from unbraid.runs.foreign_models import is_run
    from unbraid.scoring.merged_tables import is_table
    from unbraid.studies.store import is_study

    if is_study(path):
        return "study"
    if path.is_dir():
        return "run" if is_run(path) else "folder"
    return "table" if is_table(path) else "file"


def by_short_name(models: Mapping[str, Named]) -> dict[str, Named]:
    """By the shortest names that differ: of files without folder and suffix, where that suffices."""
    stems = [Path(path).stem if Path(path).is_file() else Path(path).name for path in models]
    names = stems if len(set(stems)) == len(stems) else list(models)
    return dict(zip(names, models.values(), strict=True))
