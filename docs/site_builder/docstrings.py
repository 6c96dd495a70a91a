"""Docstrings of functions as Markdown."""

import inspect
import re
import textwrap
from collections.abc import Callable
from typing import Any

SECTIONS = ("Args", "Returns", "Raises", "Reference", "Example", "Examples")
HEADS = {"Args": "Arguments", "Raises": "Errors", "Reference": "Source and departures from it"}


def signature(function: Callable[..., Any]) -> str:
    """`name(codes, factors, *, bins=20)` without types."""
    parts, starred = [], False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        default = "" if parameter.default is inspect.Parameter.empty else f"={parameter.default!r}"
        parts.append(f"{parameter.name}{default}")
    return f"{function.__name__}({', '.join(parts)})"


def sections(function: Callable[..., Any]) -> dict[str, str]:
    """The docstring by section, "" for what comes before the first."""
    found: dict[str, list[str]] = {"": []}
    current = ""
    for line in (inspect.getdoc(function) or "").splitlines():
        head = line.removesuffix(":")
        if line.endswith(":") and head in SECTIONS:
            current = head
            found[current] = []
        else:
            found[current].append(line)
    return {name: textwrap.dedent("\n".join(lines)).strip() for name, lines in found.items()}


def as_markdown(function: Callable[..., Any]) -> str:
    """The whole docstring: paragraphs, a list of arguments and of errors, the example as code."""
    parts = []
    for name, text in sections(function).items():
        if name:
            parts.append(f"### {HEADS.get(name, name)}")
        if name in {"Args", "Raises"}:
            parts.append(_list(text))
        elif name in {"Example", "Examples"}:
            parts.append(f"```pycon\n{text}\n```")
        elif name == "":
            # The first line is the page's lead.
            parts.append(escaped(text.partition("\n")[2].strip()))
        else:
            parts.append(escaped(text))
    return "\n\n".join(part for part in parts if part)


def escaped(text: str) -> str:
    """Plain text in which `code` stays code and nothing else is read as Markdown."""
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(piece if piece.startswith("`") else re.sub(r"([*_<\[\]\\#|])", r"\\\1", piece) for piece in pieces)


def _list(text: str) -> str:
    """`name: what it is`, continued on indented lines, as items."""
    items: list[str] = []
    for line in text.splitlines():
        found = re.match(r"([\w, *]+): (.*)", line)
        if found and not line.startswith(" "):
            names = ", ".join(f"`{name.strip()}`" for name in found[1].split(","))
            items.append(f"- {names}: {escaped(found[2])}")
        elif items:
            items[-1] += " " + escaped(line.strip())
        else:
            items.append(f"- {escaped(line.strip())}")
    return "\n".join(items)
