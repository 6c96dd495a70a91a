"""What a mirror and its store agreed upon last, kept in the mirror.

Under RECORD: for each file what the store said of it, and its size and time here; and UNSENT while there may be changes
that are still to go up. Without them, or where they are damaged, the store is right in all that it holds.
"""

import json
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from unbraid.files.whole_files import below, remove_with_folder, write_text

RECORD, UNSENT = ".remote", "unsent"

Manifest: TypeAlias = dict[str, tuple[str, int, int]]  # by file: token of the store, size and time (ns) here


def load(folder: Path, within: Iterable[str]) -> Manifest:
    """What was agreed upon of all files, or of those in some folders; nothing of those whose record is damaged."""
    record = folder / RECORD
    files: Manifest = {}
    for start in [record / name for name in within] or [record]:
        for path in start.rglob("*.json"):
            try:
                entries = json.loads(path.read_text(encoding="utf-8"))
                part = {name: (str(token), int(size), int(time)) for name, (token, size, time) in entries.items()}
                for name in part:
                    below(folder, name)
            except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
                continue  # then the store tells all of it anew
            files |= part
    return files


def save(folder: Path, files: Manifest, within: Iterable[str]) -> None:
    """One file per folder, so that a run that ends costs the same in a study of any size."""
    record = folder / RECORD
    parts: dict[Path, dict[str, tuple[str, int, int]]] = {}
    for name, value in files.items():
        parts.setdefault(record / PurePosixPath(name).parent / "files.json", {})[name] = value
    for start in [record / name for name in within] or [record]:
        for path in list(start.rglob("*.json")):
            if path not in parts:
                remove_with_folder(path)
    for path, entries in parts.items():
        text = json.dumps(entries)
        if not path.exists() or path.read_bytes() != text.encode():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, text)


def begin_changes(folder: Path) -> None:
    """Say that files of this mirror are about to change, so that they count should the end not be reached."""
    (folder / RECORD).mkdir(parents=True, exist_ok=True)
    (folder / RECORD / UNSENT).touch()


def all_sent(folder: Path) -> None:
    """Say that all changes went up: whatever differs from here on, no process of ours wrote."""
    (folder / RECORD / UNSENT).unlink(missing_ok=True)


def may_have_changed(folder: Path) -> bool:
    """Whether changes here may not have gone up, as of a process that was killed or lost its network."""
    return (folder / RECORD / UNSENT).exists()
