"""The command `unbraid`: parse, call the library, print."""

import gc
import os
import signal
import sys

from unbraid.base.current_folder import ignore_settings
from unbraid.base.signals import STOPPED, Terminated, ended_when_interrupted, leave, terminable

__all__ = ["main"]


def main() -> None:
    """Run the command line; see `unbraid.cli.app.main`."""
    gc.set_threshold(200_000, 20, 20)  # commands make much and drop little: this took a quarter of `status`
    _open_streams()
    ignore_settings()
    try:
        with ended_when_interrupted(), terminable():
            from unbraid.cli import app  # takes long enough to be interrupted

            app.main()
    except KeyboardInterrupt as stopped:
        number = signal.SIGTERM if isinstance(stopped, Terminated) else signal.SIGINT
        leave(f"unbraid: {STOPPED[number]}; no file was left half-written", 128 + number)
    except SystemExit as ended:
        if ended.code in (130, 143):
            leave("", ended.code)
        raise


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
