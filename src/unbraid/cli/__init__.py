"""The command `unbraid`: parse, call the library, print."""

import sys

from unbraid._utils.current_folder import ignore_settings

__all__ = ["main"]


def main() -> None:
    """Run the command line; see `unbraid.cli.app.main`."""
    try:
        ignore_settings()
        from unbraid.cli import app  # takes long enough to be interrupted

        app.main()
    except KeyboardInterrupt:
        print("unbraid: interrupted; no file was left half-written", file=sys.stderr)
        raise SystemExit(130) from None
