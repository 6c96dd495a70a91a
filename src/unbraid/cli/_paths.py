"""What the paths of a command are, and what models are called in tables."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from unbraid.base.optional import require

if TYPE_CHECKING:
    from unbraid.base.types import DataFrame
    from unbraid.studies.study import Study

Named = TypeVar("Named")


@dataclass(frozen=True)
class Place:
    """A path of a command, and what lies there: of a study its folder or address; a file need not exist."""

    path: Path
    kind: Literal["study", "run", "folder", "table", "file"]

    @classmethod
    def at(cls, path: Path) -> "Place":
        from unbraid.runs.foreign_models import is_run
        from unbraid.scoring.merged_tables import is_table
        from unbraid.studies.store import is_study

        if is_study(path):
            return cls(path, "study")
        if path.is_dir():
            return cls(path, "run" if is_run(path) else "folder")
        return cls(path, "table" if is_table(path) else "file")

    def results(self, trust: Collection[str] = ()) -> "DataFrame":
        """The results of a study, or of a table that was exported."""
        from unbraid.scoring.merged_tables import read_table

        if self.kind == "table":
            return read_table(self.path)
        with opened(self.path, trust=trust) as study:
            return study.results()


@contextmanager
def opened(path: Path, out: Path | None = None, trust: Collection[str] | None = None) -> "Iterator[Study]":
    """The study; for every command that takes one."""
    require("torch", "train", "unbraid study")
    from unbraid.studies.study import open_study

    with open_study(path, out, trust=trust or ()) as study:
        yield study


def by_short_name(models: Mapping[str, Named]) -> dict[str, Named]:
    """By the shortest names that differ: of files without folder and suffix, where that suffices."""
    stems = [Path(path).stem if Path(path).is_file() else Path(path).name for path in models]
    names = stems if len(set(stems)) == len(stems) else list(models)
    return dict(zip(names, models.values(), strict=True))
