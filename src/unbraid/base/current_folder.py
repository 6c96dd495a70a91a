"""The current folder may be a stranger's: a command and its workers neither import from it nor obey settings in it.

Nothing here is called by the library, which leaves its host as it is.
"""

import os
import sys

SETTINGS = (".numba_config.yaml", "matplotlibrc")  # numba and matplotlib read them, and have no switch for it

_exists = os.path.exists


def ignore_settings() -> None:
    """From now on numba and matplotlib, in this process, do not see their settings files in the current folder."""
    os.path.exists = _exists_unless_settings
    if not any(os.access(folder, os.W_OK) for folder in (os.path.dirname(__file__), os.path.expanduser("~"))):
        _compile_in_temporary_folder()


def _exists_unless_settings(path: "int | str | bytes | os.PathLike[str] | os.PathLike[bytes]") -> bool:
    return path not in SETTINGS and _exists(path)


def _compile_in_temporary_folder() -> None:
    """Where the user can write neither to the package nor to a home, numba finds no folder and refuses to compile."""
    import atexit
    import shutil
    import tempfile

    if not os.environ.get("NUMBA_CACHE_DIR"):
        folder = os.environ["NUMBA_CACHE_DIR"] = tempfile.mkdtemp(prefix="unbraid-numba-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)


def importable() -> list[str]:
    """The folders that this process imports from, in their order, as another in another folder names them."""
    return [os.path.abspath(path) for path in sys.path]
