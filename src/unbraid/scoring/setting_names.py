"""Names of settings where they are shown side by side: what all of them share goes without saying."""

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from unbraid.base.printable import printable

if TYPE_CHECKING:
    from unbraid.base.types import DataFrame

Key: TypeAlias = tuple[str, str]  # family and setting

PART = re.compile(r", (?=\w+=)")


def brief_settings(settings: Iterable[Key]) -> dict[Key, str]:
    """Names of settings, shortened to what differs between them.

    The name of a setting, "beta=4, network=dense, steps=2000", is the same in every table. Shown among others, a part
    that all settings of its family have is left out; where the family has a single setting, a part that all other
    families have as well.

    Example:
        >>> list(brief_settings([("vae", "beta=1, steps=9"), ("vae", "beta=4, steps=9"), ("pca", "steps=9")]).values())
        ['beta=1', 'beta=4', '']
    """
    parts = {key: [part for part in PART.split(key[1]) if part] for key in dict.fromkeys(settings)}
    families = {family for family, _ in parts}
    names = {}
    for (family, setting), own in parts.items():
        siblings = [set(each) for (other, _), each in parts.items() if other == family]
        shared = set.intersection(*siblings)
        if len(siblings) == 1 and len(families) > 1:
            shared = {part for part in shared if _everywhere(part, family, parts)}
        names[family, setting] = printable(", ".join(part for part in own if part not in shared))
    return names


def _everywhere(part: str, family: str, parts: Mapping[Key, list[str]]) -> bool:
    name = part.partition("=")[0]
    named = {each for own in parts.values() for each in own if each.partition("=")[0] == name}
    return named == {part} and any(part in own for (other, _), own in parts.items() if other != family)


def with_brief_settings(frame: "DataFrame") -> "DataFrame":
    """The frame to be shown: its column "setting" as `brief_settings` has it, no name with control characters."""
    keys = list(zip(frame["family"].fillna("").astype(str), frame["setting"].fillna("").astype(str), strict=True))
    brief = brief_settings(keys)
    return frame.assign(family=[printable(family) for family, _ in keys], setting=[brief[key] for key in keys])
