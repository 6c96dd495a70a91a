"""Studies in an object store: `s3://bucket/prefix` wherever the folder of a study may stand.

Such a study has a folder here that mirrors it, beside the datasets in the cache. All that reads and writes studies
works on that folder; it is brought up to date when the study is opened, and what changes in it goes up while the study
runs. The store is the truth: the folder, or any file in it, may be deleted at any time when no study runs, and comes
back from the store as the study is opened.
"""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote, unquote

from unbraid.files import sync
from unbraid.files.cache_folder import cache_root
from unbraid.files.locks import is_held
from unbraid.files.manifest import all_sent, begin_changes
from unbraid.files.sync import Mirror, pull, push
from unbraid.files.whole_files import remove

LOCK = ".lock"  # held by the process that works on the folder of a study
EVERY = 120.0  # seconds between two uploads of checkpoints: what a lost machine loses, and as long to the last one
HERE = ("file", "local")  # of an address that is no store but a folder


def local_folder(path: str | Path, *, new: bool = False) -> Path:
    """The folder itself, or the one that mirrors it where `path` is the address of a store; then brought up to date.

    Args:
        path: of a folder, or an address such as s3://bucket/prefix.
        new: whether the store may hold nothing yet; the folder is then still to be made.

    Raises:
        ValueError: the address names no bucket, or a folder of this machine.
        FileNotFoundError: the store holds nothing at the address.
        OSError: the store cannot be reached or read. Nothing was written.
        ImportError: the package for this kind of store is not installed.
    """
    url = address(path)
    if url is None:
        return Path(path)
    scheme, _, place = url.partition("://")
    if scheme in HERE:
        raise ValueError(f"{path}: give a folder of this machine by its path alone, without {scheme}:")
    if not place:
        raise ValueError(f"{url} names no bucket; expected {scheme}://bucket/prefix")
    folder = _mirrors() / quote(url, safe="")
    if not _at_work(folder):
        pull(Mirror(url, folder))
    if not new and not folder.is_dir():
        raise FileNotFoundError(f"{url}: there is no study")
    return folder


def address(path: str | Path) -> str | None:
    """The address of a store, also where `pathlib` or a shell took one of its slashes; None for a folder."""
    # One letter is a drive; of an address without a bucket, pathlib leaves the scheme.
    match = re.fullmatch(r"([a-z][a-z0-9+]+):/+(.*)|(s3a?|gc?s|az|abfss?):", str(path), re.IGNORECASE | re.DOTALL)
    return f"{(match[1] or match[3]).lower()}://{(match[2] or '').rstrip('/')}" if match else None


def mirror_of(folder: Path) -> Mirror | None:
    """The store that the folder of a study mirrors; of one of several datasets that of all; None for other folders."""
    folder, mirrors = folder.absolute(), _mirrors().absolute()
    for whole in (folder, folder.parent):
        if whole.parent == mirrors:
            return Mirror(unquote(whole.name), whole)
    return None


def address_of(folder: Path) -> str | None:
    """Where the study is that the folder mirrors, such as s3://bucket/prefix; None for other folders."""
    mirror = mirror_of(folder)
    return "/".join([mirror.url, *_label(mirror, folder)]) if mirror else None


def stored_at(path: Path) -> str | None:
    """The address in the store of any file or folder below a mirror; None for others."""
    path, mirrors = path.absolute(), _mirrors().absolute()
    if mirrors not in path.parents:
        return None
    name, *parts = path.relative_to(mirrors).parts
    return "/".join([unquote(name), *parts])


def _label(mirror: Mirror, folder: Path) -> tuple[str, ...]:
    """What of the mirror is in a folder of a study: all, or what is in that of one dataset."""
    return folder.absolute().relative_to(mirror.folder).parts


def publish(folder: Path) -> None:
    """Upload what changed in the folder, where it mirrors a store.

    Raises:
        OSError: the store cannot be reached or written; the same call continues.
    """
    if mirror := mirror_of(folder):
        begin_changes(mirror.folder)
        push(mirror, *_label(mirror, folder))
        if not _at_work(mirror.folder):
            all_sent(mirror.folder)


@contextmanager
def at_hand(path: str | Path) -> Iterator[Path]:
    """`local_folder` for as long as the block runs; at its end, what changed in it goes up."""
    folder = local_folder(path)
    with changing(folder):
        yield folder


@contextmanager
def changing(folder: Path) -> Iterator[None]:
    """What the block changes in the folder goes up at its end, where the folder mirrors a store.

    Raises:
        OSError: as `publish`.
    """
    yield
    publish(folder)


def discard(path: Path) -> None:
    """Remove a file or folder of a study, if it is there; by the next upload also from the store that it is kept in.

    Raises:
        ValueError: it is kept in a store, and of a finished run.
    """
    path, mirrors = path.absolute(), _mirrors().absolute()
    for folder in path.parents:
        if folder.parent == mirrors and (mirror := mirror_of(folder)):
            return sync.discard(mirror, path.relative_to(folder).as_posix())
    return remove(path)


@contextmanager
def carried(mirror: Mirror, *within: str, every: float = EVERY) -> Iterator[Callable[[], None]]:
    """Upload what changes while the block runs, now and then, and at its end; gives what to call to upload soon."""
    ended, due = threading.Event(), threading.Event()
    begin_changes(mirror.folder)

    def work() -> None:
        while not ended.is_set():
            due.wait(every)
            due.clear()
            with suppress(OSError):  # tried again later; the last one, below, must succeed
                push(mirror, *within)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield due.set
    finally:
        ended.set()
        due.set()
        thread.join()
        push(mirror, *within)
        if not within or not _is_held(mirror.folder):  # else who runs the studies of all datasets says it
            all_sent(mirror.folder)


@contextmanager
def carried_study(folder: Path) -> Iterator[Callable[[object], None]]:
    """Keeps the store up to date while a study runs; told of every run that ends.

    Raises:
        OSError: the store cannot be written, said before anything is trained; or not any more.
    """
    mirror = mirror_of(folder)
    if mirror is None:
        yield lambda _: None
        return
    within = _label(mirror, folder)
    push(mirror, *within)
    with carried(mirror, *within) as soon:
        yield lambda _: soon()


def _mirrors() -> Path:
    return cache_root() / "studies"


def _at_work(folder: Path) -> bool:
    """Whether this process or another works on the folder: then it is as it should be, and not to be touched."""
    parts = [path.parent for path in folder.glob("*/study.yaml")]  # of several datasets
    return any(map(_is_held, [folder, *parts]))


def _is_held(folder: Path) -> bool:
    """Whether somebody works on this study or on a shard of it."""
    return any(map(is_held, folder.glob(f"{LOCK}*")))
