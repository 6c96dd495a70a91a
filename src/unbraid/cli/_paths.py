"""Files and folders that commands are given."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

Named = TypeVar("Named")


def expanded(files: list[Path], codes: str | None = None) -> list[Path]:
    """Files and folders of models; of a folder of files or of models, each of them.

    Args:
        files: given to the command.
        codes: pattern of the names of files of codes in the folders of models.

    Raises:
        FileNotFoundError: there is no model in a folder.
        ValueError: a file is given twice, or a folder has several files of codes or is that of `unbraid fit`.
    """
    found = [each for path in files for each in (_inside(path, codes) if path.is_dir() else [path])]
    if len(set(found)) < len(found):
        raise ValueError("one of the files is given twice")
    return found


def _inside(path: Path, codes: str | None) -> list[Path]:
    from unbraid.representation import READABLE
    from unbraid.runs.foreign import (
        CODES,
        CONFIGS,
        LABELS,
        check_not_fitted,
        foreign_files,
        is_run,
        models_below,
        no_models,
    )
    from unbraid.storage.run_files import WORKING

    if is_run(path):
        return [path]
    check_not_fitted(path)
    labels = foreign_files(path, LABELS)
    files = sorted(each for each in path.iterdir() if each.suffix.lower() in READABLE and each not in labels)
    described = labels or len(files) == 1 or any((path / name).is_file() for name in CONFIGS)
    if codes is None and files and not (described and foreign_files(path, CODES)):
        return files
    runs = [each for each in path.iterdir() if each.is_dir() and is_run(each) and each.suffix != WORKING]
    found = sorted([*runs, *models_below(path, codes)])
    if not found:
        raise no_models(path, codes)
    return found


def called(models: Mapping[str, Named]) -> dict[str, Named]:
    """By the shortest names that differ: of files without folder and suffix, where that suffices."""
    from unbraid.runs.grouping import name_of

    stems = [name_of(Path(path)) for path in models]
    names = stems if len(set(stems)) == len(stems) else list(models)
    return dict(zip(names, models.values(), strict=True))
