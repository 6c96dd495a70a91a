"""What a folder of results has lost or changed since a revision of its repository: nothing may vanish unseen."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from records.files import paths, read
from records.schema import differing, key_of, named
from unbraid.base.suggest import one_line


def changes(folder: Path, revision: str) -> list[str]:
    """One line for each number that vanished since, or changed without a new entry in the history of its file.

    Args:
        folder: in a git repository.
        revision: a commit, branch or tag.

    Raises:
        FileNotFoundError: there is no such folder.
        ValueError: git is not installed, the folder is in no repository, or that has no such revision.
    """
    now = {path.relative_to(folder).as_posix(): path for path in paths(folder)}
    return [
        f"{folder / name}: {fault}"
        for name, then in _at(folder, revision).items()
        for fault in _of(then, now.get(name))
    ]


def latest(folder: Path) -> str | None:
    """The last commit that touched the folder; None where there is none, or no repository."""
    try:
        return _git(folder, "log", "-1", "--format=%H", "--", ".").decode().strip() or None
    except ValueError:
        return None


def _of(then: Mapping[str, Any], path: Path | None) -> Iterator[str]:
    try:
        now = {"scores": [], "history": []} if path is None else read(path)
    except ValueError:
        return  # which `faults` tells
    before, after = then["history"], now["history"]
    if path is not None and after[: len(before)] != before:
        yield "history: an earlier entry was changed or removed; add a new one below it"
    told = len(after) > len(before)
    known = {key_of(score): score for score in now["scores"]}
    for score in then["scores"]:
        for kind in ("reported", "measured"):
            if kind not in score:
                continue
            left = known.get(key_of(score), {}).get(kind)
            if left is None:
                yield f"{named(score)}: the {kind} number {score[kind]['value']:g} has vanished"
            elif left != score[kind] and not told:
                name, old, new = differing(score[kind], left)
                changed = f"{kind} has changed, {name} from {old!r} to {new!r},"
                yield f"{named(score)}: {changed} without a new entry in history"


def _at(folder: Path, revision: str) -> dict[str, dict[str, Any]]:
    """The contents of all files at a revision, by their path in the folder; what was no file of results is left out."""
    commit = _git(folder, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}").decode().strip()
    found = {}
    for line in _git(folder, "ls-tree", "-r", "-z", commit).decode().split("\0"):
        about, _, name = line.partition("\t")
        if name.endswith(".json"):
            found[name] = about.split()[2]
    # Headers "digest kind size", each followed by as many bytes and a newline.
    stream, contents = _git(folder, "cat-file", "--batch", given="\n".join(found.values()).encode()), {}
    for name in found:
        header, _, stream = stream.partition(b"\n")
        size = int(header.split()[2])
        content, stream = stream[:size], stream[size + 1 :]
        contents[name] = _results(content)
    return {name: content for name, content in contents.items() if content is not None}


def _results(content: bytes) -> dict[str, Any] | None:
    try:
        held = json.loads(content)
    except ValueError:
        return None
    return held if isinstance(held, dict) and {"scores", "history"} <= held.keys() else None


def _git(folder: Path, *words: str, given: bytes = b"") -> bytes:
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], input=given, capture_output=True, check=False)
    except FileNotFoundError:
        raise ValueError("--against needs git, which is not installed") from None
    if done.returncode:
        said = one_line(done.stderr.decode(errors="replace").removeprefix("fatal: "))
        raise ValueError(f"{folder}: git does not know what was there ({said})")
    return done.stdout
