"""A folder and a prefix of an object store: each is brought what the other has new.

What both sides agreed upon last is kept in the folder, under RECORD: for each file what the store said of it, and its
size and time here. A file that is new, changed or gone on one side is so on the other after `pull` or `push`.

A folder beneath `runs/` or `added/` counts in the store once its config.json is there, which is uploaded last: one that
is still on its way up is never taken for whole.
"""

import json
import os
import shutil
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

from unbraid._extras import require
from unbraid._files import atomic_write
from unbraid.runs.folder import CONFIG, WORKING

RECORD, INCOMING = ".remote", ".incoming"
WHOLE = ("runs", "added")  # their folders appear whole or not at all
TOKENS = ("ETag", "etag", "md5Hash", "mtime", "LastModified", "last_modified", "created")  # of one store or another
ONE_AT_A_TIME = threading.RLock()

Agreed: TypeAlias = dict[str, tuple[str, int, int]]  # by file: token of the store, size and time (ns) here


@dataclass(frozen=True)
class Mirror:
    """A folder here that stands for a prefix of an object store."""

    url: str
    folder: Path


def pull(mirror: Mirror, *within: str) -> None:
    """Bring here what is new in the store, and remove here what was removed there.

    Args:
        mirror: the two sides; the folder is made where the store has something for it.
        *within: folders such as "runs/3f2a", for only what they hold.

    Raises:
        OSError: the store cannot be reached or read; the folder is as it was.
    """
    with ONE_AT_A_TIME, _reached(mirror.url) as (store, root):
        there = _whole(_listed(store, root, within))
        agreed = _agreed(mirror.folder, within)
        new = [name for name, token in there.items() if name not in agreed or agreed[name][0] != token]
        _fetch(store, root, mirror.folder, new)
        for name in agreed.keys() - there.keys():
            if _stat(mirror.folder / name) == agreed.pop(name)[1:]:
                _remove(mirror.folder / name)
        for name in new:
            if stat := _stat(mirror.folder / name):
                agreed[name] = (there[name], *stat)
        _agree(mirror.folder, agreed, within)


def push(mirror: Mirror, *within: str) -> None:
    """Upload what is new here, and remove from the store what was removed here.

    Args and Raises: as `pull`.
    """
    with ONE_AT_A_TIME:
        here = {name: stat for name in _names(mirror.folder, within) if (stat := _stat(mirror.folder / name))}
        agreed = _agreed(mirror.folder, within)
        new = [name for name, stat in here.items() if name not in agreed or agreed[name][1:] != stat]
        gone = agreed.keys() - here.keys()
        if not new and not gone:
            return
        with _reached(mirror.url) as (store, root):
            sent = {name: _send(store, root, mirror.folder, name) for name in sorted(new, key=_marks_whole)}
            if gone:
                with suppress(FileNotFoundError):  # somebody else removed it first
                    store.rm([f"{root}/{name}" for name in gone])
        kept = {name: value for name, value in agreed.items() if name not in gone}
        kept |= {name: (token, *here[name]) for name, token in sent.items() if token}
        _agree(mirror.folder, kept, within)


@contextmanager
def _reached(url: str) -> Iterator[tuple[Any, str]]:
    """The store's file system and the path in it; what goes wrong there is an OSError in one line."""
    core = require("fsspec.core", "ray", "an object store")
    try:
        store, root = core.url_to_fs(url, **({"auto_mkdir": True} if url.startswith("file:") else {}))
        yield store, root.rstrip("/")
    except ImportError as error:
        needed = "pip install 'unbraid[ray]'" if url.startswith("s3:") else str(error)
        raise ImportError(f"{url}: the package for this kind of store is not installed: {needed}") from error
    except Exception as error:  # each kind of store has exceptions of its own
        raise OSError(f"{url}: {' '.join(str(error).split()) or type(error).__name__}") from error


def _listed(store: Any, root: str, within: Iterable[str]) -> dict[str, str]:
    """What the store says of each file, by its name beneath the prefix."""
    store.invalidate_cache()
    found: dict[str, str] = {}
    for folder in [f"{root}/{name}" for name in within] or [root]:
        for path, about in store.find(folder, detail=True).items():
            found[path.removeprefix(root).lstrip("/")] = _token(about)
    return found


def _token(about: Mapping[str, Any]) -> str:
    return f"{about['size']} {next(about[key] for key in TOKENS if key in about)}"


def _whole(there: Mapping[str, str]) -> dict[str, str]:
    def whole(folder: PurePosixPath) -> bool:
        must = len(folder.parts) == 2 and folder.parts[0] in WHOLE and folder.suffix != WORKING
        return not must or str(folder / CONFIG) in there

    return {name: token for name, token in there.items() if whole(PurePosixPath(name).parent)}


def _marks_whole(name: str) -> bool:
    return PurePosixPath(name).name == CONFIG


def _names(folder: Path, within: Iterable[str]) -> Iterator[str]:
    for start in [folder / name for name in within] or [folder]:
        for parent, folders, files in os.walk(start):  # unlike `rglob`, at ease with folders renamed meanwhile
            folders[:] = [name for name in folders if not name.startswith(".")]
            for name in files:
                if not name.startswith("."):
                    yield (Path(parent) / name).relative_to(folder).as_posix()


def _fetch(store: Any, root: str, folder: Path, names: list[str]) -> None:
    incoming = folder / INCOMING
    shutil.rmtree(incoming, ignore_errors=True)
    if not names:
        return
    for parent in {(incoming / name).parent for name in names}:
        parent.mkdir(parents=True, exist_ok=True)
    store.get([f"{root}/{name}" for name in names], [str(incoming / name) for name in names])
    for parent in sorted({PurePosixPath(name).parent for name in names}):
        if (incoming / parent).is_dir():
            _place(incoming / parent, folder / parent)
    shutil.rmtree(incoming)


def _place(source: Path, target: Path) -> None:
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        source.rename(target)
        return
    for path in source.iterdir():
        if path.is_file():
            path.replace(target / path.name)


def _send(store: Any, root: str, folder: Path, name: str) -> str | None:
    try:
        store.put_file(str(folder / name), f"{root}/{name}")
    except FileNotFoundError:
        if (folder / name).exists():  # it is the store that lacks something
            raise
        return None  # renamed or removed since it was found
    store.invalidate_cache()
    return _token(store.info(f"{root}/{name}"))


def _stat(path: Path) -> tuple[int, int] | None:
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    return stat.st_size, stat.st_mtime_ns


def _remove(path: Path) -> None:
    path.unlink()
    with suppress(OSError):  # it holds other files
        path.parent.rmdir()


def _agreed(folder: Path, within: Iterable[str]) -> Agreed:
    record = folder / RECORD
    found: Agreed = {}
    for start in [record / name for name in within] or [record]:
        for path in start.rglob("*.json"):
            entries = json.loads(path.read_text(encoding="utf-8"))
            found |= {name: (token, size, time) for name, (token, size, time) in entries.items()}
    return found


def _agree(folder: Path, agreed: Agreed, within: Iterable[str]) -> None:
    """One file per folder, so that a run that ends costs the same in a study of any size."""
    record = folder / RECORD
    parts: dict[Path, dict[str, tuple[str, int, int]]] = {}
    for name, value in agreed.items():
        parts.setdefault(record / PurePosixPath(name).parent / "files.json", {})[name] = value
    for start in [record / name for name in within] or [record]:
        for path in list(start.rglob("*.json")):
            if path not in parts:
                _remove(path)
    for path, entries in parts.items():
        text = json.dumps(entries)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(path) as temporary:
                temporary.write_text(text, encoding="utf-8")
