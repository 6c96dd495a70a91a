"""What to say to somebody who named what is not there."""

from collections.abc import Iterable
from difflib import get_close_matches


def suggestion(name: str, known: Iterable[str], *, few: str | None = None) -> str:
    """`did you mean 'beta'?`, or what there is.

    Args:
        name: what was asked for.
        known: what there is.
        few: said in place of the list, where that would be too long to read.
    """
    names = list(known)
    near = get_close_matches(name, names, n=1)
    return f"did you mean {near[0]!r}?" if near else few or f"there are {', '.join(names) or 'none'}"
