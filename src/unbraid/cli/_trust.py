"""The options of commands that may execute or read what a folder names."""

import shlex
from typing import Annotated

import typer

from unbraid.files.trust import Untrusted, is_code

TRUST = "Trust"  # the heading of these options


def _checked(names: list[str] | None) -> list[str] | None:
    for name in names or ():
        if not is_code(name):
            raise ValueError(f"--trust-code {name}: write package.module:function")
    return names


TrustCode = Annotated[
    list[str] | None,
    typer.Option(
        "--trust-code",
        rich_help_panel=TRUST,
        metavar="MODULE:FUNCTION",
        help="Allow the folder to run this function, which it names; may be repeated.",
        callback=_checked,
    ),
]


TrustData = Annotated[
    list[str] | None,
    typer.Option(
        "--trust-data",
        rich_help_panel=TRUST,
        metavar="PATH",
        help="Allow the folder to read the images at this path, which it names; may be repeated.",
    ),
]


def trusted(*options: list[str] | None) -> list[str]:
    """What these options name together."""
    return [name for names in options for name in names or ()]


def untrusted_line(error: Untrusted) -> str:
    """What the command line says of it."""
    options = " ".join(f"{error.option} {shlex.quote(name)}" for name in error.names)
    return f"{error.reason}: if you trust it, add {options}"
