"""The command `unbraid`: parse, call the library, print."""

import os
import sys

from unbraid.base.current_folder import ignore_settings
from unbraid.base.signals import Terminated, terminable

__all__ = ["main"]


def main() -> None:
    """Run the command line; see `unbraid.cli.app.main`."""
    _open_streams()
    ignore_settings()
    try:
        with terminable():
            from unbraid.cli import app  # takes long enough to be interrupted

            app.main()
    except KeyboardInterrupt as stopped:
        terminated = isinstance(stopped, Terminated)
        reason = "stopped by SIGTERM" if terminated else "interrupted"
        print(f"unbraid: {reason}; no file was left half-written", file=sys.stderr)
        raise SystemExit(143 if terminated else 130) from None


def _open_streams() -> None:
    """Connect standard streams that are closed, as cron and daemons leave them, to nothing.

    Else the next file that is opened would be taken for one of them.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    sys.stdin = sys.stdin or os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)
