"""`python -m unbraid`: the command where its folder is not on the path."""

import os
import sys


def leave_current_folder() -> None:
    """Undo that Python puts the current folder before the standard library, which it does unless it was told -P."""
    try:
        if not sys.flags.safe_path and sys.path[0] == os.getcwd():
            del sys.path[0]
    except FileNotFoundError:  # the folder has been removed, and Python has not put it there
        pass


if __name__ == "__main__":
    leave_current_folder()

    from unbraid.cli import main

    main()
