"""With this folder on PYTHONPATH: every file of the folder AUDITED that a process opens, and its being on the path.

A line each in the file that AUDIT_LOG names, from the start of a Python process on, and of all that it starts.
"""

import os
import sys

_folder, _log = os.environ["AUDITED"], os.environ["AUDIT_LOG"]


def _write(line: str) -> None:
    with open(_log, "a", encoding="utf-8") as log:
        log.write(line + "\n")


def _opened(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
        path = os.path.abspath(os.fsdecode(arguments[0]))
        if path.startswith(_folder + os.sep):
            _write(path)


sys.addaudithook(_opened)
