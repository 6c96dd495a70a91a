"""A folder and a prefix of an object store: what one of them lacks, it gets from the other.

What is absent here is brought here, and never taken for removed: from the store goes only what `discard` names, which
is never of a finished run. What differs is as the store has it, but for changes that a process of ours could not upload
any more, and but for files that are damaged in the store and whole here by their checksum: those go up again. The files
of a finished run that never change (FIXED) go up once and are otherwise replaced by nothing.

A folder beneath `runs/`, `added/` or `baselines/` counts in the store once its config.json is there, which is uploaded
last: one that is still on its way up is never taken for whole.
"""

import json
import os
import re
import shutil
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from unbraid.base.counted import counted
from unbraid.base.optional import require
from unbraid.files import manifest
from unbraid.files.checksum import is_whole
from unbraid.files.manifest import may_have_changed
from unbraid.files.run_files import ADDED_CODES, CHECKPOINT, CODES, CONFIG, CURVES, STATUS, WEIGHTS, WORKING
from unbraid.files.whole_files import below, remove, remove_with_folder

INCOMING = ".incoming"
WHOLE = ("runs", "added", "baselines")  # their folders appear whole or not at all
FIXED = {CONFIG, STATUS, WEIGHTS, CODES, ADDED_CODES, CURVES}
OPENED = {"study.yaml", "study.json"}  # what changes in them goes up before anything is trained
PASSING = ("failed", "tracking")  # beside folders of runs at work, what a study may remove
TOKENS = ("ETag", "etag", "md5Hash", "mtime", "LastModified", "last_modified", "created")  # of one store or another
ONE_AT_A_TIME = threading.RLock()

_discarded: dict[Path, set[str]] = {}  # by mirror, what this process removed and the store still has


@dataclass(frozen=True)
class Mirror:
    """A folder here that stands for a prefix of an object store."""

    url: str
    folder: Path


def pull(mirror: Mirror, *within: str) -> None:
    """Bring here what is absent here, or another there.

    Records of failures, and runs at work, that another machine removed from the store are removed here as well. A file
    that is damaged in the store and whole here stays, with a warning, and the next `push` uploads it.

    Args:
        mirror: the two sides; the folder is made where the store has something for it.
        *within: folders such as "runs/3f2a", for only what they hold.

    Raises:
        OSError: the store cannot be reached or read, or has a key that leads out of the folder; the folder is as it
            was.
    """
    with ONE_AT_A_TIME, _reached(mirror.url) as (store, root):
        listed = _whole(_listed(store, root, mirror.folder, within))
        ours = _discarded.get(mirror.folder.absolute(), set())
        in_store = {name: token for name, token in listed.items() if not _beneath(name, ours)}
        known = manifest.load(mirror.folder, within)
        fixed = _fixed(known)
        opened = {name for name in known if in_study(PurePosixPath(name)).as_posix() in OPENED}
        may_change = known.keys() - fixed - opened if may_have_changed(mirror.folder) else set()
        new = [
            name
            for name, token in in_store.items()
            if not _is_current(mirror.folder / name, token, known.get(name), name in may_change)
        ]
        better_here = _fetch(store, root, mirror.folder, new)
        for name in known.keys() - in_store.keys():
            now, before = _stat(mirror.folder / name), known[name][1:]
            if _passing(name) and now == before:
                remove_with_folder(mirror.folder / name)
            if name not in fixed or now in (None, before):
                del known[name]  # what is here goes up again, but not what is damaged
        for name in new:
            known.pop(name, None)  # what is better here goes up as if it were new
            if name not in better_here and (now := _stat(mirror.folder / name)):
                known[name] = (in_store[name], *now)
        manifest.save(mirror.folder, known, within)
    if better_here:
        first, more = min(better_here), len(better_here) - 1
        are = f" and {counted(more, 'more file')} are" if more else " is"
        warnings.warn(
            f"{mirror.url}/{first}{are} damaged in the store; the undamaged copy here stays and is uploaded next",
            stacklevel=2,
        )


def push(mirror: Mirror, *within: str) -> None:
    """Upload what is new or changed here, then remove from the store what was discarded.

    Where another machine has finished the same run before, its files come here instead.

    Args and Raises: as `pull`.
    """
    with ONE_AT_A_TIME:
        # First, so that what came in the place of something discarded goes up before that is removed.
        discarded = set(_discarded.get(mirror.folder.absolute(), ()))
        stats = {name: stat for name in _names(mirror.folder, within) if (stat := _stat(mirror.folder / name))}
        known = manifest.load(mirror.folder, within)
        fixed = _fixed(stats)
        new = {
            name for name, now in stats.items() if name not in known or (known[name][1:] != now and name not in fixed)
        }
        if not new and not discarded:
            return
        with _reached(mirror.url) as (store, root):
            if theirs := _finished(store, root, mirror.folder, new & fixed):
                for name in _fetch(store, root, mirror.folder, list(theirs)):
                    del theirs[name]
            known |= {name: (token, *now) for name, token in theirs.items() if (now := _stat(mirror.folder / name))}
            ours = sorted(new - theirs.keys(), key=_marks_whole)
            sent = [name for name in ours if _send(store, root, mirror.folder, name)]
            tokens = _tokens_of(store, root, sent)
            known |= {name: (tokens[name], *stats[name]) for name in sent if name in tokens}
            removed = _remove_in_store(store, root, mirror.folder, discarded)
        _discarded.get(mirror.folder.absolute(), set()).difference_update(discarded)
        manifest.save(mirror.folder, {name: value for name, value in known.items() if name not in removed}, within)


def discard(mirror: Mirror, *names: str) -> None:
    """Remove files or folders here, and by the next `push` from the store as far as they are not here again by then.

    Args:
        mirror: the two sides.
        *names: "failed/3f2a.json", "runs/3f2a.part" or something in "tracking".

    Raises:
        ValueError: it is of a finished run, or something else that a study never removes.
    """
    for name in names:
        path = below(mirror.folder, name)
        if not _passing(name):
            raise ValueError(f"{mirror.url}/{name} is never removed")
        remove(path)
    # Without the lock, under which an upload may take minutes: one step of the interpreter.
    _discarded.setdefault(mirror.folder.absolute(), set()).update(names)


@contextmanager
def _reached(url: str) -> Iterator[tuple[Any, str]]:
    """The store's file system and the path in it; what goes wrong there is an OSError in one line."""
    core = require("fsspec.core", "ray", "an object store")
    try:
        store, root = core.url_to_fs(url)
        yield store, root.rstrip("/")
    except ImportError as error:
        needed = "pip install 'unbraid[ray]'" if url.startswith("s3:") else str(error)
        raise ImportError(f"{url}: the package for this kind of store is not installed: {needed}") from error
    except Exception as error:  # each kind of store has exceptions of its own
        raise OSError(f"{url}: {' '.join(str(error).split()) or type(error).__name__}") from error


def in_study(path: PurePosixPath) -> PurePosixPath:
    """Of a file or folder in a study of several datasets, where it lies in that of its own, without the label."""
    first, *rest = path.parts or ("",)
    unlabelled = first in (*WHOLE, *PASSING) or not rest or rest[0] not in (*WHOLE, *PASSING, *OPENED)
    return path if unlabelled else PurePosixPath(*rest)


def _listed(store: Any, root: str, folder: Path, within: Iterable[str]) -> dict[str, str]:
    """What the store says of each file, by its name beneath the prefix.

    Raises:
        ValueError: a key that is no name for a file of the folder.
    """
    store.invalidate_cache()
    tokens: dict[str, str] = {}
    for start in [f"{root}/{name}" if name else root for name in within] or [root]:
        for path, entry in store.find(start, detail=True).items():
            name = path.removeprefix(f"{root}/")
            if path.endswith("/") or _hidden(name):  # marks of folders, and what is not ours
                continue
            below(folder, name)
            if path == name or PurePosixPath(name).as_posix() != name:
                raise ValueError(f"{path!r} is no name of a file")
            if not _left_over(name):
                tokens[name] = _token(entry)
    return tokens


def _hidden(name: str) -> bool:
    return re.search(r"(^|/)\.\w", name) is not None


def _left_over(name: str) -> bool:
    """Whether it is the checkpoint of a run that is finished, on its way to be removed."""
    path = PurePosixPath(name)
    return path.name == CHECKPOINT and path.parent.suffix != WORKING


def _token(entry: Mapping[str, Any]) -> str:
    return f"{entry['size']} {next(entry[key] for key in TOKENS if key in entry)}"


def _whole(tokens: Mapping[str, str]) -> dict[str, str]:
    def whole(folder: PurePosixPath) -> bool:
        within = in_study(folder)
        must = len(within.parts) == 2 and within.parts[0] in WHOLE and folder.suffix != WORKING
        return not must or str(folder / CONFIG) in tokens

    return {name: token for name, token in tokens.items() if whole(PurePosixPath(name).parent)}


def _fixed(names: Iterable[str]) -> set[str]:
    """Those that never change once their run is whole."""
    paths = ((name, PurePosixPath(name)) for name in names)
    return {name for name, path in paths if path.name in FIXED and path.parent.suffix != WORKING}


def _finished(store: Any, root: str, folder: Path, names: set[str]) -> dict[str, str]:
    """Those of these files of finished runs that the store has already, in runs that are whole there."""
    if not names:
        return {}
    tokens = _listed(store, root, folder, {name.rpartition("/")[0] for name in names})
    marked = {name.rpartition("/")[0] for name in tokens if _marks_whole(name)}
    return {name: tokens[name] for name in names & tokens.keys() if name.rpartition("/")[0] in marked}


def _marks_whole(name: str) -> bool:
    return PurePosixPath(name).name == CONFIG


def _passing(name: str) -> bool:
    first, *rest = in_study(PurePosixPath(name)).parts
    return bool(rest) and (first in PASSING or (first in WHOLE and rest[0].endswith(WORKING)))


def _beneath(name: str, places: set[str]) -> bool:
    """Whether the file is one of these, or in one of them."""
    return bool(places) and any(str(place) in places for place in (PurePosixPath(name), *PurePosixPath(name).parents))


def _is_current(path: Path, token: str, before: tuple[str, int, int] | None, may_change: bool) -> bool:
    """Whether the file here stays as it is, though the store has one of the name."""
    now = _stat(path)
    if before is None or now is None or before[0] != token:
        return False
    return now == before[1:] or (may_change and now[1] > before[2] and _readable(path))


def _readable(path: Path) -> bool:
    """Whether it may be what a process of ours wrote, all of which is written whole."""
    try:
        return path.suffix != ".json" or isinstance(json.loads(path.read_bytes()), dict)
    except ValueError:
        return False


def _names(folder: Path, within: Iterable[str]) -> Iterator[str]:
    for start in [folder / name for name in within] or [folder]:
        for parent, folders, files in os.walk(start):  # unlike `rglob`, at ease with folders renamed meanwhile
            folders[:] = [name for name in folders if not name.startswith(".")]
            for path in (Path(parent) / name for name in files if not name.startswith(".")):
                name = path.relative_to(folder).as_posix()
                if not path.is_symlink() and not _left_over(name):
                    yield name


def _fetch(store: Any, root: str, folder: Path, names: list[str]) -> set[str]:
    """Bring these files here, but for those that are damaged in the store and whole here, which are returned."""
    incoming = folder / INCOMING
    shutil.rmtree(incoming, ignore_errors=True)
    if not names:
        return set()
    for parent in {(incoming / name).parent for name in names}:
        parent.mkdir(parents=True, exist_ok=True)
    try:
        store.get([f"{root}/{name}" for name in names], [str(incoming / name) for name in names])
    except FileNotFoundError:
        for name in names:  # another machine may have removed one of them in this moment
            with suppress(*[FileNotFoundError] * _passing(name)):
                store.get_file(f"{root}/{name}", str(incoming / name))
    better_here = {name for name in names if is_whole(folder / name) and not is_whole(incoming / name)}
    for name in better_here:
        (incoming / name).unlink(missing_ok=True)
    for parent in sorted({PurePosixPath(name).parent for name in names}):
        if (incoming / parent).is_dir():
            _place(incoming / parent, folder / parent)
    shutil.rmtree(incoming)
    return better_here


def _place(source: Path, target: Path) -> None:
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        source.rename(target)
        return
    for path in source.iterdir():
        if path.is_file():
            path.replace(target / path.name)


def _send(store: Any, root: str, folder: Path, name: str) -> bool:
    try:
        store.put_file(str(folder / name), f"{root}/{name}")
    except FileNotFoundError:
        if (folder / name).exists():  # it is the store that lacks something
            raise
        return False  # renamed or removed since it was found
    return True


def _tokens_of(store: Any, root: str, names: Iterable[str]) -> dict[str, str]:
    """What the store says of these files, and of others in the same folders."""
    store.invalidate_cache()
    places = {f"{root}/{name}".rpartition("/")[0] for name in names}
    entries = [entry for place in places for entry in store.ls(place, detail=True) if entry["type"] == "file"]
    return {entry["name"].removeprefix(f"{root}/"): _token(entry) for entry in entries}


def _remove_in_store(store: Any, root: str, folder: Path, names: set[str]) -> set[str]:
    """Remove what was discarded and is not here again; gives what it was."""
    store.invalidate_cache()
    present = {path.removeprefix(f"{root}/") for name in names for path in store.find(f"{root}/{name}")}
    gone = {name for name in present if _beneath(name, names) and not (folder / name).exists()}
    if gone:
        with suppress(FileNotFoundError):  # somebody else removed it first
            store.rm([f"{root}/{name}" for name in sorted(gone)])
    return gone


def _stat(path: Path) -> tuple[int, int] | None:
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    return stat.st_size, stat.st_mtime_ns
