"""The YAML at the head of a README.md, of which single keys are set and everything else stays as it stands."""

import re
from collections.abc import Mapping
from typing import Any

import yaml

from unbraid.storage.yaml_files import parse_yaml, written

HEAD = re.compile(r"\A(\ufeff?\s*---[ \t]*\r?\n)(.*?)(^---[ \t]*(?:\r?\n|\Z))", re.DOTALL | re.MULTILINE)


def read_front_matter(text: str, where: str) -> dict[str, Any]:
    """The keys at the head of a text; none where it has no such head.

    Raises:
        ValueError: it is no YAML with keys; the message names `where`.
    """
    head = HEAD.match(text)
    content = parse_yaml(head[2], where) if head else None
    if content is not None and not isinstance(content, dict):
        raise ValueError(f"{where}: what stands between the lines of --- must be keys with values")
    return content or {}


def with_keys(text: str, values: Mapping[str, Any], where: str) -> str:
    """The text with these keys at its head; other keys, comments and all that follows stay letter by letter.

    Raises:
        ValueError: as `read_front_matter`; or it is written such that no key can be replaced alone.
    """
    known, head = read_front_matter(text, where), HEAD.match(text)
    how = "one key per line, without indents and anchors"
    one_by_one = f"{where}: write the front matter with {how}, so that single ones can be replaced"
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = head[2].splitlines(keepends=True) if head else []
    if _in_braces(lines):
        raise ValueError(one_by_one)
    for key, value in values.items():
        _replace(lines, key, written({key: value}).replace("\n", newline))
    opened, closed = (head[1], head[3]) if head else (f"---{newline}", f"---{newline}")
    rest = text[head.end() :] if head else newline + text if text else ""
    body = "".join(lines)
    try:
        whole = parse_yaml(body, where)
    except ValueError:  # what stood there could be read: it is the new lines that do not fit
        whole = None
    if whole != {**known, **values}:
        raise ValueError(one_by_one)
    return f"{opened}{body}{closed}{rest}"


def _in_braces(lines: list[str]) -> bool:
    root = yaml.compose("".join(lines), Loader=yaml.SafeLoader)
    return isinstance(root, yaml.MappingNode) and bool(root.flow_style)


def _replace(lines: list[str], key: str, new: str) -> None:
    """Put the lines of a key in place of those that it has, or at the end."""
    root = yaml.compose("".join(lines), Loader=yaml.SafeLoader)
    pairs = root.value if isinstance(root, yaml.MappingNode) else []
    starts = [each.start_mark.line for each, _ in pairs]
    for place, (each, _) in enumerate(pairs):
        if each.value == key:
            first, last = starts[place], starts[place + 1] if place + 1 < len(pairs) else len(lines)
            while last > first + 1 and re.fullmatch(r"\s*(#.*)?", lines[last - 1].rstrip("\r\n")):
                last -= 1  # a comment belongs to what follows
            lines[first:last] = [new]
            return
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    lines.append(new)
