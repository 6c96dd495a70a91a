"""The option --trust-code of every command that may execute what a folder names."""

from typing import Annotated

import typer

from unbraid._trust import UntrustedCode, is_code


def _checked(names: list[str] | None) -> list[str] | None:
    for name in names or ():
        if not is_code(name):
            raise ValueError(f"--trust-code {name}: write package.module:function")
    return names


TrustCode = Annotated[
    list[str] | None,
    typer.Option(
        "--trust-code",
        metavar="MODULE:FUNCTION",
        help="Execute this code of your own where the folder names it; may be repeated.",
        show_default=False,
        callback=_checked,
    ),
]


def untrusted_line(error: UntrustedCode) -> str:
    """What the command line says of it."""
    return f"{error.reason}: if you trust it, add --trust-code {error.name}"
