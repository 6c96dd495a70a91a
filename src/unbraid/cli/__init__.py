"""The command `unbraid`: parse, call the library, print."""

from unbraid.cli.app import main

__all__ = ["main"]
