"""Folders that commands are given."""

from collections.abc import Mapping
from pathlib import Path


def found_here(path: Path) -> Path:
    """The path itself; of an address such as s3://bucket/study, the folder here that mirrors it."""
    if ":/" not in str(path):
        return path
    from unbraid.storage.remote import local_folder

    return local_folder(path)


def expanded(files: list[Path]) -> list[Path]:
    """Files and runs; of a folder of files, each of them."""
    from unbraid.representation import READABLE
    from unbraid.storage.run_files import ADDED_CODES, CONFIG, STATUS

    found: list[Path] = []
    for path in files:
        inside = sorted(each for each in path.iterdir() if each.suffix in READABLE) if path.is_dir() else []
        a_run = any((path / name).exists() for name in (CONFIG, STATUS, ADDED_CODES)) or path.name.endswith(".part")
        found += inside if inside and not a_run else [path]
    if len(set(found)) < len(found):
        raise ValueError("one of the files is given twice")
    return found


def check_outputs(outputs: Mapping[str, Path | None]) -> None:
    """Minutes of work should not end in a file that cannot be written."""
    for suffix, path in outputs.items():
        if path is None:
            continue
        if path.suffix != suffix:
            option = {".tex": "latex", ".md": "markdown"}.get(suffix, suffix[1:])
            raise ValueError(f"--{option} {path}: the name must end in {suffix}")
        if not path.parent.is_dir():
            raise FileNotFoundError(f"{path}: the folder {path.parent} does not exist")
