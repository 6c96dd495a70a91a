"""The help of every command."""

from collections.abc import Iterator
from typing import Any

import click
import typer.main

from unbraid.cli.app import app


def page() -> str:
    """All commands, one section each."""
    parts = [
        "# Commands",
        "Exit codes: 0 done, 2 bad input (one line says what), 3 a metric failed (--strict) or is worse than "
        "--fail-under, 130 interrupted, 143 stopped by SIGTERM, 1 internal error, please report.",
    ]
    for path, command in _commands(typer.main.get_command(app), "unbraid"):
        context = click.Context(command, info_name=path, terminal_width=80, max_content_width=80)
        parts.append(f"## {path}\n\n```text\n{command.get_help(context)}\n```")
    return "\n\n".join(parts)


def _commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    children = getattr(command, "commands", None)
    if children is None:
        yield path, command
        return
    for name, child in children.items():
        yield from _commands(child, f"{path} {name}")
