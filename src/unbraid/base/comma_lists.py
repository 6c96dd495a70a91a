"""Names that are listed with commas between, on the command line."""

import re
from collections.abc import Iterable

_QUOTED = re.compile(r'(?:^|(?<=[,=+]))\s*"((?:[^"]|"")*)"\s*(?=[,=+]|$)')
_SPECIAL = {*',"()'}
_COMMA = re.compile(r",(?![^()]*\))")


def listed(text: str | None) -> list[str]:
    """Names between commas, but for commas in brackets, or in names that stand in double quotes, as in a .csv file."""
    return [part for part in separated(text or "") if part]


def separated(text: str) -> list[str]:
    """As `listed`, with those that are empty."""
    whole: list[str] = []

    def keep(quoted: re.Match[str]) -> str:
        whole.append(quoted[1].replace('""', '"'))
        return f"\0{len(whole) - 1}\0"

    parts = [part.strip() for part in _COMMA.split(_QUOTED.sub(keep, text))]
    return [re.sub("\0(\\d+)\0", lambda place: whole[int(place[1])], part) for part in parts]


def joined(names: Iterable[str]) -> str:
    """The text of which `listed` makes these names."""
    return ",".join('"{}"'.format(name.replace('"', '""')) if _SPECIAL & {*name} else name for name in names)
