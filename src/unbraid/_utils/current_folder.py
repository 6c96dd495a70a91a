"""What lies in the current folder, which may be a stranger's: no command executes it, and no library obeys it unasked.

Here are the libraries that read a settings file of the current folder while they are imported. They are imported
without it, wherever in the process that happens after `import unbraid`; so this module comes first of all.
"""

import os
import stat
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

NUMBA = "numba.core.config"
FILES = {NUMBA: ".numba_config.yaml", "matplotlib": "matplotlibrc"}  # that the module reads

_guarded: set[str] = set()
_hiding = threading.RLock()


def guard(*modules: str) -> None:
    """From now on these modules, of `FILES`, are imported without their files of the current folder."""
    if not _guarded:
        sys.meta_path.insert(0, _Guard())
    _guarded.update(modules)
    if (loaded := sys.modules.get(NUMBA)) and NUMBA in modules:
        _choose_numba_cache()
        loaded.__dict__["_config_fname"] = ""
        loaded.reload_config()


class _Guard:
    """Finds what Python finds, to be executed with care."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in _guarded:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader.exec_module = partial(_execute, spec.loader.exec_module)
        return spec


def _execute(execute: Callable[[ModuleType], None], module: ModuleType) -> None:
    """Execute a module to which its file of the current folder does not exist: neither library has a switch for it.

    Who else asks for that file meanwhile asks by another path, and is answered as ever.
    """
    hidden = FILES[module.__name__]
    if module.__name__ == NUMBA:
        _choose_numba_cache()
    with _hiding:
        exists = os.path.exists
        os.path.exists = lambda path: path != hidden and exists(path)
        try:
            execute(module)
        finally:
            os.path.exists = exists
    if module.__name__ == NUMBA:
        module.__dict__["_config_fname"] = ""  # else numba looks for it again whenever it compiles


def _choose_numba_cache() -> None:
    """Name the folder where numba keeps what it compiles, unless the user has; numba unpickles whatever lies there."""
    if not os.environ.get("NUMBA_CACHE_DIR"):
        os.environ["NUMBA_CACHE_DIR"] = numba_cache()


def numba_cache() -> str:
    """A folder that nobody else can write: in the user's own cache, or a temporary one where that cannot be had."""
    import platformdirs

    folder = platformdirs.user_cache_path("unbraid", appauthor=False, opinion=False) / "numba"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        kept = is_private(folder) and os.access(folder, os.W_OK)
    except OSError:
        kept = False
    return str(folder) if kept else _temporary_cache()


def is_private(folder: Path) -> bool:
    """Whether nobody but the user, and root, could have put anything into the folder, or another in its place."""
    if os.name == "nt":  # where folders of the user are closed to others from the start
        return True
    if not folder.is_absolute():  # as "~/.cache" stays where there is no home
        return False
    folder = folder.resolve()
    own = folder.stat()
    if own.st_uid != os.getuid() or own.st_mode & 0o077:
        return False
    above = [each.stat() for each in folder.parents]
    return all(each.st_uid in (0, os.getuid()) and _holds(each.st_mode) for each in above)


def _holds(mode: int) -> bool:
    """Whether others cannot rename what is in a folder of this mode."""
    return not mode & stat.S_IWOTH or bool(mode & stat.S_ISVTX)


def _temporary_cache() -> str:
    import atexit
    import shutil
    import tempfile

    folder = tempfile.mkdtemp(prefix="unbraid-numba-")
    process = os.getpid()

    def remove() -> None:  # by who made it, and not by what was forked of it
        if os.getpid() == process:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder
