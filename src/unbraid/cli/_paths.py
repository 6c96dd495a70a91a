"""Files and folders that commands are given."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

Named = TypeVar("Named")


def expanded(files: list[Path]) -> list[Path]:
    """Files and runs; of a folder of files or of runs, each of them."""
    from unbraid.representation import READABLE
    from unbraid.storage.run_files import WORKING

    found: list[Path] = []
    for path in files:
        inside: list[Path] = []
        if path.is_dir() and not _is_run(path):
            inside = sorted(each for each in path.iterdir() if each.suffix in READABLE)
            inside = inside or sorted(each for each in path.iterdir() if _is_run(each) and each.suffix != WORKING)
        found += inside or [path]
    if len(set(found)) < len(found):
        raise ValueError("one of the files is given twice")
    return found


def _is_run(path: Path) -> bool:
    from unbraid.storage.run_files import ADDED_CODES, CONFIG, STATUS, WORKING

    return any((path / name).exists() for name in (CONFIG, STATUS, ADDED_CODES)) or path.name.endswith(WORKING)


def called(models: Mapping[str, Named]) -> dict[str, Named]:
    """By the shortest names that differ: of files without folder and suffix, where that suffices."""
    stems = [Path(path).stem for path in models]
    names = stems if len(set(stems)) == len(stems) else list(models)
    return dict(zip(names, models.values(), strict=True))
