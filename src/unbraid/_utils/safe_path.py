"""`python -m unbraid` puts the current folder before the standard library: it goes, before anything is found there.

What this module imports itself Python has always loaded by now.
"""

import os
import sys


def leave_current_folder() -> None:
    """Unless Python was told `-P`, or something else is run; a folder that PYTHONPATH names stays."""
    run_as_module = sys.argv[:1] == ["-m"] and sys.orig_argv[-len(sys.argv)].removeprefix("-m") == "unbraid"
    try:
        if run_as_module and not sys.flags.safe_path and sys.path[0] == os.getcwd():
            del sys.path[0]
    except FileNotFoundError:  # the folder has been removed, and Python has not put it there
        pass


def importable() -> list[str]:
    """The folders that this process imports from, in their order, as another in another folder names them."""
    return [os.path.abspath(path) for path in sys.path]
